"""Operators that rows and promises pass through: alone, and inside FROM against the oracle.

Catches: promises that do not move with the rows, duplicates remembered for ever or forgotten too
early, a refused batch that leaves a trace, a merge that lets a row pass too early.
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from lab.papers.union import Meld, Merge
from panes.axis import Axis
from panes.nodes.distinct import Distinct
from tests.strategies import cuts_of, streams
from tests.support import assert_same, open_query, sorted_answers

INNER = (
    "(SELECT * FROM t WHERE i > 0)",
    "(SELECT DISTINCT at, k FROM t)",
    "(SELECT DISTINCT at, k, i FROM t WHERE b)",
    "(SELECT at + 3 AS at, k, i FROM t)",
    "(SELECT k, at AS at, i * 2 AS i FROM t WHERE x > 0) AS u",
)


@pytest.mark.parametrize("inner", INNER)
@settings(max_examples=15)
@given(table=streams, data=st.data())
def test_a_select_inside_from_is_the_oracles_in_any_order_and_split(
    inner: str, table: pa.Table, data: st.DataObject
) -> None:
    text = f"SELECT k, count(*) AS n FROM {inner} [RANGE 12 SLIDE 5 WATTR at] GROUP BY k"
    moved = 3 if "+ 3" in inner else 0
    order = data.draw(st.permutations(range(len(table))))
    shuffled = table.take(pa.array(order, pa.int64()))
    query = open_query(text)
    found = []
    for begin, end in cuts_of(data, table):
        found.append(query.push(t=shuffled.slice(begin, end - begin)))
        rest = shuffled["at"].slice(end).to_pylist()
        found.append(query.punctuate(t=min(rest, default=1_000)))
        assert query.progress == min(rest, default=1_000) + moved
    found.append(query.finish())
    assert not len(query.late)
    assert_same(sorted_answers(pa.concat_tables(found), 1), panes.oracle(text, t=table))


@settings(max_examples=20)
@given(table=streams, split=st.integers(0, 40))
def test_each_side_of_a_union_has_its_own_select(table: pa.Table, split: int) -> None:
    text = (
        "SELECT k, count(*) AS n FROM (SELECT DISTINCT at, k FROM u UNION ALL "
        "SELECT at, k FROM v WHERE i > 0) [RANGE 12 SLIDE 5 WATTR at] GROUP BY k"
    )
    parts = {"u": table.slice(0, split), "v": table.slice(split)}
    assert_same(panes.sql(text, **parts), panes.oracle(text, **parts))


def test_duplicates_are_dropped_and_forgotten_once_progress_has_passed_them() -> None:
    text = "SELECT count(*) AS n FROM (SELECT DISTINCT at, k FROM s) [TUMBLING 10 WATTR at]"
    query = open_query(text, lateness=5, late="drop")
    query.push(s=pa.table({"at": [1, 1, 2], "k": ["a", "a", "a"]}))
    distinct = query._windows._inputs.chains["s"].operators[-1]
    assert isinstance(distinct, Distinct)
    assert len(distinct.seen) == 2
    assert query.push(s=pa.table({"at": [1, 18], "k": ["a", "b"]}))["n"].to_pylist() == [2]
    assert len(distinct.seen) == 1


def test_a_refused_batch_is_not_remembered_as_seen() -> None:
    text = "SELECT sum(x) AS s FROM (SELECT DISTINCT at, x FROM s) [TUMBLING 10 WATTR at]"
    query = open_query(text)
    query.push(s=pa.table({"at": [1], "x": [1]}))
    with pytest.raises(panes.PanesError):
        query.push(s=pa.table({"at": [2], "x": ["two"]}))
    query.push(s=pa.table({"at": [2], "x": [2]}))
    assert query.finish()["s"].to_pylist() == [3]


def test_a_promise_in_time_moves_with_the_rows() -> None:
    """Rows are put an hour later, so a promise of 12:00 is one of 13:00."""
    text = (
        "SELECT count(*) AS n FROM (SELECT ts + INTERVAL 1 HOUR AS ts FROM s) "
        "[TUMBLING 1 hour WATTR ts]"
    )
    query = open_query(text)
    noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
    query.push(s=pa.table({"ts": pa.array([noon], pa.timestamp("us", "UTC"))}))
    assert not len(query.punctuate(s="2026-01-01T12:30:00Z"))
    answers = query.punctuate(s="2026-01-01T13:00:00Z")
    assert answers["window_end"].to_pylist() == [noon + dt.timedelta(hours=2)]


def test_a_position_that_could_reorder_rows_is_refused() -> None:
    text = "SELECT count(*) AS n FROM (SELECT -at AS at FROM s) [TUMBLING 10 WATTR at]"
    table = pa.table({"at": [1, 11]})
    query = open_query(text)
    query.push(s=table)
    with pytest.raises(panes.QueryError, match="another order"):
        query.punctuate(s=12)
    with pytest.raises(panes.QueryError, match="another order"):
        open_query(text, punctuation="at").push(s=table)
    assert_same(query.finish(), panes.oracle(text, s=table))
    assert_same(panes.sql(text, s=table), panes.oracle(text, s=table))


READ_AS_TIME = (
    "timestamp_millis(ms)",
    "timestamp_seconds(ms div 1000)",
    "timestamp_micros(ms * 1000)",
    "CAST(s AS TIMESTAMP)",
    "try_cast(s AS TIMESTAMP)",
    "to_timestamp(s)",
    "to_timestamp(s, 'yyyy-MM-dd HH:mm:ss')",
    "CAST(ms div 1000 AS TIMESTAMP)",
)
SECONDS = (0, 1, 61, 125, 30)
NUMBERS_AND_TEXTS = pa.table({
    "ms": [1000 * s for s in SECONDS],
    "s": [f"1970-01-01 00:{s // 60:02}:{s % 60:02}" for s in SECONDS],
})  # fmt: skip
MINUTES = "SELECT count(*) AS n FROM (SELECT {} AS ts FROM t) [TUMBLING 1 minute WATTR ts]"


@pytest.mark.parametrize("expression", READ_AS_TIME)
def test_text_and_numbers_are_time(expression: str) -> None:
    """Seconds 0, 1, 61, 125 and, late, 30: a lateness of 10 seconds closes the first at 61 - 10.

    ======= = = == === ==
    seconds 0 1 61 125 30
    closed      -  0-2 late
    ======= = = == === ==
    """
    text = MINUTES.format(expression)
    assert_same(panes.sql(text, t=NUMBERS_AND_TEXTS), panes.oracle(text, t=NUMBERS_AND_TEXTS))
    query = open_query(text, lateness="10 seconds", late="drop")
    found = [query.push(t=NUMBERS_AND_TEXTS.slice(n, 1))["n"].to_pylist() for n in range(5)]
    assert (found, query.finish()["n"].to_pylist()) == ([[], [], [], [2], []], [1, 1])


@pytest.mark.parametrize("expression", READ_AS_TIME)
def test_promises_are_about_the_time_that_is_read(expression: str) -> None:
    query = open_query(MINUTES.format(expression))
    query.push(t=NUMBERS_AND_TEXTS)
    assert query.punctuate(t="1970-01-01T00:01:00Z")["n"].to_pylist() == [3]


@pytest.mark.parametrize("expression", ["date_trunc('minute', ts)", "CAST(ts AS TIMESTAMP)"])
def test_promises_are_moved_by_what_keeps_the_order(expression: str) -> None:
    moments = pa.table({"ts": pa.array([0, 59_000_000, 61_000_000], pa.timestamp("us", "UTC"))})
    query = open_query(MINUTES.format(expression), punctuation="ts")
    assert query.push(t=moments)["n"].to_pylist() == [2]


def test_text_that_is_no_time_is_set_aside_where_it_is_tried() -> None:
    query = open_query(MINUTES.format("try_cast(s AS TIMESTAMP)"), lateness="1 second")
    query.push(t=pa.table({"s": ["1970-01-01 00:00:05", "soon"]}))
    assert (len(query.rejected), query.finish()["n"].to_pylist()) == (1, [1])


def test_meld_passes_rows_at_once_and_no_promise_twice() -> None:
    """Thesis 8.2: R at 20, S at 19; then S promises 20, 21 and 22."""
    union = Meld(["r", "s"])
    union.punctuate("r", 20)
    union.punctuate("s", 19)
    assert [union.punctuate("s", at) for at in (20, 21, 22)] == [20, None, None]
    rows = pa.table({"at": [99]})
    assert union.push("r", rows) is rows
    assert union.waiting == 0


@given(st.lists(st.tuples(st.sampled_from("rs"), st.integers(0, 9)), max_size=30), st.data())
def test_merge_gives_all_rows_in_order_and_none_that_could_be_overtaken(
    arrivals: list[tuple[str, int]], data: st.DataObject
) -> None:
    reached = {"r": 0, "s": 0}
    union, out = Merge(["r", "s"]), []
    for source, step in arrivals:
        reached[source] += step
        at = np.array([reached[source]])
        out += union.push(source, pa.table({"at": at}), at)["at"].to_pylist()
        assert len(out) == 0 or out[-1] <= min(reached.values())
    for source in reached:
        rest = union.punctuate(source, 10_000)
        out += rest["at"].to_pylist() if "at" in rest.column_names else []
    assert out == sorted(out)
    assert len(out) == len(arrivals)
    assert union.waiting == 0


def test_merge_waits_where_meld_does_not() -> None:
    merge = Merge(["r", "s"])
    at = np.arange(100)
    assert len(merge.push("r", pa.table({"at": at}), at)) == 0
    assert merge.waiting == 100
    assert merge.nbytes > Meld(["r", "s"]).nbytes


def test_equal_rows_without_a_position_come_out_once_per_batch_and_are_not_held() -> None:
    distinct = Distinct(Axis("integer", "at", pa.int64()))
    rows = pa.table({"at": pa.array([None, None, 3], pa.int64())})
    assert len(distinct.push(rows)) == 2
    distinct.settle()
    assert len(distinct.seen) == 1


def at(*ticks: int, **columns: list[object]) -> pa.Table:
    return pa.table({"at": pa.array(ticks, pa.int64()), **columns})


TUMBLING = "[TUMBLING 10 WATTR at]"


def test_a_refused_batch_is_not_remembered_by_a_promise_either() -> None:
    text = f"SELECT sum(x + 10) AS s FROM (SELECT DISTINCT at, x FROM s) {TUMBLING}"
    query = open_query(text)
    query.push(s=at(1, x=[1]))
    with pytest.raises(panes.PanesError):
        query.push(s=at(2, 3, x=[1, 2**63 - 1]))
    query.punctuate(s=0)
    query.push(s=at(2, x=[1]))
    assert query.finish()["s"].to_pylist() == [22]


@pytest.mark.parametrize("late", ["open", "revise"])
def test_a_late_duplicate_is_still_a_duplicate_while_a_window_counts_it(late: panes.Late) -> None:
    text = "SELECT count(*) AS n FROM (SELECT DISTINCT at FROM s) [RANGE 20 SLIDE 10 WATTR at]"
    query = open_query(text, lateness=0, late=late)
    found = [query.push(s=at(11, 15)), query.push(s=at(11)), query.finish()]
    assert pa.concat_tables(found)["n"].to_pylist() == [2, 2]


def test_a_promise_before_the_first_batch_moves_with_the_rows_too() -> None:
    query = open_query(f"SELECT count(*) AS n FROM (SELECT at - 3 AS at FROM s) {TUMBLING}")
    query.punctuate(s=10)
    query.push(s=at(10, 11, 12))
    assert not len(query.late)
    assert query.progress == 7


def test_a_silent_stream_may_promise_without_ever_sending_a_batch() -> None:
    query = open_query(f"SELECT count(*) AS n FROM (u UNION ALL v) {TUMBLING}", lateness=0)
    query.push(u=at(1, 25))
    assert query.punctuate(v=30)["n"].to_pylist() == [1]


def test_rows_that_are_filtered_out_make_progress() -> None:
    text = f"SELECT count(*) AS n FROM (SELECT at FROM s WHERE x > 0) {TUMBLING}"
    query = open_query(text, lateness=0)
    assert query.push(s=at(1, 15, x=[1, -1]))["n"].to_pylist() == [1]


def test_promises_in_a_column_are_seen_before_the_filter_and_moved() -> None:
    text = f"SELECT count(*) AS n FROM (SELECT at - 5 AS at FROM s WHERE x > 0) {TUMBLING}"
    query = open_query(text, punctuation="p")
    query.push(s=at(6, x=[1], p=pa.array([None], pa.int64())))
    promise = pa.table(
        {
            "at": pa.array([None], pa.int64()),
            "x": pa.array([None], pa.int64()),
            "p": pa.array([15], pa.int64()),
        }
    )
    assert query.push(s=promise)["n"].to_pylist() == [1]
    assert query.progress == 10


@pytest.mark.parametrize(
    ("inner", "said"),
    [
        ("SELECT * EXCEPT (k) FROM s", "no more"),
        ("SELECT DISTINCT ON (k) at, k FROM s", "no more"),
        ("SELECT at, k, k FROM s", "two columns inside FROM are named `k`"),
        ("SELECT *, at + 1 AS b FROM s", "stands alone"),
        ("SELECT explode(k) AS at FROM s", "several rows of one.*\n\nHint: make the rows before"),
        ("SELECT at FROM s WHERE rand() < 0.1", r"is random.*\n\nHint: .* WHERE crc32\(CAST"),
        (
            "SELECT plus(at) AS at FROM s",
            "no function `plus` .*\n\nHint: .*a UDF is applied before",
        ),
    ],
)
def test_what_is_not_understood_inside_from_is_refused(inner: str, said: str) -> None:
    with pytest.raises(panes.QueryError, match=said):
        open_query(f"SELECT count(*) AS n FROM ({inner}) {TUMBLING}")


def test_names_inside_from_may_be_qualified() -> None:
    text = f"SELECT count(*) AS n FROM (SELECT u.at FROM s u WHERE u.x > 0) {TUMBLING}"
    assert panes.sql(text, s=at(1, 2, x=[1, -1]))["n"].to_pylist() == [1]


def test_distinct_refuses_what_it_cannot_compare() -> None:
    text = f"SELECT count(*) AS n FROM (SELECT DISTINCT at, x FROM s) {TUMBLING}"
    with pytest.raises(panes.PanesError, match="cannot compare `x`"):
        panes.sql(text, s=at(1, x=[[1, 2]]))
