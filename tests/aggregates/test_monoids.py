"""The laws every monoid must obey. A new monoid joins by one line in `tests/aggregates/pieces.py`.

Catches: a wrong neutral element, a combine that depends on grouping or order, an absorb that says
something else than combine, a merge of slots that loses or repeats a partial.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panes.aggregates import hll_bytes, theta_bytes
from panes.aggregates.aggregate import Piece, Rows
from panes.aggregates.hll import Hll
from panes.aggregates.monoid import Columns, Monoid, merge_slots
from panes.aggregates.theta import Theta
from panes.aggregates.tuples import Tuples
from panes.reference.compare import same
from tests.aggregates.pieces import PIECES
from tests.strategies import streams
from tests.support import SCHEMA

each_piece = pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES.keys())


def said(partials: Columns) -> list[Any]:
    """Partials as plain values; a sketch as its bytes or its estimate, a vector as a list."""
    return [_said(v) for v in partials.ravel().tolist()]


def _said(value: Any) -> Any:
    if isinstance(value, Hll):
        return value.widest, hll_bytes.written(value)
    if isinstance(value, Theta):
        return value.is_empty, theta_bytes.written(value)
    if isinstance(value, Tuples):
        numbers = value.summaries.numbers.written().tolist()
        return value.is_empty, value.bound, value.hashes.tolist(), numbers
    if hasattr(value, "get_estimate"):
        return value.get_estimate()
    return value.tolist() if _is_vector(value) else value


def _is_vector(value: object) -> bool:
    return isinstance(value, np.ndarray)


def assert_equal(monoid: Monoid, a: Columns, b: Columns) -> None:
    if isinstance(monoid.dtype, type(np.dtype(np.float64))) and monoid.names[:1] == ("sum",):
        a, b = a.sum(axis=0, keepdims=True), b.sum(axis=0, keepdims=True)
    assert all(same(x, y) for x, y in zip(said(a), said(b), strict=True))


def lifted(piece: Piece, table: pa.Table, slots: np.ndarray, size: int) -> Columns:
    columns = tuple(c.combine_chunks() for c in table.columns)
    return piece.lift(Rows(table["at"].to_numpy(), columns), slots, size)


@each_piece
@settings(max_examples=30)
@given(table=streams, data=st.data())
def test_empty_is_neutral_and_combine_is_associative_and_commutative(
    piece: Piece, table: pa.Table, data: st.DataObject
) -> None:
    slots = np.array(
        data.draw(st.lists(st.integers(0, 2), min_size=len(table), max_size=len(table)))
    )
    parts = lifted(piece, table, slots.astype(np.int64), 3)
    a, b, c = (parts[:, [i]] for i in range(3))
    monoid = piece.monoid
    assert_equal(monoid, monoid.combine(monoid.empty(1), a), a)
    assert_equal(monoid, monoid.combine(a, monoid.empty(1)), a)
    assert_equal(monoid, monoid.combine(a, b), monoid.combine(b, a))
    left = monoid.combine(monoid.combine(a, b), c)
    assert_equal(monoid, left, monoid.combine(a, monoid.combine(b, c)))


@each_piece
@settings(max_examples=30)
@given(table=streams)
def test_lifting_rows_together_is_lifting_them_apart_and_combining(
    piece: Piece, table: pa.Table
) -> None:
    together = lifted(piece, table, np.zeros(len(table), dtype=np.int64), 1)
    apart = lifted(piece, table, np.arange(len(table)), len(table))
    combined = piece.monoid.empty(1)
    for i in range(len(table)):
        combined = piece.monoid.combine(combined, apart[:, [i]])
    assert_equal(piece.monoid, together, combined)


@each_piece
@settings(max_examples=30)
@given(table=streams, data=st.data())
def test_merging_slots_is_combining_one_after_the_other(
    piece: Piece, table: pa.Table, data: st.DataObject
) -> None:
    count = len(table)
    slots = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count)), dtype=np.int64
    )
    apart = lifted(piece, table, np.arange(count), count)
    merged = merge_slots(piece.monoid, apart, slots, 4)
    for slot in range(4):
        expected = piece.monoid.empty(1)
        for i in np.flatnonzero(slots == slot):
            expected = piece.monoid.combine(expected, apart[:, [i]])
        assert_equal(piece.monoid, merged[:, [slot]], expected)


@each_piece
def test_rows_with_a_negative_slot_are_passed_over(piece: Piece) -> None:
    table = pa.Table.from_pylist(
        [{"at": 1, "k": "a", "b": True, "i": 5, "x": 2.5, "s": "q", "d": None, "t": None}],
        schema=SCHEMA,
    )
    nothing = lifted(piece, table, np.array([-1]), 2)
    assert_equal(piece.monoid, nothing, piece.monoid.empty(2))
