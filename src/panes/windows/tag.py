"""Rows tagged with the windows that hold them (the Bucket operator, thesis 6.1.3.1).

A row that overlapping windows share is named once for each of them. After that, the window is a
grouping column like any other, and whoever aggregates need not know of windows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.windows.cover import Wids
from panes.windows.extent import first_wid, last_wid, ruler
from panes.windows.limit import require_room
from panes.windows.spec import PanedSpec

_MOST = 1 << 22


def window_bounds(
    spec: PanedSpec, at: NDArray[np.int64], first: Wids, end: Wids
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The windows ``[low, high)`` that hold each position, of those in ``[first, end)``.

    Both limits are one window, or one for each position. ``high <= low`` where there is none.

    >>> from panes.windows.spec import Sliding
    >>> window_bounds(Sliding(size=10, slide=5), np.array([3, 7]), 0, 2)
    (array([0, 1]), array([2, 2]))
    """
    size, slide, origin = ruler(spec)
    low = np.maximum(first_wid(at, slide, origin), first)
    high = np.minimum(last_wid(at, size, slide, origin) + 1, end)
    return low, high


def tagged(
    spec: PanedSpec, at: NDArray[np.int64], first: Wids, end: Wids
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Pairs of a row and a window that holds it, as two columns, a few million at a time.

    >>> from panes.windows.spec import Sliding
    >>> [(rows.tolist(), wid.tolist()) for rows, wid in
    ...  tagged(Sliding(size=10, slide=5), np.array([3, 7]), 0, 9)]
    [([0, 0, 1, 1], [0, 1, 1, 2])]
    """
    low, high = window_bounds(spec, at, first, end)
    require_room(float(np.maximum(high - low, 0).max(initial=0)))
    ends = np.cumsum(np.maximum(high - low, 0))
    begin = 0
    while begin < len(at):
        before = int(ends[begin - 1]) if begin else 0
        stop = max(begin + 1, int(np.searchsorted(ends, before + _MOST, side="right")))
        pairs = int(ends[stop - 1]) - before
        rows, wid = np.empty(pairs, dtype=np.int64), np.empty(pairs, dtype=np.int64)
        _list_pairs(low, high, begin, stop, rows, wid)
        if pairs:
            yield rows, wid
        begin = stop


@compiled
def _list_pairs(low, high, begin, stop, rows, wid):  # type: ignore[no-untyped-def]
    k = 0
    for i in range(begin, stop):
        for w in range(low[i], high[i]):
            rows[k], wid[k] = i, w
            k += 1
