"""The rows of the largest window, as columns: appended behind, evicted in front.

Positions ascend. Both ends move in amortised constant time per row: room is doubled when it runs
out, and evicted rows are overwritten once they are half of it. A row that lies behind others is put
in its place by taking those out and appending all of them again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FIRST_ROOM = 64


class Tail:
    """Positions and one 64-bit integer for each, in axis order."""

    def __init__(self) -> None:
        self.buffer: NDArray[np.int64] = np.empty((2, _FIRST_ROOM), dtype=np.int64)
        self.first = 0
        self.last = 0

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def at(self) -> NDArray[np.int64]:
        """The positions; a view."""
        return self.buffer[0, self.first : self.last]

    @property
    def keys(self) -> NDArray[np.int64]:
        """What is kept for each position; a view."""
        return self.buffer[1, self.first : self.last]

    def append(self, at: NDArray[np.int64], keys: NDArray[np.int64]) -> None:
        """Add rows behind the others."""
        self.reserve(len(at))
        self.buffer[0, self.last : self.last + len(at)] = at
        self.buffer[1, self.last : self.last + len(at)] = keys
        self.last += len(at)

    def reserve(self, count: int) -> None:
        """Make room for so many more rows."""
        if self.last + count <= self.buffer.shape[1]:
            return
        kept = self.buffer[:, self.first : self.last]
        room = self.buffer.shape[1]
        if 2 * (len(self) + count) > room:
            self.buffer = np.empty((2, 2 * (len(self) + count)), dtype=np.int64)
        self.buffer[:, : kept.shape[1]] = kept
        self.first, self.last = 0, kept.shape[1]

    def evict_before(self, at: int) -> None:
        """Drop the rows before a position."""
        self.first += int(np.searchsorted(self.at, at))

    def cut_after(self, at: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Take out the rows behind a position; those at it stay."""
        first = self.first + int(np.searchsorted(self.at, at, side="right"))
        taken = self.buffer[:, first : self.last].copy()
        self.last = first
        return taken[0], taken[1]


def in_axis_order(
    at: NDArray[np.int64], keys: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows by position, those at one position as they stand.

    >>> in_axis_order(np.array([3, 1, 3]), np.array([7, 8, 9]))
    (array([1, 3, 3]), array([8, 7, 9]))
    """
    if (at[1:] >= at[:-1]).all():
        return at, keys
    order = np.argsort(at, kind="stable")
    return at[order], keys[order]
