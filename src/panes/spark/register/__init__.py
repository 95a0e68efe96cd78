"""Streaming DataFrames, many queries."""
