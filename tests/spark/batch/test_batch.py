"""On Spark, in batch: the oracle's answers, whatever the partitioning.

Catches: a Spark expression that says something else than the piece it fills, a pane expression
that disagrees with the cut, keys torn apart by partitioning, a landmark that ends too early.
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import panes
from tests.spark.streaming import assert_equal, some_rows
from tests.support import AGGREGATES, SKETCHES, in_turns, select

WINDOWS = (
    "RANGE 20 SLIDE 10 WATTR at",
    "RANGE 7 SLIDE 4 WATTR at",
    "RANGE 3 SLIDE 10 WATTR at",
    "RANGE ALL SLIDE 10 WATTR at",
    "RANGE 12 SLIDE 5 WATTR at ORIGIN FIRST",
    "RANGE 20 SLIDE 7 WATTR at ORIGIN 3 ALIGN START",
)


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(some_rows()).repartition(3).cache()


@pytest.mark.parametrize(("window", "group"), in_turns(WINDOWS, ["", "GROUP BY k, b"]))
def test_every_aggregate_on_spark_is_the_oracles(frame: DataFrame, window: str, group: str) -> None:
    text = f"SELECT {select(AGGREGATES)} FROM t [{window}] WHERE i > -7 {group}"
    assert_equal(panes.sql(text, t=frame), panes.oracle(text, t=some_rows()))


def test_sketches_and_ones_own_aggregates_are_filled_in_python(frame: DataFrame) -> None:
    total = panes.CustomAggregate(
        name="total",
        lift=lambda x: np.nan_to_num(np.asarray(x))[None, :],
        combine=np.add,
        lower=lambda p: p[0],
        empty=(0.0,),
        type=pa.float64(),
    )
    text = (
        f"SELECT k, total(x) AS own, {select(SKETCHES)} FROM t [RANGE 40 SLIDE 20 WATTR at] "
        "GROUP BY k"
    )
    answers = panes.sql(text, aggregates=[total], t=frame)
    assert_equal(answers, panes.oracle(text, aggregates=[total], t=some_rows()))


def test_having_expressions_and_unions_are_sparks(frame: DataFrame) -> None:
    text = (
        "SELECT upper(k) AS K, sum(i) / count(*) AS mean, max(i) - min(i) AS spread "
        "FROM (u UNION ALL v) [RANGE 20 SLIDE 10 WATTR at] GROUP BY k HAVING spread > 3"
    )
    table = some_rows()
    assert_equal(panes.sql(text, u=frame, v=frame), panes.oracle(text, u=table, v=table))


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "date"])
def test_time_columns_of_every_type_give_their_own_windows(spark: SparkSession, kind: str) -> None:
    days = ["2026-03-28", "2026-03-29", "2026-03-29", "2026-10-25"]
    frame = spark.createDataFrame([(d,) for d in days], "d string").selectExpr(
        f"CAST(d AS {kind}) AS ts"
    )
    answers = panes.sql("SELECT count(*) AS n FROM s [RANGE 2 days SLIDE 1 day WATTR ts]", s=frame)
    assert dict(answers.dtypes)["window_end"] == ("timestamp_ntz" if "ntz" in kind else "timestamp")
    found = [(r.window_end.strftime("%m-%d"), r.n) for r in answers.orderBy("window_end").collect()]
    assert found == [("03-29", 1), ("03-30", 3), ("03-31", 2), ("10-26", 1), ("10-27", 1)]


def test_a_date_is_its_midnight_in_utc_whatever_the_sessions_zone(spark: SparkSession) -> None:
    frame = spark.sql("SELECT DATE'2026-03-29' AS d")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        answers = panes.sql("SELECT count(*) AS n FROM s [TUMBLING 1 day WATTR d]", s=frame)
        [start] = answers.selectExpr("unix_micros(window_start)").first() or [None]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert start == int(dt.datetime(2026, 3, 29, tzinfo=dt.UTC).timestamp()) * 1_000_000


def test_rows_without_a_place_are_left_out(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1,), (None,), (2**62,)], "at long")
    answers = panes.sql("SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]", s=frame)
    assert [r.n for r in answers.collect()] == [1]


def test_an_empty_frame_gives_no_answers_and_all_columns(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "at long, k string")
    answers = panes.sql("SELECT k, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY k", s=frame)
    assert answers.columns == ["window_start", "window_end", "k", "n"]
    assert answers.collect() == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT count(*) FROM s [ROWS 5]", "rows of a DataFrame have no order of their own"),
        ("SELECT max(nope) FROM s [TUMBLING 5 WATTR at]", "no column `nope` in stream `s`"),
        ("SELECT sum(k) FROM s [TUMBLING 5 WATTR at]", "sum needs numbers"),
    ],
)
def test_what_spark_cannot_answer_is_refused_when_it_is_asked(
    frame: DataFrame, text: str, message: str
) -> None:
    with pytest.raises(panes.PanesError, match=message):
        panes.sql(text, s=frame)


def test_a_million_keys_and_one_key(spark: SparkSession) -> None:
    frame = spark.range(1_000_000).selectExpr("id % 100 AS at", "id AS k", "id AS x")
    many = panes.sql(
        "SELECT k, max(x) AS m FROM s [RANGE 20 SLIDE 10 WATTR at] GROUP BY k", s=frame
    )
    assert many.selectExpr("count(*)", "sum(m)").first() == (2_000_000, 2 * sum(range(1_000_000)))
    one = panes.sql("SELECT sum(x) AS s FROM s [RANGE 20 SLIDE 10 WATTR at]", s=frame)
    assert one.count() == 11
