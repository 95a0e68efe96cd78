"""The drop-in gives what Spark's own ``groupBy(window(...))`` gives: names, types and rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import panes.spark
from panes.bench.workloads import bids
from tests.spark.streaming import as_batches, in_thirds, read_stream, run_to_end
from tests.support import slow

AGGREGATES: dict[str, Callable[[], Column]] = {
    "max": lambda: F.max("price"),
    "min": lambda: F.min("price"),
    "named": lambda: F.avg("price").alias("p"),
    "count": lambda: F.count("*"),
    "count of one": lambda: F.count(F.lit(1)),
    "distinct": lambda: F.countDistinct("q"),
    "distinct pairs": lambda: F.count_distinct("q", "item"),
    "inside": lambda: F.sum(F.col("price") * 2 + F.col("q")).alias("w"),
    "around": lambda: F.max("price") - F.min("price"),
    "text": lambda: F.expr("sum(q) filter (where price > 50) as z"),
    "quoted": lambda: F.sum(F.when(F.col("odd name") == "it's", 1).otherwise(0)),
    "stddev": lambda: F.stddev("price"),
    "var_pop": lambda: F.var_pop("price"),
    "covar": lambda: F.covar_samp("price", "q"),
    "corr": lambda: F.corr("price", "q"),
    "median": lambda: F.median("price"),
    "percentile": lambda: F.percentile("price", 0.25),
    "integers": lambda: F.sum("q"),
    "mean of integers": lambda: F.avg("q"),
    "bool_and": lambda: F.bool_and(F.col("q") > 3),
    "bool_or": lambda: F.bool_or(F.col("q") > 3),
    "max_by": lambda: F.max_by("odd name", "price"),
    "collect_set": lambda: F.sort_array(F.collect_set("q")),
    "decimal": lambda: F.sum(F.col("price").cast("decimal(10,2)")),
}


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    table = spark.createDataFrame(bids(1_500, keys=4, hours=1))
    q = (F.unix_micros("ts") / 1_000 % 7).cast("int")
    named = F.when(F.col("price") > 100, "it's").otherwise("other")
    return table.select("*", q.alias("q"), named.alias("odd name")).cache()


@pytest.mark.parametrize(
    ("size", "slide", "start", "keys"),
    [
        ("10 minutes", "1 minute", "0 seconds", ()),
        ("7 minutes", "3 minutes", "1 minute", ("item", "q")),
        slow("10 minutes", "1 minute", "0 seconds", ("item",)),
        slow("10 minutes", "1 minute", "0 seconds", ("item", "q")),
        slow("7 minutes", "3 minutes", "1 minute", ()),
        slow("7 minutes", "3 minutes", "1 minute", ("item",)),
    ],
)
def test_group_by_is_a_drop_in(
    frame: DataFrame, size: str, slide: str, start: str, keys: tuple[str, ...]
) -> None:
    columns = [make() for make in AGGREGATES.values()]
    want = frame.groupBy(F.window("ts", size, slide, start), *keys).agg(*columns)
    got = panes.spark.group_by(frame, panes.spark.window("ts", size, slide, start), *keys).agg(
        *columns
    )
    assert [(f.name, f.dataType) for f in got.schema] == [(f.name, f.dataType) for f in want.schema]
    assert rows(got, len(keys)) == rows(want, len(keys))


def rows(answers: DataFrame, keys: int) -> list[tuple[object, ...]]:
    """Rows in order, floats rounded to what both engines promise."""
    found = answers.collect()
    found.sort(key=lambda r: (r[0].start, [str(v) for v in r[1 : 1 + keys]]))
    return [tuple(map(rounded, r)) for r in found]


def rounded(value: object) -> object:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.9g}")
    return value


def test_a_tumbling_window_needs_no_slide(frame: DataFrame) -> None:
    got = panes.spark.group_by(frame, panes.spark.window("ts", "5 minutes")).agg(F.count("*"))
    want = frame.groupBy(F.window("ts", "5 minutes")).agg(F.count("*"))
    assert rows(got, 0) == rows(want, 0)


def test_sparks_own_window_is_refused_with_the_line_to_type(frame: DataFrame) -> None:
    with pytest.raises(panes.QueryError, match=r"panes\.spark\.window"):
        panes.spark.group_by(frame, F.window("ts", "5 minutes"))  # type: ignore[arg-type]


def test_group_by_is_a_drop_in_on_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    """With the stream's own watermark: the rows that Spark's append mode gives, and earlier."""
    table = bids(3_000, keys=4, hours=1)
    folder = as_batches(tmp_path / "in", in_thirds(table))
    stream = read_stream(spark, folder).withWatermark("ts", "30 seconds")
    columns = [F.max("price"), F.avg("price").alias("p"), F.count("*")]
    want = stream.groupBy(F.window("ts", "10 minutes", "1 minute"), "item").agg(*columns)
    window = panes.spark.window("ts", "10 minutes", "1 minute")
    got = panes.spark.group_by(stream, window, "item").agg(*columns)
    assert [(f.name, f.dataType) for f in got.schema] == [(f.name, f.dataType) for f in want.schema]
    run_to_end(got, tmp_path / "got")
    run_to_end(want, tmp_path / "want")
    mine, theirs = (rows(spark.read.parquet(str(tmp_path / n / "out")), 1) for n in ("got", "want"))
    assert mine == theirs
