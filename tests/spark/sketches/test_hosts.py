"""Sketches over windows, on Spark in batch and as a stream, are the oracle's; the rest is Spark's.

Catches: a partial of sketches that is not the same once it was sent, stored or read back, a type
that differs on Spark, and a reader of Spark that is kept from a sketch.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import panes
from tests.spark.streaming import START, as_batches, found, read_stream, run_to_end
from tests.support import assert_rows, select

UNIONS = (
    "hll_union_agg(h)",
    "hll_union_agg(h, true)",
    "theta_union_agg(t, 5)",
    "theta_intersection_agg(t)",
    "tuple_union_agg_double(d, 5)",
    "tuple_intersection_agg_double(d, 'max')",
    "tuple_union_agg_integer(i, 12, 'min')",
    "tuple_intersection_agg_integer(i)",
)
NAMES = ["ts", "h", "t", "d", "i"]
TEXT = f"SELECT {select(UNIONS)} FROM s [RANGE 30 seconds SLIDE 10 seconds WATTR ts]"


def values() -> pa.Table:
    """600 values in each of eight groups of ten seconds, of which most are in several."""
    rows = [
        (START + dt.timedelta(seconds=10 * g), 100 * g + n) for g in range(8) for n in range(600)
    ]
    at, x = zip(*rows, strict=True)
    return pa.table({"ts": pa.array(at, pa.timestamp("us", "UTC")), "x": pa.array(x, pa.int64())})


def sketches() -> pa.Table:
    """A sketch of each kind for every ten seconds."""
    text = (
        "SELECT hll_sketch_agg(x, 9) AS h, theta_sketch_agg(x, 6) AS t, "
        "tuple_sketch_agg_double(x, x / 7, 6) AS d, tuple_sketch_agg_integer(x, x, 6, 'max') AS i "
        "FROM s [TUMBLING 10 seconds WATTR ts]"
    )
    made = panes.sql(text, s=values())
    return made.select(["window_start", *NAMES[1:]]).rename_columns(NAMES)


def test_a_batch_gives_the_oracles_bytes(spark: SparkSession) -> None:
    table = sketches()
    answers = panes.sql(TEXT, s=spark.createDataFrame(table)).toArrow()
    assert_rows(answers, panes.oracle(TEXT, s=table))


def test_sparks_readers_stand_around_an_aggregate(spark: SparkSession) -> None:
    text = (
        "SELECT hll_sketch_estimate(hll_sketch_agg(x, 14)) AS n, "
        "theta_sketch_estimate(theta_sketch_agg(x)) AS m, "
        "tuple_sketch_summary_integer(tuple_sketch_agg_integer(x, 1)) AS i, "
        "tuple_sketch_estimate_double(tuple_sketch_agg_double(x, x)) AS d "
        "FROM s [RANGE 20 seconds SLIDE 10 seconds WATTR ts]"
    )
    answers = panes.sql(text, s=spark.createDataFrame(values())).collect()
    assert [row["m"] for row in answers] == [600, *[700] * 7, 600]
    assert [row["n"] for row in answers] == [600, *[700] * 7, 600]
    assert [row["d"] for row in answers] == [600, *[700] * 7, 600]
    assert [row["i"] for row in answers] == [600, *[1200] * 7, 600]


@pytest.mark.slow
def test_a_stream_gives_the_oracles_bytes_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = sketches()
    closing = pa.table([[START + dt.timedelta(hours=1)], *[pa.nulls(1)] * 4], NAMES)
    whole = pa.concat_tables([table, closing.cast(table.schema)])
    for first, some in ((0, [whole[4:7], whole[:4]]), (2, [whole[7:8], whole[8:]])):
        folder = as_batches(tmp_path / "in", some, first=first)
        lateness = dt.timedelta(seconds=100)
        run_to_end(panes.sql(TEXT, lateness=lateness, s=read_stream(spark, folder)), tmp_path)
    wanted = panes.oracle(TEXT, s=whole)
    end = pa.scalar(START + dt.timedelta(minutes=30))
    assert_rows(found(spark, tmp_path / "out"), wanted.filter(pc.less(wanted["window_end"], end)))


@pytest.mark.slow
def test_bytes_that_are_no_sketch_stop_a_stream_with_our_message(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = sketches()
    broken = table.set_column(1, "h", pa.array([b"\xff" * 9] * len(table), pa.binary()))
    folder = as_batches(tmp_path / "in", [broken])
    answers = panes.sql(TEXT, lateness=dt.timedelta(0), s=read_stream(spark, folder))
    with pytest.raises(StreamingQueryException, match="a value is no HLL sketch"):
        run_to_end(answers, tmp_path)
