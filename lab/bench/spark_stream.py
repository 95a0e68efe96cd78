"""Spark, streaming: sliding windows against Spark's own tumbling ones and its `window()`.

All contenders read the same files, two per micro-batch, write all their answers to Spark's `noop`
sink, and keep their state in RocksDB under the same settings, in one session. A batch's time is
what Spark reports of it; the first batches, which warm everything up, are left out. `window()`
copies each row once per window, so it runs only up to overlap 60.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import panes
import panes.spark
from lab.bench.measure import Report, Timing
from lab.bench.spark_batch import by_window
from panes.sample_streams import bids

Frame = Any  # Spark's DataFrame, session and query: nothing of PySpark is imported here
Session = Any
POINTS = {1: (60, 60), 10: (600, 60), 60: (3_600, 60), 360: (3_600, 10)}
KEYS = (1, 1_000, 100_000)
LATENESS = "10 seconds"
CHANGE_LOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
BATCHES, FILES, WARM = 10, 2, 3  # as many files per batch as there are cores


@dataclass(frozen=True, slots=True)
class Ran:
    """What Spark reported of a run: seconds per batch, and the state after the last one.

    `state_bytes` are those of RocksDB's files, which hold the whole state only if every commit
    writes them, that is, without a change log.
    """

    seconds: tuple[float, ...]
    state_rows: int
    state_bytes: int
    first_answer: int


def by_panes_streaming(stream: Frame, size: int, slide: int) -> Frame:
    """Our own."""
    clause = f"[RANGE {size} seconds SLIDE {slide} seconds WATTR ts]"
    text = f"SELECT item, max(price) AS high, count(*) AS n FROM bids {clause} GROUP BY item"
    return panes.sql(text, lateness=LATENESS, bids=stream)


def by_window_streaming(stream: Frame, size: int, slide: int) -> Frame:
    """Spark's own sliding window; tumbling where size and slide are equal."""
    return by_window(stream.withWatermark("ts", LATENESS), size, slide)


STEPS = 11
"""How often `run` says what it does."""


