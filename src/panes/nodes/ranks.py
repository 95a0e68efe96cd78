"""Ranks: the number of each row inside its partition, from 0 on.

Row windows of a partition slide over ranks (thesis 5.1.3), and ``SLIDE n ROWS`` of a per-row window
counts with them. A partition's count never falls, so no two of its rows have one rank.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled


class Ranks:
    """How many rows each partition has had."""

    def __init__(self) -> None:
        self.count = np.zeros(0, dtype=np.int64)

    def take(self, partition: NDArray[np.signedinteger]) -> NDArray[np.int64]:
        """The rank of each row in its partition, in the order given; the rows are counted."""
        self.meet(int(partition.max(initial=-1)) + 1)
        ranks, count = np.empty(len(partition), dtype=np.int64), self.count.copy()
        _rank(partition, count, ranks)
        self.count = count
        return ranks

    def meet(self, partitions: int) -> None:
        """Make room for so many partitions; new ones have had no row."""
        new = max(partitions - len(self.count), 0)
        self.count = np.r_[self.count, np.zeros(new, dtype=np.int64)] if new else self.count

    def restore(self, partition: NDArray[np.signedinteger], count: NDArray[np.int64]) -> None:
        """Go on from the counts of a run before this one."""
        self.count = np.zeros(int(partition.max(initial=-1)) + 1, dtype=np.int64)
        self.count[partition] = count


@compiled
def _rank(partition, count, ranks):  # type: ignore[no-untyped-def]
    for i in range(partition.shape[0]):
        ranks[i] = count[partition[i]]
        count[partition[i]] += 1
