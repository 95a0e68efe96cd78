"""A batch of rows as a pipeline takes it, and counting rows inside partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.compiled import compiled


@dataclass(frozen=True, slots=True)
class Arrival:
    """Rows that have a place, in arrival order.

    `columns` are the projected columns of the rows that WHERE keeps and that count, `kept` says
    which ones those are. `partition` are the partitioning columns of all rows, if any window
    counts rows: then a row counts before WHERE, as it does in the papers.
    """

    at: NDArray[np.int64]
    kept: NDArray[np.int64]
    columns: Sequence[pa.Array]
    partition: Sequence[pa.Array]


class Ranks:
    """How many rows each partition has had."""

    def __init__(self) -> None:
        self.count = np.zeros(0, dtype=np.int64)

    def take(self, partition: NDArray[np.signedinteger]) -> NDArray[np.int64]:
        """The rank of each row in its partition, from 0 on, in the order given."""
        self.meet(int(partition.max(initial=-1)) + 1)
        ranks = np.empty(len(partition), dtype=np.int64)
        _rank(partition, self.count, ranks)
        return ranks

    def meet(self, partitions: int) -> None:
        """There are so many partitions by now; new ones have had no row."""
        new = max(partitions - len(self.count), 0)
        self.count = np.r_[self.count, np.zeros(new, dtype=np.int64)] if new else self.count

    def restore(self, partition: NDArray[np.signedinteger], count: NDArray[np.int64]) -> None:
        """Go on from counts that are known."""
        self.count = np.zeros(int(partition.max(initial=-1)) + 1, dtype=np.int64)
        self.count[partition] = count


@compiled
def _rank(partition, count, ranks):  # type: ignore[no-untyped-def]
    for i in range(partition.shape[0]):
        ranks[i] = count[partition[i]]
        count[partition[i]] += 1