def run(rows: int, repeat: int, say: Callable[[str], None]) -> Report:
    """Check, then time, all contenders. `repeat` runs of each, all their batches counted."""
    report = Report("spark-stream", f"panes bench spark-stream --rows {rows} --repeat {repeat}")
    spark = panes.spark.session(
        master="local[2]", spark__ui__enabled="false", spark__sql__shuffle__partitions="2",
        spark__driver__memory="6g",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        say("checking that panes and window() give the same answers")
        _check(spark, Path(folder) / "check")
        say("warming up")
        for make in _contenders(spark, Path(folder) / "check", 60, 1_000).values():
            _run(make())
        for keys in KEYS:
            files = files_of(Path(folder) / f"bids-{keys}", bids(rows, keys=keys))
            for overlap in POINTS:
                if keys == 1_000 or overlap in (1, 60):
                    say(f"timing {keys:,} keys, overlap {overlap:,}")
                    _point(report, spark, files, keys, overlap, repeat, rows // BATCHES)
            if keys == 1_000:
                say("weighing the state at overlap 60")
                _weigh(report, spark, files)
    spark.stop()
    _bars(report)
    return report


def files_of(folder: Path, table: pa.Table) -> Path:
    """A stream: files in the order of time, each a second newer than the one before."""
    folder.mkdir()
    files = BATCHES * FILES
    step = -(-len(table) // files)
    for number in range(files):
        path = folder / f"{number:03}.parquet"
        pq.write_table(table.slice(number * step, step), path)
        os.utime(path, (1_700_000_000 + number,) * 2)
    return folder


def stream_of(spark: Session, folder: Path) -> Frame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES).parquet(str(folder))


def _check(spark: Session, folder: Path) -> None:
    """Every answer that a stream gives is `window()`'s, and at the end none is missing."""
    files = files_of(folder, bids(20_000, keys=50))
    stream, frame = stream_of(spark, files), spark.read.parquet(str(files))
    clause = "[RANGE 600 seconds SLIDE 60 seconds WATTR ts]"
    text = f"SELECT item, max(price) AS high, count(*) AS n FROM bids {clause} GROUP BY item"
    answers = panes.sql(text, lateness=LATENESS, bounded=True, bids=stream)
    out = str(folder.with_name("out"))
    writer = answers.writeStream.format("parquet").option("path", out)
    checkpoint = str(folder.with_name("checked"))
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    ours, theirs = spark.read.parquet(out), by_window(frame, 600, 60)
    missing, extra = theirs.exceptAll(ours).count(), ours.exceptAll(theirs).count()
    if missing or extra:
        raise AssertionError(f"{missing} answers missing, {extra} too many")


def _run(answers: Frame) -> Ran:
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = answers.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
    batches = [p for p in query.recentProgress if p["numInputRows"]]
    state = batches[-1]["stateOperators"][0]
    answered = [p["batchId"] for p in query.recentProgress if p["sink"]["numOutputRows"] > 0]
    return Ran(
        seconds=tuple(p["durationMs"]["triggerExecution"] / 1_000 for p in batches[WARM:]),
        state_rows=state["numRowsTotal"],
        state_bytes=state["customMetrics"]["rocksdbSstFileSize"],
        first_answer=min(answered, default=-1),
    )


def _contenders(
    spark: Session, files: Path, overlap: int, keys: int
) -> dict[str, Callable[[], Frame]]:
    size, slide = POINTS[overlap]
    found: dict[str, Callable[[], Frame]] = {
        "tumbling": lambda: by_window_streaming(stream_of(spark, files), slide, slide),
        "panes": lambda: by_panes_streaming(stream_of(spark, files), size, slide),
    }
    if 1 < overlap <= 60 and keys == 1_000:
        found["window()"] = lambda: by_window_streaming(stream_of(spark, files), size, slide)
    return found


def _point(
    report: Report, spark: Session, files: Path, keys: int, overlap: int, repeat: int, rows: int
) -> None:
    """Run the contenders in turns, so that a busy moment of the machine falls on all of them."""
    contenders = _contenders(spark, files, overlap, keys)
    ran: dict[str, list[Ran]] = {name: [] for name in contenders}
    for turn in range(repeat):
        for name, make in contenders.items():
            if turn == 0 or name != "window()":
                ran[name].append(_run(make()))
    for name, runs in ran.items():
        seconds = tuple(s for r in runs for s in r.seconds)
        note = f"{rows} rows a batch; first answer in batch {runs[-1].first_answer}"
        report.timings.append(Timing(name, f"{keys}/{overlap}", seconds, note))


def _weigh(report: Report, spark: Session, files: Path) -> None:
    """Bytes and rows of the whole state: without a change log, all of it is in the files."""
    spark.conf.set(CHANGE_LOG, "false")
    weighed = {n: _run(make()) for n, make in _contenders(spark, files, 60, 1_000).items()}
    spark.conf.set(CHANGE_LOG, "true")
    ours, theirs = weighed["panes"], weighed["window()"]
    sizes = "; ".join(
        f"{n} {r.state_bytes:,} bytes in {r.state_rows:,}" for n, r in weighed.items()
    )
    report.bar(
        "overlap 60: state no larger than window()'s",
        sizes,
        met=ours.state_bytes <= theirs.state_bytes,
    )
    report.bar(
        "answers one micro-batch earlier than window()'s",
        f"batch {ours.first_answer} and {theirs.first_answer}",
        met=ours.first_answer < theirs.first_answer,
    )


def _bars(report: Report) -> None:
    median = {(t.contender, t.point): t.median for t in report.timings}
    for contender, point in median:
        if contender == "panes":
            keys, overlap = point.split("/")
            ratio = median["panes", point] / median["tumbling", point]
            what = f"{int(keys):,} keys, overlap {overlap}: at most 1.3 x tumbling per batch"
            report.bar(what, f"{ratio:.2f} x", met=ratio <= 1.3)
    ratio = median["window()", "1000/60"] / median["panes", "1000/60"]
    report.bar("overlap 60: at least 6 x faster than window()", f"{ratio:.1f} x", met=ratio >= 6)
