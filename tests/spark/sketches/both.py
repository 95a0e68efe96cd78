"""One aggregate over the same rows, in this process and by Spark itself."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import panes


def ours(table: pa.Table, asked: str) -> Any:
    """What one window over all rows answers."""
    rows = table.append_column("at", pa.array([0] * len(table), pa.int64()))
    text = f"SELECT {asked} AS answer FROM rows [TUMBLING 10 WATTR at]"
    [answer] = panes.sql(text, rows=rows)["answer"].to_pylist()
    return answer


def theirs(spark: SparkSession, table: pa.Table, asked: str, partitions: int = 1) -> Any:
    """What Spark answers; with one partition, it takes rows in their order."""
    frame = spark.createDataFrame(table)
    frame = frame.coalesce(1) if partitions == 1 else frame.repartition(partitions)
    [[answer]] = frame.selectExpr(asked).collect()
    return bytes(answer) if isinstance(answer, bytearray) else answer


def merged(spark: SparkSession, table: pa.Table, asked: str) -> Any:
    """What Spark answers where partitions are merged, and one of two has all rows, in order."""
    alike = table.append_column("alike", pa.array([0] * len(table), pa.int32()))
    frame = spark.createDataFrame(alike).coalesce(1).repartition(2, "alike")
    [[answer]] = frame.selectExpr(asked).collect()
    return bytes(answer) if isinstance(answer, bytearray) else answer


def told(spark: SparkSession, reader: str, *sketches: bytes) -> Any:
    """What a function of Spark reads in some bytes, such as ``hll_sketch_estimate(a)``."""
    names = "abcdef"[: len(sketches)]
    frame = spark.createDataFrame([tuple(map(bytearray, sketches))], schema=list(names))
    [[answer]] = frame.selectExpr(reader).collect()
    return bytes(answer) if isinstance(answer, bytearray) else answer


def in_one_column(*sketches: bytes) -> pa.Table:
    return pa.table({"s": pa.array(sketches, pa.binary())})
