"""A step that fails, wherever it fails, leaves no trace: it can be made again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import panes
from panes.engine.all_or_nothing import all_or_nothing
from panes.engine.open_query import OpenQuery
from panes.errors import PanesError, UserFunctionError
from panes.planning.terms import Run
from panes.reference.compare import same
from panes.stores.durations import ArrivalSkew
from tests.engine.bombs import Bomb, calls
from tests.spark.streaming import some_rows
from tests.support import ORDERED, PARTITIONED, PER_ROW, STORES, WINDOWS

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
    warm, calm, shaken = (OpenQuery(text, Run(lateness=8, **options)) for _ in range(3))
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


def rows(*at: int, s: list[str]) -> pa.Table:
    return pa.table({"at": pa.array(at, pa.int64()), "s": s})


NEWEST = "SELECT count(*) AS n, to_timestamp(max(s)) AS newest FROM s [TUMBLING 10 WATTR at]"
CANNOT = "cannot evaluate"


def test_answers_that_cannot_be_computed_leave_the_query_as_it_was() -> None:
    """A bad value comes, and then the batch again without it: nothing is lost or counted twice."""
    query = panes.open(NEWEST, lateness=0)
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
    query = panes.open(NEWEST)
    query.push(s=rows(1, s=["x"]))
    for _ in range(2):
        with pytest.raises(PanesError, match=CANNOT):
            query.finish()
    query.push(s=rows(2, s=["y"]))
    with pytest.raises(PanesError, match=CANNOT):
        query.punctuate(s=50)
    assert query.progress == panes.open(NEWEST).progress
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
    calm, shaken = (panes.open(text, lateness=0, aggregates=[shaky]) for _ in range(2))
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
