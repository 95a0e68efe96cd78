"""Windows that count rows: partitioned rows and one window per row, against the oracle.

Catches: a rank that is off by one or counted after WHERE, a partition that closes another's
windows, a per-row window that misses late company at its own position, bins that are forgotten
too early, answers given twice or in another order.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.errors import OptionError
from tests.strategies import WHERE, cuts_of, streams
from tests.support import (
    AGGREGATES,
    ORDERED,
    PARTITIONED,
    PER_ROW,
    STORES,
    assert_same,
    open_query,
    select,
    sorted_answers,
)


@pytest.mark.parametrize("window", PARTITIONED)
@settings(max_examples=12)
@given(table=streams, group=st.sampled_from(["", "GROUP BY i % 3"]), where=WHERE)
def test_every_aggregate_over_partitioned_rows_is_the_oracles(
    window: str, table: pa.Table, group: str, where: str
) -> None:
    text = f"SELECT {select(AGGREGATES)} FROM t [{window}] {where} {group}"
    assert_same(panes.sql(text, t=table), panes.oracle(text, t=table))


@pytest.mark.parametrize("window", [w for w in PARTITIONED if "WATTR" not in w])
@settings(max_examples=20)
@given(table=streams, where=WHERE, data=st.data())
def test_a_partition_closes_its_own_windows_as_soon_as_they_are_full(
    window: str, table: pa.Table, where: str, data: st.DataObject
) -> None:
    text = f"SELECT count(*) AS n, sum(i) AS s, median(x) AS m FROM t [{window}] {where}"
    query = open_query(text)
    keys = len(query.query.keys)
    found = []
    for begin, end in cuts_of(data, table):
        found.append(query.push(t=table.slice(begin, end - begin)))
        so_far = sorted_answers(pa.concat_tables(found), keys)
        want = sorted_answers(panes.oracle(text, t=table.slice(0, end)), keys)
        assert_same(so_far, want)
    assert not len(query.finish())


@pytest.mark.parametrize("window", ORDERED)
@settings(max_examples=20)
@given(table=streams, where=WHERE, data=st.data())
def test_rows_that_a_column_orders_may_come_in_any_order(
    window: str, table: pa.Table, where: str, data: st.DataObject
) -> None:
    """They wait for honest promises, and are numbered as the oracle numbers all of them."""
    text = f"SELECT k, count(*) AS n, sum(i) AS s, max(x) AS m FROM t [{window}] {where} GROUP BY k"
    query = open_query(text)
    keys = len(query.query.keys)
    found = []
    for begin, end in cuts_of(data, table):
        found.append(query.push(t=table.slice(begin, end - begin)))
        rest = table["at"].slice(end).to_pylist()
        found.append(query.punctuate(t=min(rest, default=1_000)))
        assert query.state["waiting_rows"] <= end
    found.append(query.finish())
    assert not len(query.late)
    answers = sorted_answers(pa.concat_tables(found), keys)
    assert_same(answers, sorted_answers(panes.oracle(text, t=table), keys))


def test_a_row_that_comes_after_its_place_was_taken_is_late() -> None:
    query = open_query("SELECT count(*) AS n FROM t [ROWS 2 WATTR at]", lateness=0)
    assert query.push(t=at(1, 5))["window_end"].to_pylist() == [1]
    query.push(t=at(3))
    assert query.late["reason"].to_pylist() == ["behind progress 5; all its windows are closed"]
    assert query.finish()["window_end"].to_pylist() == [2]


def test_lateness_is_measured_as_the_column_that_orders() -> None:
    query = open_query("SELECT count(*) AS n FROM t [ROWS 2 WATTR at]", lateness="1 second")
    with pytest.raises(OptionError, match="so lateness is a whole number"):
        query.push(t=at(1))


@pytest.mark.parametrize("window", PER_ROW)
@settings(max_examples=12)
@given(table=streams, where=WHERE)
def test_every_aggregate_over_per_row_windows_is_the_oracles(
    window: str, table: pa.Table, where: str
) -> None:
    text = f"SELECT at, k, {select(AGGREGATES)} FROM t [{window}] {where}"
    assert_same(panes.sql(text, t=table), panes.oracle(text, t=table))


@pytest.mark.parametrize("window", PER_ROW)
@settings(max_examples=15)
@given(table=streams, where=WHERE, data=st.data())
def test_per_row_answers_do_not_depend_on_the_split_or_on_punctuation(
    window: str, table: pa.Table, where: str, data: st.DataObject
) -> None:
    aggregates = "count(*) AS n, sum(i) AS total, max(x) AS m, median(i) AS q, last(s) AS l"
    text = f"SELECT at, s, x + 1 AS y, {aggregates} FROM t [{window}] {where}"
    query = open_query(text)
    found = []
    for begin, end in cuts_of(data, table):
        found.append(query.push(t=table.slice(begin, end - begin)))
        rest = table["at"].slice(end).to_pylist()
        found.append(query.punctuate(t=min(rest, default=1_000)))
    found.append(query.finish())
    assert not len(query.late)
    assert_same(pa.concat_tables(found), panes.oracle(text, t=table))
    assert not any(query.state.values())


def at(*positions: int, **columns: list[str]) -> pa.Table:
    return pa.table({"at": pa.array(positions, pa.int64()), **columns})


COUNT = "SELECT at, count(*) AS n FROM t [RANGE 10 RATTR at SLIDE 1 ROW]"


def test_the_bins_of_the_thesis() -> None:
    """Figure 6-5: t5 comes out of order, between t1 and t2; then progress passes t2."""
    query = open_query(COUNT)
    for position in (10, 14, 17, 22, 12):  # t1 .. t5; t4 lies past the end bin of t1
        query.push(t=at(position))
    closed = query.punctuate(t=15)
    assert closed.to_pylist() == [{"at": 10, "n": 1}, {"at": 12, "n": 2}, {"at": 14, "n": 3}]
    assert query.finish().to_pylist() == [{"at": 17, "n": 4}, {"at": 22, "n": 3}]


def test_a_late_row_counts_where_it_still_can_and_has_no_answer_of_its_own() -> None:
    query = open_query(COUNT, lateness=0)
    query.push(t=at(10, 20))
    assert query.push(t=at(14)).to_pylist() == []
    assert query.late["reason"].to_pylist() == ["behind progress 20; counted in its open windows"]
    assert query.finish().to_pylist() == [{"at": 20, "n": 2}]


def test_a_row_too_late_for_any_window_is_told_so() -> None:
    query = open_query(COUNT, lateness=0)
    query.push(t=at(10, 20))
    query.push(t=at(9))
    assert "all its windows are closed" in query.late["reason"][0].as_py()
    assert query.finish().to_pylist() == [{"at": 20, "n": 1}]


def test_dropped_late_rows_count_nowhere() -> None:
    query = open_query(COUNT, lateness=0, late="drop")
    query.push(t=at(10, 20))
    query.push(t=at(14))
    assert query.finish().to_pylist() == [{"at": 20, "n": 1}]


def test_bins_and_rows_are_forgotten_when_progress_has_passed() -> None:
    query = open_query(COUNT, lateness=0)
    for begin in range(0, 5_000, 100):
        query.push(t=at(*range(begin, begin + 100)))
        assert query.state["partials"] <= 110
        assert query.state["waiting_rows"] <= 1


def test_keys_that_are_gone_are_forgotten_while_rows_wait() -> None:
    text = "SELECT k, at, count(*) AS n FROM t [RANGE 10 RATTR at SLIDE 1 ROW PA k]"
    query = open_query(text, lateness=5)
    found = []
    for begin in range(0, 30_000, 3_000):
        rows = pa.array(range(begin, begin + 3_000))
        found.append(query.push(t=pa.table({"at": rows, "k": rows})))
    assert query.state["keys"] < 10_000
    found.append(query.finish())
    answers = pa.concat_tables(found)
    assert answers["k"].to_pylist() == answers["at"].to_pylist() == list(range(30_000))
    assert set(answers["n"].to_pylist()) == {1}


def test_many_rows_in_an_odd_order() -> None:
    """Rows in no order, with negative positions and ties."""
    count = 20_000
    positions = [(i * 7_919) % 4_001 - 2_000 for i in range(count)]
    table = at(*positions)
    want = [
        {"at": p, "n": sum(positions_at.get(q, 0) for q in range(p - 9, p + 1))}
        for positions_at in [{p: positions.count(p) for p in set(positions)}]
        for p in sorted(positions)
    ]
    assert panes.sql(COUNT, t=table).to_pylist() == want


@pytest.mark.parametrize(
    ("window", "told"),
    [
        ("ROWS 3 WATTR at", "on Spark   one shard has all rows"),
        ("ROWS 3 WATTR at", "order      a row waits until progress on `at` has passed it"),
        ("ROWS 3 PA k", "on Spark   rows of one k go to one shard"),
        (
            "RANGE 3 RATTR at SLIDE 1 ROW",
            "store      panes (half the entries of `bins`; thesis 6.1.4)",
        ),
    ],
)
def test_explain_says_who_counts(window: str, told: str) -> None:
    table = pa.table({"at": [1], "k": ["a"]})
    assert told in panes.explain(f"SELECT count(*) AS n FROM t [{window}]", details=True, t=table)


@pytest.mark.parametrize("store", STORES)
def test_a_partition_that_comes_after_others_have_closed_windows_loses_none(
    store: str,
) -> None:
    """a's first window is closed when b's first row comes; b has a first window too."""
    query = open_query("SELECT count(*) AS n FROM s [ROWS 1 SLIDE 1 ROW PA k]", store=store)
    assert query.push(s=at(1, k=["a"]))["k"].to_pylist() == ["a"]
    assert query.push(s=at(2, k=["b"]))["k"].to_pylist() == ["b"]
