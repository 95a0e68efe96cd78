"""A register on Spark: one streaming query gives what every query would get alone.

Catches: answers that depend on how rows are spread over tasks and shards, a query that is answered
before everything it needs is there, a change that loses or repeats a window, a restart that
forgets a query or brings back one that was removed, answers in another query's sink.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import panes
import panes.spark
from panes.errors import OptionError, QueryError, StateError
from panes.process.register import Register
from panes.spark.register import deliver
from tests.sharing.workload import QUERIES, SCHEMA, rows
from tests.spark.register.registered import LATENESS, MORE, placed, registered
from tests.spark.streaming import as_batches, found
from tests.support import assert_rows


def answers_of(spark: SparkSession, folder: Path, name: str) -> pa.Table:
    return spark.read.parquet(str(folder / f"query={name}")).drop("batch").toArrow()


class Mirror:
    """A register in one process that is given the same, and all it has answered."""

    def __init__(self, *names: str) -> None:
        self.register: Register = panes.register("s", lateness=LATENESS, schema=SCHEMA)
        self.answers: dict[str, list[pa.Table]] = {}
        for name in names:
            self.register.add(name, QUERIES[name])

    def push(self, *batches: pa.Table) -> None:
        for batch in batches:
            for name, table in self.register.push(batch).items():
                self.answers.setdefault(name, []).append(table)

    def assert_answered(self, spark: SparkSession, folder: Path) -> None:
        given = {p.name.removeprefix("query=") for p in folder.iterdir() if p.is_dir()}
        assert given == self.answers.keys()
        for name, tables in self.answers.items():
            assert_rows(answers_of(spark, folder, name), pa.concat_tables(tables))


def test_what_was_not_started_never_ends_and_a_trigger_is_in_sparks_words(
    spark: SparkSession, tmp_path: Path
) -> None:
    register = registered(spark, as_batches(tmp_path / "in", [rows(1, 5, 0)]), "keyed")
    with pytest.raises(QueryError, match="the register has not been started"):
        register.await_end(300)
    with pytest.raises(QueryError, match=r"takes no rows\n\nHint: reg\.start"):
        register.push(rows(1, 5, 0))
    with pytest.raises(OptionError, match=r"got '10 seconds'\n\nHint: trigger=\{\"processing"):
        register.start(**placed(tmp_path), trigger="10 seconds")  # type: ignore[arg-type]


@pytest.mark.slow
def test_every_query_gets_what_it_would_get_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers are carried through the driver in one batch, and unpacked by a job in the next."""
    turn, told = count(), deliver._answered

    def told_in_turns(batch: DataFrame) -> dict[int, deliver.Answered]:
        found = told(batch)
        if next(turn) % 2:
            for answered in found.values():
                answered.packages = None
        return found

    monkeypatch.setattr(deliver, "_answered", told_in_turns)
    batches = [rows(number, 80, 30 * number) for number in range(3)]
    files = as_batches(tmp_path / "in", batches)
    register = registered(spark, files, *QUERIES, *MORE, lateness=40)
    place = placed(tmp_path)
    register.start(**place, bounded=True)
    query = register.query
    assert "not started" not in repr(register)
    assert register.await_end(300)
    assert "stopped" in repr(register)
    everything = pa.concat_tables(batches)
    for name, text in {**QUERIES, **MORE}.items():
        assert_rows(answers_of(spark, tmp_path / "out", name), panes.oracle(text, s=everything))
    assert query is not None
    assert query.lastProgress is not None
    assert query.lastProgress["observedMetrics"]["panes"]["partials"] == 0
    assert next(turn) > 2, "both ways were taken"
    assert SparkSession.getActiveSession() is spark, "not that of a batch"


