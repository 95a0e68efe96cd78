"""Rows that wait for progress to pass them.

They wait in columns, beside a store; a row that WHERE leaves out may wait without columns, because
it is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.ordering import is_sorted, stable_order

KeysOf: TypeAlias = Callable[[NDArray[np.int64]], list[pa.Array]]
NumberOf: TypeAlias = Callable[[Sequence[pa.Array], int], NDArray[np.int32]]


@dataclass(frozen=True, slots=True)
class Waiting:
    """Rows at their positions, each of a group.

    `row` is where a row's columns stand in `columns`, and ascends; -1 for a row that is only
    counted.
    """

    at: NDArray[np.int64]
    group: NDArray[np.signedinteger]
    row: NDArray[np.int64]
    columns: tuple[pa.Array, ...]

    def __len__(self) -> int:
        return len(self.at)

    @property
    def nbytes(self) -> int:
        """Bytes of positions, groups and columns."""
        beside = self.at.nbytes + self.group.nbytes + self.row.nbytes
        return beside + sum(c.nbytes for c in self.columns)

    def taken(self, which: NDArray[np.generic]) -> Waiting:
        """Some of the rows, with the columns of no others, in the order of the rows."""
        row = self.row[which]
        has_columns = np.flatnonzero(row >= 0)
        renamed = np.full(len(row), -1, dtype=np.int64)
        renamed[has_columns] = np.arange(len(has_columns))
        columns = tuple(c.take(pa.array(row[has_columns])) for c in self.columns)
        return Waiting(self.at[which], self.group[which], renamed, columns)


class OpenRows:
    """The rows of one query that wait."""

    def __init__(self) -> None:
        self._stored: list[Waiting] = []

    def __len__(self) -> int:
        return sum(map(len, self._stored))

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return sum(w.nbytes for w in self._stored)

    def add(self, rows: Waiting) -> None:
        """Let rows wait."""
        self._stored.append(rows)

    def positions(self) -> NDArray[np.int64]:
        """Where the rows lie, in no order."""
        return self._everything().at

    def due(self, progress: int) -> Waiting:
        """Take out the rows before `progress`, by position and then in the order they came."""
        everything = self._everything()
        if not is_sorted(everything.at):
            everything = everything.taken(stable_order(everything.at))
        is_due = everything.at < progress
        if is_due.all():
            self._stored = []
            return everything
        self._stored = [everything.taken(~is_due)]
        return everything.taken(is_due)

    def rename(self, new_name: NDArray[np.int64]) -> None:
        """Give groups new numbers."""
        self._stored = [replace(w, group=new_name[w.group]) for w in self._stored]

    def tables(self, keys_of: KeysOf) -> dict[str, pa.Table]:
        """All of it, groups as the values that `keys_of` tells."""
        stored = self._everything()
        named = {"at": pa.array(stored.at), "row": pa.array(stored.row)}
        tables = {
            "waiting": pa.table({**named, **numbered(keys_of(stored.group.astype(np.int64)))})
        }
        if stored.columns:
            tables["columns"] = pa.table(numbered(stored.columns))
        return tables

    def put_back(self, tables: Mapping[str, pa.Table], number_of: NumberOf) -> None:
        """Take in what `tables` gave."""
        at, row, *keys = arrays(tables["waiting"])
        columns = tuple(arrays(tables["columns"])) if "columns" in tables else ()
        group = number_of(keys, len(at))
        self._stored = [Waiting(at.to_numpy(), group, row.to_numpy(), columns)]

    def _everything(self) -> Waiting:
        stored = [w for w in self._stored if len(w)]
        if len(stored) == 1:
            return stored[0]
        if not stored:
            nothing = np.empty(0, dtype=np.int64)
            return Waiting(nothing, nothing, nothing, ())
        begins = np.cumsum([0, *(len(w.columns[0]) if w.columns else 0 for w in stored[:-1])])
        rows = [np.where(w.row < 0, -1, w.row + b) for w, b in zip(stored, begins, strict=True)]
        return Waiting(
            np.concatenate([w.at for w in stored]),
            np.concatenate([w.group for w in stored]),
            np.concatenate(rows),
            tuple(pa.concat_arrays(c) for c in zip(*(w.columns for w in stored), strict=True)),
        )


def numbered(columns: Sequence[pa.Array]) -> dict[str, pa.Array]:
    """Columns under their numbers."""
    return {f"c{i}": column for i, column in enumerate(columns)}


def arrays(table: pa.Table) -> list[pa.Array]:
    """The columns of a table, each in one piece."""
    return [column.combine_chunks() for column in table.columns]
