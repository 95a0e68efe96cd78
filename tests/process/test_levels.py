"""Queries inside each other, level by level: each costs what the one before it costs, and no more.

Catches: a level that reads the text of those inside it again and again, that runs twice in a step,
or that keeps rows, or partials of windows that are closed. Work is counted in calls of functions,
which are the same on every machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pyarrow as pa
import pytest

import panes
from panes.language.query_graph import read_graph
from tests.support import open_graph

KEYS, PANES = 4, 2


def windows(levels: int) -> str:
    """Windows over windows; those of a level hold two answers of every key."""
    text = "SELECT k, sum(x) AS x FROM s [RANGE 20 SLIDE 10 WATTR at] GROUP BY k"
    for _ in range(levels - 1):
        text = f"SELECT k, sum(x) AS x FROM ({text}) [RANGE 20 SLIDE 10] GROUP BY k"
    return text


def joins(levels: int) -> str:
    """Joins of joins of windows: what a level gives is joined with minutes of the stream again."""
    minutes = "SELECT k, sum(x) AS x FROM s [TUMBLING 10 WATTR at] GROUP BY k"
    text = minutes
    for _ in range(levels - 1):
        text = (
            f"SELECT a.k AS k, a.x AS x, a.window_end AS window_end FROM ({text}) a "
            f"JOIN ({minutes}) b ON a.k = b.k AND a.window_end = b.window_end"
        )
    return text


def hundred(number: int) -> pa.Table:
    at = range(number * 100, number * 100 + 100)
    return pa.table({"at": list(at), "k": [1, 2, 3, 4] * 25, "x": [1] * 100})


def calls(work: Callable[[], object]) -> int:
    """How many functions are called."""
    counted = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal counted
        counted += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counted


def reading(text: str) -> int:
    return calls(lambda: read_graph(text))


def running(text: str) -> int:
    query = open_graph(text, lateness=0)
    query.push(s=hundred(0))
    query.push(s=hundred(1))
    return calls(lambda: [query.push(s=hundred(n)) for n in range(2, 7)])


@pytest.mark.parametrize("text", [windows, joins])
@pytest.mark.parametrize("work", [reading, running])
def test_ten_levels_cost_what_ten_single_ones_do(
    text: Callable[[int], str], work: Callable[[str], int]
) -> None:
    two, four, ten = (work(text(levels)) for levels in (2, 4, 10))
    one = (four - two) / 2
    assert ten - four <= 6 * one * 1.1


def test_each_level_keeps_panes_and_keys_and_no_row() -> None:
    """The newest pane is open; the one before it is in a window that is."""
    for levels in (2, 5, 10):
        query = open_graph(windows(levels), lateness=0)
        for number in range(10):
            query.push(s=hundred(number))
            kept = query.state
            assert kept["partials"] <= levels * KEYS * PANES
            assert (kept["rows"], kept["waiting_rows"], kept["waiting_answers"]) == (0, 0, 0)


def test_a_join_of_answers_keeps_those_that_may_find_a_partner() -> None:
    query = open_graph(joins(4), lateness=0)
    for number in range(10):
        query.push(s=hundred(number))
        assert query.state["rows"] <= 3 * 2 * KEYS
    wanted = panes.sql(joins(1), s=hundred(0))["x"].to_pylist()
    assert sorted(panes.sql(joins(4), s=hundred(0))["x"].to_pylist()) == sorted(wanted)
