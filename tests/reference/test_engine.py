"""The engine equals the oracle: every aggregate, every paned window, any order, any split.

Catches: anything that is wrong in fill, store, roll or lower, and any way in which arrival order
or the split into batches could reach an answer. What both share (windows, scalar expressions) is
proved in ``tests/windows`` and against DuckDB SQL.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from tests.strategies import streams
from tests.support import AGGREGATES, SCHEMA, WINDOWS, assert_same, select, sorted_answers

GROUPS = ("", "GROUP BY k", "GROUP BY k, b", "GROUP BY i % 3")


@pytest.mark.parametrize("window", WINDOWS)
@settings(max_examples=12)
@given(table=streams, group=st.sampled_from(GROUPS), where=st.sampled_from(["", "WHERE i > -5"]))
def test_every_aggregate_over_every_window_is_the_oracles(
    window: str, table: pa.Table, group: str, where: str
) -> None:
    text = f"SELECT {select(AGGREGATES)} FROM t [{window}] {where} {group}"
    assert_same(panes.sql(text, t=table), panes.oracle(text, t=table))


@pytest.mark.parametrize("window", [w for w in WINDOWS if "ROWS" not in w and "ALL" not in w])
@settings(max_examples=12)
@given(table=streams, data=st.data())
def test_order_split_and_punctuation_change_no_answer(
    window: str, table: pa.Table, data: st.DataObject
) -> None:
    """Rows in any order, in any batches, with honest promises in between."""
    text = f"SELECT k, {select(AGGREGATES)} FROM t [{window}] GROUP BY k"
    order = data.draw(st.permutations(range(len(table))))
    shuffled = table.take(pa.array(order, pa.int64()))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=5)))
    query = panes.open(text)
    found = []
    for begin, end in zip([0, *cuts], [*cuts, len(table)], strict=True):
        found.append(query.push(t=shuffled.slice(begin, end - begin)))
        rest = shuffled["at"].slice(end).to_pylist()
        found.append(query.punctuate(t=min(rest, default=1_000)))
    found.append(query.finish())
    assert not len(query.late)
    assert_same(sorted_answers(pa.concat_tables(found), 1), panes.oracle(text, t=table))


@settings(max_examples=40)
@given(table=streams, data=st.data())
def test_a_row_window_is_answered_when_its_last_row_has_come(
    table: pa.Table, data: st.DataObject
) -> None:
    text = "SELECT k, count(*) AS n, sum(i) AS s FROM t [RANGE 7 ROWS SLIDE 3 ROWS] GROUP BY k"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=5)))
    query = panes.open(text)
    found = []
    for begin, end in zip([0, *cuts], [*cuts, len(table)], strict=True):
        found.append(query.push(t=table.slice(begin, end - begin)))
        ends = pa.concat_tables(found)["window_end"].to_pylist()
        due = panes.oracle(text, t=table.slice(0, end))["window_end"].to_pylist()
        assert ends == due
    assert not len(query.finish())


@settings(max_examples=25)
@given(table=streams, data=st.data())
def test_a_landmark_stream_keeps_one_partial_per_key_and_answers_like_the_oracle(
    table: pa.Table, data: st.DataObject
) -> None:
    aggregates = tuple(a for a in AGGREGATES if panes_knows_as_bounded(a))
    text = f"SELECT k, {select(aggregates)} FROM t [RANGE ALL SLIDE 10 WATTR at] GROUP BY k"
    ordered = table.sort_by("at")
    query = panes.open(text, lateness=0)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=5)))
    found = []
    for begin, end in zip([0, *cuts], [*cuts, len(table)], strict=True):
        found.append(query.push(t=ordered.slice(begin, end - begin)))
    found.append(query.punctuate(t=10_000))
    assert query.state["partials"] <= 3
    found.append(query.finish())
    assert_same(pa.concat_tables(found), panes.oracle(text, t=table))


def panes_knows_as_bounded(aggregate: str) -> bool:
    plan = panes.explain(
        f"SELECT {aggregate} AS c FROM t [TUMBLING 5 WATTR at]",
        details=True,
        t=SCHEMA.empty_table(),
    )
    return "holistic" not in plan


@settings(max_examples=25)
@given(table=streams, split=st.integers(0, 40))
def test_a_union_is_the_bag_of_its_streams(table: pa.Table, split: int) -> None:
    text = (
        "SELECT k, count(*) AS n, sum(i) AS s FROM (u UNION ALL v) [RANGE 9 SLIDE 4 WATTR at] "
        "GROUP BY k"
    )
    parts = {"u": table.slice(0, split), "v": table.slice(split)}
    alone = panes.oracle(text.replace("(u UNION ALL v)", "t"), t=table)
    assert_same(panes.sql(text, **parts), alone)
    assert_same(panes.oracle(text, **parts), alone)
