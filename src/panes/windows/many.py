"""The windows of many queries at once, as columns.

One entry per query: its size, slide and origin. What a window is stays with
`panes.windows.extent`; here its lines are run over columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.windows.extent import first_wid, last_wid, window_end
from panes.windows.limit import require_room
from panes.windows.spec import Sliding

Column = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rulers:
    """Sliding windows as three columns.

    >>> rulers = Rulers.of([Sliding(size=10, slide=5), Sliding(size=7, slide=4, origin=1)])
    >>> rulers.closed(20), rulers.listed(np.array([2, 3]), np.array([4, 4]))
    (array([4, 4]), (array([ 5, 10, 10]), array([15, 20, 17])))
    """

    size: Column
    slide: Column
    origin: Column

    @classmethod
    def of(cls, specs: Sequence[Sliding]) -> Rulers:
        """The columns of some specs."""
        rows = np.array([(s.size, s.slide, s.origin) for s in specs], dtype=np.int64)
        return cls(*rows.reshape(-1, 3).T.copy())

    @classmethod
    def joined(cls, several: Sequence[Rulers]) -> Rulers:
        """Those of several, one after the other."""
        return cls(
            np.concatenate([r.size for r in several]),
            np.concatenate([r.slide for r in several]),
            np.concatenate([r.origin for r in several]),
        )

    def __len__(self) -> int:
        return len(self.size)

    def take(self, which: Column) -> Rulers:
        """Some of the queries."""
        return Rulers(self.size[which], self.slide[which], self.origin[which])

    def closed(self, progress: int) -> Column:
        """For each query, one past the newest window that ends at or before `progress`."""
        closed: Column = first_wid(progress, self.slide, self.origin)
        return closed

    def reached(self, at: int) -> Column:
        """For each query, one past the newest window that starts at or before `at`."""
        reached: Column = last_wid(at, self.size, self.slide, self.origin) + 1
        return reached

    def starts(self, wid: Column) -> Column:
        """Where one window of each query starts."""
        starts: Column = window_end(wid, self.slide, self.origin) - self.size
        return starts

    def listed(self, first: Column, end: Column) -> tuple[Column, Column]:
        """Starts and ends of the windows ``[first, end)`` of each query, query after query."""
        most = float(np.maximum(end - first, 0).sum(dtype=np.float64))
        require_room(most)
        count = int(most)
        starts, ends = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        _list_windows(self.size, self.slide, self.origin, first, end, starts, ends)
        return starts, ends


def first_from(spec: Sliding, at: int) -> int:
    """The oldest window that starts at or after a position.

    >>> first_from(Sliding(size=10, slide=5), 0), first_from(Sliding(size=10, slide=5), 1)
    (1, 2)
    """
    return int(last_wid(at - 1, spec.size, spec.slide, spec.origin)) + 1


@compiled
def _list_windows(size, slide, origin, first, end, starts, ends):  # type: ignore[no-untyped-def]
    k = 0
    for q in range(size.shape[0]):
        for w in range(first[q], end[q]):
            ends[k] = window_end(w, slide[q], origin[q])
            starts[k] = ends[k] - size[q]
            k += 1
