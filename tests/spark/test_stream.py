"""On Spark, streaming: what one process gives, in any split, and nothing late by a batch."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import panes
import panes.spark
from tests.spark.streaming import as_batches, found, metrics, read_stream, run_to_end
from tests.spark.test_batch import SKETCHES, assert_rows, some_rows
from tests.support import AGGREGATES, select

WINDOWS = (
    "RANGE 20 SLIDE 10 WATTR at",
    "RANGE 7 SLIDE 4 WATTR at",
    "RANGE 3 SLIDE 10 WATTR at",
    "RANGE ALL SLIDE 10 WATTR at",
    "RANGE 20 SLIDE 7 WATTR at ORIGIN 3 ALIGN START",
)
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


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


@pytest.mark.parametrize("window", WINDOWS)
def test_every_kind_of_window(spark: SparkSession, tmp_path: Path, window: str) -> None:
    """Rows lie at most 30 out of order, so none is late and every answer is the oracle's."""
    rows = nearly_ordered(some_rows(), "at", within=30)
    text = f"SELECT k, count(*) AS n, sum(i) AS total, max(x) AS x FROM s [{window}] GROUP BY k"
    stream = read_stream(spark, as_batches(tmp_path / "in", in_thirds(rows)))
    query = run_to_end(panes.sql(text, lateness=30, bounded=True, s=stream), tmp_path)
    assert_rows(found(spark, tmp_path / "out"), panes.oracle(text, s=rows))
    assert sum(m["late"] for m in metrics(query)) == 0
    answered = [m["answers"] for m in metrics(query)]
    assert len(answered) == 4, "three batches of rows and the end"
    assert answered[0] > 0, "windows close before the end"


@pytest.mark.parametrize("aggregates", [AGGREGATES, SKETCHES], ids=["exact", "sketches"])
def test_every_aggregate(spark: SparkSession, tmp_path: Path, aggregates: tuple[str, ...]) -> None:
    rows = nearly_ordered(some_rows(), "at", within=30)
    text = f"SELECT k, {select(aggregates)} FROM s [RANGE 20 SLIDE 7 WATTR at] GROUP BY k"
    stream = read_stream(spark, as_batches(tmp_path / "in", in_thirds(rows)))
    run_to_end(panes.sql(text, lateness=30, bounded=True, s=stream), tmp_path)
    assert_rows(found(spark, tmp_path / "out"), panes.oracle(text, s=rows))


@pytest.mark.parametrize("late", ["open", "drop"])
def test_late_and_rejected_rows_go_to_their_own_sinks(
    spark: SparkSession, tmp_path: Path, late: panes.Late
) -> None:
    """Batch by batch as in one process: answers, late rows with reasons, rejected rows."""
    far = dt.timedelta(days=40_000).total_seconds()
    batches = [
        at_seconds(5, 62, 130, k=["a", "b", "a"]),
        at_seconds(40, 125, None, 20, k=["a", "b", "b", "c"]),
        at_seconds(300, far, 61, k=["a", "a", "c"]),
    ]
    text = (
        "SELECT k, count(*) AS n FROM s [RANGE 2 minutes SLIDE 1 minute WATTR ts] "
        "WHERE k <> 'c' GROUP BY k"
    )
    here = panes.open(text, lateness="1 minute", late=late)
    want = pa.concat_tables([*(here.push(s=b) for b in batches), here.finish()])
    stream = read_stream(spark, as_batches(tmp_path / "in", batches))
    tagged = panes.sql(text, lateness="1 minute", late=late, bounded=True, with_late=True, s=stream)
    folders = {name: tmp_path / name for name in ("answers", "late", "rejected")}
    query = (
        tagged.writeStream.foreachBatch(panes.spark.split(**folders))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert_rows(found(spark, folders["answers"]).drop_columns(["batch"]), want)
    assert_rows(found(spark, folders["late"]).drop_columns(["batch"]), here.late)
    assert_rows(found(spark, folders["rejected"]).drop_columns(["batch"]), here.rejected)
    assert len(here.late) == 1
    assert len(here.rejected) == 2
    assert [m["late"] for m in metrics(query)] == [0, 1, 0, 0]
    assert [m["rejected"] for m in metrics(query)] == [0, 1, 1, 0]
