"""Basic windows: a window is cut into pieces of one length, and slides by whole ones (paper, 2.1).

They stand in a circular array, the oldest first, with one timestamp each: its number, which is
where it begins in basic lengths. The newest is hidden until it is sealed. Basic windows without
rows are not stored, so that a silence costs nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from panes.index.domain import Entries


@dataclass(frozen=True, slots=True)
class Summary:
    """The content of a basic window beside its rows: entries, or groups, and their counts.

    `youngest` is the last row of each entry, where rows are linked.
    """

    entries: Entries
    counts: NDArray[np.int32]
    youngest: NDArray[np.int32] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        youngest = 0 if self.youngest is None else self.youngest.nbytes
        return self.entries.nbytes + self.counts.nbytes + youngest


@dataclass(frozen=True, slots=True)
class BasicWindow:
    """Rows ``[begin, end)``, which lie in the basic window of a number."""

    number: int
    begin: int
    end: int
    summary: Summary | None = None


class BasicWindows:
    """The sealed basic windows of a window, the oldest first."""

    def __init__(self) -> None:
        self._windows: deque[BasicWindow] = deque()

    def __len__(self) -> int:
        return len(self._windows)

    def __iter__(self) -> Iterator[BasicWindow]:
        return iter(self._windows)

    @property
    def nbytes(self) -> int:
        """Bytes of all summaries."""
        return sum(w.summary.nbytes for w in self._windows if w.summary is not None)

    def append(self, window: BasicWindow) -> None:
        """One more, which is newer than all others."""
        self._windows.append(window)

    def pop_before(self, number: int) -> Iterator[BasicWindow]:
        """Remove those with smaller numbers, the oldest first."""
        while self._windows and self._windows[0].number < number:
            yield self._windows.popleft()
