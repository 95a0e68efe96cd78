"""Which rows of a batch count: placed on the axis, on time, or set aside with the reason."""
