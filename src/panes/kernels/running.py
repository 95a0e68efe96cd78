"""A running combine, for landmark windows: each answer is everything so far.

Any monoid, one combine per pane and none per answer.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from panes.aggregates.lanes import Scalar, combine, load, store
from panes.aggregates.monoid import Columns, Lanes, Monoid
from panes.arrays.compiled import compiled
from panes.windows.cover import Cover


def running(monoid: Monoid, panes: Columns, cover: Cover, *, groups: NDArray[np.int64]) -> Columns:
    """One partial per answer of `cover`, all of whose windows begin with their group."""
    totals = panes.copy()
    if isinstance(monoid, Lanes):
        _accumulate(int(monoid.op), len(panes))(panes, groups, totals)
    else:
        length = np.diff(groups)
        for distance in range(1, int(length.max(initial=0))):
            here = (groups[:-1] + distance)[length > distance]
            totals[:, here] = monoid.combine(totals[:, here - 1], panes[:, here])
    return totals[:, cover.last - 1]


@cache
def _accumulate(op: int, lanes: int) -> Scalar:
    @compiled
    def accumulate(panes, groups, totals):  # type: ignore[no-untyped-def]
        for g in range(groups.shape[0] - 1):
            if groups[g] == groups[g + 1]:
                continue
            total = load(panes, groups[g], lanes)
            for i in range(groups[g] + 1, groups[g + 1]):
                total = combine(op, total, load(panes, i, lanes))
                store(totals, i, total)

    return accumulate
