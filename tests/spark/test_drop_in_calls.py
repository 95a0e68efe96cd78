"""`panes.spark.group_by` takes what ``groupBy(window(...))`` takes, and gives what that gives."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark.drop_in_calls import CALLS, difference, rows


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return rows(spark).cache()


QUICK = ("keys around", "a struct", "a cast", "a dictionary")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CALLS]
)
def test_names_types_nullability_and_rows_are_sparks(
    spark: SparkSession, frame: DataFrame, name: str
) -> None:
    assert difference(spark, name, frame) is None


@pytest.mark.slow
def test_a_zone_of_the_session_changes_nothing(spark: SparkSession, frame: DataFrame) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
        for name in ("a window alone", "of an expression", "without a zone", "a struct"):
            assert difference(spark, name, frame) is None, name
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