@pytest.mark.slow
def test_queries_come_and_go_while_the_stream_runs(spark: SparkSession, tmp_path: Path) -> None:
    batches = [rows(number, 60, 30 * number) for number in range(6)]
    files, out = as_batches(tmp_path / "in", batches[:2]), tmp_path / "out"
    place = placed(tmp_path)
    first = ("all", "keyed", "long")
    mirror = Mirror(*first)
    register = registered(spark, files, *first).start(**place)
    register.process_all_available()
    assert not register.await_end(0.0005), "it runs, and less than a millisecond is no time to wait"
    mirror.push(*batches[:2])

    for asked in (
        "SELECT k, sum(x) AS total FROM s [RANGE 12 WATTR at] GROUP BY k HAVING sum(x) > 3",
        "SELECT count(*) * 2 AS twice FROM s [RANGE 10 WATTR at]",
        "SELECT DISTINCT k FROM s [RANGE 12 WATTR at]",
        "SELECT k, sum(x) AS total FROM s [RANGE 12 WATTR at] WHERE k IN ('a', 'b') GROUP BY k",
        "SELECT k FROM s [RANGE 12 WATTR at] INTERSECT SELECT k FROM s [RANGE 12 WATTR at] "
        "WHERE k IS NULL OR k > 'a'",
        "SELECT k FROM s [RANGE 12 WATTR at] EXCEPT SELECT k FROM s [RANGE 12 WATTR at] "
        "WHERE k > 'b'",
    ):
        found = register.ask(asked).toArrow()
        assert len(found), "from what is committed, while the stream runs"
        assert_rows(found, mirror.register.ask(asked))
    with pytest.raises(QueryError, match=r"keeps no rows\n\nHint: reg\.prepare"):
        register.ask("SELECT * FROM s [RANGE 12 WATTR at] WHERE k = 'a'")
    with pytest.raises(QueryError, match="inside a pane"):
        register.ask("SELECT count(*) AS n FROM s [RANGE 11 WATTR at]")
    added = register.add("dear", QUERIES["dear"])
    expected = mirror.register.add("dear", QUERIES["dear"]).exact_from
    assert added.exact_from == expected
    assert expected is not None
    before = register.queries()
    for wrong in ({"remove": ["keyed", "none"]}, {"add": {"x": QUERIES["middle"], "y": "SELECT"}}):
        with pytest.raises(QueryError):
            register.change(**wrong)
    assert register.queries() == before
    register.change(remove=["keyed"], add={"middle": QUERIES["middle"]})
    mirror.register.remove("keyed")
    mirror.register.add("middle", QUERIES["middle"])
    as_batches(files, batches[2:4], first=2)
    register.process_all_available()
    mirror.push(*batches[2:4])
    assert register.exact_from("middle") == mirror.register.exact_from("middle")
    register.stop()

    again = registered(spark, files, *first)
    again.start(**place)
    assert again.queries() == mirror.register.queries()
    as_batches(files, batches[4:], first=4)
    again.process_all_available()
    again.stop()
    mirror.push(*batches[4:])
    mirror.assert_answered(spark, out)


def test_answers_go_to_the_sinks_of_their_queries(spark: SparkSession, tmp_path: Path) -> None:
    batches = [rows(1, 50, 0), rows(2, 50, 60), rows(3, 20, 0)]
    late = pa.table([[None], ["a"], [1]], schema=SCHEMA)
    files = as_batches(tmp_path / "in", [*batches, late])
    register = registered(spark, files, "all", "keyed", late="drop")
    register.add("dear", QUERIES["dear"], sink=str(tmp_path / "dear"), deadline="1 second")
    seen: list[tuple[str, int]] = []

    def take(name: str, answers: DataFrame, batch_id: int) -> None:
        seen.append((name, batch_id))
        answers.write.mode("overwrite").parquet(str(tmp_path / "each" / name / str(batch_id)))

    register.start(
        checkpoint=str(tmp_path / "state"),
        sink=take,
        late=str(tmp_path / "late"),
        rejected=str(tmp_path / "rejected"),
        bounded=True,
    )
    assert register.await_end(300)
    mirror: Register = panes.register("s", lateness=LATENESS, late="drop", schema=SCHEMA)
    for name in ("all", "keyed", "dear"):
        mirror.add(name, QUERIES[name])
    want: dict[str, list[pa.Table]] = {}
    for given in (*map(mirror.push, [*batches, late]), mirror.finish()):
        for name, table in given.items():
            want.setdefault(name, []).append(table)
    assert {name for name, _ in seen} == {"all", "keyed"}
    assert len(seen) == len(set(seen))
    for name in ("all", "keyed"):
        read = spark.read.parquet(*map(str, (tmp_path / "each" / name).iterdir()))
        assert_rows(read.toArrow(), pa.concat_tables(want[name]))
    dear = found(spark, tmp_path / "dear").drop_columns(["batch"])
    assert_rows(dear, pa.concat_tables(want["dear"]))
    apart = found(spark, tmp_path / "late").drop_columns(["batch"])
    assert_rows(apart, mirror.late)
    nowhere = found(spark, tmp_path / "rejected").drop_columns(["batch"])
    assert_rows(nowhere, mirror.rejected)


