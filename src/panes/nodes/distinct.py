"""Duplicate elimination that forgets on punctuation (DupElim, thesis 8.2).

The first of equal rows comes out, at once. Equal rows have equal positions, so once nothing
before `p` can count any more, rows before `p` need no longer be remembered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.key_numbers import KeyNumbers
from panes.axis import Axis
from panes.errors import ColumnTypeError
from panes.nodes.operator import Operator


@dataclass(frozen=True, slots=True)
class Seen:
    """Rows that have come out and could come again, and their positions."""

    rows: pa.Table | None = None
    at: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return 0 if self.rows is None else len(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes of rows and positions."""
        if self.rows is None or self.at is None:
            return 0
        return self.rows.nbytes + self.at.nbytes


class Distinct(Operator):
    """The different rows of a stream; `seen` is all that is held.

    A row is remembered until it lies further than `within` behind progress; None: for ever. That
    is how long a late row can still count somewhere.
    """

    def __init__(self, axis: Axis, within: int | None = 0) -> None:
        self._axis, self._within = axis, within
        self.seen = self._pushed = Seen()

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that could come again."""
        return self.seen.nbytes

    def push(self, rows: pa.Table) -> pa.Table:
        """The rows that have not come before."""
        require_comparable(rows.schema)
        known = len(self.seen)
        everything = rows if self.seen.rows is None else pa.concat_tables([self.seen.rows, rows])
        columns = [column.combine_chunks() for column in everything.columns]
        numbers = KeyNumbers([c.type for c in columns]).encode(columns, len(everything))
        _, first = np.unique(numbers, return_index=True)
        new = np.sort(first[first >= known]) - known
        fresh = rows.take(pa.array(new))
        at, missing = self._axis.ticks(fresh.column(self._axis.column).combine_chunks())
        placed = fresh if missing is None else fresh.filter(pa.array(~missing))
        before = np.empty(0, dtype=np.int64) if self.seen.at is None else self.seen.at
        self._pushed = Seen(
            placed if self.seen.rows is None else pa.concat_tables([self.seen.rows, placed]),
            np.concatenate([before, at if missing is None else at[~missing]]),
        )
        return fresh

    def settle(self) -> None:
        """Remember what was pushed."""
        self.seen = self._pushed

    def forget(self, progress: int) -> None:
        """Forget rows that no window can count again."""
        if self._within is None or self.seen.rows is None or self.seen.at is None:
            return
        recent = self.seen.at >= progress - self._within
        if not recent.all():
            self.seen = Seen(self.seen.rows.filter(pa.array(recent)), self.seen.at[recent])


def require_comparable(schema: pa.Schema) -> None:
    """Refuse rows with columns whose values are not compared."""
    for field in schema:
        if pa.types.is_nested(field.type):
            raise ColumnTypeError(f"SELECT DISTINCT cannot compare `{field.name}`, {field.type}")
