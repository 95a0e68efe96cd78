"""Queries over joins of streaming DataFrames, registered together: as in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import panes
from panes.errors import FailedQueryWarning, OptionError, QueryError, UnknownStreamError
from tests.join_queries import NEAR_AT, REGISTERED, L, R, batches
from tests.spark.streaming import as_batches, found, metrics, read_stream
from tests.support import assert_rows

LATENESS = 6


def streams(spark: SparkSession, place: Path) -> dict[str, Any]:
    return {name: read_stream(spark, place / name) for name in "lr"}


@pytest.mark.slow
def test_registered_joins_answer_as_in_one_process_and_queries_come_and_go(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two batches with some queries, then a restart, in which one has gone and one has come."""
    halves = {name: batches(table, 2) for name, table in {"l": L, "r": R}.items()}
    for name in "lr":
        as_batches(tmp_path / name, halves[name][:1])
    here = panes.register(("l", "r"), lateness=LATENESS)
    there = panes.register(("l", "r"), streams(spark, tmp_path), lateness=LATENESS)
    first = {name: REGISTERED[name] for name in ("pairs", "sums", "boxes")}
    for name, text in first.items():
        here.add(name, text)
        assert there.add(name, text).exact_from is None
    assert "queries    pairs, sums, boxes" in there.explain()
    place: dict[str, Any] = {
        "checkpoint": str(tmp_path / "checkpoint"),
        "sink": str(tmp_path / "out"),
    }
    given = [here.push(l=halves["l"][0], r=halves["r"][0])]
    there.start(**place, bounded=False)
    there.process_all_available()
    there.remove("boxes")
    there.add("lone", REGISTERED["lone"])
    here.remove("boxes")
    here.add("lone", REGISTERED["lone"])
    assert list(there.queries()) == ["pairs", "sums", "lone"]
    for name in "lr":
        as_batches(tmp_path / name, halves[name][1:], first=1)
    there.process_all_available()
    assert there.query is not None
    stored = metrics(there.query, "panes_join")[-1]["partials"]
    there.stop()
    given.append(here.push(l=halves["l"][1], r=halves["r"][1]))
    assert stored == here.state["rows"]
    for name in REGISTERED.keys() & {n for answers in given for n in answers}:
        for batch, answers in enumerate(given):
            if len(answers.get(name, ())):
                got = found(spark, tmp_path / "out" / f"query={name}" / f"batch={batch}")
                assert_rows(got, answers[name])


@pytest.mark.slow
def test_registered_joins_end_with_bounded_streams(spark: SparkSession, tmp_path: Path) -> None:
    for name, table in {"l": L, "r": R}.items():
        as_batches(tmp_path / name, [table])
    reg = panes.register(("l", "r"), streams(spark, tmp_path))
    for name in ("later", "lone"):
        reg.add(name, REGISTERED[name])
    given: dict[str, list[Any]] = {}
    reg.start(
        checkpoint=str(tmp_path / "checkpoint"),
        sink=lambda name, frame, _: given.setdefault(name, []).extend(frame.toArrow().to_pylist()),
        bounded=True,
    )
    assert reg.await_end()
    for name in ("later", "lone"):
        want = panes.oracle(REGISTERED[name], l=L, r=R)
        key = sorted(map(repr, want.to_pylist()))
        assert sorted(map(repr, given[name])) == key, name


@pytest.mark.slow
def test_a_query_that_fails_is_set_aside_and_the_others_go_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name, table in {"l": L, "r": R}.items():
        as_batches(tmp_path / name, [table])
    reg = panes.register(("l", "r"), streams(spark, tmp_path))
    reg.add("bad", f"SELECT 1 / (l.k - r.k) AS q {NEAR_AT}")
    reg.add("pairs", REGISTERED["pairs"])
    with pytest.raises(QueryError, match="no query `pairs` was set aside"):
        reg.put_back("pairs")
    reg.start(checkpoint=str(tmp_path / "checkpoint"), sink=str(tmp_path / "out"), bounded=True)
    with pytest.warns(FailedQueryWarning, match="query `bad` failed and is set aside"):
        assert reg.await_end()
    assert list(reg.failed) == ["bad"]
    assert "zero" in reg.failed["bad"]
    assert list(reg.queries()) == ["pairs"]
    got = found(spark, tmp_path / "out" / "query=pairs").drop_columns(["batch"])
    assert_rows(got, panes.oracle(REGISTERED["pairs"], l=L, r=R))
    assert not (tmp_path / "out" / "query=bad").exists()
    reg.put_back("bad")
    assert list(reg.queries()) == ["pairs", "bad"]
    assert reg.failed == {}


def test_what_registered_joins_cannot_do_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    for name, table in {"l": L, "r": R}.items():
        as_batches(tmp_path / name, [table])
    frames = streams(spark, tmp_path)
    with pytest.raises(QueryError, match="a mapping from their names"):
        panes.register(("l", "r"), frames["l"])
    with pytest.raises(QueryError, match="`r` is a Table"):
        panes.register(("l", "r"), {"l": frames["l"], "r": R})
    with pytest.raises(QueryError, match="`l` is bounded"):
        panes.register(
            ("l", "r"), {name: spark.read.parquet(str(tmp_path / name)) for name in "lr"}
        )
    with pytest.raises(OptionError, match="answers every window once"):
        panes.register(("l", "r"), frames, late="revise")
    reg = panes.register(("l", "r"), frames, lateness=1)
    with pytest.raises(UnknownStreamError, match="`q`"):
        reg.add("a", "SELECT l.id FROM l [RANGE 1 WATTR at], q [RANGE 1 WATTR at] WHERE l.k = q.k")
    with pytest.raises(QueryError, match="EMIT EARLY"):
        reg.add("a", f"SELECT count(*) AS n [TUMBLING 5 WATTR l.at] {NEAR_AT} EMIT EARLY")
    with pytest.raises(QueryError, match="no query yet"):
        reg.start(checkpoint=str(tmp_path / "checkpoint"), sink=str(tmp_path / "out"))
    reg.add("a", REGISTERED["pairs"])
    with pytest.raises(QueryError, match="a query `a` is already"):
        reg.add("a", REGISTERED["pairs"])
    with pytest.raises(QueryError, match="no query `b`"):
        reg.remove("b")
