"""Spark, joins: streams against Spark's own stream-stream join, tables against its equi-join.

Streams: 10,000 rows a second and side, a tenth of them up to a second out of order, 100,000 keys
and a band of plus and minus five seconds, so that a row has about one partner. All contenders read
the same files, one a side and micro-batch, and write all pairs to Spark's `noop` sink. Spark's
join runs with its state in RocksDB, in both formats, and in memory. The first two batches of each
warm up; RocksDB is given the first four batches, the others six. Tables: 1,000 keys and a
narrower band with again one partner a row, against an equi-join with a range condition.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import panes
import panes.spark
from lab.bench.measure import Report, Timing
from lab.bench.spark_stream import CHANGE_LOG

Frame = Any  # Spark's DataFrame, session and query: nothing of PySpark is imported here
Session = Any
BATCHES, WARM = 6, 2
FEWER, WEIGHED = 4, 3
"""Batches of contenders that take many seconds for each, and of runs that only fill the state."""
TABLES = 200_000
"""Rows of a table: an equi-join makes all pairs of a key, forty million of them here."""
KEYS, FEW_KEYS = 100_000, 1_000
RATE = 10_000
LATENESS = "1 second"
_STATE, _JOIN = "spark.sql.streaming.stateStore.providerClass", "spark.sql.streaming.join"
_STORES = "org.apache.spark.sql.execution.streaming.state"
ROCKSDB, MEMORY = f"{_STORES}.RocksDBStateStoreProvider", f"{_STORES}.HDFSBackedStateStoreProvider"
SLOW = ("spark, rocksdb 2", "spark, rocksdb 4")
SETTINGS = {
    "panes": {_STATE: ROCKSDB},
    "spark, rocksdb 2": {_STATE: ROCKSDB, f"{_JOIN}.stateFormatVersion": "2"},
    "spark, rocksdb 4": {_STATE: ROCKSDB, f"{_JOIN}.stateFormatVersion": "4"},
    "spark, memory": {_STATE: MEMORY, f"{_JOIN}.stateFormatVersion": "2"},
}


@dataclass(frozen=True, slots=True)
class Ran:
    """What Spark reported of a run: seconds per batch, rows out so far, and the state's bytes."""

    seconds: tuple[float, ...]
    given: tuple[int, ...]
    state_bytes: int


def band_of(keys: int) -> int:
    """Half of the band, in microseconds, in which a row has one partner."""
    return 1_000_000 * keys // RATE // 2


def side(rows: int, keys: int, seed: int, first: int = 0) -> pa.Table:
    """Rows of one side, from so many rows after the start on."""
    rng = np.random.default_rng(seed)
    step = 1_000_000 // RATE
    ts = 1_700_000_000_000_000 + first * step + np.sort(rng.integers(0, rows * step, rows))
    late = rng.random(rows) < 0.1
    ts[late] -= rng.integers(0, 1_000_000, int(late.sum()))
    return pa.table(
        {
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
            "k": rng.integers(0, keys, rows),
            "x": rng.random(rows),
        }
    )


def by_panes(left: Frame, right: Frame, half: int, how: str = "inner", **terms: Any) -> Frame:
    """Our own."""
    near = f"INTERVAL {half} MICROSECONDS"
    return panes.sql(
        f"SELECT l.ts AS l_ts, l.k AS k, l.x AS l_x, r.ts AS r_ts, r.x AS r_x FROM l {how} JOIN r "
        f"ON l.k = r.k AND r.ts >= l.ts - {near} AND r.ts <= l.ts + {near}",
        l=left, r=right, **terms,
    )  # fmt: skip


def by_spark(left: Frame, right: Frame, half: int, how: str = "inner") -> Frame:
    """Spark's own join."""
    one = left.selectExpr("ts AS l_ts", "k", "x AS l_x")
    other = right.selectExpr("ts AS r_ts", "k AS r_k", "x AS r_x")
    near = f"INTERVAL {half} MICROSECONDS"
    spark = left.sparkSession
    return spark.sql(
        f"SELECT l_ts, k, l_x, r_ts, r_x FROM {{one}} {how} JOIN {{other}} ON k = r_k "
        f"AND r_ts >= l_ts - {near} AND r_ts <= l_ts + {near}",
        one=one, other=other,
    )  # fmt: skip


STEPS = 5
"""How often `run` says what it does."""


