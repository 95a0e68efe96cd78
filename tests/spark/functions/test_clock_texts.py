"""Spark does not read text by the clock either, in batches and in streams."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import panes
from panes.errors import QueryError
from panes.expressions.projection import resolve
from panes.spark.expressions import spark_sql
from tests.clock_texts import ERRORS, FINE, NULLS, ROWS, WRITTEN
from tests.spark.functions.both_engines import read


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return spark.createDataFrame(ROWS).cache()


def _asked(expression: str) -> str:
    return spark_sql(resolve(read(expression)[0], ROWS.schema, stream="s"))


def test_what_is_written_is_refused_on_spark_too(frame: DataFrame) -> None:
    for expression in WRITTEN:
        query = f"SELECT count({expression}) AS n FROM s [TUMBLING 10 WATTR row]"
        with pytest.raises(QueryError, match="depends on the clock"):
            panes.sql(query, s=frame)


def test_values_are_errors_or_null_where_they_are_tried(frame: DataFrame) -> None:
    for expression in ERRORS:
        with pytest.raises(PySparkException, match=r"by the clock|depends on the clock"):
            frame.selectExpr(_asked(expression)).collect()
    (row,) = frame.selectExpr(*(_asked(e) for e in NULLS)).collect()
    assert list(row) == [None] * len(NULLS)


def test_other_values_are_as_they_were(frame: DataFrame) -> None:
    table = frame.selectExpr(*(_asked(e) for e in FINE)).toArrow()
    found = [c.cast("int64") if str(c.type).startswith("timestamp") else c for c in table.columns]
    assert [c[0].as_py() for c in found] == [*FINE.values()]


def test_no_guard_is_asked_of_columns_that_are_no_text() -> None:
    for expression in (
        "hour(ts)",
        "ts < TIMESTAMP '2020-01-01'",
        "CAST(ts AS DATE)",
        "ts + INTERVAL 1 DAY",
    ):
        assert "regexp" not in _asked(expression).lower()
        assert "transform" not in _asked(expression).lower()


def test_text_of_an_aggregate_is_not_read_by_the_clock(frame: DataFrame) -> None:
    query = "SELECT to_timestamp(max(s)) AS v FROM s [TUMBLING 10 WATTR row]"
    with pytest.raises(PySparkException, match=r"by the clock|depends on the clock"):
        panes.sql(query, s=frame).collect()