@pytest.mark.slow
def test_a_watched_folder_says_what_runs(spark: SparkSession, tmp_path: Path) -> None:
    batches = [rows(number, 60, 30 * number) for number in range(3)]
    files, out = as_batches(tmp_path / "in", batches[:1]), tmp_path / "out"
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "all.sql").write_text(QUERIES["all"] + ";\n")
    (folder / "keyed.sql").write_text(QUERIES["keyed"])
    mirror = Mirror("all", "keyed")
    place = placed(tmp_path)
    watch: dict[str, Any] = {"watch": str(folder), "watch_every": "1 day"}
    register = registered(spark, files).start(**place, **watch)
    register.process_all_available()
    mirror.push(batches[0])

    (folder / "dear.sql").write_text(QUERIES["dear"])
    (folder / "wrong.sql").write_text("SELECT count(*) FROM other [TUMBLING 10 WATTR at]")
    (folder / "all.sql").unlink()
    register.look()
    assert list(register.refused) == ["wrong"]
    assert "other" in register.refused["wrong"]
    assert set(register.queries()) == {"keyed", "dear"}
    mirror.register.remove("all")
    mirror.register.add("dear", QUERIES["dear"])
    as_batches(files, batches[1:2], first=1)
    register.process_all_available()
    mirror.push(batches[1])
    register.stop()

    (folder / "keyed.sql").unlink()
    register = registered(spark, files).start(**place, **watch)
    mirror.register.remove("keyed")
    assert register.queries() == mirror.register.queries()
    as_batches(files, batches[2:], first=2)
    register.process_all_available()
    mirror.push(batches[2])
    register.stop()
    mirror.assert_answered(spark, out)


def test_what_cannot_run_is_refused_with_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    files = as_batches(tmp_path / "in", [rows(1, 10, 0)])
    with pytest.raises(QueryError, match="bounded"):
        panes.register("s", spark.read.parquet(str(files)))
    with pytest.raises(OptionError, match="once"):
        registered(spark, files, late="revise")
    with pytest.raises(QueryError, match="no query yet"):
        registered(spark, files).start(checkpoint=str(tmp_path / "c"), sink=str(tmp_path / "o"))
    endless = registered(spark, files, "all", lateness=None)
    with pytest.raises(OptionError, match="no window would ever close"):
        endless.start(checkpoint=str(tmp_path / "c"), sink=str(tmp_path / "o"))
    register = registered(spark, files, "all")
    with pytest.raises(QueryError, match="already registered"):
        register.add("all", QUERIES["all"])
    with pytest.raises(QueryError, match="FROM s"):
        register.add("more", "SELECT count(*) FROM t [TUMBLING 10 WATTR at]")
    with pytest.raises(panes.errors.UnknownColumnError):
        register.add("more", "SELECT max(y) FROM s [TUMBLING 10 WATTR at]")
    assert list(register.queries()) == ["all"]
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "metadata").write_text('{"id":"x"}')
    with pytest.raises(StateError, match="another streaming query"):
        register.start(checkpoint=str(foreign), sink=str(tmp_path / "o"))
