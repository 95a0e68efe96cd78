"""A list of queries changes once the change is known to run, and what was written can be started.

Catches: a query that ends a register as it is added, a list that is written before it is planned,
and one entry of a list that keeps all others from being started.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import panes
from panes.errors import FailedQueryWarning, QueryError
from panes.sharing.manifest import QueryEntry
from panes.spark.register import manifest_file
from panes.spark.register.run import Planned
from tests.deep import DEEP, LONG
from tests.spark.register.registered import placed
from tests.spark.streaming import as_batches, read_stream
from tests.support import assert_rows

SUM = "SELECT k, sum(v) AS a FROM s [TUMBLING 10 WATTR at] GROUP BY k"
ROWS = pa.table(
    {"at": list(range(60)), "v": list(range(60)), "k": ["a", "b"] * 30, "s": ["x"] * 60}
)


def where(condition: str) -> str:
    return f"SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at] WHERE {condition}"


class Moody:
    """A function of the user's own that can be sent to tasks only while `may_be_sent`."""

    may_be_sent = True

    def __call__(self, values: pa.Array) -> float:
        return float(len(values))

    def __reduce__(self) -> tuple[type[Moody], tuple[()]]:
        if not self.may_be_sent:
            raise TypeError("cannot pickle a moody function")
        return Moody, ()


def moody_aggregate(function: Moody) -> panes.WindowFunction:
    return panes.WindowFunction(name="moody", function=function, type=pa.float64())


def answers_of(spark: SparkSession, folder: Path, name: str) -> pa.Table:
    return spark.read.parquet(str(folder / "out" / f"query={name}")).drop("batch").toArrow()


@pytest.mark.slow
def test_a_change_that_cannot_run_changes_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moody = Moody()
    files = as_batches(tmp_path / "in", [ROWS[:20]])
    frame = read_stream(spark, files)
    reg: Any = panes.register("s", frame, lateness=0, aggregates=[moody_aggregate(moody)])
    reg.add("sum", SUM)
    place = placed(tmp_path)
    reg.start(**place).process_all_available()

    before, running = manifest_file.read(spark, place["checkpoint"]), reg.query
    with pytest.raises(QueryError, match="nested too deeply"):
        reg.add("deep", where(DEEP["+"](90)))
    moody.may_be_sent = False
    with pytest.raises(TypeError, match="pickle"):
        reg.add("unsent", SUM.replace("sum", "moody"))
    with pytest.raises(TypeError, match="pickle"):
        reg.change(remove=["sum"], add={"unsent": SUM.replace("sum", "moody")})
    moody.may_be_sent = True
    assert reg.query is running
    assert running.isActive
    assert manifest_file.read(spark, place["checkpoint"]) == before
    assert reg.queries() == {"sum": SUM}

    def refuses(self: Planned) -> Any:
        monkeypatch.undo()
        raise OSError("no room")

    monkeypatch.setattr(Planned, "start", refuses)
    with pytest.raises(OSError, match="no room"):
        reg.add("later", SUM.replace("sum", "max"))
    assert reg.query is not None
    assert reg.queries() == {"sum": SUM}
    stored = manifest_file.read(spark, place["checkpoint"])
    assert stored is not None
    assert [entry.name for entry in stored.queries] == ["sum"]

    reg.add("ORs", where(LONG["OR"](1_000)))
    reg.add("IN", where(LONG["IN"](1_000)))
    reg.add("signs", where("v" + " + v" * 150 + " > 0"))
    reg.add("calls", where(DEEP["calls"](25).replace("= 1", "> 0")))
    as_batches(files, [ROWS[20:]], first=1)
    reg.process_all_available()
    reg.stop()
    mirror: Any = panes.register("s", lateness=0)
    mirror.add("sum", SUM)
    first = mirror.push(ROWS[:20])["sum"]
    for name, text in reg.queries().items():
        if name != "sum":
            mirror.add(name, text)
    second = dict(mirror.push(ROWS[20:]))
    second["sum"] = pa.concat_tables([first, second["sum"]])
    for name in ("sum", "ORs", "IN", "signs", "calls"):
        assert_rows(answers_of(spark, tmp_path, name), second[name])


