"""The greatest key of the newest rows, for every window size at once.

A row that is followed by one at least as great is the answer of no window, now or later. What
remains descends like a staircase, and a window's answer is the first step inside it::

    keys   5  9  4  7  7  2        steps  9 ........ 7  2
    size   6  5  4  3  2  1      answers  9  9  7  7  7  2

Keys on the staircase strictly descend while positions ascend. Amortised constant time per row, a
binary search per window, and no window size needs to be known beforehand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.stores.nested.tail import Tail, in_axis_order, merged


class Staircase:
    """The rows that are the greatest of some window that ends with the newest row.

    >>> stairs = Staircase()
    >>> stairs.push(np.arange(6), np.array([5, 9, 4, 7, 7, 2]))
    >>> stairs.at.tolist(), stairs.keys.tolist()
    ([1, 4, 5], [9, 7, 2])
    >>> stairs.greatest(np.array([0, 2, 5, 6]))
    (array([9, 7, 2, 0]), array([ True,  True,  True, False]))
    """

    def __init__(self) -> None:
        self._steps = Tail()

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def at(self) -> NDArray[np.int64]:
        """Where the steps are, oldest first."""
        return self._steps.at

    @property
    def keys(self) -> NDArray[np.int64]:
        """The heights of the steps, highest first."""
        return self._steps.keys

    def push(self, at: NDArray[np.int64], keys: NDArray[np.int64]) -> None:
        """Take in rows that lie behind none of those before them."""
        steps = self._steps
        steps.reserve(len(at))
        steps.last = _push(steps.buffer, steps.first, steps.last, at, keys)

    def merge(self, at: NDArray[np.int64], keys: NDArray[np.int64]) -> None:
        """Take in rows in any order: only the steps that they lie behind are looked at again.

        A row that is no step has one behind it that is as great, and always will have.

        >>> stairs = Staircase()
        >>> stairs.push(np.array([1, 4, 5]), np.array([9, 7, 2]))
        >>> stairs.merge(np.array([3, 2]), np.array([6, 8]))
        >>> stairs.at.tolist(), stairs.keys.tolist()
        ([1, 2, 4, 5], [9, 8, 7, 2])
        """
        if not len(at):
            return
        at, keys = in_axis_order(at, keys)
        self.push(*merged(self._steps.cut_after(int(at[0])), (at, keys)))

    def greatest(self, starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The greatest key from each start on, and whether there is one (0 where not)."""
        step = np.searchsorted(self.at, starts)
        found = step < len(self)
        keys = np.zeros(len(starts), dtype=np.int64)
        keys[found] = self.keys[step[found]]
        return keys, found

    def evict_before(self, at: int) -> None:
        """Drop the steps before a position."""
        self._steps.evict_before(at)


@compiled
def _push(steps, first, last, at, keys):  # type: ignore[no-untyped-def]
    for i in range(at.shape[0]):
        while last > first and steps[1, last - 1] <= keys[i]:
            last -= 1
        steps[0, last] = at[i]
        steps[1, last] = keys[i]
        last += 1
    return last
