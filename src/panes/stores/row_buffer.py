"""Rows kept as they came, until no open window holds them (lazy aggregation, thesis 6.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


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
        places = pa.array(which)
        columns = tuple(c.take(places) for c in self.columns)
        return BufferedRows(self.at[which], self.groups[which], columns)


class RowBuffer:
    """The rows of one query that are kept, in the order they came."""

    def __init__(self) -> None:
        self._kept: list[BufferedRows] = []

    def __len__(self) -> int:
        return sum(map(len, self._kept))

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return sum(rows.nbytes for rows in self._kept)

    @property
    def chunks(self) -> tuple[BufferedRows, ...]:
        """What is stored, to be put back later: rows never change."""
        return tuple(self._kept)

    @chunks.setter
    def chunks(self, chunks: Sequence[BufferedRows]) -> None:
        self._kept = list(chunks)

    def add(self, rows: BufferedRows) -> None:
        """Keep rows."""
        if len(rows):
            self._kept.append(rows)

    def everything(self) -> BufferedRows | None:
        """All rows, in one piece; None if there are none."""
        if len(self._kept) > 1:
            columns = zip(*(rows.columns for rows in self._kept), strict=True)
            everything = BufferedRows(
                np.concatenate([rows.at for rows in self._kept]),
                np.concatenate([rows.groups for rows in self._kept]),
                tuple(pa.concat_arrays(column) for column in columns),
            )
            self._kept = [everything]
        return self._kept[0] if self._kept else None

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        """Keep some of `everything`, and forget the others."""
        if not is_kept.all():
            self._kept = [self._kept[0].taken(np.flatnonzero(is_kept))] if is_kept.any() else []

    def live_groups(self) -> NDArray[np.int64]:
        """The groups that have rows, ascending."""
        stored = [np.flatnonzero(np.bincount(rows.groups)) for rows in self._kept]
        return np.unique(np.concatenate(stored)) if stored else np.empty(0, dtype=np.int64)

    def rename_groups(self, new_name: NDArray[np.int64]) -> None:
        """Give groups new numbers."""
        self._kept = [
            BufferedRows(rows.at, new_name[rows.groups].astype(np.int32), rows.columns)
            for rows in self._kept
        ]
