"""A stream that stops or crashes goes on from its checkpoint: nothing lost or twice.

Catches: state that is not all in the checkpoint, a batch that runs again and counts its rows or
answers its windows again, an end of the stream that is told to no one after a crash, and a
checkpoint that is taken for the state of a query that it does not belong to. Processes are killed
in tests/crash.
"""

from __future__ import annotations

import datetime as dt
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import panes
import panes.spark
from panes.spark.session import DEFAULTS
from tests.spark.stream.minutes import LATENESS, MINUTES, TEXT, minute
from tests.spark.streaming import as_batches, at_seconds, found, read_stream, run_to_end
from tests.support import assert_rows, slow

CLOCK = r'("batchTimestampMs":)([1-9]\d+)'
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"


WANTED = panes.oracle(TEXT, s=pa.concat_tables(MINUTES))


def ask(spark: SparkSession, folder: Path, text: str = TEXT, **options: Any) -> DataFrame:
    """A query that is not to end, unless the options say so."""
    chosen = {"lateness": LATENESS, **options}
    return panes.sql(text, **chosen, s=read_stream(spark, folder))


def batches_of(query: StreamingQuery) -> list[int]:
    return [p["batchId"] for p in query.recentProgress]


def closed(text: str, rows: pa.Table) -> pa.Table:
    """The oracle's answers for windows that the rows so far prove complete."""
    answers, latest = panes.oracle(text, s=rows), pc.max(rows["ts"]).as_py()
    return answers.filter(pc.less_equal(answers["window_end"], pa.scalar(latest - LATENESS)))


def test_a_query_that_was_stopped_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    """Every run ends with windows open; rows of the next run count in them too."""
    runs = [MINUTES[:2], MINUTES[2:], [at_seconds(3600, k=["a"], x=[99])]]
    come: list[pa.Table] = []
    for tables in runs:
        as_batches(tmp_path / "in", tables, first=len(come))
        come += tables
        query = run_to_end(ask(spark, tmp_path / "in"), tmp_path)
        assert batches_of(query) == list(range(len(come) - len(tables), len(come)))
        assert_rows(found(spark, tmp_path / "out"), closed(TEXT, pa.concat_tables(come)))
    assert len(found(spark, tmp_path / "out")) == len(WANTED)


# A crash between two writes of a batch: offsets/N, the state, the sink's own log, commits/N.


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name) or ""
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


