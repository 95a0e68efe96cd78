"""Promises for one key: its windows close, the others wait, nothing is lost or said twice."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.errors import InputError, OptionError
from tests.strategies import streams
from tests.support import STORES, assert_same, open_query, sorted_answers

TEXT = "SELECT k, count(*) AS n, sum(i) AS s, median(i) AS m FROM t [{window}] GROUP BY k"


def rows(*pairs: tuple[int, str]) -> pa.Table:
    columns = {"at": [at for at, _ in pairs], "k": [k for _, k in pairs]}
    return pa.table(columns, schema=pa.schema({"at": pa.int64(), "k": pa.string()}))


def opened(**options: object) -> panes.OpenQuery:
    text = "SELECT k, count(*) AS n FROM t [TUMBLING 10 WATTR at] GROUP BY k"
    return open_query(text, **options)


def test_a_slow_key_does_not_block_the_others() -> None:
    query = opened()
    query.push(t=rows((3, "a"), (4, "b"), (12, "a")))
    closed = query.punctuate(t=10, key={"k": "a"}).to_pylist()
    assert closed == [{"window_start": 0, "window_end": 10, "k": "a", "n": 1}]
    assert not len(query.push(t=rows((5, "b")))), "b may still come"
    assert not len(query.late)
    assert query.punctuate(t=10).to_pylist() == [
        {"window_start": 0, "window_end": 10, "k": "b", "n": 2}
    ]
    assert query.finish()["n"].to_pylist() == [1]


def test_a_row_that_breaks_its_keys_promise_is_late_and_answers_nothing_twice() -> None:
    query = opened()
    query.push(t=rows((3, "a"), (12, "a"), (4, "b")))
    query.punctuate(t=15, key={"K": "a"})
    assert not len(query.push(t=rows((5, "a"), (13, "a"), (6, "b"))))
    assert query.late["reason"].to_pylist() == [
        "behind progress 15; all its windows are closed",
        "behind progress 15; counted in its open windows",
    ]
    assert [(r["k"], r["window_end"], r["n"]) for r in query.finish().to_pylist()] == [
        ("b", 10, 2),
        ("a", 20, 2),
    ]


def test_a_promise_for_a_key_that_has_no_rows_yet_holds_for_those_to_come() -> None:
    query = opened()
    query.push(t=rows((3, "b")))
    query.punctuate(t=20, key={"k": "a"})
    query.push(t=rows((12, "a"), (25, "a")))
    assert len(query.late) == 1
    assert [(r["k"], r["n"]) for r in query.finish().to_pylist()] == [("b", 1), ("a", 1)]


def test_keys_are_forgotten_and_the_promise_is_not() -> None:
    """Five thousand keys come and go; a late row of one of them opens no window again."""
    query = opened()
    many = [(1, str(n)) for n in range(5_000)]
    query.push(t=rows(*many, (1, "slow")))
    for name in ("7", "8"):
        query.punctuate(t=10, key={"k": name})
    query.punctuate(t=10)
    query.push(t=rows((2, "7"), (30, "slow")))
    assert query.finish()["k"].to_pylist() == ["slow"]


def test_every_source_has_to_promise() -> None:
    text = "SELECT k, count(*) AS n FROM (u UNION ALL v) [TUMBLING 10 WATTR at] GROUP BY k"
    query = open_query(text)
    query.push(u=rows((3, "a")), v=rows((4, "a"), (5, "b")))
    assert not len(query.punctuate(u=10, key={"k": "a"}))
    assert query.punctuate(v=10)["k"].to_pylist() == ["a"]
    assert query.finish()["k"].to_pylist() == ["b"]


@pytest.mark.parametrize(
    "window",
    ["RANGE 20 SLIDE 10 WATTR at", "RANGE 7 SLIDE 4 WATTR at", "RANGE 3 SLIDE 10 WATTR at"],
)
@settings(max_examples=40)
@given(table=streams, data=st.data())
def test_honest_promises_for_keys_change_no_answer(
    window: str, table: pa.Table, data: st.DataObject
) -> None:
    text = TEXT.format(window=window)
    query = open_query(text)
    found = [query.push(t=table.slice(0, 0))]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=5)))
    for begin, end in zip([0, *cuts], [*cuts, len(table)], strict=True):
        found.append(query.push(t=table.slice(begin, end - begin)))
        rest = table.slice(end).select(["at", "k"]).to_pylist()
        for key in data.draw(st.lists(st.sampled_from(["a", "b", None, "none"]), max_size=3)):
            least = min((r["at"] for r in rest if r["k"] == key), default=100)
            found.append(query.punctuate(t=least, key={"k": key}))
        if data.draw(st.booleans()):
            found.append(query.punctuate(t=min((r["at"] for r in rest), default=100)))
    found.append(query.finish())
    assert not len(query.late)
    assert_same(sorted_answers(pa.concat_tables(found), 1), panes.oracle(text, t=table))


def test_some_of_the_grouping_columns_stand_for_all_groups_that_agree() -> None:
    query = open_query("SELECT count(*) AS n FROM t [TUMBLING 10 WATTR at] GROUP BY k, x")
    query.push(t=pa.table({"at": [1, 2, 3], "k": ["a", "a", "b"], "x": [1.0, math.nan, math.nan]}))
    assert query.punctuate(t=10, key={"x": math.nan})["k"].to_pylist() == ["a", "b"]
    assert query.finish()["x"].to_pylist() == [1.0]


def test_what_is_no_key_is_refused() -> None:
    query = opened()
    with pytest.raises(InputError, match="needs a batch first"):
        query.punctuate(t=1, key={"k": "a"})
    query.push(t=rows((1, "a")))
    with pytest.raises(OptionError, match="`at` is no grouping column"):
        query.punctuate(t=1, key={"at": 1})
    with pytest.raises(InputError, match="`k` is string, and 7 is none"):
        query.punctuate(t=1, key={"k": 7})
    with pytest.raises(OptionError, match="at least one grouping column"):
        query.punctuate(t=1, key={})
    landmark = open_query("SELECT k, count(*) AS n FROM t [RANGE ALL SLIDE 9 WATTR at] GROUP BY k")
    landmark.push(t=rows((1, "a")))
    with pytest.raises(panes.QueryError, match="sliding and tumbling"):
        landmark.punctuate(t=1, key={"k": "a"})


def test_a_stream_that_has_sent_nothing_may_promise_of_a_key() -> None:
    text = "SELECT k, count(*) AS n FROM a UNION b [TUMBLING 10 WATTR at] GROUP BY k"
    query = open_query(text)
    query.push(a=rows((3, "x"), (4, "y")))
    assert not len(query.punctuate(a=10, key={"k": "x"}))
    assert query.punctuate(b=10, key={"k": "x"})["k"].to_pylist() == ["x"]
    assert query.finish()["k"].to_pylist() == ["y"]


def test_a_promise_of_a_key_that_is_moved_needs_a_batch_of_its_stream() -> None:
    text = (
        "SELECT k, count(*) AS n FROM (SELECT at + 5 AS at, k FROM a) UNION "
        "(SELECT at, k FROM b) [TUMBLING 10 WATTR at] GROUP BY k"
    )
    query = open_query(text)
    query.push(a=rows((3, "x")))
    with pytest.raises(InputError, match="needs a batch of `b` first"):
        query.punctuate(b=10, key={"k": "x"})


@pytest.mark.parametrize("store", STORES)
def test_a_key_that_comes_after_a_promise_for_another_one_loses_no_row(store: str) -> None:
    """a is promised up to 100; b, which comes later, is not. Dense, so that it turns eager."""
    text = "SELECT k, count(*) AS n FROM s [RANGE 20 SLIDE 10 WATTR at] GROUP BY k"
    query = open_query(text, store=store)
    query.push(s=rows((1, "a"), (30, "a")))
    query.punctuate(s=100, key={"k": "a"})
    query.push(s=rows(*[(5, "b")] * 10, *[(95, "b")] * 10, *[(105, "b")] * 300))
    answers = query.finish()
    found = dict(zip(answers["window_end"].to_pylist(), answers["n"].to_pylist(), strict=True))
    assert found == {10: 10, 20: 10, 100: 10, 110: 310, 120: 300}


@pytest.mark.parametrize("store", STORES)
def test_a_promise_for_a_key_may_come_when_all_keys_are_forgotten(store: str) -> None:
    text = "SELECT k, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY k"
    query = open_query(text, store=store)
    many = 20_000
    query.push(s=pa.table({"at": np.full(many, 5), "k": np.arange(many)}))
    query.punctuate(s=100)
    assert query.state["keys"] == 0
    assert not len(query.punctuate(s=200, key={"k": 5}))
    query.push(s=pa.table({"at": [300], "k": [7]}))
    assert query.finish()["n"].to_pylist() == [1]


def test_a_key_is_not_rounded() -> None:
    query = open_query("SELECT k, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY k")
    query.push(s=pa.table({"at": [1], "k": [1]}))
    with pytest.raises(panes.PanesError, match=r"1\.5 is none"):
        query.punctuate(s=10, key={"k": 1.5})
