"""A batch of rows as a pipeline takes it: their positions, and the columns of those that pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Arrival:
    """Rows that have a position, in the order they came.

    `columns` are the plan's projected columns of the rows that pass WHERE, and `passing` are the
    indexes of these rows; None: all of them. `partition` are the partitioning columns of all rows,
    where windows count rows: there a row counts before WHERE, as it does in the papers.
    """

    at: NDArray[np.int64]
    columns: Sequence[pa.Array]
    passing: NDArray[np.int64] | None = None
    partition: Sequence[pa.Array] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of positions and columns."""
        passing = 0 if self.passing is None else self.passing.nbytes
        return self.at.nbytes + passing + sum(c.nbytes for c in (*self.columns, *self.partition))

    @property
    def passing_rows(self) -> NDArray[np.int64]:
        """The indexes of the rows that pass."""
        return np.arange(len(self.at)) if self.passing is None else self.passing

    @property
    def passing_at(self) -> NDArray[np.int64]:
        """The positions of the rows that pass."""
        return self.at if self.passing is None else self.at[self.passing]


def joined(arrivals: Sequence[Arrival]) -> Arrival:
    """Batches, at least one, as one: their rows one batch after the other."""
    some = [a for a in arrivals if len(a.at)]
    if len(some) < 2:
        return some[0] if some else arrivals[0]
    begins = np.cumsum([0, *(len(a.at) for a in some[:-1])])
    passing = [a.passing_rows + begin for a, begin in zip(some, begins, strict=True)]
    return Arrival(
        at=np.concatenate([a.at for a in some]),
        columns=_stacked([a.columns for a in some]),
        passing=None if all(a.passing is None for a in some) else np.concatenate(passing),
        partition=_stacked([a.partition for a in some]),
    )


def _stacked(batches: Sequence[Sequence[pa.Array]]) -> list[pa.Array]:
    return [pa.concat_arrays(column) for column in zip(*batches, strict=True)]
