"""``theta_sketch_agg``, ``theta_union_agg`` and ``theta_intersection_agg`` give Spark's own bytes.

Whatever the order of rows and the number of partitions: a theta sketch is the least hashes, and
Spark writes them in order.
"""

from __future__ import annotations

import math

import datasketches as ds
import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import panes
from panes.errors import ColumnTypeError
from tests.spark.sketches.both import in_one_column, ours, theirs, told


def drawn(count: int, seed: int = 17) -> list[int]:
    return np.random.default_rng(seed).integers(-(2**62), 2**62, count).tolist()


def numbers(values: list[int]) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.int64())})


@pytest.mark.parametrize("lg", [4, 9, 12])
@pytest.mark.parametrize("count", [1, 2, 16, 17, 33, 300, 513, 9_000])
def test_the_bytes_are_sparks(spark: SparkSession, lg: int, count: int) -> None:
    table, asked = numbers(drawn(count) * 2), f"theta_sketch_agg(x, {lg})"
    assert ours(table, asked) == theirs(spark, table, asked)
    assert ours(table, asked) == theirs(spark, table, asked, partitions=3)


VALUES = {
    "int": (pa.int32(), [None, 0, -1, 2**31 - 1]),
    "float": (pa.float32(), [None, 0.0, -0.0, 0.1, math.nan, math.inf]),
    "double": (pa.float64(), [None, 0.0, -0.0, 0.1, math.nan, -math.inf]),
    "text": (pa.string(), [None, "", "a", "\u00e9" * 9, "x" * 15, "y" * 16, "z" * 33, "a\0b"]),
    "binary": (pa.binary(), [None, b"", b"\0", b"x" * 31]),
    "array of int": (pa.list_(pa.int32()), [None, [], [1], [1, None], [1, 2, 3, 4, 5]]),
    "array of bigint": (pa.list_(pa.int64()), [None, [], [1], [None, 1], [2**40, 2, 3]]),
}


@pytest.mark.parametrize(("kind", "values"), VALUES.values(), ids=VALUES)
def test_every_type_gives_the_same_bytes(
    spark: SparkSession, kind: pa.DataType, values: list[object]
) -> None:
    table = pa.table({"x": pa.array(values, kind)})
    assert ours(table, "theta_sketch_agg(x)") == theirs(spark, table, "theta_sketch_agg(x)")


def sketches_of(*counts: int, lg: int = 5) -> pa.Table:
    """Sketches of so many of the same values, of which each leaves out some."""
    values = drawn(max(counts, default=0))
    parts = [values[len(values) - n :] for n in counts]
    return in_one_column(*(ours(numbers(p), f"theta_sketch_agg(x, {lg})") for p in parts))


GIVEN = {
    "small": (3, 5),
    "one hash": (1, 1),
    "some with a bound": (10, 20, 200),
    "all with a bound": (300, 200, 100),
    "no common hash below the bound": (2_000, 3),
}


@pytest.mark.parametrize("counts", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize(
    "asked",
    ["theta_union_agg(s)", "theta_union_agg(s, 4)", "theta_intersection_agg(s)"],
)
def test_sketches_of_sketches_have_sparks_bytes(
    spark: SparkSession, counts: tuple[int, ...], asked: str
) -> None:
    table = sketches_of(*counts)
    answer = ours(table, asked)
    assert answer == theirs(spark, table, asked)
    assert answer == theirs(spark, table.take(list(range(len(table)))[::-1]), asked)
    assert answer == theirs(spark, table, asked, partitions=2)


@pytest.mark.parametrize("asked", ["theta_union_agg(s)", "theta_intersection_agg(s)"])
def test_an_empty_sketch_is_neutral_in_a_union_alone(spark: SparkSession, asked: str) -> None:
    nothing = ours(pa.table({"x": pa.array([None], pa.int64())}), "theta_sketch_agg(x)")
    some = sketches_of(40)["s"][0].as_py()
    for given in ([nothing], [None], [some, nothing], [nothing, some, None]):
        table = pa.table({"s": pa.array(given, pa.binary())})
        assert ours(table, asked) == theirs(spark, table, asked)


def test_whole_sketches_without_a_common_value_are_empty(spark: SparkSession) -> None:
    parts = numbers([1, 2]), numbers([3, 4, 5])
    table = in_one_column(*(ours(p, "theta_sketch_agg(x)") for p in parts))
    asked = "theta_intersection_agg(s)"
    assert ours(table, asked) == theirs(spark, table, asked)


def test_sketches_without_a_common_value_have_the_least_bound(spark: SparkSession) -> None:
    """Spark says so if the sketch with the least bound comes first, and empty if it comes last."""
    a, b = (ours(numbers([n]), "theta_sketch_agg(x)") for n in (1, 2))
    many = ours(numbers(drawn(500)), "theta_sketch_agg(x, 4)")
    first, last = in_one_column(many, a, b), in_one_column(a, b, many)
    asked = "theta_intersection_agg(s)"
    assert ours(first, asked) == ours(last, asked) == theirs(spark, first, asked)
    assert told(spark, "theta_sketch_estimate(a)", ours(last, asked)) == 0
    assert told(spark, "theta_sketch_estimate(a)", theirs(spark, last, asked)) == 0


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2, 90, 9_000])
def test_sketches_of_others_are_united_as_spark_does(
    spark: SparkSession, compress: bool, ordered: bool, count: int
) -> None:
    def made(seed: int) -> bytes:
        sketch = ds.update_theta_sketch(10)
        for value in drawn(count, seed):
            sketch.update(value)
        return bytes(sketch.compact(ordered).serialize(compress))

    table = in_one_column(made(1), made(2))
    assert ours(table, "theta_union_agg(s)") == theirs(spark, table, "theta_union_agg(s)")


def test_spark_reads_ours(spark: SparkSession) -> None:
    table = numbers(drawn(900))
    mine, other = ours(table, "theta_sketch_agg(x, 9)"), theirs(spark, table, "theta_sketch_agg(x)")
    assert told(spark, "theta_sketch_estimate(a)", mine) == pytest.approx(900, rel=4 * 0.045)
    assert told(spark, "theta_sketch_estimate(theta_union(a, b))", mine, other) > 0
    assert told(spark, "theta_sketch_estimate(theta_difference(a, b))", mine, other) == 0


@pytest.mark.parametrize("lg", [3, 27])
def test_a_size_that_spark_refuses_is_refused(spark: SparkSession, lg: int) -> None:
    for table, asked in (
        (numbers([1]), f"theta_sketch_agg(x, {lg})"),
        (sketches_of(1), f"theta_union_agg(s, {lg})"),
    ):
        with pytest.raises(panes.QueryError, match=r"needs 4 to 26.*\n\nHint: the default, 12"):
            ours(table, asked)
        with pytest.raises(PySparkException, match="between 4 and 26"):
            theirs(spark, table, asked)


@pytest.mark.parametrize("kind", ["smallint", "decimal(9,2)", "boolean", "array<double>"])
def test_a_type_that_spark_refuses_is_refused(spark: SparkSession, kind: str) -> None:
    table = spark.sql(f"SELECT CAST(NULL AS {kind}) AS x").toArrow()
    with pytest.raises(ColumnTypeError, match=r"needs int.*\n\nHint: theta_sketch_agg\(CAST"):
        ours(table, "theta_sketch_agg(x)")
    with pytest.raises(PySparkException, match="UNEXPECTED_INPUT_TYPE"):
        theirs(spark, table, "theta_sketch_agg(x)")
