"""``tuple_sketch_agg_*`` and its kin give Spark's own bytes, where Spark's rows come in our order.

In any other order Spark has the same keys and numbers in other places, wherever it merges
partitions. Where it does not, and more keys come than the sketch's size, it keeps more of them.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import panes
from panes.aggregates.murmur128 import hashes
from panes.errors import ColumnTypeError
from tests.spark.sketches.both import in_one_column, merged, ours, theirs, told
from tests.support import slow

KINDS = ("double", "integer")
MODES = ("sum", "min", "max", "alwaysone")


def ascending(count: int, seed: int = 1, times: int = 1) -> pa.Table:
    """Random keys, in order of their hashes, each with so many numbers."""
    draw = np.random.default_rng(seed)
    keys = np.repeat(draw.integers(0, 1 << 50, count), times)
    first, _ = hashes(pa.array(keys))
    keys = keys[np.argsort(first >> np.uint64(1), kind="stable")]
    whole = draw.integers(-(1 << 31), 1 << 31, len(keys))
    return pa.table({"k": keys, "d": whole.astype(float), "i": pa.array(whole, pa.int32())})


def entries(sketch: bytes, kind: str) -> list[tuple[Any, ...]]:
    """The hashes, numbers and modes of a sketch, in order of the hashes."""
    form = "<QdB" if kind == "double" else "<QiB"
    return sorted(struct.iter_unpack(form, sketch[8 * sketch[0] :]))


SIZES = {
    "one key": (12, 1),
    "few keys": (4, 15),
    "as many as its size": (4, 16),
    "one more": (4, 17),
    "a full table": (4, 30),
    "a table that was thinned out": (4, 31),
    "many keys": (4, 900),
    "a table that has grown": (9, 300),
    "and is full": (9, 960),
    "and was thinned out": (9, 961),
    "a table that has grown twice": (12, 513),
    "the default size": slow((12, 4_096)),
    "and more": slow((12, 4_097)),
    "and full": slow((12, 7_680)),
    "and thinned out": slow((12, 7_681)),
    "and many": slow((12, 30_000)),
}
each_size = pytest.mark.parametrize("sized", SIZES.values(), ids=SIZES)


@each_size
@pytest.mark.parametrize("kind", KINDS)
def test_keys_in_order_give_the_same_bytes(
    spark: SparkSession, sized: tuple[int, int], kind: str
) -> None:
    lg, count = sized
    table = ascending(count, times=1 + (count < 50))
    asked = f"tuple_sketch_agg_{kind}(k, {kind[0]}, {lg})"
    assert ours(table, asked) == merged(spark, table, asked)


@each_size
def test_sketches_in_order_give_the_same_bytes(spark: SparkSession, sized: tuple[int, int]) -> None:
    lg, count = sized
    sketch = in_order(ours(ascending(count), "tuple_sketch_agg_double(k, d, 20)"))
    for table in (in_one_column(sketch), in_one_column(sketch, sketch)):
        for asked in (f"tuple_union_agg_double(s, {lg})", "tuple_intersection_agg_double(s)"):
            assert ours(table, asked) == merged(spark, table, asked)


def in_order(sketch: bytes) -> bytes:
    """The same sketch of doubles with its hashes ascending."""
    head = sketch[: 8 * sketch[0]]
    return head + b"".join(struct.pack("<QdB", *e) for e in entries(sketch, "double"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [12, 25, 600])
def test_in_any_order_spark_has_the_same_keys_and_numbers(
    spark: SparkSession, kind: str, count: int
) -> None:
    table = ascending(count, times=2)
    table = table.take(np.random.default_rng(2).permutation(len(table)))
    asked = f"tuple_sketch_agg_{kind}(k, {kind[0]}, 4)"
    mine, other = ours(table, asked), theirs(spark, table, asked, partitions=3)
    assert entries(mine, kind) == entries(other, kind)
    assert mine[: 8 * mine[0]] == other[: 8 * other[0]]  # the count, and the bound
    again = in_one_column(mine, ours(ascending(count, seed=3), asked))
    for asked in (f"tuple_union_agg_{kind}(s, 4)", f"tuple_intersection_agg_{kind}(s)"):
        mine, other = ours(again, asked), theirs(spark, again, asked, partitions=2)
        assert entries(mine, kind) == entries(other, kind)


def test_a_single_partition_keeps_more_keys_than_the_size(spark: SparkSession) -> None:
    table, asked = ascending(25), "tuple_sketch_agg_integer(k, i, 4)"
    alone = theirs(spark, table, asked)
    assert len(entries(alone, "integer")) == 25
    assert entries(ours(table, asked), "integer") == entries(alone, "integer")[:16]


NUMBERS = {
    "NaN": [math.nan],
    "NaN and a number": [math.nan, 1.5],
    "minus zero": [-0.0],
    "infinities": [math.inf, -math.inf],
    "an infinity": [1.0, math.inf],
    "a sum": [0.5, 0.25, -8.0],
    "zeros": [-0.0, 0.0],
}


@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("mode", MODES)
def test_numbers_of_one_key_are_folded_as_spark_does(
    spark: SparkSession, mode: str, numbers: list[float]
) -> None:
    if mode == "max":
        numbers = numbers[::-1]  # of 0.0 and -0.0 Spark has the first, and 0.0 is greater
    table = pa.table({"k": [7] * len(numbers), "d": numbers})
    asked = f"tuple_sketch_agg_double(k, d, 12, '{mode}')"
    assert ours(table, asked) == theirs(spark, table, asked)
    alone = [ours(table[n : n + 1], "tuple_sketch_agg_double(k, d)") for n in range(len(numbers))]
    table, asked = in_one_column(*alone), f"tuple_union_agg_double(s, 12, '{mode}')"
    assert ours(table, asked) == theirs(spark, table, asked)


@pytest.mark.parametrize("mode", [m.upper() for m in MODES])
@pytest.mark.parametrize(
    "name", ["tuple_union_agg_integer(s, 12,", "tuple_intersection_agg_integer(s,"]
)
def test_a_number_keeps_its_mode_until_it_meets_another(
    spark: SparkSession, mode: str, name: str
) -> None:
    made = [
        ours(ascending(3, times=2), f"tuple_sketch_agg_integer(k, i, 12, '{m}')") for m in MODES
    ]
    for sketches in ([made[0]], [made[1], made[3]], [made[1], made[1], made[2]]):
        table, asked = in_one_column(*sketches), f"{name} '{mode}')"
        given = ours(table, asked)
        assert entries(given, "integer") == entries(theirs(spark, table, asked), "integer")


def test_a_sum_is_rounded_once(spark: SparkSession) -> None:
    """Spark rounds after each number, so its sums are those of some order."""
    table = pa.table({"k": [1] * 4, "d": [1e16, 1.0, 1.0, -1e16]})
    asked = "tuple_sketch_agg_double(k, d)"
    [(_, exact, _)] = entries(ours(table, asked), "double")
    [(_, rounded, _)] = entries(theirs(spark, table, asked), "double")
    assert (exact, rounded) == (2.0, 0.0)


KEYS: dict[str, tuple[pa.DataType, list[object]]] = {
    "tinyint": (pa.int8(), [1, -1, None]),
    "smallint": (pa.int16(), [300, 0]),
    "int": (pa.int32(), [1, None, -7]),
    "bigint": (pa.int64(), [1 << 40]),
    "float": (pa.float32(), [0.1, -0.0]),
    "double": (pa.float64(), [math.nan, 0.0]),
    "string": (pa.string(), ["", "ä"]),
    "binary": (pa.binary(), [b"", b"\0"]),
    "array<int>": (pa.list_(pa.int32()), [[], [1, 2]]),
    "array<bigint>": (pa.list_(pa.int64()), [[3]]),
}


@pytest.mark.parametrize(("kind", "values"), KEYS.values(), ids=KEYS)
def test_every_type_of_key_gives_the_same_bytes(
    spark: SparkSession, kind: pa.DataType, values: list[object]
) -> None:
    table = pa.table({"k": pa.array(values, kind), "i": pa.array(range(len(values)), pa.int32())})
    for name in KINDS:
        asked = f"tuple_sketch_agg_{name}(k, i)"
        assert entries(ours(table, asked), name) == entries(theirs(spark, table, asked), name)


@pytest.mark.parametrize("kind", ["tinyint", "smallint", "int", "bigint", "float"])
def test_summaries_are_cast_as_spark_does(spark: SparkSession, kind: str) -> None:
    table = spark.sql(f"SELECT 1 AS k, CAST(3 AS {kind}) AS x").toArrow()
    for name in KINDS[: 1 + (kind != "float")]:
        asked = f"tuple_sketch_agg_{name}(k, x)"
        assert ours(table, asked) == theirs(spark, table, asked)


def test_what_has_no_key_or_no_number_is_passed_over(spark: SparkSession) -> None:
    table = pa.table({"k": pa.array([None, 1, None]), "d": pa.array([1.0, None, None])})
    asked = "tuple_sketch_agg_double(k, d)"
    assert ours(table, asked) == theirs(spark, table, asked)
    nothing = in_one_column(ours(table, asked), ours(ascending(3), asked))
    for asked in ("tuple_union_agg_double(s)", "tuple_intersection_agg_double(s)"):
        for given in (nothing, nothing[:1], pa.table({"s": pa.nulls(2, pa.binary())})):
            found, wanted = ours(given, asked), theirs(spark, given, asked)
            assert (found[:8], entries(found, "double")) == (wanted[:8], entries(wanted, "double"))


def test_sketches_without_a_common_key_are_not_empty(spark: SparkSession) -> None:
    """And their union is. With a bound they have the least one, in any order."""
    made = "tuple_sketch_agg_double(k, d, 4)"
    whole = [ours(ascending(5, seed), made) for seed in (1, 2)]
    many = ours(ascending(90, seed=3), made)
    asked = "tuple_intersection_agg_double(s)"
    for some in (whole, [*whole, many], [many, *whole]):
        table = in_one_column(*some)
        apart = ours(table, asked)
        assert apart == theirs(spark, table, asked)
        union = in_one_column(apart), "tuple_union_agg_double(s)"
        assert ours(*union) == theirs(spark, *union)


def test_spark_reads_ours(spark: SparkSession) -> None:
    table = ascending(900)
    mine = ours(table, "tuple_sketch_agg_double(k, 2, 9)")
    other = theirs(spark, table, "tuple_sketch_agg_double(k, 3)")
    assert told(spark, "tuple_sketch_estimate_double(a)", mine) == pytest.approx(900, rel=0.18)
    assert told(spark, "tuple_sketch_summary_double(a)", mine) == 2 * 512
    united = told(spark, "tuple_sketch_summary_double(tuple_union_double(a, b))", mine, other)
    assert united == 5 * 512
    assert (
        told(spark, "tuple_sketch_estimate_double(tuple_difference_double(a, b))", mine, other) == 0
    )


NAMES = [f"tuple_{what}_agg_{kind}" for what in ("sketch", "union") for kind in KINDS]


def asked_of(name: str, *constants: str) -> tuple[pa.Table, str]:
    """A call with these constants, and rows for it."""
    columns = "k, i" if "sketch" in name else "s"
    table = pa.table({"k": [1], "i": pa.array([1], pa.int32()), "s": pa.nulls(1, pa.binary())})
    return table, f"{name}({', '.join([columns, *constants])})"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lg", ["3", "27", "NULL"])
def test_a_size_that_spark_refuses_is_refused(spark: SparkSession, name: str, lg: str) -> None:
    table, asked = asked_of(name, lg)
    with pytest.raises(panes.QueryError, match=r"needs 4 to 26|needs a number"):
        ours(table, asked)
    with pytest.raises(PySparkException, match=r"between 4 and 26|UNEXPECTED_NULL"):
        theirs(spark, table, asked)


@pytest.mark.parametrize("name", [*NAMES, "tuple_intersection_agg_double"])
@pytest.mark.parametrize("mode", ["'mean'", "NULL", "''"])
def test_a_mode_that_spark_refuses_is_refused(spark: SparkSession, name: str, mode: str) -> None:
    constants = [mode] if "intersection" in name else ["12", mode]
    table, asked = asked_of(name, *constants)
    with pytest.raises(panes.QueryError, match="needs sum, min, max or alwaysone as its mode"):
        ours(table, asked)
    with pytest.raises(PySparkException, match=r"TUPLE_INVALID_SKETCH_MODE|UNEXPECTED_NULL"):
        theirs(spark, table, asked)


@pytest.mark.parametrize("kind", ["boolean", "date", "binary"])
def test_a_summary_that_spark_refuses_is_refused(spark: SparkSession, kind: str) -> None:
    table = spark.sql(f"SELECT 1 AS k, CAST(NULL AS {kind}) AS x").toArrow()
    for name in KINDS:
        asked = f"tuple_sketch_agg_{name}(k, x)"
        with pytest.raises(ColumnTypeError, match=r"numbers as its summary.*\n\nHint: .*CAST\("):
            ours(table, asked)
        with pytest.raises(PySparkException, match="UNEXPECTED_INPUT_TYPE"):
            theirs(spark, table, asked)


def test_a_summary_that_is_no_int_fails_as_in_spark(spark: SparkSession) -> None:
    table = pa.table({"k": [1], "x": [1 << 31]})
    with pytest.raises(panes.PanesError, match="does not fit int"):
        ours(table, "tuple_sketch_agg_integer(k, x)")
    with pytest.raises(PySparkException, match="CAST_OVERFLOW"):
        theirs(spark, table, "tuple_sketch_agg_integer(k, x)")


@pytest.mark.parametrize("data", [b"", b"\x01\x03\x09\x01", b"\x02\x03\x03\x01" + bytes(30)])
def test_bytes_that_spark_refuses_are_refused(spark: SparkSession, data: bytes) -> None:
    for name in ("tuple_union_agg_double", "tuple_intersection_agg_integer"):
        with pytest.raises(panes.PanesError, match="is no tuple sketch"):
            ours(in_one_column(data), f"{name}(s)")
        with pytest.raises(PySparkException, match=r"TUPLE_INVALID_INPUT_SKETCH_BUFFER|invalid"):
            theirs(spark, in_one_column(data), f"{name}(s)")
