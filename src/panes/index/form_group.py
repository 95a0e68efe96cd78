"""GROUP: a basic window is counts of groups of values, not of values (paper, 2.2).

| arrival | seal | evict | memory |
|---|---|---|---|
| g (paper), log g here | g / b | g / b | g |

g groups, b rows in a basic window. A group is a range of values. Its label is stored with the
index, not with the basic windows. Groups are made from the values of the first basic window, so
that each has about as many rows; values beyond them are in the first and the last group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.index.domain import Keys


class GroupForm:
    """The counts of the newest basic window's groups. `edges` are the least keys of all but one."""

    def __init__(self, edges: Keys) -> None:
        self.edges = edges
        self.counts: NDArray[np.int32] = np.zeros(len(edges) + 1, dtype=np.int32)

    def add(self, keys: Keys) -> None:
        """More rows."""
        _count(self.edges, keys, self.counts)

    def seal(self) -> NDArray[np.int32]:
        """The counts, which then begin again."""
        counts, self.counts = self.counts, np.zeros_like(self.counts)
        return counts

    def group_of(self, key: int) -> int:
        """The group of one key."""
        return int(np.searchsorted(self.edges, key, side="right"))


def group_edges(keys: Keys, groups: int) -> Keys:
    """The least keys of groups with about as many of these keys each, the first group's aside.

    >>> group_edges(np.arange(100), 4)
    array([25, 50, 75])
    """
    if not len(keys):
        return np.zeros(0, dtype=np.int64)
    ranked = np.sort(keys)
    places = (np.arange(1, groups) * len(ranked)) // groups
    return np.unique(ranked[places])


@compiled
def _count(edges, keys, counts):  # type: ignore[no-untyped-def]
    for i in range(keys.shape[0]):
        low, high = 0, edges.shape[0]
        while low < high:
            middle = (low + high) >> 1
            if edges[middle] <= keys[i]:
                low = middle + 1
            else:
                high = middle
        counts[low] += 1
