"""`panes demo`: the main job on Spark Structured Streaming, start to end, every answer checked."""

from __future__ import annotations

import itertools
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer

import panes
from panes.bench.workloads import bids, packets
from panes.cli.interrupts import interrupts
from panes.cli.live_view import LiveView, Reading, Report, read_panes, read_spark
from panes.cli.run import require_spark
from panes.cli.show import errors_in, say
from panes.errors import PanesError
from panes.reference.compare import difference

EXAMPLE = "Example: panes demo --rows 4000"

Session = Any  # Spark's session, DataFrame and query: only their methods are used here
Frame = Any
Query = Any

LATENESS = "30 seconds"
TURNS = 8
LINKS = ("main1", "main2", "control")
UNION = f"({' UNION ALL '.join(LINKS)})"
QUERIES = {
    "packets per source, last 10 minutes": "SELECT srcIP, count(*) AS packets, "
    f"max(len) AS largest FROM {UNION} [RANGE 10 minutes SLIDE 1 minute WATTR ts] "
    "GROUP BY srcIP HAVING packets > 5",
    "bytes and median length, last 90 seconds": f"SELECT sum(len) AS bytes, median(len) AS mid "
    f"FROM {UNION} [RANGE 90 seconds SLIDE 20 seconds WATTR ts]",
    "heavy sources of the last 5 minutes": f"SELECT heavy_hitters(srcIP, 0.1) AS heavy "
    f"FROM {UNION} [RANGE 5 minutes SLIDE 30 seconds WATTR ts] WHERE proto = 'tcp'",
}

BIDS = 1_000_000
BIDS_PER_PACKET = 50
WATERMARK = "10 seconds"
BIDS_TURNS, FILES_AT_ONCE = 4, 2  # a file for each of two cores, or one of them would be idle
OVERLAP = (
    "SELECT item, max(price) AS high, count(*) AS n "
    "FROM bids [RANGE 1 hour SLIDE 1 minute WATTR ts] GROUP BY item"
)
SPARKS_OWN = (
    "SELECT window.start AS window_start, window.end AS window_end, item, "
    "max(price) AS high, count(*) AS n "
    "FROM {bids} GROUP BY window(ts, '1 hour', '1 minute'), item"
)
SAME_FOR_BOTH = (
    f"  Both: one run, from start to the last answer, of a stream of the same files in Spark's\n"
    f"  Structured Streaming, rows at most {WATERMARK} late, answers in Parquet. The state\n"
    "  of window() is in memory, Spark's default, where it is quicker than in the RocksDB of panes."
)
SECONDS_BETWEEN_LOOKS = 0.25
STATE = "spark.sql.streaming.stateStore"
SPARKS_STATE = {  # the defaults of Spark, not those of our sessions: window() is quicker with them
    f"{STATE}.providerClass": "org.apache.spark.sql.execution.streaming.state"
    ".HDFSBackedStateStoreProvider",
    f"{STATE}.checkpointFormatVersion": "1",
}


@dataclass(frozen=True, slots=True)
class Stage:
    """What every part of the demo works with."""

    host: ModuleType
    spark: Session
    folder: Path
    interrupted: threading.Event


@dataclass(frozen=True, slots=True)
class Running:
    """A streaming query that was started, and how to read its progress."""

    title: str
    query: Query
    read: Callable[[Sequence[Report]], Reading]

    def reading(self) -> Reading:
        """How far it has come."""
        return self.read(self.query.recentProgress)

    def require_health(self) -> None:
        """Raise if Spark gave the query up."""
        failure = self.query.exception()
        if failure is not None:
            first = str(failure).strip().splitlines()[0]
            raise PanesError(f"the stream `{self.title}` failed: {first}")


