"""Streams on Spark that are killed, started again, and compared with the oracle."""
