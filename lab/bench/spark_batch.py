"""Spark, batch: sliding windows against tumbling, Spark's `window()`, and panes written by hand.

All contenders read the same Parquet file and write all their answers to Spark's `noop` sink, in
one session. `window()` copies each row once per window, so it runs only at overlaps 10 and 60.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import panes
import panes.spark
from lab.bench.measure import Report, Timing, timed
from panes.sample_streams import bids

Frame = Any  # a Spark DataFrame and session: rivals speak SQL, so nothing of PySpark is imported
Session = Any
TREE = "spark.sql.window.segmentTree.enabled"
POINTS = {1: (60, 60), 10: (600, 60), 60: (3_600, 60), 360: (3_600, 10), 1_440: (14_400, 10)}
KEYS = (1, 1_000, 100_000)


def by_panes(frame: Frame, size: int, slide: int) -> Frame:
    """Our own."""
    clause = f"[RANGE {size} seconds SLIDE {slide} seconds WATTR ts]"
    text = f"SELECT item, max(price) AS high, count(*) AS n FROM bids {clause} GROUP BY item"
    return panes.sql(text, bids=frame)


def by_window(frame: Frame, size: int, slide: int) -> Frame:
    """Spark's own sliding window; tumbling where size and slide are equal."""
    return frame.sparkSession.sql(
        f"""
        SELECT window.start AS window_start, window.end AS window_end, item,
               max(price) AS high, count(*) AS n
        FROM {{bids}} GROUP BY window(ts, '{size} seconds', '{slide} seconds'), item
        """,
        bids=frame,
    )


def by_hand(frame: Frame, size: int, slide: int) -> Frame:
    """Panes by hand: tumble, then OVER a range frame. Gives only windows that end with a row."""
    return frame.sparkSession.sql(
        f"""
        SELECT item, pane, max(m) OVER w AS high, sum(c) OVER w AS n
        FROM (
            SELECT floor(unix_seconds(ts) / {slide}) AS pane, item, max(price) AS m, count(*) AS c
            FROM {{bids}} GROUP BY pane, item
        )
        WINDOW w AS (PARTITION BY item ORDER BY pane
                     RANGE BETWEEN {size // slide - 1} PRECEDING AND CURRENT ROW)
        """,
        bids=frame,
    )


STEPS = 10
"""How often `run` says what it does."""


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


def _frame(spark: Session, folder: str, rows: int, keys: int) -> Frame:
    path = Path(folder) / f"bids-{rows}-{keys}.parquet"
    pq.write_table(bids(rows, keys=keys), path, row_group_size=max(rows // 10, 1))
    return spark.read.parquet(str(path))


def _check(frame: Frame) -> None:
    for size, slide in ((600, 60), (3_600, 60)):
        ours, theirs = by_panes(frame, size, slide), by_window(frame, size, slide)
        missing, extra = theirs.exceptAll(ours).count(), ours.exceptAll(theirs).count()
        if missing or extra:
            raise AssertionError(f"{size}/{slide}: {missing} answers missing, {extra} too many")


def _point(
    report: Report,
    spark: Session,
    frame: Frame,
    keys: int,
    overlap: int,
    window: tuple[int, int],
    repeat: int,
    rows: int,
) -> None:
    size, slide = window

    def time(contender: str, answers: Frame, times: int) -> None:
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


def _write(answers: Frame) -> None:
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
