"""Windows that count rows, on Spark: the oracle's answers, whatever the partitioning.

Catches: rows numbered after WHERE or across partitions, a window given before it is full, bins
of one partition in another's windows, rows lost between two portions of a task's input.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import panes
import panes.spark
from panes.shards.names import AT
from panes.spark.batch import per_row
from tests.spark.streaming import (
    as_batches,
    assert_equal,
    found,
    in_thirds,
    metrics,
    nearly_ordered,
    read_stream,
    run_to_end,
    some_rows,
)
from tests.support import AGGREGATES, assert_rows, in_turns, select, slow

ROWS = (
    "RANGE 8 ROWS SLIDE 3 ROWS WATTR seq",
    "RANGE 2 ROWS SLIDE 5 ROWS WATTR seq",
    "RANGE ALL SLIDE 40 ROWS WATTR seq",
    "RANGE 7 ROWS SLIDE 2 ROWS WATTR seq PA k",
    "RANGE 3 ROWS SLIDE 4 ROWS WATTR seq PA k, b",
)
PER_ROW = (
    "RANGE 20 RATTR at SLIDE 1 ROW",
    "RANGE 20 RATTR at SLIDE 1 ROW PA k",
    "RANGE 30 RATTR seq SLIDE 4 ROWS SATTR rank(seq) PA k, b",
)


def numbered_rows() -> pa.Table:
    """The rows of the other batch tests, with an order that has no ties."""
    table = some_rows()
    order = np.random.default_rng(5).permutation(len(table))
    return table.append_column("seq", pa.array(order * 3)).sort_by("seq")


@pytest.fixture(scope="module")
def numbered(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(numbered_rows()).repartition(3).cache()


@pytest.mark.parametrize(("window", "group"), in_turns(ROWS, ["", "GROUP BY i % 3"]))
def test_every_aggregate_over_rows_is_the_oracles(
    numbered: DataFrame, window: str, group: str
) -> None:
    text = f"SELECT {select(AGGREGATES)} FROM t [{window}] WHERE i > -7 {group}"
    assert_equal(panes.sql(text, t=numbered), panes.oracle(text, t=numbered_rows()))


@pytest.mark.parametrize("window", PER_ROW)
def test_every_aggregate_per_row_is_the_oracles(numbered: DataFrame, window: str) -> None:
    text = f"SELECT seq, k, i + 1 AS j, {select(AGGREGATES)} FROM t [{window}] WHERE i > -7"
    assert_equal(panes.sql(text, t=numbered), panes.oracle(text, t=numbered_rows()))


def test_rows_that_come_in_portions_are_answered_as_at_once(
    numbered: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "SELECT seq, count(*) AS n, median(i) AS m FROM t [RANGE 20 RATTR at SLIDE 1 ROW PA k]"
    monkeypatch.setattr(per_row, "ROWS_AT_ONCE", 7)
    plan = panes.spark.bind.bind(text, {"t": numbered}).plan
    projected = per_row._project(plan, numbered).orderBy(AT).toArrow()
    batches = iter(projected.to_batches(max_chunksize=5))
    given = pa.Table.from_batches(list(per_row.BinTask(plan)(batches)))
    want = panes.oracle(text, t=numbered_rows()).select(["n", "m", "seq"])
    assert_rows(given.drop_columns(["__end"]).rename_columns(["n", "m", "seq"]), want)


def test_rows_without_a_place_are_left_out(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 5), (None, 6), (3, 7)], "seq int, x int")
    answers = panes.sql("SELECT sum(x) AS s FROM t [ROWS 2 WATTR seq]", t=frame)
    assert sorted(r.s for r in answers.collect()) == [5, 12]


@pytest.mark.slow
@pytest.mark.parametrize("window", [ROWS[3], slow(ROWS[0]), slow(ROWS[2])])
def test_a_stream_of_rows_that_a_column_orders(
    spark: SparkSession, tmp_path: Path, window: str
) -> None:
    """Two runs on one checkpoint: counts, waiting rows and panes are where they were."""
    rows = nearly_ordered(numbered_rows(), "seq", within=30)
    text = f"SELECT count(*) AS n, sum(i) AS s, max(x) AS m FROM s [{window}] WHERE i > -7"
    first, second, third = in_thirds(rows)
    folder = as_batches(tmp_path / "in", [first, second])
    run_to_end(panes.sql(text, lateness=30, s=read_stream(spark, folder)), tmp_path)
    as_batches(folder, [third], first=2)
    asked = panes.sql(text, lateness=30, bounded=True, s=read_stream(spark, folder))
    run_to_end(asked, tmp_path / "whole")
    run_to_end(panes.sql(text, lateness=30, s=read_stream(spark, folder)), tmp_path)
    here = panes.open(text, lateness=30)
    want = pa.concat_tables([here.push(s=b) for b in (first, second, third)])
    assert_rows(found(spark, tmp_path / "out"), want)
    assert_rows(found(spark, tmp_path / "whole" / "out"), panes.oracle(text, s=rows))


@pytest.mark.parametrize("window", [slow(PER_ROW[2]), slow(PER_ROW[0]), slow(PER_ROW[1])])
def test_a_stream_answers_every_row_once(spark: SparkSession, tmp_path: Path, window: str) -> None:
    """Three files, rows at most 30 out of order: answers before the end, and all of them after."""
    axis = "seq" if "seq" in window else "at"
    rows = nearly_ordered(numbered_rows(), axis, within=30)
    text = f"SELECT seq, k, i + 1 AS j, {select(AGGREGATES)} FROM s [{window}] WHERE i > -7"
    stream = read_stream(spark, as_batches(tmp_path / "in", in_thirds(rows)))
    query = run_to_end(panes.sql(text, lateness=30, bounded=True, s=stream), tmp_path)
    assert_rows(found(spark, tmp_path / "out"), panes.oracle(text, s=rows))
    answered = [m["answers"] for m in metrics(query)]
    assert len(answered) == 4
    assert answered[0] > 0, "rows are answered before the end"


@pytest.mark.slow
def test_a_stream_of_per_row_windows_goes_on_from_its_checkpoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Run, stop, more files, run again: bins, waiting rows and ranks are where they were."""
    rows = nearly_ordered(numbered_rows(), "seq", within=30)
    text = (
        "SELECT seq, k, sum(i) AS total, median(i) AS mid, count(*) AS n "
        "FROM s [RANGE 60 RATTR seq SLIDE 3 ROWS SATTR rank(seq) PA k] WHERE b"
    )
    first, second, third = in_thirds(rows)
    folder = as_batches(tmp_path / "in", [first])
    run_to_end(panes.sql(text, lateness=30, s=read_stream(spark, folder)), tmp_path)
    as_batches(folder, [second, third], first=1)
    run_to_end(panes.sql(text, lateness=30, s=read_stream(spark, folder)), tmp_path)
    here = panes.open(text, lateness=30)
    want = pa.concat_tables([here.push(s=b) for b in (first, second, third)])
    assert_rows(found(spark, tmp_path / "out"), want)


