"""The plain scan: test every sliding group whenever progress moves.

The "plain algorithm" that *Knowing When to Slide* VII measures itself against, and the obvious
answer to test against. Cost: one test per group and step, however few are due.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from panes.arrays.compiled import compiled
from panes.windows.cut import Edges
from panes.windows.families import last_edge


class PlainScan:
    """Families, all of them tested at every step.

    >>> scan = PlainScan([Edges(2, 0), Edges(5, 0), Edges(5, 3)])
    >>> scan.due(2, 5)
    [Edges(slide=2, phase=0), Edges(slide=5, phase=0), Edges(slide=5, phase=3)]
    >>> scan.due(5, 5)
    []
    """

    def __init__(self, families: Iterable[Edges]) -> None:
        self._families = np.array(list(families), dtype=np.object_)
        self._slides = np.array([f.slide for f in self._families], dtype=np.int64)
        self._phases = np.array([f.phase for f in self._families], dtype=np.int64)

    def due(self, previous: int, now: int) -> list[Edges]:
        """Families with an edge in ``(previous, now]``, in the order given."""
        named: list[Edges] = self._families[self.find(previous, now)].tolist()
        return named

    def find(self, previous: int, now: int) -> np.ndarray:
        """As `due`, but places in the order given only."""
        found = np.empty(len(self._families), dtype=np.int64)
        count = _scan(self._slides, self._phases, previous, now, found)
        return found[:count]


@compiled
def _scan(slides, phases, previous, now, found):  # type: ignore[no-untyped-def]
    count = 0
    for i in range(slides.shape[0]):
        if last_edge(slides[i], phases[i], now) > previous:
            found[count] = i
            count += 1
    return count
