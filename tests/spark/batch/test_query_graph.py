"""Queries inside a query on bounded DataFrames: the answers of one process."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import panes
from tests.support import rows_in_order

PEAKS = "SELECT k, max(x) AS m FROM s [RANGE 20 SLIDE 10 WATTR at] GROUP BY k"
TEXTS = {
    "windows over windows": f"SELECT k, avg(m) AS a FROM ({PEAKS}) [TUMBLING 40] GROUP BY k",
    "named": f"WITH p AS ({PEAKS}), q AS (SELECT k, m + 1 AS m, window_end FROM p WHERE m > 2) "
    "SELECT count(*) AS n, max(m) AS most FROM q [RANGE 60 SLIDE 20 WATTR window_end]",
    "per row": f"SELECT k, m, sum(m) AS t FROM ({PEAKS}) [RANGE 30 SLIDE 1 ROW]",
    "joined": f"SELECT a.k AS k, a.m AS m, b.n AS n FROM ({PEAKS}) a LEFT JOIN "
    "(SELECT k, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY k) b "
    "ON a.k = b.k AND a.window_end = b.window_end",
    "three levels": "SELECT sum(a) AS t FROM (SELECT k, avg(m) AS a FROM "
    f"({PEAKS}) [TUMBLING 20] GROUP BY k) [TUMBLING 40 WATTR window_time]",
}


def _stream(*, is_time: bool) -> pa.Table:
    at = pa.array([(i * 7) % 90 for i in range(60)])
    at = pa.array([a.as_py() * 1_000_000 for a in at], pa.timestamp("us", "UTC")) if is_time else at
    return pa.table({"at": at, "k": [i % 3 for i in range(60)], "x": [i % 11 for i in range(60)]})


@pytest.mark.parametrize("is_time", [False, True], ids=["integers", "time"])
def test_bounded_dataframes_answer_as_one_process(spark: SparkSession, is_time: bool) -> None:
    stream = _stream(is_time=is_time)
    frame = spark.createDataFrame(stream.to_pylist())
    for name, text in TEXTS.items():
        if is_time:
            text = _in_seconds(text)
        found = panes.sql(text, s=frame).toArrow()
        wanted = panes.sql(text, s=stream)
        assert rows_in_order(found) == rows_in_order(wanted), name


def _in_seconds(text: str) -> str:
    for number in (60, 40, 30, 20, 10):
        for word in ("RANGE", "SLIDE", "TUMBLING"):
            text = text.replace(f"{word} {number}", f"{word} {number} seconds")
    return text
