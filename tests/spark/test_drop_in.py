"""The drop-in gives what Spark's own ``groupBy(window(...))`` gives: names, types and rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import panes.spark
from panes.sample_streams import bids
from tests.spark.streaming import (
    as_batches,
    at_seconds,
    in_thirds,
    read_stream,
    run_to_end,
)
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


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (["item"], "needs one window, got 0"),
        ([F.window, "item"], "takes Columns"),
    ],
)
def test_grouping_without_a_window_is_refused_with_the_line_to_type(
    frame: DataFrame, columns: list[Any], said: str
) -> None:
    with pytest.raises(panes.QueryError, match=rf"{said}[^$]*F\.window"):
        panes.spark.group_by(frame, *columns)


def test_what_has_no_meaning_over_windows_is_refused_by_name(frame: DataFrame) -> None:
    window = F.window("ts", "5 minutes")
    grouped = panes.spark.group_by(frame, window)
    with pytest.raises(panes.QueryError, match="pivot"):
        grouped.pivot("item")
    with pytest.raises(panes.QueryError, match="one window, got 2"):
        panes.spark.group_by(frame, window, window)
    with pytest.raises(panes.QueryError, match="session windows"):
        panes.spark.group_by(frame, F.session_window("ts", "5 minutes"))
    with pytest.raises(panes.QueryError, match="kll_sketch_agg_bigint"):
        grouped.agg(F.kll_sketch_agg_bigint("q"))
    with pytest.raises(panes.QueryError, match=r"F\.expr"):
        grouped.agg(F.max(F.struct("q")).withField("a", F.lit(1)))
    with pytest.raises(panes.QueryError, match="agg takes Columns"):
        grouped.agg()


def test_a_python_function_is_applied_to_the_answers_as_the_hint_says(frame: DataFrame) -> None:
    more = F.udf(lambda q: q + 1, "bigint")
    grouped = panes.spark.group_by(frame, F.window("ts", "1 hour"))
    with pytest.raises(panes.QueryError, match=r"withColumn") as refused:
        grouped.agg(more(F.max("q")))
    assert len(str(refused.value)) < 300
    answers = grouped.agg(F.max("q").alias("s")).withColumn("more", more("s"))
    assert [row.more - row.s for row in answers.collect()] == [1]


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


Batches = list[list[tuple[str, int, object]]]


def answered(answers: DataFrame, place: Path) -> Batches:
    """Key, start in seconds and value of the answers, batch by batch."""
    given: Batches = []

    def take(batch: DataFrame, _: int) -> None:
        seconds = F.unix_seconds("window.start").cast("int")
        given.append(sorted(tuple(r) for r in batch.select("k", seconds, "n").collect()))

    writer = answers.writeStream.foreachBatch(take).outputMode("append")
    place.mkdir()
    writer = writer.option("checkpointLocation", str(place)).trigger(availableNow=True)
    writer.start().awaitTermination()
    return given


def both(stream: DataFrame, place: Path, *window: str, late: str = "spark") -> tuple[Batches, ...]:
    """What we answer, and what Spark does."""
    counted = F.count("*").alias("n")
    ours = panes.spark.group_by(stream, panes.spark.window("ts", *window), "k", late=late)
    theirs = stream.groupBy(F.window("ts", *window), "k")
    return tuple(
        answered(grouped.agg(counted), place / name)
        for name, grouped in (("ours", ours), ("theirs", theirs))
    )


@pytest.mark.slow
def test_rows_later_than_the_watermark_count_where_they_count_for_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Tumbling windows of 10 s, a watermark without delay; a batch is a line.

    A window is complete when the watermark has reached its end. Spark's watermark in a batch is
    that of the batches before it, so its windows take rows for one batch more::

        batch     rows at           watermark   complete     Spark takes rows
        0         1, 2, -5          0 -> 2                   not before 0, where it begins
        1         12                2 -> 12     [0, 10)
        2         3, 13             12 -> 13                 3: in [0, 10), which closes now
        3         4, 15, 25.0004    13 -> 25    [10, 20)     4: in none
        4         16, 26            25 -> 26                 16: in [10, 20), which closes now
    """
    before_1970 = -1_767_225_600 - 5  # from the beginning of 2026, as the others
    batches = [
        at_seconds(1, 2, before_1970, k=["a", "a", "a"]),
        at_seconds(12, k=["a"]),
        at_seconds(3, 13, k=["b", "a"]),
        at_seconds(4, 15, 25.0004, k=["c", "a", "a"]),
        at_seconds(16, 26, k=["d", "a"]),
    ]
    folder = as_batches(tmp_path / "in", batches)
    stream = read_stream(spark, folder).withWatermark("ts", "0 seconds")
    ours, theirs = both(stream, tmp_path, "10 seconds")
    assert ours == theirs
    start = 1_767_225_600
    closed_late = [("b", start, 1), ("d", start + 10, 1)]
    assert all(any(row in batch for batch in ours) for row in closed_late)
    assert not any(row[0] == "c" for batch in ours for row in batch)
    (tmp_path / "open").mkdir()
    counted = F.count("*").alias("n")
    window = panes.spark.window("ts", "10 seconds")
    early = answered(
        panes.spark.group_by(stream, window, "k").agg(counted), tmp_path / "open" / "state"
    )
    assert not any(row in batch for batch in early for row in closed_late)
    assert early[1] == [("a", start, 2)], "one batch earlier"
    assert ("a", start, 2) in ours[2]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_late_rows_of_any_stream_count_where_they_count_for_spark(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    seconds = np.cumsum(rng.exponential(4, 120)) - rng.exponential(25, 120) * (
        rng.random(120) < 0.3
    )
    keys = rng.choice(["a", "b", "c"], 120).tolist()
    table = at_seconds(*seconds.round(6).tolist(), k=keys)
    sizes = np.sort(rng.integers(0, 120, 7))
    cuts = [0, *sizes.tolist(), 120]
    batches = [table.slice(a, b - a) for a, b in pairwise(cuts) if b > a]
    folder = as_batches(tmp_path / "in", batches)
    stream = read_stream(spark, folder).withWatermark("ts", f"{int(rng.integers(0, 9))} seconds")
    ours, theirs = both(stream, tmp_path, "30 seconds", "10 seconds")
    assert ours == theirs


def test_other_output_modes_than_append_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    folder = as_batches(tmp_path / "in", [at_seconds(1, k=["a"])])
    stream = read_stream(spark, folder).withWatermark("ts", "0 seconds")
    window = panes.spark.window("ts", "10 seconds")
    answers = panes.spark.group_by(stream, window, "k").agg(F.count("*"))
    for mode in ("update", "complete", "Update"):
        with pytest.raises(panes.errors.OptionError, match="must be 'append'"):
            answers.writeStream.format("noop").outputMode(mode)
    assert isinstance(answers, DataFrame)
    answers.writeStream.outputMode("append")
    answers.select("k").writeStream.outputMode("update")  # gives the rows of append; documented
    with pytest.raises(panes.errors.OptionError, match="late must be"):
        panes.spark.group_by(stream, window, "k", late="never")
    unmarked = read_stream(spark, folder)
    with pytest.raises(panes.errors.OptionError, match="withWatermark"):
        panes.spark.group_by(unmarked, window, "k", late="spark").agg(F.count("*"))
    with pytest.raises(panes.errors.OptionError, match=r"Hint: df\.withWatermark"):
        panes.spark.group_by(unmarked, window, "k").agg(F.count("*"))


def test_a_key_of_arrays_is_refused_by_its_name_and_grouped_as_the_hint_says(
    spark: SparkSession,
) -> None:
    frame = spark.sql("SELECT TIMESTAMP '2026-01-01' AS ts, array(1, 2) AS tags")
    with pytest.raises(panes.QueryError, match="cannot group by tags, which is array<int>"):
        panes.spark.group_by(frame, F.window("ts", "1 hour"), "tags").count()
    written = F.to_json("tags").alias("tags")
    answers = panes.spark.group_by(frame, F.window("ts", "1 hour"), written).count()
    assert [(row["tags"], row["count"]) for row in answers.collect()] == [("[1,2]", 1)]


def test_the_time_may_be_a_field_of_a_struct(frame: DataFrame) -> None:
    nested = frame.select(F.struct("ts", "item").alias("p"))
    keys = (F.window("p.ts", "10 minutes"), "p.item")
    got = panes.spark.group_by(nested, *keys).count()
    assert sorted(got.collect()) == sorted(nested.groupBy(*keys).count().collect())
