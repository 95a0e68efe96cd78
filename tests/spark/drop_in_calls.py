"""A table of calls of ``groupBy(window(...))``, one line each, and what equal answers are.

Every call is made twice, with Spark's ``df.groupBy`` and with ``panes.spark.group_by``: in a
classic session, and through Spark Connect.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import panes.spark

Group = Callable[..., Any]
W = ("10 minutes", "5 minutes")


def window(*more: str) -> Any:
    return F.window("ts", *(more or W))


CALLS: dict[str, Callable[[Group], DataFrame]] = {
    "a window alone": lambda g: g(window()).count(),
    "by keyword": lambda g: g(F.window(F.col("ts"), windowDuration="5 minutes")).count(),
    "start": lambda g: g(F.window("ts", *W, "2 minutes"), "k").count(),
    "start alone": lambda g: g(F.window("ts", "5 minutes", startTime="1 minute")).count(),
    "its own name": lambda g: g(window().alias("w"), "k").count(),
    "of an expression": lambda g: g(F.window(F.col("text").cast("timestamp"), *W)).count(),
    "without a zone": lambda g: g(F.window("local", *W)).count(),
    "a key behind": lambda g: g(window(), F.col("k")).max("i"),
    "a key before": lambda g: g("k", window()).min("i"),
    "keys around": lambda g: g("k", window(), F.col("i") % 2).sum("x"),
    "a list": lambda g: g([window(), "k", "i"]).avg("x"),
    "frequent items": lambda g: g(window()).agg(F.expr("approx_top_k(k, 1)")),
    "a named key": lambda g: g(window(), F.upper("k").alias("K")).mean("x", "i"),
    "a struct": lambda g: g(window(), "n").count(),
    "a made struct": lambda g: g(window(), F.struct("k", "i").alias("both")).sum("i"),
    "all numbers": lambda g: g(window()).sum(),
    "a dictionary": lambda g: g(window(), "k").agg({"x": "max", "i": "sum", "*": "count"}),
    "a cast": lambda g: g(window(), "k").agg(F.avg("x").cast("int")),
    "a cast and a name": lambda g: g(window()).agg(F.sum("x").cast("decimal(20,2)").alias("s")),
    "try_cast": lambda g: g(window()).agg(F.max("k").try_cast("int")),
    "functions": lambda g: g(window()).agg(
        F.round(F.avg("x"), 2), F.coalesce(F.max("i"), F.lit(0))
    ),
    "arithmetic": lambda g: g(window()).agg((F.max("x") - F.min("x")) / F.count("x") + 1),
    "text": lambda g: g(window()).agg(F.expr("sum(i) FILTER (WHERE x > 0) AS z")),
    "text around": lambda g: g(window()).agg(F.expr("max(i) - min(i)").alias("spread")),
    "counts": lambda g: g(window()).agg(F.count("*"), F.count("i"), F.count_if(F.col("i") > 0)),
    "distinct": lambda g: g(window()).agg(F.count_distinct("k", "i"), F.sum_distinct("i")),
    "truth": lambda g: g(window()).agg(F.bool_and("b"), F.bool_or("b"), F.every("b"), F.some("b")),
    "bits": lambda g: g(window()).agg(F.bit_and("i"), F.bit_or("i"), F.bit_xor("i")),
    "moments": lambda g: g(window(), "k").agg(F.skewness("x"), F.kurtosis("x"), F.variance("i")),
    "pairs": lambda g: g(window()).agg(F.corr("x", "i"), F.covar_pop("x", "i")),
    "a line": lambda g: g(window()).agg(F.regr_slope("x", "i"), F.regr_intercept("x", "i")),
    "its fit": lambda g: g(window()).agg(F.regr_r2("x", "i"), F.regr_sxy("x", "i")),
    "its sums": lambda g: g(window()).agg(F.regr_sxx("x", "i"), F.regr_count("x", "i")),
    "its means": lambda g: g(window()).agg(F.regr_avgx("d", "i"), F.regr_avgy("d", "x")),
    "tries": lambda g: g(window()).agg(F.try_sum("i"), F.try_avg("x")),
    "quantiles": lambda g: g(window()).agg(F.median("x"), F.percentile("x", [0.25, 0.75])),
    "approximate": lambda g: g(window()).agg(F.percentile_approx("i", [0.5, 0.1], 1000)),
    "below all": lambda g: g(window()).agg(
        F.expr("percentile(if(i < 0, double('-infinity'), x), 0.3)")
    ),
    "no text": lambda g: g(window()).agg(F.approx_count_distinct(F.replace("k", F.lit("a")))),
    "a share of nothing": lambda g: g(window(), "i").agg(F.sum("i") / F.count("i")),
    "the most frequent": lambda g: g(window()).agg(F.mode("i", True)),
    "by another": lambda g: g(window()).agg(F.max_by("k", "ts"), F.min_by("n", "ts")),
    "structs": lambda g: g(window()).agg(F.max("n"), F.min(F.struct("i", "k")), F.count("n")),
    "arrays": lambda g: g(window()).agg(F.max(F.array("i", "i")), F.min(F.array("k"))),
    "a sorted list": lambda g: g(window()).agg(F.sort_array(F.collect_list("i"))),
    "a sorted set": lambda g: g(window()).agg(F.sort_array(F.collect_set(F.struct("k", "i")))),
    "sketch": lambda g: g(window()).agg(F.count_min_sketch("i", F.lit(0.1), F.lit(0.9), F.lit(1))),
    "text in bytes": lambda g: g(window()).agg(F.expr("count_min_sketch(k, 0.2d, 0.9d, 5)")),
    "an estimate": lambda g: g(window()).agg(F.hll_sketch_estimate(F.hll_sketch_agg("k", 8))),
    "hashes": lambda g: g(window()).agg(F.theta_sketch_agg("k"), F.theta_sketch_agg("x", 4)),
    "a number each": lambda g: g(window()).agg(
        F.tuple_sketch_estimate_integer(F.tuple_sketch_agg_integer("k", "i", 4, "min")),
        F.tuple_sketch_summary_double(F.tuple_sketch_agg_double("i", "i", 12, "max"), "sum"),
    ),
    "bitmap": lambda g: g(window()).agg(F.bitmap_construct_agg(F.col("i") + 100)),
    "in order": lambda g: g(window()).agg(F.expr("listagg(k, ',') WITHIN GROUP (ORDER BY k DESC)")),
    "when": lambda g: g(window()).agg(
        F.when(F.count("*") > 40, F.max("x")).when(F.min("i") > 0, 1).otherwise(F.lit(-1)),
        F.when(F.max("i") > 9, F.max("k")).alias("some"),
    ),
    "a field": lambda g: g(window()).agg(F.max(F.struct("i", "k")).getField("k"), F.max("n")["i"]),
    "an element": lambda g: g(window()).agg(F.sort_array(F.collect_list("i"))[0]),
    "a key again": lambda g: g(window(), "k").agg(F.upper("k"), F.concat("k", F.max("k"))),
    "a start before": lambda g: g(F.window("ts", *W, "-1 minute")).count(),
    "an interval": lambda g: g(F.window("ts", "interval 10 minutes")).count(),
    "in text": lambda g: g(window()).agg(F.sum(F.when(F.col("k") == "a", 1).otherwise(0))),
    "decimals": lambda g: g(window()).agg(F.sum("d"), F.avg("d"), F.max("d")),
}


def rows(spark: SparkSession) -> DataFrame:
    """A frame with NULL, NaN, negative numbers and groups without a value."""
    every = spark.range(300)
    i = F.when(F.col("id") % 7 == 0, None).otherwise(F.pmod(F.hash("id"), F.lit(21)) - 10)
    x = F.when(F.col("id") % 11 == 0, None).otherwise(F.pmod(F.hash("id"), F.lit(99)) / 4 - 9)
    seconds = F.lit(1_767_225_600) + F.col("id") * 13
    given = every.select(
        F.timestamp_seconds(seconds).alias("ts"),
        F.expr("make_timestamp_ntz(2026, 1, 1, 0, int(id % 60), id % 50)").alias("local"),
        F.date_format(F.timestamp_seconds(seconds), "yyyy-MM-dd HH:mm:ss").alias("text"),
        F.element_at(
            F.array(F.lit("a"), F.lit("b"), F.lit(None)), F.col("id").cast("int") % 3 + 1
        ).alias("k"),
        i.cast("int").alias("i"),
        x.alias("x"),
        (F.col("id") % 5 > 0).alias("b"),
        x.cast("decimal(10,2)").alias("d"),
    )
    inner = F.when(F.col("i") > -8, F.struct("i", F.col("k").alias("name")))
    return given.withColumn("n", inner)


def difference(spark: SparkSession, name: str, frame: DataFrame) -> str | None:
    """How the two answers to a call differ; None if they do not."""
    theirs = CALLS[name](frame.groupBy)
    ours = CALLS[name](lambda *columns: panes.spark.group_by(frame, *columns))
    for mine, other in zip(ours.schema, theirs.schema, strict=True):
        if mine != other:
            return f"{mine.json()} instead of {other.json()}"
    have, want = (sorted(map(_told, f.collect()), key=repr) for f in (ours, theirs))
    wrong = [(a, b) for a, b in zip(have, want, strict=False) if a != b]
    if wrong or len(have) != len(want):
        return f"{len(have)} rows instead of {len(want)}, first {wrong[:1]}"
    return None


def _told(value: Any) -> Any:
    """A row as plain values, floats rounded to what both engines promise."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.9g}") + 0.0
    if isinstance(value, tuple | list):
        return tuple(map(_told, value))
    return value
