"""From lowered aggregates to what was selected, and when it is given."""
