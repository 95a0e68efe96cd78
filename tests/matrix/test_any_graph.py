"""Random queries with queries inside: as if every inner answer had been written down and read."""

from __future__ import annotations

import itertools

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes import RunningQuery
from panes.planning.terms import Late
from tests.matrix import drawn

ROWS = st.lists(
    st.tuples(st.integers(0, 120), st.integers(1, 3), st.integers(0, 9)), min_size=1, max_size=40
)
DISORDER = 15


def stream_of(rows: list[tuple[int, int, int]]) -> pa.Table:
    at, k, v = zip(*rows, strict=True)
    return pa.table({"at": pa.array(at), "k": pa.array(k), "v": pa.array(v)})


def same(found: pa.Table, wanted: pa.Table, text: str) -> None:
    assert drawn.in_order(found).to_pylist() == drawn.in_order(wanted).to_pylist(), text


@settings(max_examples=60)
@given(rows=ROWS, data=st.data())
def test_tables_and_oracle_answer_as_if_inner_answers_were_written_down(
    rows: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    stream, query = stream_of(rows), drawn.query(data)
    wanted = query.answers(stream, drawn.alone)
    same(panes.sql(query.text, s=stream), wanted, query.text)
    same(panes.oracle(query.text, s=stream), wanted, query.text)


@settings(max_examples=60)
@given(rows=ROWS, data=st.data())
def test_streams_answer_the_same_in_any_order_and_split(
    rows: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    """The rows come disordered, none further behind than the lateness."""
    delays = data.draw(st.lists(st.integers(0, DISORDER), min_size=len(rows), max_size=len(rows)))
    keyed = sorted(zip(rows, delays, strict=True), key=lambda r: r[0][0] + r[1])
    stream, query = stream_of([row for row, _ in keyed]), drawn.query(data)
    running = panes.open(query.text, lateness=DISORDER)
    found = _pushed(running, stream, data)
    assert len(running.late) == 0
    same(found, query.answers(stream, drawn.alone), query.text)
    assert running.state["partials"] == 0


@settings(max_examples=50)
@given(rows=ROWS, data=st.data())
def test_late_rows_count_as_they_count_in_the_inner_query_alone(
    rows: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    """What an inner query answers of a late stream is what the outer one reads."""
    stream, query = stream_of(rows), drawn.query(data)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    terms: list[Late] = ["open", "drop"]
    late = data.draw(st.sampled_from(terms))

    def alone(text: str, tables: dict[str, pa.Table]) -> pa.Table:
        if "s" not in tables:
            return drawn.alone(text, tables)
        running = panes.open(text, lateness=3, late=late)
        return _in_batches(running, tables["s"], cuts)

    running = panes.open(query.text, lateness=3, late=late)
    found = _in_batches(running, stream, cuts)
    same(found, query.answers(stream, alone), query.text)


def _pushed(running: RunningQuery, stream: pa.Table, data: st.DataObject) -> pa.Table:
    return _in_batches(
        running, stream, sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    )


def _in_batches(running: RunningQuery, stream: pa.Table, cuts: list[int]) -> pa.Table:
    edges = [0, *cuts, len(stream)]
    found = [running.push(s=stream.slice(a, b - a)) for a, b in itertools.pairwise(edges)]
    found.append(running.finish())
    return pa.concat_tables([table for table in found if table.num_columns])
