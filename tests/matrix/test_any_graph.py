"""Random queries with queries inside, against loops over rows that share nothing with them.

Catches: a promise that is too early or too late between two queries, rows that are lost or counted
twice on the way, a split that reaches an answer, state that is left. What both the engine and the
oracle could have wrong is seen, too: `plain_rows` uses neither the language nor the windows of
Panes. Late rows are judged by streams alone, so there every query is compared with itself, over
what the queries inside it answered.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import panes
from panes import RunningQuery
from panes.planning.terms import Late
from tests.matrix.any_graph import DISORDER, assert_answers, case, plain


@settings(max_examples=40)
@given(data=st.data())
def test_tables_and_the_oracle_answer_as_loops_over_rows(data: st.DataObject) -> None:
    query, streams = case(data)
    wanted = plain(query, streams)
    assert_answers(panes.sql(query.text, **streams), wanted, query.text)
    assert_answers(panes.oracle(query.text, **streams), wanted, query.text)


@settings(max_examples=40)
@given(data=st.data())
def test_streams_answer_the_same_in_any_order_and_split(data: st.DataObject) -> None:
    """The rows come disordered, none further behind than the lateness; nothing stays behind."""
    query, streams = case(data)
    running = panes.open(query.text, lateness=DISORDER)
    found = pushed(running, streams, data)
    assert not len(running.late)
    assert_answers(found, plain(query, streams), query.text)
    assert {n: running.state.get(n, 0) for n in ("partials", "rows")} == {
        "partials": 0,
        "rows": 0,
    }


@settings(max_examples=40)
@given(data=st.data())
def test_late_rows_count_as_they_count_in_the_inner_query_alone(data: st.DataObject) -> None:
    """What an inner query answers of a late stream is what the outer one reads."""
    query, streams = case(data)
    assume(query.is_layered)
    cuts = sorted(data.draw(st.lists(st.integers(0, 25), max_size=4)))
    terms: list[Late] = ["open", "drop"]
    late = data.draw(st.sampled_from(terms))

    def alone(text: str, tables: dict[str, pa.Table]) -> pa.Table:
        if streams.keys().isdisjoint(tables):
            return panes.sql(text, **tables)
        return in_batches(panes.open(text, lateness=3, late=late), tables, cuts)

    found = in_batches(panes.open(query.text, lateness=3, late=late), streams, cuts)
    assert_answers(found, query.in_steps(streams, alone).to_pylist(), query.text)


def pushed(running: RunningQuery, streams: Mapping[str, pa.Table], data: st.DataObject) -> pa.Table:
    return in_batches(running, streams, sorted(data.draw(st.lists(st.integers(0, 25), max_size=6))))


def in_batches(
    running: RunningQuery, streams: Mapping[str, pa.Table], cuts: Sequence[int]
) -> pa.Table:
    """Rows pushed until all are in, those of every stream cut at the same numbers."""
    found = [
        running.push(**{name: table.slice(a, b - a) for name, table in streams.items()})
        for a, b in itertools.pairwise([0, *cuts, max(map(len, streams.values()))])
        if b >= a
    ]
    found.append(running.finish())
    return pa.concat_tables([table for table in found if table.num_columns])
