"""Parts of queries in a register on Spark that say the same are one, and others are not."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import panes

INSIDE = "SELECT max(value) AS m FROM p [TUMBLING 10 WATTR value]"


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ("SELECT value FROM s WHERE value > 1", "SELECT value FROM s WHERE value > 5", 2),
        ("SELECT value FROM s", "SELECT value FROM u", 2),
        ("SELECT value FROM s", "SELECT DISTINCT value FROM s", 2),
        ("SELECT value FROM s WHERE value > 1", "SELECT value FROM s WHERE value > 1", 1),
    ],
)
def test_a_name_of_with_may_stand_for_two_things(
    spark: SparkSession, first: str, second: str, count: int
) -> None:
    frames = {name: spark.readStream.format("rate").load() for name in "su"}
    register = panes.register(("s", "u"), frames, lateness=5)
    for name, stands_for in {"a": first, "b": second}.items():
        register.add(name, f"WITH p AS ({stands_for}) SELECT sum(m) AS t FROM ({INSIDE}) "
                           "[TUMBLING 20]")  # fmt: skip
    told = register.explain().splitlines()
    assert len([line for line in told if line.startswith("part ")]) == count
