"""Every example in the documentation of the installed Spark, on both engines.

A new version of Spark adds cases by itself. What one process answers is what Spark answers, in
value and in type; everything else is refused by name.
"""

from __future__ import annotations

import re
from collections import Counter

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from panes.errors import PanesError
from tests.spark.functions.both_engines import Answer, in_process, on_spark, read, same

ONE_ROW = pa.table({"one": [1]})
LEAST_THE_SAME = 600
_EXAMPLES = re.compile(r"Examples:\n(.*?)(?=\n\s*(?:Note|Since|Deprecated|Arguments):|\Z)", re.S)
_EXAMPLE = re.compile(r"> SELECT (.*?);\s*(?=\n|$)", re.S | re.I)
_READS_ROWS = re.compile(r"\bfrom\s+(values\b|\(|range\b|[a-z_]+\()|\blateral\b", re.I)


def examples(spark: SparkSession) -> list[str]:
    """What is selected in every example that reads no rows."""
    found: list[str] = []
    for (name,) in spark.sql("SHOW SYSTEM FUNCTIONS").collect():
        told = spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect()
        page = _EXAMPLES.search("\n".join(row[0] for row in told))
        if page:
            found += [sql for sql in _EXAMPLE.findall(page[1]) if not _READS_ROWS.search(sql)]
    return found


def answered(sql: str) -> list[Answer] | None:
    """What one process answers; None if it refuses, by name and in its own words."""
    try:
        return in_process(read(sql), ONE_ROW)
    except PanesError:
        return None


def said_by_spark(spark: SparkSession, sql: str) -> list[Answer] | None:
    try:
        return on_spark(spark.sql(f"SELECT {sql}"))
    except PySparkException:
        return None


@pytest.mark.slow
def test_every_documented_example_is_the_same_or_refused(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    outcome: Counter[str] = Counter()
    different: list[tuple[str, object, object]] = []
    for sql in examples(spark):
        here = answered(sql)
        if here is None:
            outcome["refused"] += 1
            continue
        there = said_by_spark(spark, sql)
        if there is not None and all(map(same, here, there)) and len(here) == len(there):
            outcome["the same"] += 1
        else:
            different.append((sql, here, there))
    assert different == []
    assert outcome["the same"] >= LEAST_THE_SAME, outcome
