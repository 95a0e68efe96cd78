"""Joins of Spark DataFrames: bounded ones as plain Spark, streams as hosted shards."""
