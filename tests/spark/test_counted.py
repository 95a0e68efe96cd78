"""Windows that count rows, on Spark in batch: the oracle's answers, whatever the partitioning.

Catches: rows numbered after WHERE or across partitions, a window given before it is full, bins
of one partition in another's windows, rows lost between two portions of a task's input.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import panes
from panes.spark import per_row
from tests.spark.test_batch import assert_equal, some_rows
from tests.support import AGGREGATES, select

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


@pytest.mark.parametrize("window", ROWS)
@pytest.mark.parametrize("group", ["", "GROUP BY i % 3"])
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
    projected = per_row._project(plan, numbered).orderBy(per_row.AT).toArrow()
    batches = iter(projected.to_batches(max_chunksize=5))
    found = pa.Table.from_batches(list(per_row.Bins(plan)(batches)))
    want = panes.oracle(text, t=numbered_rows())
    assert sorted(map(str, found.to_pylist())) == sorted(
        str({"__a0": r["n"], "__a1": r["m"], "__r0": r["seq"]}) for r in want.to_pylist()
    )


def test_rows_without_a_place_are_left_out(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 5), (None, 6), (3, 7)], "seq int, x int")
    answers = panes.sql("SELECT sum(x) AS s FROM t [ROWS 2 WATTR seq]", t=frame)
    assert sorted(r.s for r in answers.collect()) == [5, 12]


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
