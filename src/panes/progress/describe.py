"""A filter that passes no more punctuation than queries need (thesis 8.1, Tucker's Describe).

Windows close at edges. Punctuation between two edges closes nothing, so it is held back; what is
passed on is the last edge that it has reached, and each edge only once.
"""

from __future__ import annotations

from collections.abc import Sequence

from panes.axis import BEGINNING
from panes.windows.cut import Edges
from panes.windows.families import last_edge


class Describe:
    """Punctuation rolled up to the ends of windows.

    >>> passes = Describe([Edges(10, 0), Edges(25, 5)])
    >>> [passes.up_to(at) for at in (9, 12, 14, 31, 33)]
    [5, 10, None, 30, None]
    >>> passes.received, passes.passed
    (5, 3)
    """

    def __init__(self, ends: Sequence[Edges]) -> None:
        self._ends = tuple(ends)
        self._last = BEGINNING
        self.received = 0
        self.passed = 0

    def up_to(self, at: int) -> int | None:
        """The edge that a punctuation reaches; None if it was passed on already."""
        self.received += 1
        edge = max(int(last_edge(e.slide, e.phase, at)) for e in self._ends)
        if edge <= self._last:
            return None
        self._last = edge
        self.passed += 1
        return edge
