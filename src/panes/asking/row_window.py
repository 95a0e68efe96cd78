"""The rows of the last stretch of the axis, kept for questions that ask for rows.

Invariant: all rows that were admitted from `known_from` on, and that are not `size` behind the
newest one, are there. A window that is asked for ends just after the newest row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from panes.arrays import order_keys
from panes.asking.refusals import not_known_yet
from panes.asking.row_index import Piece, RowIndex
from panes.asking.row_look_up import LookUp, look_up_of
from panes.asking.row_tail import RowTail, require_rows
from panes.axis import ARRIVAL, BEGINNING, Axis
from panes.errors import QueryError
from panes.expressions.projection import Projection, resolve
from panes.language.query import WINDOW_COLUMNS
from panes.language.row_question import Ordering, RowQuestion

Positions = NDArray[np.int64]


class RowWindow:
    """Rows that are at most so far behind the newest one; and indexes of columns, if any."""

    UNCHANGED = frozenset({"indexes"})  # they notice by themselves if a step is taken back

    def __init__(self, size: int, newest: int = BEGINNING) -> None:
        self.size, self.known_from = size, BEGINNING if newest == BEGINNING else newest + 1
        self._pieces: deque[Piece] = deque()
        self._pushed = 0
        self.indexes: dict[str, RowIndex] = {}

    @classmethod
    def of(cls, tail: RowTail, size: int, newest: int) -> RowWindow:
        """The rows of a tail, as far as they are needed."""
        window = cls(size)
        for at, rows in tail.batches:
            window.push(at, rows, newest)
        window.known_from = tail.known_from
        return window

    def __len__(self) -> int:
        return sum(len(rows) for _, _, rows in self._pieces)

    @property
    def nbytes(self) -> int:
        """Bytes of rows and positions."""
        indexes = sum(index.nbytes for index in self.indexes.values())
        return indexes + sum(at.nbytes + rows.nbytes for _, at, rows in self._pieces)

    def grow(self, size: int, newest: int) -> None:
        """Keep rows longer, or not so long, from now on."""
        if size > self.size and newest != BEGINNING:
            self.known_from = max(self.known_from, newest + 1 - self.size)
        self.size = size

    def push(self, at: Positions, rows: pa.Table, newest: int) -> None:
        """Take in rows; those that no window can hold any more are dropped, batch by batch."""
        if len(at):
            self._pieces.append((int(at.max()), at, rows))
            self._pushed += 1
        while self._pieces and self._pieces[0][0] <= newest - self.size:
            self._pieces.popleft()

    def within(self, start: int, schema: pa.Schema, look_up: LookUp | None = None) -> pa.Table:
        """The rows from a position on, in the order of the axis, then as they came.

        With a `look_up`, some that it does not find may be missing.
        """
        if not self._pieces:
            return schema.empty_table()
        found = None if look_up is None else self._looked_up(look_up, schema)
        if found is None:
            at, rows = _all_of(self._pieces)
        else:
            at, rows = _some_of(self._pieces, found, schema)
        inside = np.flatnonzero(at >= start)
        order = inside[np.argsort(at[inside], kind="stable")]
        return rows.take(pa.array(order))

    def _looked_up(self, look_up: LookUp, schema: pa.Schema) -> Positions | None:
        """Where the rows of a look-up are among all; None if there is no index that is worth it."""
        name = look_up.column
        if name not in self.indexes:
            self.indexes[name] = RowIndex(name, schema.field(name).type)
        index = self.indexes[name]
        index.asked += 1
        if not index.is_worth_it(self._pieces, self._pushed):
            return None
        return index.rows_of(look_up, self._pieces)


def ask_row_window(
    asked: RowQuestion, window: RowWindow, schema: pa.Schema, axis: Axis, newest: int
) -> pa.Table:
    """The rows that a question asks for, of the window that ends just after the newest row."""
    if newest == BEGINNING:
        return answered(asked, schema.empty_table(), schema, axis, (0, 0))
    start = newest + 1 - asked.size
    if start < window.known_from and window.known_from != BEGINNING:
        raise not_known_yet(axis, start, window.known_from)
    rows = window.within(start, schema, look_up_of(asked.where, schema))
    return answered(asked, rows, schema, axis, (start, newest + 1))


def _all_of(pieces: Iterable[Piece]) -> tuple[Positions, pa.Table]:
    every = list(pieces)
    return np.concatenate([at for _, at, _ in every]), pa.concat_tables(r for _, _, r in every)


def _some_of(
    pieces: Iterable[Piece], rows: Positions, schema: pa.Schema
) -> tuple[Positions, pa.Table]:
    """Rows by their numbers, which ascend from the first piece's first row on."""
    begin, positions, parts = 0, [np.zeros(0, dtype=np.int64)], [schema.empty_table()]
    for _, at, piece in pieces:
        low, high = np.searchsorted(rows, (begin, begin + len(at)))
        if low < high:
            within = rows[low:high] - begin
            positions.append(at[within])
            parts.append(piece.take(pa.array(within)))
        begin += len(at)
    return np.concatenate(positions), pa.concat_tables(parts)


