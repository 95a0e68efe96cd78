"""Rows as points: where they lie on the axis against when they came, in a bounded number.

A batch gives a few evenly spread rows, and up to a few late ones. How many follows the clock, so
points of the last minute or so are there whatever the speed. No row is looked at one by one.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from panes.live.snapshot import ShownArrivals

MOST_POINTS, MOST_LATE, MOST_STEPS = 2_400, 800, 400
_OF_A_BATCH, _LATE_OF_A_BATCH = 48, 8
_A_SECOND = 40.0

Positions = NDArray[np.int64]


class Scatter:
    """The last points, the last late ones, and the line of the promise."""

    def __init__(self, now: float) -> None:
        self._points: deque[tuple[int, int]] = deque(maxlen=MOST_POINTS)
        self._late: deque[tuple[int, int]] = deque(maxlen=MOST_LATE)
        self._promise: deque[tuple[int, int]] = deque(maxlen=MOST_STEPS)
        self._budget, self._refilled = float(MOST_POINTS), now

    def add(self, first: int, at: Positions, late: Positions, now: float) -> None:
        """Rows came, the first of them as number `first`; `late` are the indexes of late ones."""
        for i in _spread(len(late), _LATE_OF_A_BATCH).tolist():
            row = int(late[i])
            self._late.append((first + row, int(at[row])))
        refill = (now - self._refilled) * _A_SECOND
        self._budget = min(float(MOST_POINTS), self._budget + refill)
        self._refilled = now
        count = min(_OF_A_BATCH, max(int(self._budget), 1))
        which = _spread(len(at), count)
        self._budget -= min(self._budget, float(len(which)))
        self._points.extend(zip((first + which).tolist(), at[which].tolist(), strict=True))

    def point(self, row: int, at: int, *, is_late: bool = False) -> None:
        """One row that stands for its batch, where a host tells no more."""
        (self._late if is_late else self._points).append((row, at))

    def promise(self, row: int, at: int) -> None:
        """The promise stands at `at`, now that `row` rows have come."""
        steps = self._promise
        if not steps or steps[-1][1] != at:
            steps.append((row, at))

    def shown(self) -> ShownArrivals:
        """All points, oldest first."""
        points, late, promise = list(self._points), list(self._late), list(self._promise)
        return ShownArrivals(
            row=[row for row, _ in points],
            at=[at for _, at in points],
            late_row=[row for row, _ in late],
            late_at=[at for _, at in late],
            promise_row=[row for row, _ in promise],
            promise_at=[at for _, at in promise],
        )


def _spread(rows: int, most: int) -> Positions:
    """Indexes of at most so many rows, evenly spread."""
    if rows <= most:
        return np.arange(rows)
    return (np.arange(most) * rows + rows // 2) // most
