"""``hll_sketch_agg`` and ``hll_union_agg`` give Spark's own bytes, and Spark reads ours.

Spark's bytes depend on the order of rows. They are ours in two situations: if few values come in
ascending order of their coupons, in one partition; and if many were merged from partitions that
had many each. In every other one, Spark's functions read the same from both, as long as there are
few values; beyond that, the same within the stated error.
"""

from __future__ import annotations

import datasketches as ds
import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import panes
from panes.errors import ColumnTypeError
from panes.reference.sketch_folds import bytes_of, murmur
from tests.spark.sketches.both import in_one_column, ours, theirs, told


def coupon(value: object) -> int:
    first, second = murmur(bytes_of(value))
    return (min(64 - second.bit_length(), 62) + 1) << 26 | first & ((1 << 26) - 1)


def drawn(count: int, seed: int = 17) -> list[int]:
    return np.random.default_rng(seed).integers(-(2**62), 2**62, count).tolist()


def numbers(values: list[int]) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.int64())})


@pytest.mark.parametrize("lg", [4, 8, 12])
@pytest.mark.parametrize("count", [1, 7, 8, 24, 25, 384])
def test_few_values_in_order_give_the_same_bytes(spark: SparkSession, lg: int, count: int) -> None:
    most = 7 if lg < 8 else 3 << (lg - 5)
    table = numbers(sorted(drawn(min(count, most)), key=coupon))
    asked = f"hll_sketch_agg(x, {lg})"
    assert ours(table, asked) == theirs(spark, table, asked)


@pytest.mark.parametrize("lg", [4, 8, 12])
def test_one_value_more_gives_sparks_registers(spark: SparkSession, lg: int) -> None:
    """In one partition, its flag and HIP are those of a sketch that was never merged."""
    table = numbers(drawn((7 if lg < 8 else 3 << (lg - 5)) + 1))
    asked = f"hll_sketch_agg(x, {lg})"
    mine, other = ours(table, asked), theirs(spark, table, asked)
    assert mine[6:8] + mine[16:] == other[6:8] + other[16:]


TEXTS = ["", "a", "\u00e9" * 9, "x" * 15, "y" * 16, "z" * 33, "a\0b"]
VALUES = {
    "int": (pa.int32(), [0, -1, 2**31 - 1]),
    "text": (pa.string(), TEXTS),
    "binary": (pa.binary(), [text.encode() for text in TEXTS]),
}


@pytest.mark.parametrize(("kind", "values"), VALUES.values(), ids=VALUES)
def test_every_type_gives_the_same_bytes(
    spark: SparkSession, kind: pa.DataType, values: list[object]
) -> None:
    known = sorted(values, key=coupon)
    table = pa.table({"x": pa.array([None, *known, *known], kind)})
    assert ours(table, "hll_sketch_agg(x)") == theirs(spark, table, "hll_sketch_agg(x)")


@pytest.mark.parametrize("lg", [4, 9, 12])
def test_many_values_merged_give_the_same_bytes(spark: SparkSession, lg: int) -> None:
    table = numbers(drawn(6_000))
    asked = f"hll_sketch_agg(x, {lg})"
    assert ours(table, asked) == theirs(spark, table, asked, partitions=2)


@pytest.mark.parametrize("count", [3, 30, 300])
def test_in_any_order_few_values_are_estimated_alike(spark: SparkSession, count: int) -> None:
    table = numbers(drawn(count) * 2)
    mine, other = ours(table, "hll_sketch_agg(x)"), theirs(spark, table, "hll_sketch_agg(x)", 2)
    assert told(spark, "hll_sketch_estimate(a) = hll_sketch_estimate(b)", mine, other)
    assert told(spark, "hll_sketch_estimate(hll_union(a, b))", mine, other) == count


def test_many_values_are_estimated_within_the_error(spark: SparkSession) -> None:
    mine = ours(numbers(drawn(50_000)), "hll_sketch_agg(x)")
    assert told(spark, "hll_sketch_estimate(a)", mine) == pytest.approx(50_000, rel=4 * 0.016)


def test_a_union_of_sparks_sketches_has_sparks_bytes(spark: SparkSession) -> None:
    parts = [numbers(drawn(2_000, seed)) for seed in (1, 2, 3)]
    sketches = in_one_column(*(theirs(spark, p, "hll_sketch_agg(x)") for p in parts))
    assert ours(sketches, "hll_union_agg(s)") == theirs(spark, sketches, "hll_union_agg(s)")


