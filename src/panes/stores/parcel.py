"""Partials on the way to another host, or at rest in its state: plain columns.

A parcel numbers its own keys and panes, so whoever opens it needs nothing but the plan. Whole
numbers are written in as few bytes as they need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates import wire
from panes.aggregates.aggregate import Piece
from panes.aggregates.monoid import Columns
from panes.arrays.columns import column_of

_KEYS, _STARTS, _PANES, _VALUES = "keys", "starts", "panes", "values"
_PANE, _GROUP, _COUNT = "pane", "group", "count"


@dataclass(frozen=True, slots=True)
class Counted:
    """Values of one multiset, counted per pane and group."""

    starts: NDArray[np.int64]
    groups: NDArray[np.int64]
    values: list[pa.Array]
    counts: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Parcel:
    """Partials per pane and group. Groups are numbered as the rows of `keys`."""

    keys: list[pa.Array]
    starts: NDArray[np.int64]
    groups: NDArray[np.int64]
    partials: tuple[Columns, ...]
    values: tuple[Counted, ...]

    def __len__(self) -> int:
        return len(self.starts) + sum(len(v.starts) for v in self.values)


def to_tables(pieces: Sequence[Piece], parcel: Parcel) -> dict[str, pa.Table]:
    """The columns of a parcel, whose partials are those of some pieces."""
    stored = [parcel.starts, *(v.starts for v in parcel.values)]
    starts = np.unique(np.concatenate(stored))

    def placed(of: Parcel | Counted) -> dict[str, pa.Array]:
        return {_PANE: narrowed(np.searchsorted(starts, of.starts)), _GROUP: narrowed(of.groups)}

    columns = placed(parcel)
    for i, (piece, partial) in enumerate(zip(pieces, parcel.partials, strict=True)):
        lanes = enumerate(wire.to_arrow(piece, partial))
        columns |= {f"p{i}_{j}": _lane(partial, j, lane) for j, lane in lanes}
    tables = {
        _KEYS: pa.table({f"k{i}": column for i, column in enumerate(parcel.keys)}),
        _STARTS: pa.table({_PANE: starts}),
        _PANES: pa.table(columns),
    }
    for i, counted in enumerate(parcel.values):
        named = placed(counted)
        named |= {f"v{j}": column for j, column in enumerate(counted.values)}
        tables[f"{_VALUES}{i}"] = pa.table(named | {_COUNT: narrowed(counted.counts)})
    return tables


def from_tables(pieces: Sequence[Piece | None], tables: Mapping[str, pa.Table]) -> Parcel | None:
    """The parcel among these tables, if there is one.

    The pieces are those it was written with; of those that are None, the partials are left out.
    """
    if _PANES not in tables:
        return None
    panes, starts = tables[_PANES], column_of(tables[_STARTS], _PANE).to_numpy()
    partials = []
    for i, piece in enumerate(pieces):
        if piece is None:
            continue
        lanes = [column_of(panes, n) for n in panes.column_names if n.startswith(f"p{i}_")]
        partials.append(wire.from_arrow(piece, lanes))
    return Parcel(
        keys=[c.combine_chunks() for c in tables[_KEYS].columns],
        starts=starts[column_of(panes, _PANE)],
        groups=widened(column_of(panes, _GROUP)),
        partials=tuple(partials),
        values=tuple(_counted(t, starts) for n, t in tables.items() if n.startswith(_VALUES)),
    )


def narrowed(numbers: NDArray[np.int64]) -> pa.Array:
    """Whole numbers in the narrowest type that holds them all.

    >>> narrowed(np.array([0, 300])).type
    DataType(int16)
    """
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    for width in (np.int8, np.int16, np.int32):
        if np.iinfo(width).min <= low and high <= np.iinfo(width).max:
            return pa.array(numbers.astype(width))
    return pa.array(numbers)


def widened(array: pa.Array) -> NDArray[np.int64]:
    """The numbers that `narrowed` was given."""
    numbers: NDArray[np.int64] = array.to_numpy().astype(np.int64)
    return numbers


def _lane(partial: Columns, lane: int, written: pa.Array) -> pa.Array:
    return narrowed(partial[lane]) if partial.dtype == np.int64 else written


def _counted(table: pa.Table, starts: NDArray[np.int64]) -> Counted:
    values = [column_of(table, n) for n in table.column_names if n.startswith("v")]
    return Counted(
        starts[column_of(table, _PANE)],
        widened(column_of(table, _GROUP)),
        values,
        widened(column_of(table, _COUNT)),
    )
