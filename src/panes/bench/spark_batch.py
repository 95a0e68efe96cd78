"""Spark, batch: sliding windows against tumbling, Spark's `window()`, and panes written by hand.

All contenders read the same Parquet file and write all their answers to Spark's `noop` sink, in
one session. `window()` copies each row once per window, so it runs only at overlaps 10 and 60.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Window as Over
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

import panes
import panes.spark
from panes.bench.measure import Report, Timing, timed
from panes.bench.workloads import bids

TREE = "spark.sql.window.segmentTree.enabled"
POINTS = {1: (10, 10), 10: (100, 10), 60: (600, 10), 360: (3_600, 10), 1_440: (14_400, 10)}
KEYS = (1, 1_000, 100_000)


def by_panes(frame: DataFrame, size: int, slide: int) -> DataFrame:
    """Our own."""
    clause = f"[RANGE {size} seconds SLIDE {slide} seconds WATTR ts]"
    text = f"SELECT item, max(price) AS high, count(*) AS n FROM bids {clause} GROUP BY item"
    return panes.sql(text, bids=frame)


def by_window(frame: DataFrame, size: int, slide: int) -> DataFrame:
    """Spark's own sliding window; tumbling where size and slide are equal."""
    window = F.window("ts", f"{size} seconds", f"{slide} seconds")
    grouped = frame.groupBy(window.alias("w"), "item")
    answers = grouped.agg(F.max("price").alias("high"), F.count("*").alias("n"))
    return answers.select(
        F.col("w.start").alias("window_start"), F.col("w.end").alias("window_end"),
        "item", "high", "n",
    )  # fmt: skip


def by_hand(frame: DataFrame, size: int, slide: int) -> DataFrame:
    """Panes by hand: tumble, then OVER a range frame. Gives only windows that end with a row."""
    pane = F.floor(F.unix_seconds("ts") / slide).alias("pane")
    filled = frame.groupBy(pane, "item").agg(F.max("price").alias("m"), F.count("*").alias("c"))
    over = Over.partitionBy("item").orderBy("pane").rangeBetween(1 - size // slide, 0)
    return filled.select(
        "item", "pane", F.max("m").over(over).alias("high"), F.sum("c").over(over).alias("n")
    )


def run(rows: int, repeat: int, say: Callable[[str], None]) -> Report:
    """Check, then time, all contenders."""
    command = f"panes bench spark-batch --rows {rows} --repeat {repeat}"
    report = Report("spark-batch", command)
    spark = panes.spark.session(
        master="local[2]", spark__ui__enabled="false", spark__sql__shuffle__partitions="2",
        spark__driver__memory="6g",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        frames = {keys: _frame(spark, folder, rows, keys) for keys in KEYS}
        say("checking that panes and window() give the same answers")
        _check(_frame(spark, folder, 50_000, 100))
        for keys, frame in frames.items():
            for overlap, (size, slide) in POINTS.items():
                if keys == 1_000 or overlap in (1, 60):
                    say(f"timing {keys:,} keys, overlap {overlap:,}")
                    _point(report, spark, frame, keys, overlap, (size, slide), repeat, rows)
    _bars(report)
    spark.stop()
    return report


def _frame(spark: SparkSession, folder: str, rows: int, keys: int) -> DataFrame:
    path = Path(folder) / f"bids-{rows}-{keys}.parquet"
    pq.write_table(bids(rows, keys=keys), path, row_group_size=max(rows // 10, 1))
    return spark.read.parquet(str(path))


def _check(frame: DataFrame) -> None:
    for size, slide in ((600, 60), (3_600, 60)):
        ours, theirs = by_panes(frame, size, slide), by_window(frame, size, slide)
        missing, extra = theirs.exceptAll(ours).count(), ours.exceptAll(theirs).count()
        if missing or extra:
            raise AssertionError(f"{size}/{slide}: {missing} answers missing, {extra} too many")


def _point(
    report: Report,
    spark: SparkSession,
    frame: DataFrame,
    keys: int,
    overlap: int,
    window: tuple[int, int],
    repeat: int,
    rows: int,
) -> None:
    size, slide = window

    def time(contender: str, answers: DataFrame, times: int) -> None:
        seconds = timed(lambda: _write(answers), repeat=times)
        report.timings.append(Timing(contender, f"{keys}/{overlap}", seconds, f"{rows} rows"))

    time("tumbling", by_window(frame, slide, slide), repeat)
    time("panes", by_panes(frame, size, slide), repeat)
    if overlap > 1 and keys == 1_000:
        for enabled in ("false", "true"):
            spark.conf.set(TREE, enabled)
            name = "OVER, segment tree" if enabled == "true" else "OVER"
            time(name, by_hand(frame, size, slide), 1)
    if overlap in (10, 60) and keys == 1_000:
        time("window()", by_window(frame, size, slide), 1)


def _write(answers: DataFrame) -> None:
    answers.write.format("noop").mode("overwrite").save()


def _bars(report: Report) -> None:
    best = {(t.contender, t.point): t.median for t in report.timings}
    for overlap, most in ((10, 1.5), (60, 1.5), (360, 2.0), (1_440, 2.0)):
        ratio = best["panes", f"1000/{overlap}"] / best["tumbling", f"1000/{overlap}"]
        what = f"overlap {overlap:,}: at most {most} x tumbling"
        report.bar(what, f"{ratio:.2f} x", met=ratio <= most)
    ratio = best["window()", "1000/60"] / best["panes", "1000/60"]
    report.bar("overlap 60: at least 25 x faster than window()", f"{ratio:.1f} x", met=ratio >= 25)
    for name in ("OVER", "OVER, segment tree"):
        ratio = best[name, "1000/60"] / best["panes", "1000/60"]
        what = f"overlap 60: at least 1.5 x faster than {name}"
        report.bar(what, f"{ratio:.2f} x", met=ratio >= 1.5)
