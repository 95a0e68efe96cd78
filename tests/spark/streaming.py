"""Small streams of files for tests: one file is one micro-batch, in the order of the list."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery


def as_batches(folder: Path, tables: Sequence[pa.Table], *, first: int = 0) -> Path:
    """A folder in which every table is a file, each a second newer than the one before."""
    folder.mkdir(exist_ok=True)
    for number, table in enumerate(tables, start=first):
        hidden, path = folder / f"_{number:04}.parquet", folder / f"{number:04}.parquet"
        pq.write_table(table, hidden)
        os.utime(hidden, (1_700_000_000 + number,) * 2)
        hidden.rename(path)
    return folder


def read_stream(spark: SparkSession, folder: Path) -> DataFrame:
    """The files of a folder as a stream, one per micro-batch."""
    schema = spark.read.parquet(str(folder)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def run_to_end(answers: DataFrame, place: Path) -> StreamingQuery:
    """Run a stream until nothing is left to read; answers go to ``place/out``."""
    query = (
        answers.writeStream.format("parquet")
        .option("path", str(place / "out"))
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def found(spark: SparkSession, folder: Path) -> pa.Table:
    """What a file sink holds."""
    return spark.read.parquet(str(folder)).toArrow()


def metrics(query: StreamingQuery, name: str = "panes") -> list[dict[str, int]]:
    """What the query observed of itself, batch by batch."""
    return [p["observedMetrics"][name].asDict() for p in query.recentProgress]
