"""Files as Spark DataFrames, bounded or streaming, for the command line."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from panes.spark.session import session


def spark() -> SparkSession:
    """The session of the command line."""
    return session(spark__ui__enabled="false")


def read(path: Path, format: str) -> DataFrame:
    """A file, a folder, or the files of a pattern, as Spark reads that format."""
    if format == "csv":
        return spark().read.csv(str(path), header=True, inferSchema=True, sep=_separator(path))
    return spark().read.load(str(path), format=format)


def read_stream(path: Path, format: str, files_per_batch: int) -> DataFrame:
    """The same as a stream that goes through the files from the oldest on."""
    reader = spark().readStream.schema(read(path, format).schema)
    reader = reader.option("maxFilesPerTrigger", files_per_batch)
    folder = path
    if path.is_file():
        folder = path.parent
        reader = reader.option("pathGlobFilter", path.name)
        # Answers in folders named query=... beside it would be taken for parts of a table.
        reader = reader.option("recursiveFileLookup", True)
    if format == "csv":
        reader = reader.option("header", True).option("sep", _separator(path))
    return reader.load(str(folder), format=format)


def _separator(path: Path) -> str:
    return "\t" if ".tsv" in path.suffixes else ","
