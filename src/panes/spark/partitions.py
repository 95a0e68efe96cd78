"""Which shuffle partition rows land in: those of one key in one, shards spread evenly.

Spark places a row by the Murmur3 hash of its grouping columns, seed 42, modulo the number of
partitions. Numbers 0, 1, 2, ... collide; these are chosen so that they do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count as count_from

from pyspark.sql import Column, DataFrame, SparkSession

_LOW = 0xFFFFFFFF


def partitions_of(session: SparkSession) -> int:
    """How many partitions a shuffle of this session has."""
    return int(session.conf.get("spark.sql.shuffle.partitions") or "2")


def by_keys(frame: DataFrame, keys: Sequence[Column]) -> DataFrame:
    """All rows of a key in one partition; a fixed number of them, or Spark would merge them."""
    if not keys:
        return frame.coalesce(1)
    return frame.repartition(partitions_of(frame.sparkSession), *keys)


def one_per_partition(count: int) -> tuple[int, ...]:
    """`count` numbers that land in `count` partitions, one each. The first is 0, always.

    They depend on nothing else, since state is kept under them; and as 0 is always among them,
    state that was kept for another count is noticed.
    """
    found: dict[int, int] = {}
    for number in count_from():
        found.setdefault(partition_of(number, count), number)
        if len(found) == count:
            break
    return tuple(sorted(found.values()))


def partition_of(number: int, partitions: int) -> int:
    """The partition of an ``int`` key: ``pmod(hash(number), partitions)``."""
    hashed = _murmur3(number & _LOW)
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    return signed % partitions


def _murmur3(value: int) -> int:
    k = _rotated(value * 0xCC9E2D51 & _LOW, 15) * 0x1B873593 & _LOW
    h = (_rotated(42 ^ k, 13) * 5 + 0xE6546B64) & _LOW
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _LOW
    h = (h ^ h >> 13) * 0xC2B2AE35 & _LOW
    return h ^ h >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _LOW