def demo(
    rows: Annotated[
        int, typer.Option(min=1, help="How many packets the three links have.")
    ] = 20_000,
) -> None:
    """Run the main job: three streams out of order through Spark. Every answer is checked."""
    begin = time.perf_counter()
    host = require_spark("panes.spark")
    with _stage(host) as stage:
        _stream_packets(stage, packets(rows))
        _price_overlap(stage, bids(min(BIDS, rows * BIDS_PER_PACKET)))
    _tell(f"\nevery answer was checked; {time.perf_counter() - begin:.0f} s in all")


@contextmanager
def _stage(host: ModuleType) -> Iterator[Stage]:
    """A session and a folder for as long as the block runs.

    py4j's log is left out: all it has is the traceback of a sink that failed, or was stopped, and
    the query tells that too.
    """
    logging.getLogger("py4j").propagate = False
    say("starting Spark")
    with tempfile.TemporaryDirectory(prefix="panes-demo-", ignore_cleanup_errors=True) as name:
        with errors_in(Path(name) / "spark.log"):
            spark = host.session(spark__ui__enabled="false", spark__driver__memory="2g")
        try:
            yield Stage(host, spark, Path(name), interrupts())
        finally:
            spark.stop()


def _stream_packets(stage: Stage, links: Mapping[str, pa.Table]) -> None:
    """All queries at the same time, over the same three links, a file of each per micro-batch."""
    total = sum(map(len, links.values()))
    _tell(f"three links, {total:,} packets in 45 minutes, out of order, with a lull.")
    _tell(f"A packet may be {LATENESS} late; the slowest link decides; later ones are set aside.\n")
    for name, table in links.items():
        _write(stage.folder / name, table, TURNS)
    places = {title: stage.folder / f"query-{n}" for n, title in enumerate(QUERIES)}
    _watch(stage, [_ask(stage, title, place) for title, place in places.items()], TURNS + 1)
    for title, place in places.items():
        _check(stage, title, links, place)


def _ask(stage: Stage, title: str, place: Path) -> Running:
    """Start a query of the links; answers and rows set apart go to folders of their own."""
    tagged = panes.sql(
        QUERIES[title],
        lateness=LATENESS,
        late="drop",
        bounded=True,
        with_late=True,
        name=title,
        **{name: _stream(stage.spark, stage.folder / name, 1) for name in LINKS},
    )
    split = stage.host.split(**{kind: place / kind for kind in ("answers", "late", "rejected")})
    query = _start(tagged.writeStream.foreachBatch(split), place)
    return Running(title, query, lambda reports: read_panes(reports, title))


