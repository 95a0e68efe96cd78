"""Rows asked of a register on Spark: the rows that a register in one process gives, in its order.

Catches: rows of a shard that are not read, rows of another moment than the window says, values that
change on their way through the state, and what a restart forgets or takes for whole.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import panes
import panes.spark
from panes.errors import PanesError, QueryError, StateError
from panes.spark.register import ask, ask_rows
from panes.spark.register.register import SparkRegister
from tests.sharing.workload import QUERIES, rows
from tests.spark.register.registered import LATENESS, placed, registered
from tests.spark.streaming import as_batches, at_seconds, nearly_ordered, read_stream, some_rows
from tests.support import assert_rows

EVERY = "SELECT * FROM s [RANGE 60 WATTR at]"
QUESTIONS = (
    EVERY,
    "SELECT * FROM s [RANGE 60 WATTR at] WHERE k = 'a' ORDER BY x LIMIT 10",
    "SELECT x, k FROM s [RANGE 25 WATTR at] WHERE x BETWEEN 2 AND 5 ORDER BY k DESC, x",
    "SELECT x * 2 AS twice FROM s [RANGE 1 WATTR at] ORDER BY twice DESC NULLS FIRST",
    "SELECT 1 AS one FROM s [RANGE 7 WATTR at] WHERE k IS NULL",
)
BATCHES = [rows(number, 60, 13 * number) for number in range(8)]


def assert_same_rows(got: DataFrame, want: pa.Table) -> None:
    """The same names and rows in the same order."""
    assert_rows(got.toArrow(), want, in_order=True)


def test_rows_are_asked_for_while_the_stream_runs_and_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    files, place = as_batches(tmp_path / "in", BATCHES[:3]), placed(tmp_path)
    alone = panes.register("s", lateness=LATENESS)
    register = registered(spark, files, "keyed")
    for one in (alone, register):
        one.prepare(EVERY)
    alone.add("keyed", QUERIES["keyed"])
    with pytest.raises(QueryError, match="has not been started"):
        register.ask(EVERY)
    register.start(**place)
    register.process_all_available()
    for batch in BATCHES[:3]:
        alone.push(batch)
    for text in QUESTIONS[:2]:
        assert_same_rows(register.ask(text), alone.ask(text))
    earlier, before = register.ask(EVERY), alone.ask(EVERY)
    totals = "SELECT k, sum(x) AS total FROM s [RANGE 12 WATTR at] GROUP BY k"
    assert register.ask(totals).count() == len(alone.ask(totals)), "panes are read beside them"
    assert "rows of the last 60: at, k, x" in register.explain()

    register.add("all", QUERIES["all"])
    as_batches(files, BATCHES[3:5], first=3)
    register.process_all_available()
    for batch in BATCHES[3:5]:
        alone.push(batch)
    for text in QUESTIONS[2:4]:
        assert_same_rows(register.ask(text), alone.ask(text))
    assert_same_rows(earlier, before)
    register.stop()

    again = registered(spark, files, "keyed").start(**place)
    assert again.prepared() == [EVERY], "the checkpoint has the question"
    assert_same_rows(again.ask(EVERY), alone.ask(EVERY))
    as_batches(files, BATCHES[5:], first=5)
    again.process_all_available()
    for batch in BATCHES[5:]:
        alone.push(batch)
    for text in QUESTIONS:
        assert_same_rows(again.ask(text), alone.ask(text))
    again.forget(EVERY)
    with pytest.raises(QueryError, match="the register keeps no rows"):
        again.ask(EVERY)
    again.stop()
    assert registered(spark, files).start(**place).prepared() == []


@pytest.mark.slow
def test_rows_of_a_checkpoint_that_had_none_are_whole_from_then_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    files, place = as_batches(tmp_path / "in", BATCHES[:2]), placed(tmp_path)
    alone = panes.register("s", lateness=LATENESS)
    alone.add("keyed", QUERIES["keyed"])
    _run(registered(spark, files, "keyed"), place)
    for batch in BATCHES[:2]:
        alone.push(batch)

    short = "SELECT x FROM s [RANGE 10 WATTR at]"
    alone.prepare(short)
    register = registered(spark, files, "keyed")
    register.prepare(short)
    register.start(**place)
    known = _newest(BATCHES[:2]) + 1
    with pytest.raises(QueryError, match=f"what is prepared knows rows from {known} on"):
        register.ask(short)
    as_batches(files, BATCHES[2:4], first=2)
    register.process_all_available()
    for batch in BATCHES[2:4]:
        alone.push(batch)
    assert_same_rows(register.ask(short), alone.ask(short))
    with pytest.raises(QueryError, match="`k` is not among the columns that are kept"):
        register.ask("SELECT k FROM s [RANGE 10 WATTR at]")

    longer = "SELECT k, x FROM s [RANGE 30 WATTR at]"
    register.prepare(longer)
    alone.prepare(longer)
    assert_same_rows(register.ask(short), alone.ask(short))
    known = _newest(BATCHES[:4]) + 1
    with pytest.raises(QueryError, match=rf"rows from {known} on\n\nHint: it can be asked once"):
        register.ask(longer)
    as_batches(files, BATCHES[4:], first=4)
    register.process_all_available()
    for batch in BATCHES[4:]:
        alone.push(batch)
    assert_same_rows(register.ask(longer), alone.ask(longer))
    assert_same_rows(register.ask(short), alone.ask(short))
    register.stop()


@pytest.mark.slow
def test_all_kinds_of_values_come_back_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    stream = nearly_ordered(some_rows(), "at", 20)
    files = as_batches(tmp_path / "in", [stream.slice(0, 120), stream.slice(120)])
    alone = panes.register("s", lateness=20)
    register = panes.register("s", read_stream(spark, files), lateness=20)
    every = "SELECT * FROM s [RANGE 150 WATTR at]"
    alone.prepare(every)
    register.prepare(every)
    alone.push(stream)
    register.start(**placed(tmp_path))
    register.process_all_available()
    for text in (
        every,
        "SELECT * FROM s [RANGE 150 WATTR at] ORDER BY x DESC, d",
        "SELECT at, x FROM s [RANGE 40 WATTR at] WHERE x > 1 OR b ORDER BY x NULLS LAST LIMIT 7",
        "SELECT at, t, s FROM s [RANGE 90 WATTR at] WHERE s = 'é' ORDER BY t",
    ):
        assert_same_rows(register.ask(text), alone.ask(text))
    register.stop()


def test_times_and_nested_values_and_no_query_at_all(spark: SparkSession, tmp_path: Path) -> None:
    table = at_seconds(0, 3, None, 9, 7, item=[1, 2, 3, 4, 5])
    files = as_batches(tmp_path / "in", [table])
    frame = read_stream(spark, files).selectExpr(
        "ts", "item", "struct(item, array(item, NULL) AS two) AS nested", "map('i', item) AS named",
        "CAST(ts AS DATE) AS day", "CAST(ts AS TIMESTAMP_NTZ) AS plain",
        "CAST(item AS STRING) COLLATE UNICODE_CI AS word", "item > 2 AS many",
    )  # fmt: skip
    register = panes.register("bids", frame, lateness="10 seconds", punctuation="ts")
    register.prepare("SELECT * FROM bids [RANGE 5 seconds WATTR ts]")
    register.start(**placed(tmp_path), rejected=str(tmp_path / "rejected"))
    register.process_all_available()
    asked = register.ask("SELECT * FROM Bids b [RANGE 5 seconds WATTR ts] ORDER BY b.item")
    assert asked.schema["word"].dataType == frame.schema["word"].dataType
    begin = dt.datetime(2026, 1, 1, 0, 0, 4, 1, tzinfo=dt.UTC)
    found = asked.drop("plain").toArrow().to_pylist()
    assert [row["item"] for row in found] == [4, 5]
    assert found[0] == {
        "window_start": begin,
        "window_end": begin + dt.timedelta(seconds=5),
        "ts": dt.datetime(2026, 1, 1, 0, 0, 9, tzinfo=dt.UTC),
        "item": 4,
        "nested": {"item": 4, "two": [4, None]},
        "named": [("i", 4)],
        "day": dt.date(2026, 1, 1),
        "word": "4",
        "many": True,
    }
    [plain] = register.ask(
        "SELECT plain FROM bids [RANGE 5 seconds WATTR ts] LIMIT 1"
    ).select("plain").collect()  # fmt: skip
    assert plain[0] == dt.datetime(2026, 1, 1, 0, 0, 7)
    register.stop()


def test_before_anything_is_committed_there_is_nothing(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    frame = spark.readStream.schema("at long, k string, x long").parquet(str(tmp_path / "in"))
    register = panes.register("s", frame, lateness=0)
    register.prepare(EVERY)
    register.start(**placed(tmp_path))
    assert register.ask(EVERY).toArrow().num_rows == 0
    assert register.ask(EVERY).columns == ["window_start", "window_end", "at", "k", "x"]
    register.forget(EVERY)
    with pytest.raises(QueryError, match="the register keeps no rows"):
        register.ask(EVERY)
    with pytest.raises(QueryError, match=r"so nothing is stored for it\n\nHint: add one"):
        register.ask("SELECT count(*) AS n FROM s [RANGE 10 WATTR at]")
    register.stop()


@pytest.mark.slow
def test_rows_of_the_end_are_there_for_the_next_run(spark: SparkSession, tmp_path: Path) -> None:
    files, place = as_batches(tmp_path / "in", BATCHES[:2]), placed(tmp_path)
    alone = panes.register("s", lateness=LATENESS)
    alone.prepare(EVERY)
    register = registered(spark, files)
    register.prepare(EVERY)
    register.start(**place, bounded=True).await_end()
    as_batches(files, BATCHES[2:3], first=2)
    for batch in BATCHES[:3]:
        alone.push(batch)
    seen: list[pa.Table] = []

    def look(name: str, answers: DataFrame, batch: int) -> None:
        seen.append(again.ask(EVERY).toArrow())

    again = registered(spark, files, "all")
    again.start(**{**place, "sink": look}, bounded=True)
    again.await_end()
    assert seen, "while it runs, from within a sink"
    assert seen[-1].num_rows == len(alone.ask(EVERY))


@pytest.mark.parametrize(
    ("text", "message"),
    {
        "SELECT nope FROM s [RANGE 10 WATTR at]": "no column `nope`",
        "SELECT * FROM s [ROWS 10]": r"no order of their own.*\n\nHint: .*\[RANGE 10 minutes WATTR",
        "SELECT * FROM t [RANGE 10 WATTR at]": "only rows of `s` can be asked for",
        "SELECT * FROM s [RANGE 10 WATTR x]": "the register on `at`",
        "SELECT count(*) AS n FROM s [RANGE 10 WATTR at]": r"answered from panes\n\nHint: add a q",
        "SELECT max(x) AS n FROM s [ROWS 10]": "questions for rows are prepared",
        "SELECT x AS window_start FROM s [RANGE 10 WATTR at]": "another column named",
    }.items(),
)
def test_what_cannot_be_kept_is_refused(
    spark: SparkSession, tmp_path: Path, text: str, message: str
) -> None:
    register = registered(spark, as_batches(tmp_path, BATCHES[:1]), "all")
    before = register.explain()
    with pytest.raises(PanesError, match=message):
        register.prepare(text)
    assert register.prepared() == []
    assert register.explain() == before


def test_what_only_spark_refuses_and_what_is_not_prepared(
    spark: SparkSession, tmp_path: Path
) -> None:
    register = registered(spark, as_batches(tmp_path, BATCHES[:1]), "all")
    with pytest.raises(AnalysisException):
        register.prepare("SELECT x FROM s [RANGE 10 WATTR at] WHERE k")
    with pytest.raises(QueryError, match=r"not prepared\n\nHint: prepared: none"):
        register.forget(EVERY)
    register.prepare(EVERY)
    register.prepare(EVERY)
    with pytest.raises(QueryError, match=r"Hint: prepared: SELECT \* FROM s"):
        register.forget("SELECT x FROM s [RANGE 10 WATTR at]")


@pytest.mark.slow
def test_a_question_whose_column_has_gone_is_named(spark: SparkSession, tmp_path: Path) -> None:
    files, place = as_batches(tmp_path / "in", BATCHES[:1]), placed(tmp_path)
    register = registered(spark, files)
    register.prepare("SELECT k FROM s [RANGE 10 WATTR at]")
    _run(register, place)
    other = panes.register("s", read_stream(spark, files).drop("k"), lateness=LATENESS)
    with pytest.raises(PanesError, match=r"the prepared question `SELECT k FROM s .*no column `k`"):
        other.start(**place)


def test_a_state_of_which_something_is_missing_gives_no_answer(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = as_batches(tmp_path / "in", BATCHES[:2])
    register = registered(spark, files)
    register.prepare(EVERY)
    register.start(**placed(tmp_path))
    register.process_all_available()
    state = ask.read_state(spark, placed(tmp_path)["checkpoint"])
    assert state is not None

    def without(condition: str) -> None:
        left = state.where(~F.expr(condition))
        monkeypatch.setattr(ask_rows, "read_state", lambda *_: left)

    shards = [row.shard for row in state.select("shard").distinct().collect()]
    assert len(shards) == 2
    run = state.where("name LIKE 'kept/%'").first()
    assert run is not None
    without(f"shard = {run.shard} AND name = '{run.name}'")
    with pytest.raises(StateError, match=f"rows {run.name} of shard {run.shard} are missing"):
        register.ask(EVERY)
    without(f"shard = {shards[0]}")
    with pytest.raises(StateError, match=r"the state of shard .* is missing.*\n\nHint: take the"):
        register.ask(EVERY)
    register.stop()


def _newest(batches: list[pa.Table]) -> int:
    return max(at for batch in batches for at in batch["at"].to_pylist())


def _run(register: SparkRegister, place: dict[str, Any]) -> None:
    register.start(**place)
    register.process_all_available()
    register.stop()