@pytest.fixture(scope="module")
def finished(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Bounded runs that went to their ends, by the format of their state."""

    @cache
    def run(version: str) -> Path:
        folder = tmp_path_factory.mktemp(f"format{version}")
        as_batches(folder / "in", MINUTES)
        (folder / "run").mkdir()
        with setting(spark, FORMAT, version):
            query = run_to_end(ask(spark, folder / "in", bounded=True), folder / "run")
        assert batches_of(query) == [0, 1, 2, 3], "three batches of rows and the end"
        (folder / "run").rename(folder / "aside")
        return folder

    return run


def cut_back(log: Path, last: int) -> None:
    """Take back what Spark wrote into a log after batch `last`, checksums too."""
    for path in log.iterdir():
        number = path.name.removeprefix(".").removesuffix(".crc")
        if number.isdigit() and int(number) > last:
            path.unlink()


def crashed(folder: Path, batch: int, *, sunk: bool) -> Path:
    """The finished run as it was before ``commits/batch``; `sunk`: the sink has the batch."""
    place = folder / "run"  # where it was, since the sink's log has absolute paths
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder / "aside", place)
    cut_back(place / "checkpoint" / "offsets", batch)
    cut_back(place / "checkpoint" / "sources" / "0", batch)
    cut_back(place / "checkpoint" / "commits", batch - 1)
    cut_back(place / "out" / "_spark_metadata", batch if sunk else batch - 1)
    return place


@pytest.mark.parametrize(
    ("version", "batch"),
    [("1", 1), *(slow(*crash) for crash in [("1", 0), ("1", 2), ("1", 3), ("2", 1)])],
)
def test_a_crash_before_the_sink_has_the_batch(
    spark: SparkSession, finished: Callable[[str], Path], version: str, batch: int
) -> None:
    """The batch runs again from the state before it, though newer state lies around."""
    folder = finished(version)
    place = crashed(folder, batch, sunk=False)
    with setting(spark, FORMAT, version):
        query = run_to_end(ask(spark, folder / "in", bounded=True), place)
    assert batches_of(query)[0] == batch
    assert_rows(found(spark, place / "out"), WANTED)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, *map(slow, [0, 2, 3])])
def test_a_crash_after_the_sink_has_the_batch(
    spark: SparkSession, finished: Callable[[str], Path], batch: int
) -> None:
    """Spark does not run the batch again, and goes on with the state that it left."""
    folder = finished("1")
    place = crashed(folder, batch, sunk=True)
    entry = place / "out" / "_spark_metadata" / str(batch)
    before = entry.read_bytes()
    query = run_to_end(ask(spark, folder / "in", bounded=True), place)
    assert batches_of(query)[0] == batch
    assert entry.read_bytes() == before
    assert_rows(found(spark, place / "out"), WANTED)


@pytest.mark.slow
def test_why_the_session_keeps_to_format_1(
    spark: SparkSession, finished: Callable[[str], Path]
) -> None:
    """With format 2, Spark itself cannot go on where a sink has the batch already."""
    assert DEFAULTS[FORMAT] == "1" == spark.conf.get(FORMAT)
    folder = finished("2")
    place = crashed(folder, 1, sunk=True)
    with (
        setting(spark, FORMAT, "2"),
        pytest.raises(StreamingQueryException, match="CheckpointInfo length: 0"),
    ):
        run_to_end(ask(spark, folder / "in", bounded=True), place)


# Another query on the checkpoint, or the same one elsewhere.

BEFORE = [at_seconds(5, 20, 49, k=["a", "a", "b"], x=[1, 2, 3])]
AFTER = [
    at_seconds(70, 109, k=["b", "a"], x=[4, 5]),
    at_seconds(50, 3600, k=["a", "c"], x=[6, 7]),
]


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped after one batch, which answered nothing, with more to read."""
    folder = tmp_path_factory.mktemp("stopped")
    as_batches(folder / "in", BEFORE)
    run_to_end(ask(spark, folder / "in"), folder)
    as_batches(folder / "in", AFTER, first=len(BEFORE))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "shards", "told"),
    [
        (TEXT.replace("RANGE 2", "RANGE 3"), 2, r"the window was .*2 minutes.*, is .*3 minutes.*"),
        (TEXT.replace("BY k", "BY k, x"), 2, r"GROUP BY was k string, is k string, x .*"),
        (TEXT.replace("max", "min"), 2, r"SELECT was .*max\(x\).*, is .*min\(x\).*"),
        (TEXT.replace("GROUP", "WHERE x > 1 GROUP"), 2, r"WHERE was .*, is x > 1"),
        (TEXT, 3, r"the number of shards was 2, is 3"),
    ],
    ids=["window", "keys", "aggregates", "where", "shards"],
)
def test_a_changed_query_is_refused(
    spark: SparkSession, stopped: Path, text: str, shards: int, told: str
) -> None:
    """By a message that says what has changed and what has not."""
    with pytest.raises(StreamingQueryException) as refused:
        run_to_end(ask(spark, stopped / "in", text, shards=shards), stopped)
    [said] = set(re.findall("holds the state of another query: (.*)", str(refused.value)))
    assert re.fullmatch(told, said)
    assert ";" not in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "lateness"),
    [
        (TEXT, dt.timedelta(minutes=1)),
        (TEXT.replace("max(x)", "count(*) + max(x)") + " HAVING count(*) > 1", LATENESS),
    ],
    ids=["lateness", "select-and-having"],
)
def test_a_change_that_the_state_does_not_mind(
    spark: SparkSession, stopped: Path, tmp_path: Path, text: str, lateness: dt.timedelta
) -> None:
    """Also after others were refused. A longer lateness lets the row at 0:50 count at 1:00."""
    for name in ("checkpoint", "out"):
        shutil.copytree(stopped / name, tmp_path / name)
    run_to_end(ask(spark, stopped / "in", text, lateness=lateness), tmp_path)
    here = panes.open(text, lateness=lateness)
    want = [here.push(s=table) for table in (*BEFORE, *AFTER)]
    assert not len(want[0])
    assert_rows(found(spark, tmp_path / "out"), pa.concat_tables(want))


@pytest.mark.slow
def test_a_session_with_other_partitions(spark: SparkSession, tmp_path: Path) -> None:
    """Spark keeps a checkpoint's partitions, whatever the session's are. With keys it is told."""
    text = TEXT.replace("k, ", "").replace(" GROUP BY k", "")
    here = panes.open(text, lateness=LATENESS)
    as_batches(tmp_path / "in", BEFORE)
    run_to_end(ask(spark, tmp_path / "in", text), tmp_path)
    as_batches(tmp_path / "in", AFTER, first=len(BEFORE))
    with setting(spark, "spark.sql.shuffle.partitions", "4"):
        run_to_end(ask(spark, tmp_path / "in", text), tmp_path)
    want = [here.push(s=table) for table in (*BEFORE, *AFTER)]
    assert_rows(found(spark, tmp_path / "out"), pa.concat_tables(want))


@pytest.mark.slow
def test_a_machine_whose_clock_is_behind(spark: SparkSession, tmp_path: Path) -> None:
    """A run on a machine whose clock was an hour ahead, and then one here."""
    tables = [minute(0), minute(10)]
    as_batches(tmp_path / "in", tables[:1])
    run_to_end(ask(spark, tmp_path / "in", bounded=True), tmp_path)
    for path in (tmp_path / "checkpoint").glob("[oc]*/[0-9]*"):
        ahead = re.sub(CLOCK, lambda m: m[1] + str(int(m[2]) + 3_600_000), path.read_text())
        path.write_text(ahead)
        (path.parent / f".{path.name}.crc").unlink()
    as_batches(tmp_path / "in", tables[1:], first=1)
    run_to_end(ask(spark, tmp_path / "in", bounded=True), tmp_path)
    assert_rows(found(spark, tmp_path / "out"), panes.oracle(TEXT, s=pa.concat_tables(tables)))
