"""Rows of one side of a join, sorted by key and then by position.

What a join looks at stands in two columns, `code` and `at`, in that order. The columns of the rows
themselves stay where they are; `row` says where each sorted row is in them. So sorting moves two
numbers a row, whatever the rows hold, and rows that find no partner are never touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.arrays.gather import gather
from panes.arrays.nearly_sorted import sort_pairs

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Rows by code and position; `marks` says what each has been joined with, if that matters.

    Nothing in it is ever written to.
    """

    code: Numbers
    at: Numbers
    row: Numbers
    columns: tuple[pa.Array, ...]
    marks: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        code: Numbers,
        at: Numbers,
        columns: Sequence[pa.Array],
        marks: NDArray[np.int64] | None = None,
    ) -> SortedRows:
        """Rows in any order, sorted."""
        order, code, at = sort_pairs(code, at)
        return cls(code, at, order, tuple(columns), None if marks is None else marks[order])

    def __len__(self) -> int:
        return len(self.at)

    @property
    def nbytes(self) -> int:
        """Bytes of memory; slices count with what they show."""
        own = self.code.nbytes + self.at.nbytes + self.row.nbytes
        own += 0 if self.marks is None else self.marks.nbytes
        return own + sum(column.nbytes for column in self.columns)

    def taken(self, index: Numbers) -> list[pa.Array]:
        """The columns of some rows, by their places in the order; none (NULL) where it is -1."""
        if len(index) and index.min() < 0:
            rows = pa.array(self.row[index], mask=index < 0)
            return [c.take(rows) for c in self.columns]
        return gather(self.columns, self.row, index)

    def where(self, kept: NDArray[np.bool_]) -> SortedRows:
        """Some of the rows, without the columns of the others."""
        return self.picked(np.flatnonzero(kept))

    def picked(self, places: Numbers) -> SortedRows:
        """The rows at these places, which are in order, without the columns of the others."""
        return SortedRows(
            self.code[places],
            self.at[places],
            np.arange(len(places)),
            tuple(gather(self.columns, self.row, places)),
            None if self.marks is None else self.marks[places],
        )

    def marked(self, marks: NDArray[np.int64]) -> SortedRows:
        """The same rows, joined with more."""
        return replace(self, marks=marks)

    def merged(self, other: SortedRows) -> SortedRows:
        """The rows of both, in one order."""
        order = np.empty(len(self) + len(other), dtype=np.int64)
        _merge(self.code, self.at, other.code, other.at, order)
        code, at, row = (
            np.concatenate(pair)[order]
            for pair in (
                (self.code, other.code),
                (self.at, other.at),
                (self.row, other.row + (len(self.columns[0]) if self.columns else 0)),
            )
        )
        columns = tuple(
            pa.concat_arrays(pair) for pair in zip(self.columns, other.columns, strict=True)
        )
        marks = None
        if self.marks is not None and other.marks is not None:
            marks = np.concatenate([self.marks, other.marks])[order]
        return SortedRows(code, at, row, columns, marks)


@compiled
def _merge(code, at, other_code, other_at, order):  # type: ignore[no-untyped-def]
    i, j, n, m = 0, 0, code.shape[0], other_code.shape[0]
    for k in range(n + m):
        first = j >= m or (
            i < n
            and (code[i] < other_code[j] or (code[i] == other_code[j] and at[i] <= other_at[j]))
        )
        if first:
            order[k] = i
            i += 1
        else:
            order[k] = n + j
            j += 1
