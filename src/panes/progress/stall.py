"""A stream that makes no progress: rows come, nothing closes, and everything is kept.

That is seldom meant. A lateness was forgotten, or one input of a union is silent, and memory grows
until somebody looks. So it is counted, in rows and not by a clock: the same stream is told of at
the same row every time.
"""

from __future__ import annotations

from panes.axis import BEGINNING

MOST_STALLED = 1_000_000
_FEW_PUSHES = 10


class Stall:
    """Rows and pushes since progress last moved; told once, until it moves again.

    >>> stall = Stall(rows=20)
    >>> [stall.push(5, progress=7) for _ in range(12)].index(True)
    10
    """

    def __init__(self, rows: int | None = MOST_STALLED) -> None:
        """So many rows, in several pushes, are too many; None: never."""
        self._most = rows
        self._progress = BEGINNING
        self.rows = self._pushes = 0
        self._is_told = False

    def push(self, rows: int, progress: int) -> bool:
        """Rows have come, and progress is there now; says whether that is to be told."""
        if progress != self._progress:
            self.moved(progress)
            return False
        self.rows += rows
        self._pushes += 1
        if self._most is None or self._is_told:
            return False
        self._is_told = self.rows >= self._most and self._pushes >= _FEW_PUSHES
        return self._is_told

    def moved(self, progress: int) -> None:
        """Progress has moved, of all rows or of some keys."""
        self._progress = progress
        self.rows = self._pushes = 0
        self._is_told = False
