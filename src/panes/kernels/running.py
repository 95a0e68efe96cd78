"""A running combine, for landmark windows: each answer is everything so far.

Any monoid, one combine per pane and none per answer.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from panes.algebra.lanes import fold
from panes.algebra.monoid import Columns, Lanes, Monoid
from panes.windows.cover import Cover


def running(
    monoid: Monoid, panes: Columns, cover: Cover, *, groups: NDArray[np.int64]
) -> Columns:
    """One partial per answer of `cover`, all of whose windows begin with their group."""
    totals = panes.copy()
    if isinstance(monoid, Lanes):
        _accumulate(int(monoid.op), totals, panes, groups)
    else:
        length = np.diff(groups)
        for distance in range(1, int(length.max(initial=0))):
            here = (groups[:-1] + distance)[length > distance]
            totals[:, here] = monoid.combine(totals[:, here - 1], panes[:, here])
    return totals[:, cover.last - 1]


@njit(cache=True, nogil=True)
def _accumulate(op, totals, panes, groups):  # type: ignore[no-untyped-def]
    for g in range(groups.shape[0] - 1):
        for i in range(groups[g] + 1, groups[g + 1]):
            for lane in range(totals.shape[0]):
                totals[lane, i] = totals[lane, i - 1]
            fold(op, totals, i, panes, i)