def test_a_union_of_ours_is_the_sketch_of_all_values(spark: SparkSession) -> None:
    for count in (3, 150, 900):
        parts = [drawn(count, seed) for seed in (1, 2)]
        sketches = in_one_column(*(ours(numbers(p), "hll_sketch_agg(x)") for p in parts))
        whole = ours(numbers(parts[0] + parts[1]), "hll_sketch_agg(x)")
        assert ours(sketches, "hll_union_agg(s)") == whole
        estimates = "hll_sketch_estimate(a)"
        by_spark = theirs(spark, sketches, "hll_union_agg(s)")
        assert told(spark, estimates, whole) == told(spark, estimates, by_spark)


@pytest.mark.parametrize("kind", [ds.HLL_4, ds.HLL_6, ds.HLL_8])
@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("count", [0, 5, 60, 40_000])
def test_sketches_of_others_are_united_as_spark_does(
    spark: SparkSession, kind: ds.tgt_hll_type, compact: bool, count: int
) -> None:
    def made(seed: int) -> bytes:
        sketch = ds.hll_sketch(11, kind)
        for value in drawn(count, seed):
            sketch.update(value)
        return bytes(sketch.serialize_compact() if compact else sketch.serialize_updatable())

    sketches = in_one_column(made(1), made(2))
    mine, other = ours(sketches, "hll_union_agg(s)"), theirs(spark, sketches, "hll_union_agg(s)")
    if count in (0, 40_000):
        assert mine == other
    assert told(spark, "hll_sketch_estimate(a) = hll_sketch_estimate(b)", mine, other)


def test_a_great_register_is_read_and_written_as_spark_does(spark: SparkSession) -> None:
    """No hash of a test begins with 40 zeros, so the registers are put there."""
    plain = theirs(spark, numbers(drawn(900)), "hll_sketch_agg(x, 6)", 2)
    changed = bytearray(plain)
    changed[40:42] = (40, 62)
    sketches = in_one_column(plain, bytes(changed))
    assert ours(sketches, "hll_union_agg(s)") == theirs(spark, sketches, "hll_union_agg(s)")


def test_different_sizes_give_what_spark_gives_if_the_smallest_comes_first(
    spark: SparkSession,
) -> None:
    sizes = {14: 9_000, 10: 5_000, 12: 7_000}
    made = {lg: ours(numbers(drawn(n, n)), f"hll_sketch_agg(x, {lg})") for lg, n in sizes.items()}
    asked = "hll_union_agg(s, true)"
    ranked = in_one_column(*(made[lg] for lg in sorted(made)))
    assert ours(in_one_column(*made.values()), asked) == theirs(spark, ranked, asked)
    with pytest.raises(panes.PanesError, match=r"lgConfigK is 10 and 14\n\nHint: .*true"):
        ours(ranked, "hll_union_agg(s)")


def test_no_row_gives_sparks_empty_sketch(spark: SparkSession) -> None:
    nothing = pa.table({"x": pa.array([None], pa.int64()), "s": pa.array([None], pa.binary())})
    for asked in ("hll_sketch_agg(x, 7)", "hll_union_agg(s)"):
        assert ours(nothing, asked) == theirs(spark, nothing, asked)


@pytest.mark.parametrize("asked", ["hll_sketch_agg(x, 3)", "hll_sketch_agg(x, 22)"])
def test_a_size_that_spark_refuses_is_refused(spark: SparkSession, asked: str) -> None:
    with pytest.raises(panes.QueryError, match=r"needs 4 to 21.*\n\nHint: the default, 12"):
        ours(numbers([1]), asked)
    with pytest.raises(PySparkException, match="between 4 and 21"):
        theirs(spark, numbers([1]), asked)


@pytest.mark.parametrize("kind", ["smallint", "double", "boolean", "date"])
def test_a_type_that_spark_refuses_is_refused(spark: SparkSession, kind: str) -> None:
    table = spark.sql(f"SELECT CAST(NULL AS {kind}) AS x").toArrow()
    with pytest.raises(ColumnTypeError, match=r"needs int.*\n\nHint: hll_sketch_agg\(CAST"):
        ours(table, "hll_sketch_agg(x)")
    with pytest.raises(PySparkException, match="UNEXPECTED_INPUT_TYPE"):
        theirs(spark, table, "hll_sketch_agg(x)")
