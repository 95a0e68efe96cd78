"""`panes.spark.join` gives what Spark's own join gives: names, types and rows."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import panes.spark
from panes.errors import OptionError, UnknownColumnError
from tests.join_queries import START, L, R
from tests.spark.streaming import as_batches, in_thirds, read_stream, run_to_end
from tests.support import slow

WITHIN = ("-3 seconds", "4 seconds")
NEAR = "r.ts >= l.ts - INTERVAL 3 SECONDS AND r.ts <= l.ts + INTERVAL 4 SECONDS"
KINDS = ("inner", "left", "rightouter", "full_outer", "left_semi", "anti")


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    left = spark.createDataFrame(L).select("id", "ts", F.col("k").alias("odd `k"), "s")
    right = spark.createDataFrame(R).select("x", "s", "ts", F.col("k").cast("long").alias("odd `k"))
    return left.coalesce(1), right.coalesce(1)


def by_spark(left: DataFrame, right: DataFrame, on: Any, how: str) -> DataFrame:
    """The join that is replaced; keys that both have are given once, as Spark does it."""
    one, other = left.alias("l"), right.alias("r")
    near = F.expr(NEAR)
    if isinstance(on, dict):
        keys: list[Column] = [F.expr(f"l.`{a}` = r.`{b}`".replace("odd `k", "odd ``k"))
                              for a, b in on.items()]  # fmt: skip
        return one.join(other, _all([*keys, near]), how)
    names = [on] if isinstance(on, str) else on
    quoted = {n: "`" + n.replace("`", "``") + "`" for n in names}
    joined = one.join(
        other, _all([*(F.expr(f"l.{q} = r.{q}") for q in quoted.values()), near]), how
    )
    if how in ("left_semi", "anti"):
        rest = [F.expr(f"l.`{c}`".replace("odd `k", "odd ``k")) for c in left.columns
                if c not in names]  # fmt: skip
        return joined.select(*(F.expr(f"l.{quoted[n]}") for n in names), *rest)
    key = {"rightouter": "r.{}", "full_outer": "coalesce(l.{0}, r.{0})"}.get(how, "l.{}")
    keys = [F.expr(key.format(q)).alias(n) for n, q in quoted.items()]
    rest = [
        F.expr(f"{side}.`{c}`".replace("odd `k", "odd ``k"))
        for side, frame in (("l", left), ("r", right))
        for c in frame.columns
        if c not in names
    ]
    return joined.select(*keys, *rest)


def _all(conditions: list[Column]) -> Column:
    found = conditions[0]
    for condition in conditions[1:]:
        found = found & condition
    return found


def rows(frame: DataFrame) -> list[str]:
    return sorted(str(tuple(row)) for row in frame.collect())


CALLS = [
    *(("s", how) if how != "full_outer" else slow("s", how) for how in KINDS),
    *(slow(["odd `k", "s"], how) for how in KINDS[1:]),
    (["odd `k", "s"], "inner"),
    ({"s": "s"}, "left"),
    slow({"odd `k": "odd `k"}, "full_outer"),
]


@pytest.mark.parametrize(("on", "how"), CALLS)
def test_join_is_a_drop_in(frames: tuple[DataFrame, DataFrame], on: Any, how: str) -> None:
    want = by_spark(*frames, on, how)
    got = panes.spark.join(*frames, on, WITHIN, how, at="ts")
    assert [(f.name, f.dataType) for f in got.schema] == [(f.name, f.dataType) for f in want.schema]
    assert rows(got) == rows(want)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["left", slow("full_outer"), slow("left_semi")])
def test_it_is_one_on_streams_with_watermarks(
    spark: SparkSession, frames: tuple[DataFrame, DataFrame], tmp_path: Path, how: str
) -> None:
    """Rows in order, so that none is late; the last watermark proves all but the newest rows."""
    left, right = (f.where("ts IS NOT NULL").orderBy("ts").toArrow() for f in frames)
    far = [t.slice(len(t) - 1).set_column(t.column_names.index("ts"), "ts", _later(t))
           for t in (left, right)]  # fmt: skip
    streams = []
    for name, table, last in zip("lr", (left, right), far, strict=True):
        folder = as_batches(tmp_path / name, [*in_thirds(table), last, last])
        streams.append(read_stream(spark, folder).withWatermark("ts", "2 seconds"))
    joined = panes.spark.join(streams[0], streams[1], "s", WITHIN, how)
    run_to_end(joined.toDF(*(f"c{i}" for i in range(len(joined.columns)))), tmp_path)
    want = by_spark(spark.createDataFrame(left), spark.createDataFrame(right), "s", how)
    got = [r for r in rows(spark.read.parquet(str(tmp_path / "out"))) if "1, 2, 3)" not in r]
    assert got == rows(want)


def _later(table: pa.Table) -> pa.Array:
    """An hour, two minutes and three seconds after the first row."""
    at = START + dt.timedelta(hours=1, minutes=2, seconds=3)
    return pa.array([at], table.schema.field("ts").type)


def test_what_is_asked_wrongly_is_said(frames: tuple[DataFrame, DataFrame]) -> None:
    with pytest.raises(OptionError, match="the left side has no columns with a watermark"):
        panes.spark.join(*frames, "s", WITHIN)
    with pytest.raises(OptionError, match="there is no join 'outwards'"):
        panes.spark.join(*frames, "s", WITHIN, "outwards", at="ts")
    with pytest.raises(OptionError, match="the least and the greatest"):
        panes.spark.join(*frames, "s", "5 seconds", at="ts")  # type: ignore[arg-type]
    with pytest.raises(UnknownColumnError, match="nope"):
        panes.spark.join(*frames, "nope", WITHIN, at="ts")
    with pytest.raises(OptionError, match="on is a name, names, or a mapping"):
        panes.spark.join(*frames, [F.col("s")], WITHIN, at="ts")  # type: ignore[list-item]
    with pytest.raises(OptionError, match="on takes names of columns"):
        panes.spark.join(*frames, frames[0]["s"] == frames[1]["s"], WITHIN, at="ts")  # type: ignore[arg-type]
