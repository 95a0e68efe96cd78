"""On Spark, too, what multiplies is measured before, and no search takes for ever."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import panes
from panes.errors import QueryError
from panes.expressions.projection import resolve
from panes.spark.expressions import spark_sql
from tests.expressions.long_values import BOMBS, EXPLODING, LONG, PLAIN, SHORT, WRITTEN
from tests.spark.functions.both_engines import read

SEARCHES = (
    "s RLIKE 'a.*b'", "s LIKE '%a%a%a%b'", "regexp_extract(s, '(a+)c', 1)", "s LIKE t",
    "regexp_replace(s, 'a', t)", "concat_ws(t, words)",
)  # fmt: skip
FINE = ("s RLIKE 'a.*b'", "s LIKE '%a%b'", "regexp_replace(s, 'c', t)", "'%' LIKE t", *PLAIN)


def _asked(call: str) -> str:
    return spark_sql(resolve(read(call)[0], LONG.schema, stream="r"))


SOME = (BOMBS[0], "levenshtein(s, t)", *SEARCHES[:2])


@pytest.mark.parametrize("bombs", [SOME, pytest.param((*BOMBS, *SEARCHES), marks=pytest.mark.slow)])
def test_each_bomb_stops_and_says_its_name(bombs: tuple[str, ...], spark: SparkSession) -> None:
    frame = spark.createDataFrame(LONG).cache()
    for bomb in bombs:
        with pytest.raises(PySparkException, match=r"so long|may take very long"):
            frame.selectExpr(_asked(bomb)).collect()


def test_what_is_refused_when_it_is_read_is_refused_here(spark: SparkSession) -> None:
    frame = spark.createDataFrame(LONG)
    for bomb in (*WRITTEN, *(f"s RLIKE '{pattern}'" for pattern in EXPLODING), "s RLIKE t"):
        with pytest.raises(QueryError, match=r"is the most|for ever|written in the query"):
            panes.sql(f"SELECT count({bomb}) AS n FROM r [TUMBLING 10 WATTR at]", r=frame)


def test_everyday_calls_are_what_they_were(spark: SparkSession) -> None:
    frame = spark.createDataFrame(SHORT)
    guarded = frame.selectExpr(*map(_asked, FINE)).collect()
    assert [*guarded[0]] == [*frame.selectExpr(*FINE).collect()[0]]
