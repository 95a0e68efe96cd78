"""DISTINCT, INTERSECT and EXCEPT over windows on Spark, bounded and as streams."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import panes
from tests.spark.streaming import as_batches, found, read_stream, run_to_end
from tests.support import assert_rows

W = "[RANGE 20 SLIDE 10 WATTR at]"
DISTINCT = f"SELECT DISTINCT item FROM bids {W}"
EXCEPT = f"SELECT item FROM bids {W} EXCEPT SELECT item FROM sales {W}"
INTERSECT = f"SELECT item FROM bids {W} INTERSECT SELECT item FROM sales {W} WHERE item < 9"
BIDS = pa.table({"at": [1, 4, 12, 25, 33, 34], "item": [7, 8, 7, 9, None, 9]})
SALES = pa.table({"at": [2, 14, 30], "item": [7, 9, 9]})


def test_sets_of_bounded_frames_are_those_of_tables(spark: SparkSession) -> None:
    bids, sales = spark.createDataFrame(BIDS), spark.createDataFrame(SALES)
    assert_rows(panes.sql(DISTINCT, bids=bids).toArrow(), panes.sql(DISTINCT, bids=BIDS))
    for text in (EXCEPT, INTERSECT):
        answers = panes.sql(text, bids=bids, sales=sales).toArrow()
        assert len(answers)
        assert_rows(answers, panes.sql(text, bids=BIDS, sales=SALES))


@pytest.mark.slow
def test_sets_of_two_streams_are_answered_as_they_run(spark: SparkSession, tmp_path: Path) -> None:
    bids = read_stream(spark, as_batches(tmp_path / "bids", [BIDS.slice(0, 3), BIDS.slice(3)]))
    sales = read_stream(spark, as_batches(tmp_path / "sales", [SALES.slice(0, 1), SALES.slice(1)]))
    answers = panes.sql(EXCEPT, lateness=100, bounded=True, bids=bids, sales=sales)
    run_to_end(answers, tmp_path)
    assert_rows(found(spark, tmp_path / "out"), panes.sql(EXCEPT, bids=BIDS, sales=SALES))
