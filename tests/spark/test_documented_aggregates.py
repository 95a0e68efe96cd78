"""The examples in the documentation of Spark's aggregates mean the same in this process.

They are read from the installed Spark, so a new version brings its own.
"""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from tests.spark.documented import Example, ask_both, examples


@pytest.mark.slow
def test_documented_aggregates_are_the_same_or_refused(spark: SparkSession) -> None:
    results = [ask_both(spark, e) for e in examples(spark)]
    wrong = [
        (r.example.statement, r.ours, r.theirs)
        for r in results
        if r.outcome in ("different", "raw")
    ]
    assert not wrong
    counted = Counter(r.outcome for r in results)
    assert counted["same"] >= 160, counted


@pytest.mark.parametrize(
    ("statement", "wrong"),
    [
        ("SELECT avg(col) FROM VALUES (1), (2) AS tab(col)", "SELECT avg(col + 1)"),
        ("SELECT max(col) FROM VALUES (1), (2) AS tab(col)", "SELECT CAST(max(col) AS BIGINT)"),
        ("SELECT collect_list(col) FROM VALUES (1), (1) AS tab(col)", "SELECT collect_set(col)"),
    ],
)
def test_a_planted_difference_is_seen(spark: SparkSession, statement: str, wrong: str) -> None:
    """In a value, in a type, and in how often a value of a list occurs."""
    right = Example("planted", statement)
    other = Example("planted", f"{wrong} FROM {right.source}")
    assert ask_both(spark, right).outcome == "same"
    assert ask_both(spark, right, asked=other.selected).outcome == "different"
