"""Rows set aside, late or rejected: their own columns and, last, the reason.

The reason's column is ``reason``, unless the stream has a column of that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.axis import Axis
from panes.errors import RejectedRowsWarning, warn

MOST_ROWS = 1_000_000
"""How many late rows, and how many rejected ones, are stored; more are only counted."""


class RowPile:
    """Rows that were set aside: all are counted, the first ones stored."""

    def __init__(self) -> None:
        self.count = self.stored = 0
        self._tables: tuple[pa.Table, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that are stored."""
        return sum(table.nbytes for table in self._tables)

    def add(self, tables: Iterable[pa.Table]) -> None:
        """More rows."""
        for table in tables:
            fitting = table.slice(0, MOST_ROWS - self.stored)
            self.count += len(table)
            self.stored += len(fitting)
            if len(fitting):
                self._tables += (fitting,)

    def rows(self, schemas: Iterable[pa.Schema]) -> pa.Table:
        """The rows that are stored, of streams with these columns."""
        return set_aside(self._tables, schemas)

    def clear(self) -> None:
        """Forget the rows, but not how many there were."""
        self.stored, self._tables = 0, ()


class SetAside:
    """Late and rejected rows of a query, until they are taken."""

    def __init__(self) -> None:
        self._late, self._rejected = RowPile(), RowPile()
        self._has_warned = False

    def add(
        self, late: Iterable[pa.Table], rejected: Iterable[pa.Table], *, ahead: int = 0
    ) -> None:
        """Set rows aside; so many of them are too far `ahead`, which is told once."""
        self._late.add(late)
        self._rejected.add(rejected)
        if ahead and not self._has_warned:
            self._has_warned = True
            warn(_from_the_future(ahead), RejectedRowsWarning)

    @property
    def counts(self) -> dict[str, int]:
        """How many rows were set aside, and the bytes of those that are stored."""
        nbytes = self._late.nbytes + self._rejected.nbytes
        return {
            "late_rows": self._late.count,
            "rejected_rows": self._rejected.count,
            "set_aside_bytes": nbytes,
        }

    def late(self, schemas: Iterable[pa.Schema]) -> pa.Table:
        """The late rows of streams with these columns."""
        return self._late.rows(schemas)

    def rejected(self, schemas: Iterable[pa.Schema]) -> pa.Table:
        """The rejected rows of streams with these columns."""
        return self._rejected.rows(schemas)

    def take_late(self, schemas: Iterable[pa.Schema]) -> pa.Table:
        """The late rows, which are then forgotten."""
        taken = self.late(schemas)
        self._late.clear()
        return taken


@dataclass(frozen=True, slots=True)
class Aside:
    """Rows that one node has set aside, of streams with these columns."""

    rows: SetAside
    columns: Sequence[pa.Schema]


def late_of(asides: Iterable[Aside]) -> pa.Table:
    """The late rows of all."""
    return _together(one.rows.late(one.columns) for one in asides)


def rejected_of(asides: Iterable[Aside]) -> pa.Table:
    """The rejected rows of all."""
    return _together(one.rows.rejected(one.columns) for one in asides)


def take_late_of(asides: Iterable[Aside]) -> pa.Table:
    """The late rows of all, which are then forgotten."""
    return _together(one.rows.take_late(one.columns) for one in asides)


def _together(tables: Iterable[pa.Table]) -> pa.Table:
    """Rows that were set aside, of different streams, with the columns of all."""
    found = [table for table in tables if table.num_columns]
    if len(found) == 1:
        return found[0]
    return set_aside(found, (pa.schema(list(table.schema)[:-1]) for table in found))


def _from_the_future(rows: int) -> str:
    are = "row is" if rows == 1 else "rows are"
    return f"{rows:,} {are} further ahead than max_ahead and rejected; see `rejected`"


def set_aside(rows: Sequence[pa.Table], schemas: Iterable[pa.Schema]) -> pa.Table:
    """Rows of all streams together, with all their columns even if there are no rows.

    A column that has different types in the streams is shown as text.
    """
    types: dict[str, pa.DataType] = {}
    for schema in schemas:
        for field in schema:
            same = types.get(field.name, field.type) == field.type
            types[field.name] = field.type if same else pa.string()
    shown = pa.schema([*types.items(), (_reason_name(types), pa.string())])
    return pa.concat_tables([shown.empty_table(), *(_as(shown, table) for table in rows)])


def with_reason(rows: pa.Table, reasons: Sequence[str]) -> pa.Table:
    """Rows with the reason they were set aside, in a last column."""
    return rows.append_column(_reason_name(rows.column_names), pa.array(reasons, pa.string()))


def late_reasons(
    axis: Axis,
    promised: int | NDArray[np.int64],
    is_open: NDArray[np.bool_],
    *,
    late: str,
    counted: str = "counted in its open windows",
    closed: str = "all its windows are closed",
) -> list[str]:
    """Why rows are late, and what became of them.

    `promised` is what was promised of all these rows, or of each. `is_open` says which of them
    still have an open window; one that can be revised counts as open.
    """
    each = np.broadcast_to(promised, len(is_open)).tolist()
    behind = {p: f"behind progress {axis.format(p)}" for p in set(each)}
    if late == "drop":
        return [f"{behind[p]}; dropped" for p in each]
    if late == "revise":
        counted = "counted in its windows, closed ones are revised"
        closed = "too late to revise its windows"
    pairs = zip(each, is_open, strict=True)
    return [f"{behind[p]}; {counted if still else closed}" for p, still in pairs]


def no_position(column: str | None) -> str:
    """Why a row without a position is rejected."""
    return f"`{column}` is NULL or outside the axis"


def too_far_ahead(column: str | None) -> str:
    """Why a row from the future is rejected."""
    return f"`{column}` is further ahead of the clock than max_ahead"


def too_far_ahead_of_others(column: str | None, last: int) -> str:
    """Why a row is rejected that lies far ahead of all others."""
    return f"`{column}` is further ahead of all rows so far, up to {last}, than max_ahead"


def _reason_name(columns: Iterable[str]) -> str:
    """``reason``, unless the stream has a column of that name."""
    taken = set(columns)
    name = "reason"
    while name in taken:
        name += "_"
    return name


def _as(schema: pa.Schema, table: pa.Table) -> pa.Table:
    """A table with all columns of a schema, NULL where it has none; the reason comes last."""
    reason = table.column(table.num_columns - 1)
    found = dict(zip(table.column_names[:-1], table.columns[:-1], strict=True))
    columns = [
        _shown(found[f.name], f.type) if f.name in found else pa.nulls(len(table), f.type)
        for f in list(schema)[:-1]
    ]
    return pa.table([*columns, reason], schema=schema)


def _shown(column: pa.ChunkedArray, data_type: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """A column in another type; as text, where Arrow has no cast to that."""
    try:
        return column.cast(data_type)
    except pa.ArrowException:
        return pa.array([None if v is None else str(v) for v in column.to_pylist()], data_type)
