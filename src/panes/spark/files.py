"""Files as Spark DataFrames, for the command line."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame

from panes.spark.session import session


def read(path: Path) -> DataFrame:
    """A file, or a folder of Parquet files, read by Spark."""
    spark = session(spark__ui__enabled="false")
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return spark.read.csv(str(path), header=True, inferSchema=True)
    if suffix in (".ndjson", ".jsonl", ".json"):
        return spark.read.json(str(path))
    return spark.read.parquet(str(path))
