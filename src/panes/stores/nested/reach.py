"""The reach of a store of recent rows, and where a window of any size begins then.

Every window asked for ends at `end`, just after the newest row or at the newest promise, whichever
is later, and holds the positions ``[end - size, end)``: on a row axis the last `size` rows, on a
time axis the last `size` ticks. Rows come in axis order, equal positions as they arrive, unless
they are `include`d; `end` never moves back.

::

    at   0  1  2  3  4  5  6  7
         x     x  x        x        newest row 6, so end = 7
                  [───────────)     size 4: rows 3 and 6
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.axis import LIMIT
from panes.errors import InputError, OptionError


class NestedReach:
    """The end of all windows, and the largest of them."""

    def __init__(self, max_size: int) -> None:
        self.resize(max_size)
        self.end = 0
        self._least = -LIMIT
        self._has_begun = False

    def resize(self, max_size: int) -> None:
        """Let another window be the largest; what is gone by now is not brought back."""
        if not 0 < max_size < LIMIT:
            raise OptionError(f"the largest window needs a positive size, got {max_size}")
        self.max_size = max_size

    @property
    def oldest(self) -> int:
        """Rows before this position are in no window that can still be asked for."""
        return self.end - self.max_size

    def arrivals(self, count: int) -> NDArray[np.int64]:
        """Positions of the next rows on a row axis: their arrival numbers, from 0."""
        return np.arange(self.end, self.end + count, dtype=np.int64)

    def follow(self, at: NDArray[np.int64]) -> None:
        """Move to the last of these rows; a row behind one already seen is refused."""
        if not len(at):
            return
        before = np.concatenate([[self._least], at[:-1]])
        behind = np.flatnonzero(at < before)
        if len(behind):
            raise InputError(
                f"rows must come in axis order: position {at[behind[0]]} came after "
                f"{before[behind[0]]}",
                hint="hold rows back until progress has passed them, and add them sorted",
            )
        self._move_to(int(at[0]), int(at[-1]))

    def include(self, at: NDArray[np.int64]) -> None:
        """Move to the newest of these rows, which come in any order and behind others too."""
        if len(at):
            self._move_to(int(at.min()), int(at.max()))

    def _move_to(self, oldest: int, newest: int) -> None:
        if not (oldest > -LIMIT and newest < LIMIT):
            raise InputError(f"positions {oldest} to {newest} lie outside the axis")
        self._move(least=max(self._least, newest), end=newest + 1)

    def advance(self, progress: int) -> None:
        """Take in a promise: no later row lies before `progress`."""
        if abs(progress) >= LIMIT:
            raise OptionError(f"{progress} lies outside the axis")
        if progress > self._least:
            self._move(least=progress, end=progress)

    def _move(self, *, least: int, end: int) -> None:
        self.end = max(self.end, end) if self._has_begun else end
        self._least = least
        self._has_begun = True

    def starts(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where windows of these sizes begin."""
        if len(sizes) and not (sizes.min() > 0 and sizes.max() <= self.max_size):
            wrong = sizes[(sizes <= 0) | (sizes > self.max_size)][0]
            raise OptionError(
                f"a window of size {wrong} was asked for; sizes here are 1 to {self.max_size}",
                hint=f"max_size={wrong} keeps rows for it" if wrong > 0 else None,
            )
        return self.end - sizes