@pytest.mark.slow
def test_an_entry_that_cannot_be_read_is_set_aside_and_the_others_go_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As an earlier version left it: one text is too deep, one names a column that is not there."""
    files = as_batches(tmp_path / "in", [ROWS[:20]])
    place = placed(tmp_path)
    reg: Any = panes.register("s", read_stream(spark, files), lateness=0)
    reg.add("sum", SUM)
    reg.start(**place).process_all_available()
    reg.stop()
    stored = manifest_file.read(spark, place["checkpoint"])
    assert stored is not None
    poison = [
        QueryEntry("deep", where(DEEP["brackets"](900)), 90),
        QueryEntry("gone", where("nowhere = 1"), 91),
        QueryEntry("unread", "SELECT FROM", 92),
    ]
    poisoned = {**vars_of(stored), "queries": [*poison, *stored.queries], "last": 92}
    manifest_file.write(
        spark, place["checkpoint"], type(stored)(**{**poisoned, "version": stored.version + 1})
    )

    as_batches(files, [ROWS[20:]], first=1)
    again: Any = panes.register("s", read_stream(spark, files), lateness=0)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", FailedQueryWarning)
        again.start(**place).process_all_available()
    assert {w.category for w in warned} == {FailedQueryWarning}
    assert again.queries() == {"sum": SUM}
    assert set(again.failed) == {"deep", "gone", "unread"}
    assert "nested too deeply" in again.failed["deep"]
    assert "no column `nowhere`" in again.failed["gone"]
    again.stop()
    mirror: Any = panes.register("s", lateness=0)
    mirror.add("sum", SUM)
    assert_rows(answers_of(spark, tmp_path, "sum"), mirror.push(ROWS)["sum"])

    third: Any = panes.register("s", read_stream(spark, files), lateness=0)
    third.start(**place).process_all_available()
    assert set(third.failed) == {"deep", "gone", "unread"}
    third.stop()


def vars_of(manifest: Any) -> dict[str, Any]:
    return {name: getattr(manifest, name) for name in type(manifest).__slots__}


@pytest.mark.slow
def test_a_register_of_joins_goes_on_after_a_change_that_cannot_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    moody = Moody()
    for name in "lr":
        as_batches(tmp_path / name, [ROWS[:20]])
    streams = {name: read_stream(spark, tmp_path / name) for name in "lr"}
    reg: Any = panes.register(("l", "r"), streams, lateness=0, aggregates=[moody_aggregate(moody)])
    near = "SELECT l.v, r.v AS w FROM l JOIN r ON l.v = r.v AND r.at BETWEEN l.at AND l.at + 1"
    reg.add("near", near)
    reg.start(checkpoint=str(tmp_path / "state"), sink=str(tmp_path / "out"))
    reg.process_all_available()
    running = reg.query
    with pytest.raises(QueryError, match="nested too deeply"):
        reg.add("deep", f"{near} AND {DEEP['brackets'](90)}")
    moody.may_be_sent = False
    with pytest.raises(TypeError, match="pickle"):
        reg.add(
            "unsent",
            f"SELECT moody(l.v) AS a FROM {near.split('FROM')[1]} [TUMBLING 10 WATTR l.at]",
        )
    moody.may_be_sent = True
    assert reg.query is running
    assert running.isActive
    hostile = "x/../../../escaped"
    reg.add(hostile, f"{near} AND ({LONG['OR'](1_000).replace('v =', 'l.v =')})")
    for name in ("", "nul\x00", "long" * 100):
        with pytest.raises(QueryError, match="query's name"):
            reg.add(name, near)
    for name in "lr":
        as_batches(tmp_path / name, [ROWS[20:]], first=1)
    reg.process_all_available()
    reg.stop()
    assert not (tmp_path.parent / "escaped").exists()
    got = spark.read.parquet(str(tmp_path / "out")).groupBy("query").count().collect()
    assert {row["query"]: row["count"] for row in got}.keys() == {"near", hostile}