def ask_tail(asked: RowQuestion, tail: RowTail | None, schema: pa.Schema) -> pa.Table:
    """The same of the last rows as they came."""
    tail = require_rows(tail, asked.size, f"panes.register(..., keep_rows={asked.size})")
    rows = tail.last(asked.size) if len(tail) else schema.empty_table()
    return answered(asked, rows, schema, ARRIVAL, (tail.arrived - asked.size, tail.arrived))


def answered(
    asked: RowQuestion, rows: pa.Table, schema: pa.Schema, axis: Axis, extent: tuple[int, int]
) -> pa.Table:
    """The answer over the rows of a window, which are in the order of the axis."""
    outputs = outputs_of(asked, schema)
    ordering = [resolve(o.expression, schema, stream=asked.stream) for o in asked.order]
    where = None if asked.where is None else resolve(asked.where, schema, stream=asked.stream)
    project = Projection((*outputs.values(), *ordering), where)
    _, columns = project(rows)
    selected, by = columns[: len(outputs)], columns[len(outputs) :]
    order = _order(asked.order, by, len(selected[0]))[: asked.limit]
    edges = [axis.label(np.full(len(order), edge)) for edge in extent]
    found = [column.take(pa.array(order)) for column in selected]
    return pa.table([*edges, *found], names=[*WINDOW_COLUMNS, *outputs])


def outputs_of(asked: RowQuestion, schema: pa.Schema) -> dict[str, exp.Expression]:
    """What is selected, by name."""
    if asked.columns is not None:
        return {o.name: resolve(o.expression, schema, stream=asked.stream) for o in asked.columns}
    taken = [name for name in schema.names if name.lower() in WINDOW_COLUMNS]
    if taken:
        raise QueryError(
            f"stream `{asked.stream}` has a column `{taken[0]}`, which answers have as well",
            hint="select the columns by name, and rename this one",
        )
    return {name: _column(name) for name in schema.names}


def _column(name: str) -> exp.Expression:
    return exp.column(exp.to_identifier(name, quoted=True))


def _order(orderings: Sequence[Ordering], by: Sequence[pa.Array], rows: int) -> Positions:
    """Where the rows of the answer are; rows that are equal stay as they are."""
    order = np.arange(rows)
    for ordering, column in reversed(list(zip(orderings, by, strict=True))):
        keys = [(
            "by",
            "descending" if ordering.descending else "ascending",
            "at_start" if ordering.nulls_first else "at_end",
        )]  # fmt: skip
        ranked = pa.table({"by": _sortable(column).take(pa.array(order))})
        order = order[pc.sort_indices(ranked, sort_keys=keys).to_numpy()]
    return order


def _sortable(column: pa.Array) -> pa.Array:
    """A column that Arrow sorts as SQL does: NaN is the greatest number."""
    order_keys.require_orderable(column.type, what="ORDER BY")
    if not pa.types.is_floating(column.type):
        return column
    missing = column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(order_keys.encode(column), mask=missing)
