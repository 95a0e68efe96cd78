"""Partials on the way to another host, or at rest in its state: plain columns.

A parcel numbers its own keys, so whoever opens it needs nothing but the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates import wire
from panes.algebra.monoid import Columns
from panes.language.query import KEY
from panes.planning.plan import Plan

_KEYS, _PANES, _VALUES = "keys", "panes", "values"
_START, _GROUP, _COUNT = "start", "group", "count"


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


def to_tables(plan: Plan, parcel: Parcel) -> dict[str, pa.Table]:
    """The columns of a parcel."""
    columns = {_START: pa.array(parcel.starts), _GROUP: pa.array(parcel.groups, pa.int32())}
    for i, (piece, partial) in enumerate(zip(plan.pieces, parcel.partials, strict=True)):
        columns |= {f"p{i}_{j}": lane for j, lane in enumerate(wire.to_arrow(piece, partial))}
    tables = {
        _KEYS: pa.table({f"{KEY}{i}": column for i, column in enumerate(parcel.keys)}),
        _PANES: pa.table(columns),
    }
    for i, counted in enumerate(parcel.values):
        named = {_START: pa.array(counted.starts), _GROUP: pa.array(counted.groups, pa.int32())}
        named |= {f"v{j}": column for j, column in enumerate(counted.values)}
        tables[f"{_VALUES}{i}"] = pa.table(named | {_COUNT: pa.array(counted.counts)})
    return tables


def from_tables(plan: Plan, tables: Mapping[str, pa.Table]) -> Parcel | None:
    """The parcel among these tables, if there is one."""
    if _PANES not in tables:
        return None
    panes = tables[_PANES]
    partials = []
    for i, piece in enumerate(plan.pieces):
        lanes = [_array(panes, n) for n in panes.column_names if n.startswith(f"p{i}_")]
        partials.append(wire.from_arrow(piece, lanes))
    return Parcel(
        keys=[c.combine_chunks() for c in tables[_KEYS].columns],
        starts=_array(panes, _START).to_numpy(),
        groups=_groups(panes),
        partials=tuple(partials),
        values=tuple(_counted(tables[f"{_VALUES}{i}"]) for i in range(len(plan.value_sets))),
    )


def _counted(table: pa.Table) -> Counted:
    values = [_array(table, n) for n in table.column_names if n.startswith("v")]
    return Counted(
        _array(table, _START).to_numpy(), _groups(table), values, _array(table, _COUNT).to_numpy()
    )


def _groups(table: pa.Table) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = _array(table, _GROUP).to_numpy().astype(np.int64)
    return numbers


def _array(table: pa.Table, name: str) -> pa.Array:
    return table.column(name).combine_chunks()
