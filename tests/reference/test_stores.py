"""Every store gives the oracle's answers: any window it supports, any order, any punctuation.

Catches: rows tagged with one window too many or too few, partials of closed windows answered
again, kept rows dropped while a window still holds them, groups in transition answered from one
side only, bins that begin with the wrong partial.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.errors import OptionError, QueryError
from panes.planning.choose_store import supports
from panes.planning.plan import plan
from panes.stores.adaptive import AdaptWid
from panes.stores.by_name import STORES, StoreName
from panes.stores.durations import ArrivalSkew, Durations
from panes.windows.spec import Sliding
from tests.strategies import cuts_of, streams
from tests.support import (
    AGGREGATES,
    PARTITIONED,
    PER_ROW,
    SCHEMA,
    WINDOWS,
    assert_same,
    open_query,
    select,
    sorted_answers,
)

BOUNDED = tuple(
    a
    for a in AGGREGATES
    if not plan(
        open_query(f"SELECT {a} AS c FROM t [TUMBLING 5 WATTR at]").query, {"t": SCHEMA}
    ).value_sets
)


def holds(store: StoreName, window: str) -> bool:
    query = open_query(f"SELECT count(*) AS n FROM t [{window}]").query
    return supports(plan(query, {"t": SCHEMA}), store)


SOME = ("count(*)", "sum(i)", "avg(x)", "max(s)", "first(x)", "median(i)", "mode(s)", "sum(d)")
MATRIX = [
    (store, window)
    for store in STORES
    for window in (*WINDOWS, *PARTITIONED, *PER_ROW)
    if holds(store, window)
]
ON_A_COLUMN = [(s, w) for s, w in MATRIX if "ROW" not in w and "ALL" not in w]


def test_the_matrix_has_every_store_and_every_window() -> None:
    assert {s for s, _ in MATRIX} == set(STORES)
    assert {w for _, w in MATRIX} == {*WINDOWS, *PARTITIONED, *PER_ROW}
    assert [s for s, w in MATRIX if w == "RANGE 7 SLIDE 4 WATTR at"] == [
        "panes",
        "eager",
        "buffered",
        "adaptive",
        "adaptive-panes",
    ]


@pytest.mark.parametrize(("store", "window"), MATRIX)
@settings(max_examples=6)
@given(table=streams, where=st.sampled_from(["", "WHERE i > -5"]))
def test_every_store_answers_a_table_like_the_oracle(
    store: StoreName, window: str, table: pa.Table, where: str
) -> None:
    aggregates = BOUNDED if store == "bins" else AGGREGATES
    group = "" if " PA " in window or "RATTR" in window else "GROUP BY k"
    text = f"SELECT {select(aggregates)} FROM t [{window}] {where} {group}"
    assert_same(panes.sql(text, store=store, t=table), panes.oracle(text, t=table))


@pytest.mark.parametrize(("store", "window"), ON_A_COLUMN)
@settings(max_examples=10)
@given(table=streams, data=st.data())
def test_order_split_and_punctuation_change_no_answer_of_any_store(
    store: StoreName, window: str, table: pa.Table, data: st.DataObject
) -> None:
    text = f"SELECT k, {select(SOME)} FROM t [{window}] GROUP BY k"
    order = data.draw(st.permutations(range(len(table))))
    shuffled = table.take(pa.array(order, pa.int64()))
    query = open_query(text, store=store)
    found = []
    for begin, end in cuts_of(data, table):
        found.append(query.push(t=shuffled.slice(begin, end - begin)))
        rest = shuffled["at"].slice(end).to_pylist()
        found.append(query.punctuate(t=min(rest, default=1_000)))
    assert (query.state["partials"], query.state["rows"]) == (0, 0)
    found.append(query.finish())
    assert_same(sorted_answers(pa.concat_tables(found), 1), panes.oracle(text, t=table))


@pytest.mark.parametrize("window", PER_ROW)
@settings(max_examples=15)
@given(table=streams, data=st.data())
def test_bins_answer_rows_in_any_order_with_promises_in_between(
    window: str, table: pa.Table, data: st.DataObject
) -> None:
    text = f"SELECT at, k, i, {select(BOUNDED)} FROM t [{window}]"
    if "SLIDE 1 ROW" in window:
        order = data.draw(st.permutations(range(len(table))))
        table = table.take(pa.array(order, pa.int64()))
    query = open_query(text, store="bins")
    found = []
    for begin, end in cuts_of(data, table):
        found.append(query.push(t=table.slice(begin, end - begin)))
        rest = table["at"].slice(end).to_pylist()
        found.append(query.punctuate(t=min(rest, default=1_000)))
    found.append(query.finish())
    assert_same(pa.concat_tables(found), panes.oracle(text, t=table))
    assert query.state["bytes"] == 0


@pytest.mark.parametrize("late", ["open", "drop"])
@pytest.mark.parametrize("window", ["RANGE 20 SLIDE 10 WATTR at", "RANGE 7 SLIDE 4 WATTR at"])
@settings(max_examples=15)
@given(table=streams, lateness=st.integers(0, 20), data=st.data())
def test_late_rows_count_in_the_same_windows_whatever_the_store(
    window: str, late: str, table: pa.Table, lateness: int, data: st.DataObject
) -> None:
    text = f"SELECT k, count(*) AS n, sum(i) AS s, first(x) AS f FROM t [{window}] GROUP BY k"
    cuts = cuts_of(data, table)
    answers = {}
    for store in ("panes", "eager", "buffered", "adaptive", "adaptive-panes"):
        query = open_query(text, lateness=lateness, late=late, store=store)
        found = [query.push(t=table.slice(b, e - b)) for b, e in cuts]
        answers[store] = pa.concat_tables([*found, query.finish()])
    for found_there in answers.values():
        assert_same(found_there, answers["panes"])


def _bids(at: list[int], items: list[int]) -> pa.Table:
    return pa.table({"at": at, "item": items, "price": [float(a % 7) for a in at]})


def test_a_dense_group_turns_eager_and_a_sparse_one_stays_lazy() -> None:
    """Item 1 has a row at every tick, item 2 one in a hundred."""
    text = "SELECT item, max(price) AS m FROM bids [RANGE 100 SLIDE 20 WATTR at] GROUP BY item"
    query = open_query(text, store="adaptive", lateness=0)
    query.push(bids=_bids(list(range(100)), [2 if a % 100 == 50 else 1 for a in range(100)]))
    held = getattr(query._windows._pipeline, "store", None)
    assert isinstance(held, AdaptWid)
    assert held.eager_groups == 1
    assert held.rows == 1


def test_in_transition_a_group_holds_rows_and_partials() -> None:
    """Dense for 300 ticks, then a row every 50: windows around 300 are answered from both."""
    text = "SELECT item, count(*) AS n FROM bids [RANGE 100 SLIDE 20 WATTR at] GROUP BY item"
    query = open_query(text, store="adaptive", lateness=0)
    found = [query.push(bids=_bids(list(range(a, a + 20)), [1] * 20)) for a in range(0, 300, 20)]
    in_transition = False
    at = [*range(310, 1000, 50)]
    for a in at:
        found.append(query.push(bids=_bids([a], [1])))
        in_transition |= query.state["rows"] > 0 and query.state["partials"] > 0
    assert in_transition
    found.append(query.finish())
    everything = [*range(300), *at]
    want = panes.oracle(text, bids=_bids(everything, [1] * len(everything)))
    assert_same(pa.concat_tables(found), want)


def test_a_pane_keeps_rows_until_they_take_more_than_a_partial() -> None:
    text = "SELECT item, max(price) AS m FROM bids [RANGE 100 SLIDE 20 WATTR at] GROUP BY item"
    query = open_query(text, store="adaptive-panes", lateness=0)
    query.push(bids=_bids([1, 2, 3, 4, 25], [1, 1, 1, 1, 1]))
    assert (query.state["partials"], query.state["rows"]) == (1, 1)


@settings(max_examples=30)
@given(table=streams, data=st.data())
def test_rows_or_partials_per_pane_never_take_more_than_either(
    table: pa.Table, data: st.DataObject
) -> None:
    text = "SELECT k, max(i) AS m, count(*) AS n FROM t [RANGE 20 SLIDE 10 WATTR at] GROUP BY k"
    taken = {}
    for store in ("panes", "buffered", "adaptive-panes"):
        query = open_query(text, store=store)
        query.push(t=table)
        taken[store] = query.state["bytes"]
    assert taken["adaptive-panes"] <= min(taken["panes"], taken["buffered"])


def test_a_window_stays_open_for_its_size_and_the_disorder() -> None:
    """wed: rows run 30 ahead of the promise, so windows of 100 are open for 130."""
    durations = Durations(Sliding(size=100, slide=20))
    assert durations.latest == 100
    for progress in range(0, 400, 20):
        durations.saw(progress + 25, progress + 30, first_open=progress // 20)
        durations.closed(progress // 20)
    assert durations.latest in range(110, 151)


def test_the_offset_of_sources_is_weighed_by_their_rows() -> None:
    skew = ArrivalSkew()
    assert skew.offset == 0
    skew.hear("main", 100, rows=900)
    skew.hear("control", 0, rows=100)
    assert skew.offset == 10


@pytest.mark.parametrize(
    ("window", "store", "said"),
    [
        ("RANGE 10 RATTR at SLIDE 1 ROW", "eager", "cannot hold per-row windows"),
        ("RANGE ALL SLIDE 10 WATTR at", "buffered", "for ever"),
        ("RANGE 20 SLIDE 10 WATTR at", "bins", "holds per-row windows"),
    ],
)
def test_a_store_that_cannot_hold_the_windows_says_so(window: str, store: str, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        panes.sql(f"SELECT count(*) AS n FROM t [{window}]", store=store, t=SCHEMA.empty_table())


def test_an_unknown_store_is_refused_with_the_known_ones() -> None:
    with pytest.raises(OptionError, match="adaptive-panes"):
        panes.sql("SELECT count(*) AS n FROM t [ROWS 3]", store="heap", t=SCHEMA.empty_table())


def test_huge_overlap_is_tagged_piece_by_piece() -> None:
    at = np.arange(3_000)
    table = pa.table({"at": at, "v": at % 11})
    text = "SELECT max(v) AS m, count(*) AS n FROM t [RANGE 4000 SLIDE 1 WATTR at]"
    assert panes.sql(text, store="eager", t=table).equals(panes.sql(text, t=table))
    assert panes.sql(text, store="buffered", t=table).equals(panes.sql(text, t=table))
