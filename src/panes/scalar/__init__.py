"""Scalar SQL with one meaning: Spark's, in ANSI mode, evaluated in this process by DuckDB."""
