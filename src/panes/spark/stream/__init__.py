"""Streaming DataFrames, one query."""
