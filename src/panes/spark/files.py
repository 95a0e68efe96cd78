"""Files as Spark DataFrames, bounded or streaming, for the command line."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from panes.spark.session import session

_JSON = (".ndjson", ".jsonl", ".json")


def spark() -> SparkSession:
    """The session of the command line."""
    return session(spark__ui__enabled="false")


def read(path: Path) -> DataFrame:
    """A file, or a folder of Parquet files, read by Spark."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return spark().read.csv(str(path), header=True, inferSchema=True)
    if suffix in _JSON:
        return spark().read.json(str(path))
    return spark().read.parquet(str(path))


def read_stream(path: Path, files_per_batch: int) -> DataFrame:
    """The same as a stream that goes through the files from the oldest on."""
    reader = spark().readStream.schema(read(path).schema)
    reader = reader.option("maxFilesPerTrigger", files_per_batch)
    suffix = path.suffix.lower()
    folder = path
    if path.is_file():
        folder = path.parent
        reader = reader.option("pathGlobFilter", path.name)
        # Answers in folders named query=... beside it would be taken for parts of a table.
        reader = reader.option("recursiveFileLookup", True)
    if suffix == ".csv":
        return reader.option("header", True).csv(str(folder))
    return reader.json(str(folder)) if suffix in _JSON else reader.parquet(str(folder))
