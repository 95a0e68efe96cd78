"""Answers that are not the last word: early ones, revised ones, and those that wait in line.

The law for both: a reader who keeps the newest answer of each window and key ends with the
oracle's answers.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.errors import OptionError, QueryError
from panes.stores.by_name import StoreName
from tests.matrix.arrivals import LATENESS, usual
from tests.strategies import cuts_of, streams
from tests.support import (
    STORES,
    assert_rows,
    assert_same,
    newest_of_each,
    select,
    sorted_answers,
)

WINDOWS = ("RANGE 20 SLIDE 10 WATTR at", "RANGE 7 SLIDE 4 WATTR at", "TUMBLING 5 WATTR at")
SOME = ("count(*)", "sum(i)", "max(x)", "first(x)", "median(i)", "mode(s)", "avg(d)")


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("window", WINDOWS)
@settings(max_examples=8)
@given(table=streams, lateness=st.integers(0, 10), data=st.data())
def test_a_reader_of_revisions_ends_with_the_oracles_answers(
    window: str, store: StoreName, table: pa.Table, lateness: int, data: st.DataObject
) -> None:
    text = f"SELECT k, {select(SOME)} FROM t [{window}] GROUP BY k"
    query = panes.open(text, lateness=lateness, late="revise", store=store)
    found = [query.push(t=table.slice(b, e - b)) for b, e in cuts_of(data, table)]
    found.append(query.finish())
    assert_same(newest_of_each(pa.concat_tables(found), 1), panes.oracle(text, t=table))


@pytest.mark.parametrize("every", ["", " EVERY 7"])
@pytest.mark.parametrize("store", STORES)
@settings(max_examples=8)
@given(table=streams, data=st.data())
def test_a_reader_of_early_answers_ends_with_the_oracles_answers(
    store: StoreName, every: str, table: pa.Table, data: st.DataObject
) -> None:
    plain = f"SELECT k, {select(SOME)} FROM t [RANGE 20 SLIDE 10 WATTR at] GROUP BY k"
    query = panes.open(f"{plain} EMIT EARLY{every}", lateness=200, late="revise", store=store)
    found = []
    for begin, end in cuts_of(data, table):
        found.append(query.push(t=table.slice(begin, end - begin)))
        found.append(query.early())
    so_far = newest_of_each(pa.concat_tables(found), 1)
    assert_same(so_far, panes.oracle(plain, t=table))
    found.append(query.finish())
    last = pa.concat_tables(found)
    assert_same(newest_of_each(last, 1), panes.oracle(plain, t=table))


def at(*ticks: int) -> pa.Table:
    return pa.table({"at": pa.array(ticks, pa.int64())})


def told(answers: pa.Table) -> list[tuple[int, int, str]]:
    columns = ("window_end", "n", "status")
    return list(zip(*(answers[c].to_pylist() for c in columns), strict=True))


TEXT = "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]"


def test_a_late_row_revises_the_windows_that_hold_it() -> None:
    """8 comes after 10 was promised: the window [0, 10) had one row and has two."""
    query = panes.open(TEXT, lateness=2, late="revise")
    assert told(query.push(s=at(5, 13))) == [(10, 1, "final")]
    assert told(query.push(s=at(8))) == [(10, 2, "revised")]
    assert query.late["reason"].to_pylist() == [
        "behind progress 11; counted in its windows, closed ones are revised"
    ]
    assert told(query.finish()) == [(20, 1, "final")]


def test_revise_within_bounds_what_is_kept() -> None:
    query = panes.open(TEXT, lateness=0, late="revise", revise_within=20)
    for tick in range(0, 200, 5):
        query.push(s=at(tick))
    assert query.state["partials"] <= 4
    assert not len(query.push(s=at(3)))
    assert query.late["reason"].to_pylist() == [
        "behind progress 195; too late to revise its windows"
    ]
    assert told(query.push(s=at(181))) == [(190, 3, "revised")]


def test_early_answers_come_every_so_often_and_are_marked() -> None:
    query = panes.open(f"{TEXT} EMIT EARLY EVERY 4", lateness=5)
    assert told(query.push(s=at(1))) == [(10, 1, "early")]
    assert told(query.push(s=at(2, 3))) == []
    assert told(query.push(s=at(5))) == [(10, 4, "early")]
    assert told(query.push(s=at(15))) == [(10, 4, "final"), (20, 1, "early")]
    assert told(query.early()) == [(20, 1, "early")]
    assert told(query.finish()) == [(20, 1, "final")]


def test_early_answers_are_asked_for_in_the_query() -> None:
    query = panes.open(TEXT)
    query.push(s=at(1))
    with pytest.raises(QueryError, match="EMIT EARLY"):
        query.early()


@pytest.mark.parametrize(
    "text",
    [
        f"{TEXT} HAVING n > 1 EMIT EARLY",
        "SELECT count(*) AS n FROM s [ROWS 3] EMIT EARLY",
        "SELECT count(*) AS n FROM s [RANGE ALL SLIDE 5 WATTR at] EMIT EARLY",
    ],
)
def test_what_no_later_answer_could_replace_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match="EMIT EARLY"):
        panes.open(text)


KEYED = "SELECT k, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY k"


def keyed(tick: int, *keys: int) -> pa.Table:
    return pa.table({"at": pa.array([tick] * len(keys), pa.int64()), "k": list(keys)})


def test_slow_flush_gives_so_many_answers_with_each_batch() -> None:
    query = panes.open(KEYED, lateness=0, flush=panes.SlowFlush(at_most=3))
    assert len(query.push(s=keyed(1, *range(8)))) == 0
    sizes = [len(query.push(s=keyed(11, 0))) for _ in range(4)]
    assert sizes == [3, 3, 2, 0]
    assert len(query.finish()) == 1


def test_slow_flush_waits_no_longer_than_allowed() -> None:
    query = panes.open(KEYED, lateness=0, flush=panes.SlowFlush(at_most=1, within=10))
    query.push(s=keyed(1, *range(8)))
    assert len(query.push(s=keyed(11, 0))) == 1
    assert query.state["waiting_answers"] == 7
    assert len(query.push(s=keyed(21, 0))) == 7


def test_lazy_flush_gives_answers_of_keys_that_come_up() -> None:
    query = panes.open(KEYED, lateness=0, flush=panes.LazyFlush(within=15))
    query.push(s=keyed(1, *range(8)))
    assert query.push(s=keyed(11, 2, 5))["k"].to_pylist() == [2, 5]
    assert query.push(s=keyed(12, 7, 2))["k"].to_pylist() == [7]
    assert sorted(query.push(s=keyed(26, 9))["k"].to_pylist()) == [0, 1, 3, 4, 6]


@settings(max_examples=25)
@given(table=streams, at_most=st.integers(1, 5), lazy=st.booleans(), data=st.data())
def test_smoothing_changes_when_answers_come_and_nothing_else(
    table: pa.Table, at_most: int, lazy: bool, data: st.DataObject
) -> None:
    text = "SELECT k, count(*) AS n, sum(i) AS s FROM t [RANGE 20 SLIDE 10 WATTR at] GROUP BY k"
    flush = panes.LazyFlush(within=30) if lazy else panes.SlowFlush(at_most=at_most)
    query = panes.open(text, lateness=100, flush=flush)
    found = [query.push(t=table.slice(b, e - b)) for b, e in cuts_of(data, table)]
    if not lazy:
        assert all(len(f) <= at_most for f in found)
    found.append(query.finish())
    assert_same(sorted_answers(pa.concat_tables(found), 1), panes.oracle(text, t=table))


def test_a_flush_that_releases_nothing_is_refused() -> None:
    with pytest.raises(OptionError, match="some answers"):
        panes.SlowFlush(at_most=0)


def test_answers_of_row_windows_do_not_wait_for_ever() -> None:
    query = panes.open("SELECT count(*) AS n FROM s [ROWS 2]", flush=panes.LazyFlush(within=5))
    given = [len(query.push(s=pa.table({"x": [i]}))) for i in range(20)]
    assert sum(given) >= 14


def test_a_register_revises_as_queries_of_their_own_do() -> None:
    """Each query keeps what it may still revise."""
    texts = {
        "sums": "SELECT k, sum(v) AS s FROM s [RANGE 20 SLIDE 10 WATTR at] GROUP BY k",
        "most": "SELECT max(v) AS m FROM s [TUMBLING 10 WATTR at] WHERE v > 1",
    }
    come = usual(("s",), "late")
    register = panes.register("s", lateness=LATENESS, late="revise", revise_within=60)
    alone = {}
    for name, text in texts.items():
        register.add(name, text)
        alone[name] = panes.open(text, lateness=LATENESS, late="revise", revise_within=60)
    revised = 0
    for batch in come.batches:
        given = register.push(**batch)
        for name, query in alone.items():
            want = query.push(**batch)
            assert_rows(given.get(name, want.slice(0, 0)), want)
            revised += want.column("status").to_pylist().count("revised")
    assert revised
    left = register.finish()
    for name, query in alone.items():
        assert_rows(left[name], query.finish())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT s.id FROM s JOIN s t ON s.at = t.at", "a pair is given once"),
        ("SELECT max(n) AS m FROM (SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]) "
         "[TUMBLING 20]", "would answer a window again"),
        ("SELECT count(*) AS n FROM s [RANGE ALL SLIDE 10 WATTR at]", "sliding and tumbling"),
    ],
)  # fmt: skip
def test_what_cannot_be_revised_is_refused_by_add(text: str, says: str) -> None:
    register = panes.register("s", lateness=LATENESS, late="revise")
    with pytest.raises((panes.OptionError, panes.QueryError), match=says):
        register.add("q", text)
    assert register.queries() == {}