@pytest.mark.slow
def test_late_rows_of_per_row_windows_are_counted_and_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = [
        pa.table({"at": pa.array(at, pa.int64())}) for at in ([10, 20], [14, 3, 40], [35, 90])
    ]
    text = "SELECT at, count(*) AS n FROM s [RANGE 10 RATTR at SLIDE 1 ROW]"
    here = panes.open(text, lateness=0)
    want = pa.concat_tables([*(here.push(s=b) for b in batches), here.finish()])
    stream = read_stream(spark, as_batches(tmp_path / "in", batches))
    tagged = panes.sql(text, lateness=0, bounded=True, with_late=True, s=stream)
    folders = {name: tmp_path / name for name in ("answers", "late", "rejected")}
    writer = tagged.writeStream.foreachBatch(panes.spark.split(**folders))
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    assert_rows(found(spark, folders["answers"]).drop_columns(["batch"]), want)
    assert_rows(found(spark, folders["late"]).drop_columns(["batch"]), here.late)
    assert sum(m["late"] for m in metrics(query)) == 3


@pytest.mark.parametrize(
    ("window", "said"),
    [
        ("ROWS 3 PA k", "rows of a DataFrame have no order of their own"),
        ("RANGE 20 RATTR at SLIDE 2 ROWS", "do not arrive in an order, so there is no 2th"),
    ],
)
def test_what_needs_an_order_of_arrival_is_refused(
    numbered: DataFrame, window: str, said: str
) -> None:
    with pytest.raises(panes.QueryError, match=said):
        panes.sql(f"SELECT count(*) AS n FROM t [{window}]", t=numbered)