def _check(stage: Stage, title: str, links: Mapping[str, pa.Table], place: Path) -> None:
    """Show a few answers of a query, and hold all of them to the oracle's."""
    answers, late = (_written(stage.spark, place / kind) for kind in ("answers", "late"))
    early = pc.sum(pc.less(answers["batch"], TURNS)).as_py() or 0
    on_time = {
        name: table.filter(pc.invert(pc.is_in(table["seq"], value_set=late["seq"])))
        for name, table in links.items()
    }
    want = panes.oracle(QUERIES[title], **on_time)
    got = _ordered(answers.select(want.column_names)).cast(want.schema)
    _tell(f"{title}: {len(got):,} answers, {early:,} before the end; {len(late):,} late rows")
    _tell(_shown(got.slice(len(got) // 2, 2)))
    _require_same(title, got, want)
    _tell("  checked: every answer is the oracle's over the rows that were on time\n")


def _price_overlap(stage: Stage, table: pa.Table) -> None:
    """What overlap costs: the same windows over the same files, ours and Spark's own."""
    files = _write(stage.folder / "bids", table, BIDS_TURNS * FILES_AT_ONCE)
    ours = panes.sql(
        OVERLAP, lateness=WATERMARK, name="panes", bids=_stream(stage.spark, files, FILES_AT_ONCE)
    )
    own = stage.spark.newSession()
    for setting, value in SPARKS_STATE.items():
        own.conf.set(setting, value)
    stream = _stream(own, files, FILES_AT_ONCE).withWatermark("ts", WATERMARK)
    theirs = own.sql(SPARKS_OWN, bids=stream)
    _tell(f"the price of overlap: {len(table):,} bids, each in 60 windows (1 hour, every minute)")
    got, seconds = _race(stage, "panes", ours, lambda reports: read_panes(reports, "panes"))
    want, longer = _race(stage, "window()", theirs, read_spark)
    _require_same("panes and window()", got, want)
    _tell(f"  panes     {seconds:6.1f} s  {len(got):,} answers")
    _tell(f"  window()  {longer:6.1f} s  {len(want):,} answers, the same row for row")
    _tell(f"  Spark's own window() took {longer / seconds:.1f} times as long as panes.")
    _tell(SAME_FOR_BOTH)


def _race(
    stage: Stage, title: str, answers: Frame, read: Callable[[Sequence[Report]], Reading]
) -> tuple[pa.Table, float]:
    """The answers that a stream wrote, and the seconds from its start to its end."""
    place = stage.folder / f"race-{title}"
    writer = answers.writeStream.format("parquet").option("path", str(place / "answers"))
    begin = time.perf_counter()
    _watch(stage, [Running(title, _start(writer, place), read)])
    seconds = time.perf_counter() - begin
    return _ordered(_written(stage.spark, place / "answers")), seconds


def _write(folder: Path, table: pa.Table, files: int) -> Path:
    """A stream as files in the order of arrival, each a second newer than the one before."""
    folder.mkdir()
    cuts = np.linspace(0, len(table), files + 1).astype(int)
    for number, (begin, end) in enumerate(itertools.pairwise(cuts)):
        path = folder / f"{number:03}.parquet"
        pq.write_table(table.slice(begin, end - begin), path)
        os.utime(path, (1_700_000_000 + number,) * 2)
    return folder


def _stream(spark: Session, folder: Path, files: int) -> Frame:
    """The files of a folder as a streaming DataFrame, so many of them a micro-batch."""
    schema = spark.read.parquet(str(folder)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", files)
    return reader.parquet(str(folder))


def _start(writer: Any, place: Path) -> Query:
    placed = writer.option("checkpointLocation", str(place / "checkpoint"))
    return placed.trigger(availableNow=True).start()


def _watch(stage: Stage, running: Sequence[Running], batches: int | None = None) -> None:
    """Show how the queries proceed until all have ended; stop them if we are stopped."""
    try:
        with LiveView(batches) as view:
            active = True
            while active:
                active = any(r.query.isActive for r in running)
                view.show({r.title: r.reading() for r in running})
                if stage.interrupted.wait(SECONDS_BETWEEN_LOOKS if active else 0):
                    raise KeyboardInterrupt
                for r in running:
                    r.require_health()
    finally:
        for r in running:
            r.query.stop()


def _written(spark: Session, folder: Path) -> pa.Table:
    return spark.read.parquet(str(folder)).toArrow().combine_chunks()


def _ordered(answers: pa.Table) -> pa.Table:
    """Answers in the order of the oracle: by window, then by key, which is a number or text."""
    names = ["window_end", *({"srcIP", "item"} & set(answers.column_names))]
    return answers.sort_by([(name, "ascending") for name in names])


def _require_same(title: str, got: pa.Table, want: pa.Table) -> None:
    if got.equals(want):
        return
    wrong = difference(got, want)
    if wrong is not None:
        raise PanesError(f"the demo's answers are wrong, {title}: {wrong}")


def _shown(answers: pa.Table) -> str:
    lines = []
    for row in answers.to_pylist():
        shown = {k: v.strftime("%H:%M:%S") if hasattr(v, "strftime") else v for k, v in row.items()}
        lines.append("  " + ", ".join(f"{k} {v}" for k, v in shown.items()))
    return "\n".join(lines)


def _tell(text: str) -> None:
    """A line of the result, in its place among the lines of the live view."""
    print(text, flush=True)
