"""Files as Spark DataFrames, bounded or streaming, for the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession

from panes.spark.session import session


def spark() -> SparkSession:
    """The session of the command line."""
    return session(spark__ui__enabled="false")


def read(path: Path, format: str, options: Mapping[str, str] = MappingProxyType({})) -> DataFrame:
    """A file, a folder, or the files of a pattern, as Spark reads that format."""
    reader = spark().read.options(**options)
    if format == "csv":
        return reader.csv(str(path), header=True, inferSchema=True, sep=_separator(path))
    return reader.load(str(path), format=format)


def read_stream(
    path: Path,
    format: str,
    files_per_batch: int,
    options: Mapping[str, str] = MappingProxyType({}),
) -> DataFrame:
    """The same as a stream that goes through the files from the oldest on."""
    reader = spark().readStream.schema(read(path, format, options).schema).options(**options)
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
