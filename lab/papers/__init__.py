"""Each published experiment, run here: what the papers say beside what this library measures."""
