"""Spark, streaming, many queries: what thousands in one register cost against one.

The mix of `lab.bench.many`, over files of which two are a micro-batch. Every answer goes to
Spark's `noop` sink. A run's time is that of its batches as Spark reports them, the one that ends
the stream among them; the first ones, which warm everything up, are left out. Spark's own contender
runs the same ten queries one by one, each with `window()` in a streaming query of its own, over the
same files.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

import panes
import panes.spark
from lab.bench.many import COUNTS, LATENESS, queries, stream
from lab.bench.measure import Report, Timing
from lab.bench.spark_stream import WARM, Frame, Session, files_of, stream_of
from panes.reference.compare import difference

SINGLES = 3
RIVALS = 10
_TEXT = re.compile(
    r"SELECT item, (?P<call>.+) AS a FROM bids \[RANGE (?P<size>\d+) seconds "
    r"SLIDE (?P<slide>\d+) seconds WATTR ts\] (WHERE (?P<where>.+))? GROUP BY item"
)


STEPS = 3
"""How often `run` says what it does."""


def run(rows: int, repeat: int, say: Callable[[str], None]) -> Report:
    """Check, then time, registers of one to ten thousand queries."""
    report = Report("spark-many", f"panes bench spark-many --rows {rows} --repeat {repeat}")
    spark = panes.spark.session(
        master="local[2]", spark__ui__enabled="false", spark__sql__shuffle__partitions="2",
        spark__driver__memory="6g",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        say("checking answers against each query alone")
        _check(spark, Path(folder))
        files = files_of(Path(folder) / "bids", stream(rows, keys=10))
        say("timing 1 to 10,000 queries over one stream")
        singles = [{name: text} for name, text in queries(SINGLES).items()]
        one = float(np.mean([_time(report, spark, files, s, repeat, rows) for s in singles]))
        seconds = {n: _time(report, spark, files, queries(n), repeat, rows) for n in COUNTS[1:]}
        for count, most in ((1_000, 3), (10_000, 12)):
            ratio = seconds[count] / one
            what = f"{count:,} queries at most {most} x one"
            report.bar(what, f"{ratio:.1f} x", met=ratio <= most)
        say("timing Spark's window() on ten of them, one by one")
        theirs = tuple(_by_window_one_by_one(spark, files, queries(RIVALS)) for _ in range(repeat))
        report.timings.append(Timing("window(), 10 times", "q0", theirs, f"{rows} rows"))
        ratio = min(theirs) / seconds[RIVALS]
        what = "ten queries at least 8 x faster than Spark's window() one by one"
        report.bar(what, f"{ratio:.1f} x", met=ratio >= 8)
    spark.stop()
    return report


def _check(spark: Session, folder: Path) -> None:
    """Every answer of a hundred queries is that of the query alone."""
    table = stream(60_000, keys=10)
    files, asked = files_of(folder / "checked", table), queries(COUNTS[2])
    out = folder / "out"
    reg = _registered(spark, files, asked)
    reg.start(checkpoint=str(folder / "state"), sink=str(out), bounded=True)
    reg.await_end()
    for name, text in asked.items():
        want = panes.sql(text, bids=table)
        got = spark.read.parquet(str(out / f"query={name}")).drop("batch").toArrow()
        said = _difference(got, want)
        if said is not None:
            raise AssertionError(f"{text} differs from itself alone: {said}")
    _same_answers(spark, files, queries(RIVALS))


def _registered(spark: Session, files: Path, asked: Mapping[str, str]) -> Frame:
    reg = panes.register("bids", stream_of(spark, files), lateness=LATENESS, max_ahead=None)
    reg.change(add=asked)
    return reg


def _nowhere(answers: Frame, _: int) -> None:
    answers.write.format("noop").mode("overwrite").save()


def _seconds(query: Frame) -> float:
    """What Spark says its batches took, once everything was warm."""
    batches = query.recentProgress[WARM:]
    return sum(p["durationMs"]["triggerExecution"] for p in batches) / 1_000


def _by_register(spark: Session, files: Path, asked: Mapping[str, str]) -> float:
    reg = _registered(spark, files, asked)
    with tempfile.TemporaryDirectory() as checkpoint:
        sink = panes.spark.Together(_nowhere)
        query = reg.start(checkpoint=checkpoint, sink=sink, bounded=True).query
        reg.await_end()
    return _seconds(query)


def _time(
    report: Report, spark: Session, files: Path, asked: Mapping[str, str], repeat: int, rows: int
) -> float:
    """The least seconds of all batches."""
    seconds = tuple(_by_register(spark, files, asked) for _ in range(repeat))
    label = "one query" if len(asked) == 1 else f"{len(asked):,} queries"
    report.timings.append(Timing(label, next(iter(asked)), seconds, f"{rows} rows"))
    return min(seconds)


def by_window(frame: Frame, text: str) -> Frame:
    """A query of the mix in Spark's own words, whose windows start at multiples of the slide."""
    found = _TEXT.fullmatch(text)
    if found is None:
        raise AssertionError(f"not of the mix: {text}")
    where = "" if found["where"] is None else f"WHERE {found['where']}"
    size, slide = int(found["size"]), int(found["slide"])
    lengths = ", ".join(f"'{n} seconds'" for n in (size, slide, -size % slide))
    return frame.sparkSession.sql(
        f"""
        SELECT window.start AS window_start, window.end AS window_end, item, {found["call"]} AS a
        FROM {{bids}} {where} GROUP BY window(ts, {lengths}), item
        """,
        bids=frame.withWatermark("ts", LATENESS),
    )


def _by_window_one_by_one(spark: Session, files: Path, asked: Mapping[str, str]) -> float:
    total = 0.0
    for text in asked.values():
        answers = by_window(stream_of(spark, files), text)
        with tempfile.TemporaryDirectory() as checkpoint:
            writer = answers.writeStream.format("noop").option("checkpointLocation", checkpoint)
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
        total += _seconds(query)
    return total


def _same_answers(spark: Session, files: Path, asked: Mapping[str, str]) -> None:
    """Spark's contender is asked the same: over all rows, its answers are ours."""
    frame = spark.read.parquet(str(files))
    table: pa.Table = frame.toArrow()
    for text in asked.values():
        ours, theirs = panes.sql(text, bids=table), by_window(frame, text).toArrow()
        said = _difference(theirs, ours)
        if said is not None:
            raise AssertionError(f"{text} is another query by window(): {said}")


def _difference(got: pa.Table, want: pa.Table) -> str | None:
    by = [(n, "ascending") for n in ("window_end", "item")]
    return difference(got.sort_by(by).cast(want.schema), want.sort_by(by))
