"""Many queries over one stream: what they share, and how they are answered together."""
