"""How the demo opens: one stream through Spark's `window()` and through panes, side by side.

Both get the same files, the same lateness and the same sink, one after the other on an otherwise
idle session; panes goes first, so that `window()` has the warmer JVM. A stream runs for days, so
what counts is what its micro-batches take once it runs: the first one, in which processes start, is
left out. All answers are compared row for row before any time is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import panes
from panes.cli.demo_stage import (
    Frame,
    Running,
    Session,
    Stage,
    require_same,
    start,
    tell,
    watch,
    written,
)
from panes.cli.live_view import LiveReading, Report, read_panes, read_spark
from panes.crash.place import cut, read_stream, write_batches
from panes.sample_streams import bids

BATCHES = 3
HOURS = 1.5
FILES_AT_ONCE = 2  # a file for each of two cores, or one of them would be idle
LATENESS = "10 seconds"
OURS = (
    "SELECT item, max(price) AS high, count(*) AS n "
    "FROM bids [RANGE 1 hour SLIDE 30 seconds WATTR ts] GROUP BY item"
)
SPARKS_OWN = (
    "SELECT window.start AS window_start, window.end AS window_end, item, "
    "max(price) AS high, count(*) AS n "
    "FROM {bids} GROUP BY window(ts, '1 hour', '30 seconds'), item"
)
STATE = "spark.sql.streaming.stateStore"
SPARKS_STATE = {  # the defaults of Spark, not those of our sessions: window() is quicker with them
    f"{STATE}.providerClass": "org.apache.spark.sql.execution.streaming.state"
    ".HDFSBackedStateStoreProvider",
    f"{STATE}.checkpointFormatVersion": "1",
}
SAME_FOR_BOTH = """\
  Both: Spark's Structured Streaming over the same files, {batch:,} rows a micro-batch, rows up
  to {lateness} late, answers in Parquet; one run, the sum of what its micro-batches took by
  Spark's own reports, without the first one, in which processes start. The state of window() is
  in memory, Spark's default, where it is quicker than in the RocksDB of panes.
"""
LONGEST_BAR = 60


@dataclass(frozen=True, slots=True)
class RaceRun:
    """What came of one stream: its answers, and the seconds of its micro-batches but the first."""

    answers: pa.Table
    seconds: float
    reading: LiveReading


@dataclass(frozen=True, slots=True)
class Contender:
    """One of the two: how it answers the stream in a folder, and how its progress is read."""

    title: str
    answer: Callable[[Path], Frame]
    read: Callable[[Sequence[Report]], LiveReading]

    def run(self, stage: Stage, files: Path, beside: Mapping[str, LiveReading]) -> RaceRun:
        """Read all files, write all answers, and end."""
        place = stage.folder / f"{files.name}-{self.title}"
        answers = self.answer(files)
        writer = answers.writeStream.format("parquet").option("path", str(place / "answers"))
        running = Running(self.title, start(writer, place), self.read)
        reading = watch(stage, [running], beside=beside)[self.title]
        took = [report["durationMs"]["triggerExecution"] for report in running.query.recentProgress]
        seconds = sum(took[1:]) / 1_000
        return RaceRun(written(stage.spark, place / "answers"), seconds, reading)


def race(stage: Stage, rows: int) -> None:
    """Answer so many bids in both ways, compare the answers, and tell both times."""
    contenders = (_ours(stage.spark), _sparks_own(stage.spark.newSession()))
    tell(
        f"the same stream through panes and through Spark's window(): {rows:,} bids, windows of\n"
        "1 hour, a new one every 30 seconds: each bid counts in 120 windows.\n"
    )
    batches = cut(bids(rows, hours=HOURS), BATCHES * FILES_AT_ONCE)
    files = write_batches(stage.folder / "bids", batches)
    panes_run, window_run = _run_both(stage, contenders, files)
    for line in as_bars({"panes": panes_run.seconds, "window()": window_run.seconds}):
        tell(f"  {line}")
    ratio = window_run.seconds / panes_run.seconds
    tell(
        f"\n  {len(panes_run.answers):,} answers each, the same row for row. "
        f"window() took {ratio:.1f} times as long.\n"
    )
    tell(SAME_FOR_BOTH.format(batch=rows // BATCHES, lateness=LATENESS))


def as_bars(seconds: Mapping[str, float]) -> list[str]:
    """Times as bars, a line each, the longest as long as a line.

    >>> print(*as_bars({"panes": 1.0, "window()": 6.0}), sep="\\n")
    panes        1.0 s  ##########
    window()     6.0 s  ############################################################
    """
    longest = max(seconds.values())
    return [
        f"{title:9} {s:6.1f} s  {'#' * max(1, round(s / longest * LONGEST_BAR))}"
        for title, s in seconds.items()
    ]


def _ours(spark: Session) -> Contender:
    def answer(files: Path) -> Frame:
        stream = read_stream(spark, files, FILES_AT_ONCE)
        return panes.sql(OURS, lateness=LATENESS, name="panes", bids=stream)

    return Contender("panes", answer, lambda reports: read_panes(reports, "panes"))


def _sparks_own(session: Session) -> Contender:
    for setting, value in SPARKS_STATE.items():
        session.conf.set(setting, value)

    def answer(files: Path) -> Frame:
        stream = read_stream(session, files, FILES_AT_ONCE).withWatermark("ts", LATENESS)
        return session.sql(SPARKS_OWN, bids=stream)

    return Contender("window()", answer, read_spark)


def _run_both(stage: Stage, contenders: Sequence[Contender], files: Path) -> list[RaceRun]:
    """One after the other, those that ended still shown; raise unless all answer the same."""
    runs: list[RaceRun] = []
    for contender in contenders:
        ended = {c.title: run.reading for c, run in zip(contenders, runs, strict=False)}
        runs.append(contender.run(stage, files, ended))
    first, second = runs
    require_same("panes and window()", first.answers, second.answers)
    return runs