def run(rows: int, repeat: int, say: Callable[[str], None]) -> Report:
    """Check, then time, all contenders. `rows` are those of both sides."""
    report = Report("spark-join", f"panes bench spark-join --rows {rows} --repeat {repeat}")
    spark = panes.spark.session(
        master="local[2]", spark__ui__enabled="false", spark__sql__shuffle__partitions="2",
        spark__driver__memory="6g",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        say("checking that streams and tables give the pairs of Spark's own join")
        _check(spark, Path(folder) / "check")
        say("timing tables")
        _tables(report, spark, Path(folder), min(rows // 4, TABLES), repeat)
        files = files_of(Path(folder) / "streams", rows // 2, KEYS)
        for how in ("inner", "left"):
            say(f"timing streams, {how} join")
            _streams(report, spark, files, how, repeat, rows // BATCHES)
        say("weighing the state")
        _weigh(report, spark, files)
    spark.stop()
    return report


def files_of(folder: Path, rows: int, keys: int) -> Path:
    """Both sides as streams of files, one a micro-batch."""
    each = rows // BATCHES
    for seed, name in enumerate("lr"):
        (folder / name).mkdir(parents=True)
        for number in range(BATCHES):
            path = folder / name / f"{number:03}.parquet"
            pq.write_table(side(each, keys, 2 * number + seed, number * each), path)
            os.utime(path, (1_700_000_000 + number,) * 2)
    return folder


def first_files(folder: Path, batches: int) -> Path:
    """The files of the first batches, in a folder of their own."""
    first = folder.with_name(f"{folder.name}-{batches}")
    for name in "lr" if not first.exists() else "":
        (first / name).mkdir(parents=True)
        for path in sorted((folder / name).iterdir())[:batches]:
            os.link(path, first / name / path.name)
    return first


def stream_of(spark: Session, folder: Path) -> Frame:
    schema = "ts timestamp, k long, x double"
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def _contender(spark: Session, name: str, files: Path, how: str) -> Frame:
    left, right = (stream_of(spark, files / side) for side in "lr")
    if name == "panes":
        return by_panes(left, right, band_of(KEYS), how, lateness=LATENESS)
    left, right = (stream.withWatermark("ts", LATENESS) for stream in (left, right))
    return by_spark(left, right, band_of(KEYS), how)


def _check(spark: Session, folder: Path) -> None:
    files = files_of(folder, 30_000, 1_000)
    left, right = (spark.read.parquet(str(files / side)) for side in "lr")
    half = band_of(1_000)
    want = by_spark(left, right, half, "left")
    one, other = (stream_of(spark, files / side) for side in "lr")
    bounded = by_panes(one, other, half, "left", lateness=LATENESS, bounded=True)
    out = str(folder / "out")
    writer = bounded.writeStream.format("parquet").option("path", out)
    query = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    for got in (spark.read.parquet(out), by_panes(left, right, half, "left")):
        missing, extra = want.exceptAll(got).count(), got.exceptAll(want).count()
        if missing or extra:
            raise AssertionError(f"{missing} joined rows missing, {extra} too many")


def _tables(report: Report, spark: Session, folder: Path, rows: int, repeat: int) -> None:
    frames = []
    for seed, name in enumerate("lr"):
        path = folder / f"{name}.parquet"
        pq.write_table(side(rows, FEW_KEYS, seed), path)
        frames.append(spark.read.parquet(str(path)))
    left, right = frames
    contenders = {"panes": by_panes, "spark, equi-join": by_spark}
    point = f"tables, {FEW_KEYS} keys"
    medians = {}
    for name, make in contenders.items():
        writer = make(left, right, band_of(FEW_KEYS)).write.format("noop").mode("overwrite")
        medians[name] = report.time(name, point, writer.save, repeat, 2 * rows)
    ratio = medians["spark, equi-join"] / medians["panes"]
    what = f"tables, {FEW_KEYS:,} keys: at least 10 x an equi-join with a range condition"
    report.bar(what, f"{ratio:.1f} x", met=ratio >= 10)


def _streams(report: Report, spark: Session, files: Path, how: str, repeat: int, rows: int) -> None:
    """Run the contenders in turns, so that a busy moment of the machine falls on all of them."""
    ran: dict[str, list[Ran]] = {name: [] for name in SETTINGS}
    for _ in range(repeat):
        for name in SETTINGS:
            mine = first_files(files, FEWER) if name in SLOW else files
            ran[name].append(_run(spark, name, mine, how))
    median = {}
    for name, runs in ran.items():
        seconds = tuple(s for r in runs for s in r.seconds)
        report.timings.append(Timing(name, f"streams, {how}", seconds, f"{rows} rows a batch"))
        median[name] = report.timings[-1].median
    for name, times in {"spark, rocksdb 2": 8, "spark, rocksdb 4": 8, "spark, memory": 3}.items():
        ratio = median[name] / median["panes"]
        what = f"streams, {how}: at least {times} x {name}"
        report.bar(what, f"{ratio:.1f} x", met=ratio >= times)
    if how != "inner":
        ours, theirs = (ran[name][0].given[:FEWER] for name in ("panes", "spark, rocksdb 2"))
        met = all(a >= b for a, b in zip(ours, theirs, strict=True))
        report.bar("outer answers no batch later than Spark's", f"{ours} and {theirs}", met=met)


def _weigh(report: Report, spark: Session, files: Path) -> None:
    """Bytes of the whole state: without a change log, all of it is in RocksDB's files."""
    spark.conf.set(CHANGE_LOG, "false")
    names = ("panes", "spark, rocksdb 2", "spark, rocksdb 4")
    first = first_files(files, WEIGHED)
    weighed = {name: _run(spark, name, first, "inner").state_bytes for name in names}
    spark.conf.set(CHANGE_LOG, "true")
    sizes = "; ".join(f"{name} {size:,} bytes" for name, size in weighed.items())
    met = weighed["panes"] <= min(weighed.values())
    report.bar("state no larger than that of Spark's join", sizes, met=met)


def _run(spark: Session, name: str, files: Path, how: str) -> Ran:
    for setting, value in SETTINGS[name].items():
        spark.conf.set(setting, value)
    with tempfile.TemporaryDirectory() as checkpoint:
        joined = _contender(spark, name, files, how)
        writer = joined.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
    spark.conf.set(_STATE, ROCKSDB)
    batches = [p for p in query.recentProgress if p["numInputRows"]]
    state = batches[-1]["stateOperators"][0]
    given = [p["sink"]["numOutputRows"] for p in query.recentProgress]
    return Ran(
        seconds=tuple(p["durationMs"]["triggerExecution"] / 1_000 for p in batches[WARM:]),
        given=tuple(int(total) for total in np.cumsum(given)),
        state_bytes=state["customMetrics"].get("rocksdbSstFileSize", 0),
    )
