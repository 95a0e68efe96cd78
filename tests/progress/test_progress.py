"""Promises: who makes them, which are passed on, and what answers say of them.

Catches: a bound that promises too much (rows would be late that are not) or too little (windows
would wait), punctuation passed on twice or held back past the end of a window, and a reason that
names the wrong source.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panes
from panes.errors import OptionError
from panes.planning.terms import StreamOptions
from panes.process.running_query import OpenQuery
from panes.progress.bounds import WithinLateness, WithinRows
from panes.progress.describe import Describe
from panes.progress.promise import Promise
from panes.windows.cut import Edges
from tests.strategies import streams
from tests.support import assert_same, open_query, sorted_answers

TEXT = "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]"


def at(*ticks: int) -> pa.Table:
    return pa.table({"at": pa.array(ticks, pa.int64())})


def test_at_most_two_rows_late_promises_all_but_the_last_two() -> None:
    """Rows 5 9 7 8 12: the greatest of 5 9 7 is 9, and 8 12 may still be overtaken."""
    bound = WithinRows(2)
    assert bound.after(np.array([5, 9, 7, 8, 12])) == 9


@given(st.permutations(range(12)), st.integers(0, 12), st.integers(1, 12))
def test_a_row_that_is_at_most_n_rows_late_never_breaks_the_promise(
    order: list[int], late: int, step: int
) -> None:
    """Rows are swapped so that none comes more than `late` rows after its turn."""
    rows = sorted(range(12), key=lambda i: i + min(order[i], late))
    bound, promised = WithinRows(late), -1
    for begin in range(0, 12, step):
        batch = rows[begin : begin + step]
        assert min(batch) >= promised
        promise = bound.after(np.array(batch))
        promised = promised if promise is None else promise


@given(st.lists(st.integers(-50, 50), min_size=1), st.integers(0, 20))
def test_lateness_is_counted_from_the_greatest_position(ticks: list[int], lateness: int) -> None:
    assert WithinLateness(lateness).after(np.array(ticks)) == max(ticks) - lateness


def test_a_promise_never_shrinks_and_says_what_made_it() -> None:
    promise = Promise(WithinLateness(5))
    promise.observe(np.array([20]))
    promise.punctuate(12)
    assert (promise.at, promise.why) == (15, "lateness")
    promise.punctuate(18)
    assert (promise.at, promise.why) == (18, "punctuation")
    promise.observe(np.array([21]))
    assert promise.at == 18


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(-20, 20)), min_size=1, max_size=3),
    st.lists(st.integers(0, 15), max_size=20),
)
def test_the_filter_passes_every_end_of_a_window_once_and_nothing_else(
    families: list[tuple[int, int]], steps: list[int]
) -> None:
    ends = [Edges(slide, phase % slide) for slide, phase in families]
    edges = [t for t in range(400) if any((t - e.phase) % e.slide == 0 for e in ends)]
    passes, progress, told = Describe(ends), 0, 0
    passes.up_to(progress)
    for step in steps:
        progress += step
        reached = max(t for t in edges if t <= progress) if edges[0] <= progress else None
        edge = passes.up_to(progress)
        assert edge in (None, reached)
        if edge is not None:
            assert edge > told or told == 0
            told = edge
    if steps and told:
        assert told == max(t for t in edges if t <= progress)


def test_fine_punctuation_reaches_the_store_once_per_window() -> None:
    query = open_query(TEXT)
    query.push(s=at(1, 15))
    for tick in range(1, 31):
        query.punctuate(s=tick)
    assert query.punctuations == {"received": 30, "passed": 4}


def test_answers_say_what_closed_their_window() -> None:
    query = open_query(TEXT, lateness=5, why=True)
    assert query.push(s=at(1, 16))["closed_by"].to_pylist() == ["lateness of s"]
    assert query.punctuate(s=20)["closed_by"].to_pylist() == ["punctuation of s"]
    query.push(s=at(22))
    assert query.finish()["closed_by"].to_pylist() == ["the end of the stream"]


def test_in_a_union_the_slower_stream_is_named() -> None:
    query = open_query(
        "SELECT count(*) AS n FROM (u UNION ALL v) [TUMBLING 10 WATTR at]", lateness=0, why=True
    )
    query.push(u=at(1, 30))
    assert query.push(v=at(12))["closed_by"].to_pylist() == ["lateness of v"]


def test_a_key_that_closed_its_own_windows_says_so() -> None:
    text = "SELECT k, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY k"
    query = open_query(text, why=True)
    query.push(s=pa.table({"at": [1, 2], "k": ["a", "b"]}))
    answers = query.punctuate(s=10, key={"k": "a"})
    assert answers["k"].to_pylist() == ["a"]
    assert answers["closed_by"].to_pylist() == ["a promise for the key"]


def test_a_column_of_that_name_is_not_overwritten() -> None:
    query = open_query("SELECT count(*) AS closed_by FROM s [TUMBLING 10 WATTR at]", why=True)
    with pytest.raises(panes.QueryError, match="`closed_by` of their own"):
        query.push(s=at(1))


class Clock:
    """A clock that the test sets, in seconds."""

    def __init__(self) -> None:
        self.seconds = 0

    def __call__(self) -> int:
        return self.seconds * 1_000_000


def test_a_heartbeat_closes_windows_during_a_lull() -> None:
    """Rows until 12 s; slack 5 s. At 16 s nothing closes, at 26 s progress is 21 s."""
    clock = Clock()
    text = "SELECT count(*) AS n FROM s [TUMBLING 10 seconds WATTR at]"
    query = OpenQuery(text, StreamOptions(heartbeat="5 seconds", why=True), now=clock)
    clock.seconds = 13
    stamps = pa.array([s * 1_000_000 for s in (3, 9, 12)], pa.timestamp("us", "UTC"))
    assert not len(query.push(s=pa.table({"at": stamps})))
    clock.seconds = 14
    assert not len(query.beat())
    clock.seconds = 26
    answers = query.beat()
    assert answers["n"].to_pylist() == [2, 1]
    assert set(answers["closed_by"].to_pylist()) == {"heartbeat of s"}


def test_a_heartbeat_is_asked_for_first() -> None:
    with pytest.raises(OptionError, match="no heartbeat"):
        open_query(TEXT).beat()


def test_rows_late_and_lateness_are_one_or_the_other() -> None:
    with pytest.raises(OptionError, match="both say how late a row may be"):
        open_query(TEXT, lateness=3, rows_late=3)


@given(table=streams, late=st.integers(0, 8), step=st.integers(1, 9))
def test_rows_within_their_bound_give_the_oracles_answers(
    table: pa.Table, late: int, step: int
) -> None:
    """An ordered stream of which every row is put up to `late` rows later."""
    ordered = table.sort_by("at")
    order = sorted(range(len(table)), key=lambda i: i + (i * 7) % (late + 1))
    disordered = ordered.take(pa.array(order, pa.int64()))
    text = "SELECT k, count(*) AS n, sum(i) AS s FROM t [RANGE 12 SLIDE 5 WATTR at] GROUP BY k"
    query = open_query(text, rows_late=late)
    found = [query.push(t=disordered.slice(b, step)) for b in range(0, len(table), step)]
    found.append(query.push(t=table.slice(0, 0)))
    found.append(query.finish())
    assert not len(query.late)
    assert_same(sorted_answers(pa.concat_tables(found), 1), panes.oracle(text, t=table))


def test_a_promise_made_before_the_first_batch_makes_no_counted_row_late() -> None:
    """Where rows are counted, a row's number is never behind, in the first batch as in others."""
    query = open_query("SELECT count(*) AS n FROM s [RANGE 2 ROWS SLIDE 2 ROWS]", late="drop")
    query.punctuate(s=10)
    assert query.push(s=pa.table({"x": [1, 2, 3, 4]}))["n"].to_pylist() == [2, 2]
    assert not len(query.late)


@pytest.mark.parametrize("promise", [np.int64(20), 20])
def test_a_promise_may_be_any_whole_number(promise: int) -> None:
    query = open_query(TEXT)
    query.push(s=at(1))
    assert len(query.punctuate(s=promise)) == 1


@pytest.mark.parametrize("promise", [20.5, None, "2026-01-01", 2**70, {"item": 7}])
def test_a_promise_that_is_none_is_refused_and_changes_nothing(promise: object) -> None:
    query = open_query(TEXT)
    query.push(s=at(1))
    with pytest.raises(panes.PanesError):
        query.punctuate(s=promise)  # type: ignore[arg-type]
    assert not len(query.punctuate(s=5))


def test_an_unrelated_keys_promise_is_not_named_as_the_reason() -> None:
    text = "SELECT k, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY k"
    query = open_query(text, lateness=0, why=True)
    query.push(s=pa.table({"at": [1], "k": [1]}))
    query.punctuate(s=100, key={"k": 7})
    answers = query.push(s=pa.table({"at": [15], "k": [1]}))
    assert answers["closed_by"].to_pylist() == ["lateness of s"]
