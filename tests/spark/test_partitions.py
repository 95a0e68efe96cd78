"""Numbers that stand for shards: one per partition, as Spark itself places them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from panes.spark.partitions import one_per_partition, partition_of


def test_our_hash_is_sparks(spark: SparkSession) -> None:
    numbers = [0, 1, 2, 41, 1_000_003, 2**31 - 1]
    frame = spark.createDataFrame([(n,) for n in numbers], "n int")
    for partitions in (2, 7, 200):
        placed = frame.select(F.pmod(F.hash("n"), F.lit(partitions))).collect()
        assert [row[0] for row in placed] == [partition_of(n, partitions) for n in numbers]


@pytest.mark.parametrize("count", [1, 2, 3, 8, 200])
def test_every_partition_gets_one(count: int) -> None:
    numbers = one_per_partition(count)
    assert numbers[0] == 0
    assert {partition_of(n, count) for n in numbers} == set(range(count))


def test_the_numbers_are_pinned() -> None:
    """State is kept under them, so they must stay."""
    assert one_per_partition(2) == PINNED[2]
    assert one_per_partition(4) == PINNED[4]


PINNED = {2: (0, 2), 4: (0, 2, 6, 12)}
