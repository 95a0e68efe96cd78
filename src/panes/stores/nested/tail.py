"""The rows of the largest window, as columns: appended behind, evicted in front.

Positions ascend. Both ends move in amortised constant time per row: room is doubled when it runs
out, and evicted rows are overwritten once they are half of it. A row that lies behind others is put
in order by taking those out and appending all of them again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.arrays.ordering import is_sorted, sort

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
        """The values at each position; a view."""
        return self.buffer[1, self.first : self.last]

    def append(self, at: NDArray[np.int64], keys: NDArray[np.int64]) -> None:
        """Add rows behind the others."""
        self.reserve(len(at))
        self.buffer[0, self.last : self.last + len(at)] = at
        self.buffer[1, self.last : self.last + len(at)] = keys
        self.last += len(at)

    def remembered(self) -> Callable[[], None]:
        """A way back to the rows of now: later ones are written over them."""
        rows = self.buffer[:, self.first : self.last].copy()

        def undo() -> None:
            self.buffer, self.first, self.last = rows, 0, rows.shape[1]

        return undo

    def written(self) -> dict[str, object]:
        """The rows of now, as attributes that nobody writes to."""
        return {
            "buffer": self.buffer[:, self.first : self.last].copy(),
            "first": 0,
            "last": len(self),
        }

    def reserve(self, count: int) -> None:
        """Make room for so many more rows."""
        if self.last + count <= self.buffer.shape[1]:
            return
        stored = self.buffer[:, self.first : self.last]
        room = self.buffer.shape[1]
        if 2 * (len(self) + count) > room:
            self.buffer = np.empty((2, 2 * (len(self) + count)), dtype=np.int64)
        self.buffer[:, : stored.shape[1]] = stored
        self.first, self.last = 0, stored.shape[1]

    def evict_before(self, at: int) -> None:
        """Drop the rows before a position."""
        self.first += int(np.searchsorted(self.at, at))

    def cut_after(self, at: int) -> Columns:
        """Take out the rows behind a position; those at it stay."""
        first = self.first + int(np.searchsorted(self.at, at, side="right"))
        taken = self.buffer[:, first : self.last].copy()
        self.last = first
        return taken[0], taken[1]


Columns: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Positions, and what is stored for each."""


def in_axis_order(at: NDArray[np.int64], keys: NDArray[np.int64]) -> Columns:
    """Rows by position, those at one position as they stand.

    >>> in_axis_order(np.array([3, 1, 3]), np.array([7, 8, 9]))
    (array([1, 3, 3]), array([8, 7, 9]))
    """
    if is_sorted(at):
        return at, keys
    order, ascending = sort(at)
    return ascending, keys[order]


def merged(older: Columns, newer: Columns) -> Columns:
    """Two runs in axis order as one; at one position the older rows come first.

    >>> merged((np.array([2, 5]), np.array([1, 2])), (np.array([1, 2]), np.array([3, 4])))
    (array([1, 2, 2, 5]), array([3, 1, 4, 2]))
    """
    if not len(older[0]):
        return newer
    both = np.empty((2, len(older[0]) + len(newer[0])), dtype=np.int64)
    _merge(*older, *newer, both)
    return both[0], both[1]


@compiled
def _merge(at, keys, newer_at, newer_keys, both):  # type: ignore[no-untyped-def]
    i, j = 0, 0
    for n in range(both.shape[1]):
        if j == newer_at.shape[0] or (i < at.shape[0] and at[i] <= newer_at[j]):
            both[0, n], both[1, n] = at[i], keys[i]
            i += 1
        else:
            both[0, n], both[1, n] = newer_at[j], newer_keys[j]
            j += 1
