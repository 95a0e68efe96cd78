"""Rows buffered as they came, until no open window holds them (lazy aggregation, thesis 6.3).

Chunks of rows never change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.slots import distinct


@dataclass(frozen=True, slots=True)
class BufferedRows:
    """Rows at their positions, each of a group, with the columns that aggregates read."""

    at: NDArray[np.int64]
    groups: NDArray[np.int32]
    columns: tuple[pa.Array, ...]

    def __len__(self) -> int:
        return len(self.at)

    @property
    def nbytes(self) -> int:
        return self.at.nbytes + self.groups.nbytes + sum(c.nbytes for c in self.columns)

    def taken(self, which: NDArray[np.int64]) -> BufferedRows:
        """Some of the rows."""
        indexes = pa.array(which)
        columns = tuple(c.take(indexes) for c in self.columns)
        return BufferedRows(self.at[which], self.groups[which], columns)


class RowBuffer:
    """The buffered rows of one query, in the order they came."""

    def __init__(self) -> None:
        self._chunks: list[BufferedRows] = []

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return sum(rows.nbytes for rows in self._chunks)

    def add(self, rows: BufferedRows) -> None:
        """Buffer rows."""
        if len(rows):
            self._chunks.append(rows)

    def everything(self) -> BufferedRows | None:
        """All rows, in one piece; None if there are none."""
        if len(self._chunks) > 1:
            columns = zip(*(rows.columns for rows in self._chunks), strict=True)
            everything = BufferedRows(
                np.concatenate([rows.at for rows in self._chunks]),
                np.concatenate([rows.groups for rows in self._chunks]),
                tuple(pa.concat_arrays(column) for column in columns),
            )
            self._chunks = [everything]
        return self._chunks[0] if self._chunks else None

    def keep(self, is_needed: NDArray[np.bool_]) -> None:
        """Forget those rows of `everything` that are not needed."""
        if not is_needed.all():
            needed = np.flatnonzero(is_needed)
            self._chunks = [self._chunks[0].taken(needed)] if len(needed) else []

    def live_groups(self) -> NDArray[np.int64]:
        """The groups that have rows, ascending."""
        stored = [distinct(rows.groups) for rows in self._chunks]
        return distinct(np.concatenate(stored)) if stored else np.empty(0, dtype=np.int64)

    def rename_groups(self, new_name: NDArray[np.int64]) -> None:
        """Give groups new numbers."""
        self._chunks = [
            BufferedRows(rows.at, new_name[rows.groups].astype(np.int32), rows.columns)
            for rows in self._chunks
        ]
