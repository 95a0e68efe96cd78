"""Pictures of joins: one behaviour each, what is given when, and what is left in state after it."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes
from panes.process.running_query import OpenJoin
from tests.join.histories import WORDS, condition, table, told
from tests.join.nested_loops import How, InBand, InWindows, Partners, Row
from tests.support import open_join

NOTHING = table([])


def rows(*at: int, key: int | None = 1) -> pa.Table:
    """Rows of one key, called by their positions."""
    return table([Row(p, (key,), p) for p in at])


def opened(how: How, partners: Partners, late: str = "open") -> OpenJoin:
    given = "l.id AS a" + ("" if how in ("semi", "anti") else ", r.id AS b")
    query = open_join(
        f"SELECT {given} FROM l {WORDS[how]} r {condition(partners)}",
        late=late,
    )
    query.push(l=NOTHING, r=NOTHING)
    return query


def stored(query: OpenJoin) -> tuple[int, int]:
    return query.state["left_rows"], query.state["right_rows"]


def test_a_pair_is_given_with_its_second_row_whichever_that_is() -> None:
    #            0   1   2   3   4   5        r within 2 of l
    #  l  1st            x
    #  r  2nd    x               x        ->  (2, 0), (2, 3)
    #  l  3rd                x            ->  (4, 3)
    query = opened("inner", InBand(-2, 2))
    assert told(query.push(l=rows(2))) == []
    assert told(query.push(r=rows(0, 3, 5))) == [(2, 0, None), (2, 3, None)]
    assert told(query.push(l=rows(4))) == [(4, 3, None), (4, 5, None)]


@pytest.mark.parametrize(("distance", "joined"), [(-3, False), (-2, True), (4, True), (5, False)])
def test_a_band_includes_the_edges_that_its_comparisons_do(distance: int, joined: bool) -> None:
    #    l - 3   l - 2   ...   l + 4   l + 5        l.at - 2 <= r.at <= l.at + 4
    #      )       [             ]       (
    for start in (-10, 0, 7):
        found = panes.sql(
            "SELECT l.id AS a, r.id AS b FROM l JOIN r ON r.at BETWEEN l.at - 2 AND l.at + 4",
            l=rows(start),
            r=rows(start + distance),
        )
        assert (len(found) == 1) == joined


@pytest.mark.parametrize(("distance", "joined"), [(-3, False), (-2, True), (2, True), (3, False)])
def test_ranges_of_both_sides_are_open_in_front(distance: int, joined: bool) -> None:
    #    l - 3   l - 2   ...   l + 2   l + 3        l [RANGE 3], r [RANGE 2]: l - 2 <= r < l + 3
    found = panes.sql(
        "SELECT l.id AS a, r.id AS b FROM l [RANGE 3 WATTR at], r [RANGE 2 WATTR at]",
        l=rows(0),
        r=rows(distance),
    )
    assert (len(found) == 1) == joined


def test_a_row_alone_is_given_at_the_promise_that_proves_it_and_forgotten_with_it() -> None:
    #          0   1   2   3   4   5   6        LEFT JOIN, r in [l - 1, l + 4]
    #  l           x
    #  r promises              5                one at 5 may come, and 1 + 4 = 5
    #  r promises                  6            none can any more
    query = opened("left", InBand(-1, 4))
    query.push(l=rows(1))
    assert told(query.punctuate(r=5)) == []
    assert stored(query) == (1, 0)
    assert told(query.punctuate(r=6)) == [(1, None, None)]
    assert stored(query) == (0, 0)
    assert told(query.finish()) == []


def test_what_is_left_in_state_after_each_promise() -> None:
    #  r in [l - 10, l + 20]                 l stored           r stored
    #  l 1 2 5, r 2 15                       1 2 5              2 15
    #  l promises 13                         1 2 5              15         2 + 10 < 13
    #  r promises 23                         5                  15         2 + 20 < 23
    #  l 13                                  5 13               15
    #  r promises 40, l promises 40          -                  -
    query = opened("inner", InBand(-10, 20))
    query.push(l=rows(1, 2, 5), r=rows(2, 15))
    assert stored(query) == (3, 2)
    query.punctuate(l=13)
    assert stored(query) == (3, 1)
    query.punctuate(r=23)
    assert stored(query) == (1, 1)
    assert told(query.push(l=rows(13))) == [(13, 15, None)]
    assert stored(query) == (2, 1)
    query.punctuate(l=40, r=40)
    assert stored(query) == (0, 0)
    assert query.state["bytes"] == 0


def test_a_band_ahead_stores_nothing_of_the_side_that_can_only_match_the_past() -> None:
    #          0   1   2   3  ...  9   10        r in [l + 7, l + 10]; l promises 2
    #  l       x
    #  r                                x        10 - 10 = 0 .. 10 - 7 = 3: l 2 and 3 may come
    #  r                   x                     3 - 7 < 2: no l to come matches, not stored
    query = opened("inner", InBand(7, 10))
    query.punctuate(l=2)
    query.push(r=rows(3))
    assert stored(query) == (0, 0)
    query.push(r=rows(10))
    assert stored(query) == (0, 1)
    query.punctuate(l=4)
    assert stored(query) == (0, 0)


def test_rows_without_a_key_are_never_stored_and_alone_at_once() -> None:
    query = opened("full", InBand(-5, 5))
    assert told(query.push(l=rows(1, key=None), r=rows(1, key=None))) == [
        (1, None, None),
        (None, 1, None),
    ]
    assert stored(query) == (0, 0)


def test_in_windows_a_row_is_alone_window_by_window() -> None:
    #            0    5    10   15        [RANGE 10 SLIDE 5], LEFT JOIN
    #  l               x 7                windows [0, 10) and [5, 15)
    #  r             x 3                  window [-5, 5) and [0, 10)
    #  the pair is one of [0, 10); in [5, 15), l is alone once r has passed 15
    query = opened("left", InWindows(10, 5))
    assert told(query.push(l=rows(7), r=rows(3))) == [(7, 3, 10)]
    assert told(query.punctuate(r=14)) == []
    assert told(query.punctuate(r=15)) == [(7, None, 15)]
    assert stored(query) == (0, 1)


def test_a_semi_join_gives_a_row_once_and_an_anti_join_the_others() -> None:
    #  l    1          5        r within 1 of l
    #  r    0 1 2
    semi, anti = opened("semi", InBand(-1, 1)), opened("anti", InBand(-1, 1))
    for query, first, last in ((semi, [(1, None, None)], []), (anti, [], [(5, None, None)])):
        assert told(query.push(l=rows(1, 5), r=rows(0))) == first
        assert told(query.push(r=rows(1, 2))) == []
        assert told(query.punctuate(r=7)) == last


def test_a_late_row_joins_what_is_stored_and_is_reported() -> None:
    #          0  ...  4   5   6  ...  9   10       r within 3 of l; l promises 10
    #  r               x           x    x            4 + 3 < 10: forgotten
    #  l late                  6                     joins 7, not 4, and is not given as alone
    query = opened("left", InBand(-3, 3))
    query.push(r=rows(4, 7, 9))
    query.punctuate(l=10)
    assert stored(query) == (0, 2)
    assert told(query.push(l=rows(6))) == [(6, 7, None), (6, 9, None)]
    assert query.late.select(["at", "reason"]).to_pylist() == [
        {"at": 6, "reason": "behind progress 10; joined with rows that are not forgotten"}
    ]
    query.punctuate(r=10)
    assert told(query.push(l=rows(0))) == []
    assert query.late["reason"].to_pylist()[1] == (
        "behind progress 10; all it could be joined with is forgotten"
    )
    assert told(query.finish()) == []


def test_late_rows_that_are_dropped_join_nothing_and_are_reported() -> None:
    query = opened("full", InBand(-3, 3), late="drop")
    query.push(r=rows(9))
    query.punctuate(l=10)
    assert told(query.push(l=rows(9))) == []
    assert query.late["reason"].to_pylist() == ["behind progress 10; dropped"]
    assert told(query.finish()) == [(None, 9, None)]


def test_a_union_promises_what_its_slowest_stream_does() -> None:
    #  (a UNION ALL b) as l LEFT JOIN r within 1: r alone says when a row of l has no partner,
    #  and both a and b when a row of r is forgotten
    query = open_join(
        "SELECT l.id AS a, r.id AS b FROM (a UNION ALL b) AS l JOIN r "
        "ON l.k = r.k AND r.at BETWEEN l.at - 1 AND l.at + 1"
    )
    query.push(a=rows(5), b=NOTHING, r=rows(5))
    query.punctuate(a=20)
    assert stored(query) == (1, 1)
    assert told(query.push(b=rows(4))) == [(4, 5, None)]
    query.punctuate(b=20)
    assert stored(query) == (2, 0)


def test_a_stream_joined_with_itself_is_pushed_once() -> None:
    query = open_join(
        "SELECT x.id AS a, y.id AS b FROM s x JOIN s y ON x.k = y.k AND y.at > x.at "
        "AND y.at <= x.at + 3"
    )
    assert told(query.push(s=rows(1, 3))) == [(1, 3, None)]
    assert told(query.push(s=rows(5))) == [(3, 5, None)]
    query.punctuate(s=9)
    assert stored(query) == (0, 0)


def test_three_streams_are_joined_by_joining_again() -> None:
    #  l 1      r within 2 of l: 2      m within 2 after r: 4
    query = open_join(
        "SELECT l.id AS a, r.id AS b, m.id AS c "
        "FROM l JOIN r ON r.at BETWEEN l.at - 2 AND l.at + 2 "
        "LEFT JOIN m ON m.at BETWEEN r.at AND r.at + 2"
    )
    query.push(l=rows(1), r=NOTHING, m=NOTHING)
    assert len(query.push(m=rows(4, 9))) == 0
    assert query.push(r=rows(2, 3)).to_pylist() == [
        {"a": 1, "b": 2, "c": 4},
        {"a": 1, "b": 3, "c": 4},
    ]
    query.punctuate(l=20, r=20, m=20)
    assert query.state["rows"] == 0


def test_a_row_without_partner_goes_on_to_the_next_left_join() -> None:
    # (l LEFT JOIN r) LEFT JOIN m by r.at: a row of l that found no r has no position there.
    streams = {"l": rows(3), "r": rows(9), "m": rows(9)}
    text = (
        "SELECT l.id AS a, r.id AS b, m.id AS c "
        "FROM l LEFT JOIN r ON r.at BETWEEN l.at AND l.at + 1 "
        "LEFT JOIN m ON m.at BETWEEN r.at AND r.at + 1"
    )
    want = [{"a": 3, "b": None, "c": None}]
    assert panes.sql(text, **streams).to_pylist() == want
    assert panes.oracle(text, **streams).to_pylist() == want
