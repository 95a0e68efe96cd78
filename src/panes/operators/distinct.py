"""Duplicate elimination that forgets on punctuation (DupElim, thesis 8.2).

The first of equal rows comes out, at once. Equal rows have equal positions, so once nothing
before `p` can come, rows before `p` need no longer be remembered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.axis import Axis
from panes.stores.groups import Groups


@dataclass(frozen=True, slots=True)
class Seen:
    """Rows that have come out and could come again, and their positions."""

    rows: pa.Table | None = None
    at: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return 0 if self.rows is None else len(self.rows)


class Distinct:
    """The different rows of a stream; `seen` is all that is held."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        self.seen = self._pushed = Seen()

    def push(self, rows: pa.Table) -> pa.Table:
        """The rows that have not come before."""
        known = len(self.seen)
        everything = rows if self.seen.rows is None else pa.concat_tables([self.seen.rows, rows])
        columns = [column.combine_chunks() for column in everything.columns]
        numbers = Groups([c.type for c in columns]).encode(columns, len(everything))
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

    def punctuate(self, at: int) -> int:
        """The same promise."""
        return at

    def settle(self, progress: int) -> None:
        """Remember what was pushed, but for rows before `progress`."""
        self.seen = self._pushed
        if self.seen.rows is not None and self.seen.at is not None:
            kept = self.seen.at >= progress
            if not kept.all():
                self.seen = Seen(self.seen.rows.filter(pa.array(kept)), self.seen.at[kept])
        self._pushed = self.seen
