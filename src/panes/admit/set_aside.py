"""Rows set aside, late or rejected: their own columns and, last, the reason.

The reason's column is ``reason``, unless the stream has a column of that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.axis import Axis


class SetAside:
    """Late and rejected rows of a query, until they are taken."""

    def __init__(self) -> None:
        self._late: list[pa.Table] = []
        self._rejected: list[pa.Table] = []

    def add(self, late: Iterable[pa.Table], rejected: Iterable[pa.Table]) -> None:
        """Set rows aside."""
        self._late += late
        self._rejected += rejected

    def late(self, schemas: Iterable[pa.Schema]) -> pa.Table:
        """The late rows of streams with these columns."""
        return set_aside(self._late, schemas)

    def rejected(self, schemas: Iterable[pa.Schema]) -> pa.Table:
        """The rejected rows of streams with these columns."""
        return set_aside(self._rejected, schemas)

    def take_late(self, schemas: Iterable[pa.Schema]) -> pa.Table:
        """The late rows, which are then forgotten."""
        taken, self._late = self.late(schemas), []
        return taken


def set_aside(rows: Sequence[pa.Table], schemas: Iterable[pa.Schema]) -> pa.Table:
    """Rows of all streams together, with all their columns even if there are no rows.

    A column that has different types in the streams of a union is shown as text.
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
    axis: Axis, promised: int | NDArray[np.int64], is_open: NDArray[np.bool_], *, late: str
) -> list[str]:
    """Why rows are late, and what became of them.

    `promised` is what was promised of all these rows, or of each. `is_open` says which of them
    still have an open window; one that can be revised counts as open.
    """
    each = np.broadcast_to(promised, len(is_open)).tolist()
    behind = {p: f"behind progress {axis.format(p)}" for p in set(each)}
    if late == "drop":
        return [f"{behind[p]}; dropped" for p in each]
    counted, closed = "counted in its open windows", "all its windows are closed"
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
        found[f.name].cast(f.type) if f.name in found else pa.nulls(len(table), f.type)
        for f in list(schema)[:-1]
    ]
    return pa.table([*columns, reason], schema=schema)
