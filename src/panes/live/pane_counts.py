"""How many rows fell into each pane near progress.

Of a large batch a sample is counted, each of its rows for several: the cost of a batch is bounded.
Panes are the newest ones, so many at most; counts of older ones are forgotten.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.live.snapshot import PanesShown
from panes.windows.cut import Cut

MOST_PANES = 240
_OF_A_BATCH = 1_024


class PaneCounts:
    """Rows per pane, by where the pane begins."""

    def __init__(self, cut: Cut) -> None:
        self.cut = cut
        self._rows: dict[int, int] = {}
        self._is_exact = True

    def add(self, at: NDArray[np.int64]) -> None:
        """Rows at these positions came."""
        step = max(1, len(at) // _OF_A_BATCH)
        if step > 1:
            at, self._is_exact = np.ascontiguousarray(at[::step]), False
        starts, counts = np.unique(self.cut.pane_start(at), return_counts=True)
        rows = dict(self._rows)
        newest = slice(-MOST_PANES, None)
        for start, count in zip(starts[newest].tolist(), counts[newest].tolist(), strict=True):
            rows[start] = rows.get(start, 0) + count * step
        if len(rows) > MOST_PANES:
            for start in sorted(rows)[:-MOST_PANES]:
                del rows[start]
        self._rows = rows

    def shown(self) -> PanesShown:
        """The panes that hold rows, in order."""
        rows = self._rows
        starts = sorted(rows)
        return PanesShown(
            start=starts,
            end=[self.cut.pane_end(start) for start in starts],
            rows=[rows[start] for start in starts],
            exact=self._is_exact,
        )
