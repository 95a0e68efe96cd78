"""The intervals of `tests/expressions/written_intervals.py`, asked of Spark."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.expressions.written_intervals import INTERVALS, REFUSED


def test_spark_says_the_same_of_every_interval(spark: SparkSession) -> None:
    selected = (f"unix_micros(timestamp_micros(0) + {written})" for written in INTERVALS)
    row = spark.sql(f"SELECT {', '.join(selected)}").collect()[0]
    assert dict(zip(INTERVALS, row, strict=True)) == INTERVALS


@pytest.mark.parametrize("written", REFUSED)
def test_spark_refuses_what_is_no_interval(spark: SparkSession, written: str) -> None:
    with pytest.raises(PySparkException):
        spark.sql(f"SELECT {written}")
