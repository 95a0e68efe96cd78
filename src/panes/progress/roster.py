"""The roster: families as columns, to find those above and below another in one pass.

Invariant: place i of the columns is family i of the list; the last one moves into a place that
becomes free. The order of places means nothing.
"""

from __future__ import annotations

import numpy as np

from panes.arrays.compiled import compiled
from panes.windows.cut import Edges

_FEWEST = 16


class Roster:
    """Families that come and go.

    >>> roster = Roster()
    >>> for slide in (2, 3, 8, 24):
    ...     roster.add(Edges(slide, 0))
    >>> above, below = roster.related(Edges(8, 0))
    >>> [f.slide for f in above], [f.slide for f in below]
    ([2], [24])
    """

    def __init__(self) -> None:
        self._families: list[Edges] = []
        self._places: dict[Edges, int] = {}
        self._columns = np.empty((_FEWEST, 2), dtype=np.int64)  # slide, phase

    def add(self, family: Edges) -> None:
        place = len(self._families)
        if place == len(self._columns):
            self._columns = np.concatenate([self._columns, np.empty_like(self._columns)])
        self._columns[place] = family.slide, family.phase
        self._places[family] = place
        self._families.append(family)

    def remove(self, family: Edges) -> None:
        place = self._places.pop(family)
        last = self._families.pop()
        if last != family:
            self._families[place] = last
            self._places[last] = place
            self._columns[place] = last.slide, last.phase

    def related(self, family: Edges) -> tuple[list[Edges], list[Edges]]:
        """Other families that `family` is within, and those within `family`."""
        columns = self._columns[: len(self._families)]
        above, below = _related(columns, family.slide, family.phase)
        return [self._families[i] for i in above], [self._families[i] for i in below]


@compiled
def _related(columns, slide, phase):  # type: ignore[no-untyped-def]
    above = np.empty(columns.shape[0], dtype=np.int64)
    below = np.empty(columns.shape[0], dtype=np.int64)
    over, under = 0, 0
    for i in range(columns.shape[0]):
        other, start = columns[i]
        if other < slide:
            if slide % other == 0 and (phase - start) % other == 0:
                above[over] = i
                over += 1
        elif other > slide and other % slide == 0 and (start - phase) % slide == 0:
            below[under] = i
            under += 1
    return above[:over], below[:under]
