"""A step that fails, wherever it fails, leaves no trace: it can be made again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import panes
from panes.errors import LimitError, PanesError, UserFunctionError
from panes.planning.terms import StreamOptions
from panes.process.all_or_nothing import all_or_nothing
from panes.process.running_query import OpenJoin, OpenQuery
from panes.reference.compare import same
from panes.stores.durations import ArrivalSkew
from tests.process.bombs import Bomb, calls
from tests.spark.streaming import some_rows
from tests.support import ORDERED, PARTITIONED, PER_ROW, STORES, WINDOWS, open_join, open_query

TRIES = 7

SLIDING = "SELECT k, sum(i) AS a, median(x) AS m FROM s [RANGE 20 SLIDE 5 WATTR at] GROUP BY k"
OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "revise": (SLIDING, {"late": "revise"}),
    "early": (f"{SLIDING} EMIT EARLY", {}),
    "slow": (SLIDING, {"flush": panes.SlowFlush(at_most=5)}),
    "lazy": (SLIDING, {"flush": panes.LazyFlush(within=60)}),
    "distinct": (SLIDING.replace("FROM s", "FROM (SELECT DISTINCT at, k, i, x FROM s) AS s"), {}),
    "having": (f"{SLIDING} HAVING sum(i) > 0", {"why": True}),
    "sketch": (SLIDING.replace("median(x)", "approx_count_distinct(s)"), {}),
    **{store: (SLIDING, {"store": store}) for store in STORES},
}


def text_of(window: str) -> str:
    """A query over windows of any kind."""
    keys = window.split(" PA ")[1] if " PA " in window else "k, b"
    if window in PER_ROW:
        return f"SELECT sum(i) AS a, last(s) AS l FROM s [{window}]"
    return f"SELECT {keys}, sum(i) AS a, last(s) AS l FROM s [{window}] GROUP BY {keys}"


KINDS = (*WINDOWS, *PARTITIONED, *PER_ROW, *ORDERED)
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **OPTIONS,
    **{window: (text_of(window), {}) for window in KINDS},
}


Step = Callable[[OpenQuery], pa.Table]


def steps() -> list[Step]:
    table = some_rows()
    order = np.argsort(table.column("at").to_numpy() + np.arange(len(table)) % 23, kind="stable")
    table = table.take(order)
    parts = [table.slice(at, 50) for at in range(0, len(table), 50)]
    return [*(partial(OpenQuery.push, s=part) for part in parts), OpenQuery.finish]


def seen(query: OpenQuery) -> list[object]:
    """All that shows of a query beside its answers."""
    return [
        dict(query.state),
        query.late.to_pylist(),
        query.rejected.to_pylist(),
        query.progress,
        dict(query.punctuations),
    ]


@pytest.mark.parametrize("name", CASES)
def test_a_step_that_fails_anywhere_leaves_no_trace(name: str) -> None:
    text, options = CASES[name]
    warm, calm, shaken = (OpenQuery(text, StreamOptions(lateness=8, **options)) for _ in range(3))
    for step in steps():  # fills caches, so that the others make the same calls
        step(warm)
    exploded = 0
    for step in steps():
        with calls() as counted:
            want = step(calm)
        for explode_at in np.unique(np.linspace(1, counted[0], TRIES, dtype=int)).tolist():
            before = seen(shaken)
            with calls(explode_at), pytest.raises(Bomb):
                step(shaken)
            exploded += 1
            assert same(seen(shaken), before)
        got = step(shaken)
        assert got.schema == want.schema
        assert same(got.to_pylist(), want.to_pylist())
        assert same(seen(shaken), seen(calm))
    assert exploded > 5 * TRIES


JOINS = {
    "band": "SELECT l.i, r.i AS j FROM l FULL JOIN r "
    "ON l.k = r.k AND r.at BETWEEN l.at AND l.at + 9",
    "windows": "SELECT l.i, r.i AS j FROM l FULL JOIN r ON l.k = r.k [RANGE 20 SLIDE 10 WATTR at]",
    "as of": "SELECT l.i, r.i AS j FROM l ASOF LEFT JOIN r [RANGE 20 WATTR at] ON l.k = r.k",
    "above": "SELECT count(*) AS n, max(r.i) AS m [TUMBLING 10 WATTR max(l.at, r.at)] "
    "FROM l LEFT JOIN r ON l.k = r.k AND r.at BETWEEN l.at - 5 AND l.at + 5",
    "positions": "SELECT l.at, r.at, count(*) AS n FROM l JOIN r "
    "ON l.b = r.b AND r.at BETWEEN l.at - 2 AND l.at + 2 GROUP BY l.at, r.at",
    "fold": "SELECT l.at, l.i, count(r.i) AS n FROM l LEFT JOIN r "
    "ON l.k = r.k AND r.at BETWEEN l.at - 5 AND l.at GROUP BY l.at, l.i",
    "three": "SELECT l.i, r.i AS j, m.i AS h FROM l JOIN r ON l.k = r.k AND r.at BETWEEN l.at - 2 "
    "AND l.at + 2 LEFT JOIN l AS m ON m.k = l.k AND m.at BETWEEN l.at AND l.at + 1",
}


def join_steps() -> list[Callable[[OpenJoin], pa.Table]]:
    table = some_rows().slice(0, 240)
    order = np.argsort(table.column("at").to_numpy() + np.arange(len(table)) % 23, kind="stable")
    table = table.take(order)
    parts = [table.slice(at, 40) for at in range(0, len(table), 40)]
    sides = [(a.slice(0, 25), a.slice(20)) for a in parts]
    return [*(partial(OpenJoin.push, l=a, r=b) for a, b in sides), OpenJoin.finish]


def seen_of_join(query: OpenJoin) -> list[object]:
    """All that shows of a query over a join beside its answers."""
    return [
        dict(query.state),
        query.late.to_pylist(),
        query.rejected.to_pylist(),
        dict(query.progress),
    ]


@pytest.mark.parametrize("name", JOINS)
def test_a_step_of_a_join_that_fails_anywhere_leaves_no_trace(name: str) -> None:
    warm, calm, shaken = (OpenJoin(JOINS[name], StreamOptions(lateness=8)) for _ in range(3))
    for step in join_steps():
        step(warm)
    exploded = 0
    for step in join_steps():
        with calls() as counted:
            want = step(calm)
        for explode_at in np.unique(np.linspace(1, counted[0], TRIES, dtype=int)).tolist():
            before = seen_of_join(shaken)
            with calls(explode_at), pytest.raises(Bomb):
                step(shaken)
            exploded += 1
            assert same(seen_of_join(shaken), before)
        got = step(shaken)
        assert got.schema == want.schema
        assert same(got.to_pylist(), want.to_pylist())
        assert same(seen_of_join(shaken), seen_of_join(calm))
    assert exploded > 4 * TRIES


def test_a_join_that_would_give_too_much_is_as_it_was() -> None:
    text = "SELECT l.at FROM l JOIN r ON r.at BETWEEN l.at AND l.at"
    query = open_join(text, max_answers=100)
    many, one = pa.table({"at": [5] * 40}), pa.table({"at": [5]})
    query.push(l=many, r=many.slice(0, 0))
    for _ in range(2):
        with pytest.raises(LimitError, match="1,600 answers"):
            query.push(r=many)
    assert query.state["right_rows"] == 0
    assert len(query.push(r=one)) == 40


def test_answers_are_counted_over_all_blocks_of_a_step() -> None:
    # Positions far apart lie in different blocks, each with few pairs.
    text = "SELECT l.at FROM l JOIN r ON r.at BETWEEN l.at AND l.at + 1"
    query = open_join(text, max_answers=9)
    far = pa.table({"at": [n * 1_000 for n in range(10)]})
    query.push(l=far, r=far.slice(0, 0))
    with pytest.raises(LimitError, match="10 answers"):
        query.push(r=far)


def rows(*at: int, s: list[str]) -> pa.Table:
    return pa.table({"at": pa.array(at, pa.int64()), "s": s})


NEWEST = "SELECT count(*) AS n, to_timestamp(max(s)) AS newest FROM s [TUMBLING 10 WATTR at]"
CANNOT = "cannot evaluate"


def test_answers_that_cannot_be_computed_leave_the_query_as_it_was() -> None:
    """A bad value comes, and then the batch again without it: nothing is lost or counted twice."""
    query = open_query(NEWEST, lateness=0)
    query.push(s=rows(1, 2, s=["2026-01-03", "2026-01-04"]))
    for _ in range(2):
        with pytest.raises(PanesError, match=CANNOT):
            query.push(s=rows(3, 15, s=["x", "2026-01-01"]))
    answers = query.push(s=rows(3, 15, s=["2026-01-05", "2026-01-01"])).to_pylist()
    assert [(a["n"], a["newest"].day) for a in answers] == [(3, 5)]
    with pytest.raises(PanesError, match=CANNOT):
        query.push(s=rows(16, 25, s=["x", "2026-01-01"]))
    assert [(a["n"], a["newest"].day) for a in query.finish().to_pylist()] == [(1, 1)]


def test_finish_and_punctuate_can_be_asked_again() -> None:
    query = open_query(NEWEST)
    query.push(s=rows(1, s=["x"]))
    for _ in range(2):
        with pytest.raises(PanesError, match=CANNOT):
            query.finish()
    query.push(s=rows(2, s=["y"]))
    with pytest.raises(PanesError, match=CANNOT):
        query.punctuate(s=50)
    assert query.progress == open_query(NEWEST).progress
    assert query.state["partials"] == 1


def test_a_users_aggregate_may_fail() -> None:
    """In each of its functions."""
    failing = ""

    def maybe(what: str, value: Any) -> Any:
        if failing == what:
            raise RuntimeError(what)
        return value

    shaky = panes.CustomAggregate(
        name="shaky",
        lift=lambda x: maybe("lift", x.to_numpy()[None, :]),
        combine=lambda a, b: maybe("combine", np.add(a, b)),
        lower=lambda p: maybe("lower", p[0]),
        empty=(0.0,),
        type=pa.float64(),
    )
    text = "SELECT k, shaky(x) AS n FROM s [RANGE 20 SLIDE 10 WATTR at] GROUP BY k"
    calm, shaken = (open_query(text, lateness=0, aggregates=[shaky]) for _ in range(2))
    failed: list[str] = []
    for step in steps():
        failing = ""
        want = step(calm)
        for failing in ("lift", "combine", "lower"):  # noqa: B007 - `maybe` reads it
            before = seen(shaken)
            try:
                answers = step(shaken)
            except UserFunctionError as error:
                failed.append(str(error.__cause__))
                assert same(seen(shaken), before)
                continue
            break  # not every step calls each of them
        else:
            failing = ""
            answers = step(shaken)
        assert same(answers.to_pylist(), want.to_pylist())
    assert set(failed) == {"lift", "combine", "lower"}


def test_containers_and_slots_are_put_back() -> None:
    skew = ArrivalSkew()
    skew.hear("a", 1, rows=1)

    def step() -> None:
        skew.hear("a", 5, rows=2)
        skew.hear("b", 5, rows=2)
        skew.rows = {}
        raise Bomb

    with pytest.raises(Bomb), all_or_nothing(skew):
        step()
    assert (skew.newest, skew.rows) == ({"a": 1}, {"a": 1})


def test_tables_of_panes_that_a_step_had_filled_are_not_used_once_it_is_undone() -> None:
    """A sink fails when all is computed; what the step had combined stays in no later answer."""
    text = "SELECT k, sum(x) AS n FROM s [RANGE 12 SLIDE 4 WATTR at] GROUP BY k"
    is_full, taken = [False], []

    def sink(_: str, answers: pa.Table) -> None:
        if is_full[0]:
            raise RuntimeError("full")
        taken.append(answers)

    reg = panes.register("s", lateness=0, hand_over=sink)
    reg.add("sums", text)
    batches = [
        pa.table({"at": [n, n + 1, n + 2, n + 3], "k": [0, 1, 0, 1], "x": [1, 2, 3, 4]})
        for n in range(0, 32, 4)
    ]
    for number, batch in enumerate(batches):
        if number > 3:
            is_full[0] = True
            with pytest.raises(RuntimeError, match="full"):
                reg.push(batch)
            is_full[0] = False
        reg.push(batch)
    reg.finish()
    wanted = panes.oracle(text, s=pa.concat_tables(batches))
    assert sorted(map(repr, pa.concat_tables(taken).to_pylist())) == sorted(
        map(repr, wanted.to_pylist())
    )
