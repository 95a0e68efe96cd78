"""Rows for tests on Spark, and small streams of files: one file is one micro-batch, in order."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from panes.crash.place import read_stream as read_files
from panes.crash.place import write_batches
from panes.spark.observe import name_among
from tests.support import SCHEMA, assert_rows

ROWS = 250
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def as_batches(folder: Path, tables: Sequence[pa.Table], *, first: int = 0) -> Path:
    """A folder in which every table is a file, each a second newer than the one before."""
    return write_batches(folder, tables, first=first)


def read_stream(spark: SparkSession, folder: Path) -> DataFrame:
    """The files of a folder as a stream, one per micro-batch."""
    frame: DataFrame = read_files(spark, folder)
    return frame


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


def metrics(query: StreamingQuery, name: str | None = None) -> list[dict[str, int]]:
    """What the query observed of itself, batch by batch."""
    told = [p["observedMetrics"] for p in query.recentProgress]
    return [of[name or name_among(of)].asDict() for of in told]


def some_rows() -> pa.Table:
    """Seeded rows with NULLs and NaN in every column that may have them."""
    rng = np.random.default_rng(11)

    def holes(values: list[object]) -> list[object]:
        return [
            None if hole else v for v, hole in zip(values, rng.random(ROWS) < 0.15, strict=True)
        ]

    numbers = (rng.integers(-40, 40, ROWS) / 4).tolist()
    is_nan = rng.random(ROWS) < 0.05
    floats = [float("nan") if nan else v for v, nan in zip(numbers, is_nan, strict=True)]
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    columns = {
        "at": rng.integers(-100, 200, ROWS).tolist(),
        "k": holes(rng.choice(["a", "b", "c"], ROWS).tolist()),
        "b": holes((rng.random(ROWS) < 0.5).tolist()),
        "i": holes(rng.integers(-9, 9, ROWS).tolist()),
        "x": holes(list(floats)),
        "s": holes(rng.choice(["p", "q", "é"], ROWS).tolist()),
        "d": holes([Decimal(int(v)) / 100 for v in rng.integers(-999, 999, ROWS)]),
        "t": holes([start + dt.timedelta(seconds=int(v)) for v in rng.integers(0, 10**6, ROWS)]),
    }
    return pa.table(columns, schema=SCHEMA)


def assert_equal(answers: DataFrame, want: pa.Table) -> None:
    """The same names and rows; Spark gives no order."""
    assert_rows(answers.toArrow(), want)


def at_seconds(*seconds: float | None, **columns: list[object]) -> pa.Table:
    instants = [None if s is None else START + dt.timedelta(seconds=s) for s in seconds]
    return pa.table({"ts": pa.array(instants, pa.timestamp("us", "UTC")), **columns})


def in_thirds(table: pa.Table) -> list[pa.Table]:
    third = len(table) // 3
    return [table.slice(0, third), table.slice(third, third), table.slice(2 * third)]


def nearly_ordered(table: pa.Table, column: str, within: int) -> pa.Table:
    """Rows in the order of their positions, each moved by at most `within` on the axis."""
    rng = np.random.default_rng(3)
    shifted = table.column(column).to_numpy() + rng.integers(0, within, len(table))
    return table.take(np.argsort(shifted, kind="stable"))
