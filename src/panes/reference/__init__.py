"""The slow, obvious answer that every fast path is tested against."""
