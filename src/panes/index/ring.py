"""RING: the rows of a value in a ring, the oldest first; the last one points to the index (5.1).

| arrival | seal | evict | per row (paper) |
|---|---|---|---|
| search, and N / D to the ring's end | D per basic window | N / D per row | D + 2 N / D + D / b |

N rows and D values in the window, b rows in a basic window. Only the index knows values, so a row
that leaves has to follow its ring to the index to find the pointer that must move on.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from panes.arrays.compiled import compiled
from panes.index.basic_windows import BasicWindow
from panes.index.row_links import (
    FIRST,
    HIDDEN,
    HIDDEN_FIRST,
    HIDDEN_LAST,
    LAST,
    RowLinks,
    long_number,
)
from panes.index.row_ring import SHORT


@register_jitable
def _end_of(row, links, mask):  # type: ignore[no-untyped-def]
    """The last row of a ring, from one of its rows."""
    while links[row & mask] >= 0:
        row = links[row & mask]
    return row


@compiled
def _append(entries, first, links, mask, heads, came, different):  # type: ignore[no-untyped-def]
    for i in range(entries.shape[0]):
        entry, row = entries[i], np.int32((first + i) & SHORT)
        if heads[entry, FIRST] < 0:
            heads[entry, FIRST] = row
        else:
            links[_end_of(heads[entry, FIRST], links, mask) & mask] = row
        links[row & mask] = -1 - entry
        if heads[entry, HIDDEN] == 0:
            came[different] = entry
            different += 1
            heads[entry, HIDDEN_FIRST] = row
        heads[entry, HIDDEN_LAST] = row
        heads[entry, HIDDEN] += 1
    return different


@compiled
def _move_ends(heads, links, mask):  # type: ignore[no-untyped-def]
    """Move every ring's end in the window to its newest row: the index is read through."""
    for entry in range(heads.shape[0]):
        if heads[entry, FIRST] >= 0:
            start = heads[entry, LAST] if heads[entry, LAST] >= 0 else heads[entry, FIRST]
            heads[entry, LAST] = _end_of(start, links, mask)


@compiled
def _evict(first, rows, links, mask, heads, counts):  # type: ignore[no-untyped-def]
    """Take rows, the oldest of the window, out of their rings: each goes round to the index."""
    for i in range(rows):
        row = np.int32((first + i) & SHORT)
        entry = -1 - links[_end_of(row, links, mask) & mask]
        after = links[row & mask]
        heads[entry, FIRST] = after if after >= 0 else -1
        if heads[entry, LAST] == row:
            heads[entry, LAST] = -1
        counts[entry] -= 1


@compiled
def _collect(entries, begins, found, links, mask, heads, begin):  # type: ignore[no-untyped-def]
    """The rows of entries, from the first to the last of the window."""
    for i in range(entries.shape[0]):
        if entries[i] >= 0:
            row, last, at = heads[entries[i], FIRST], heads[entries[i], LAST], begins[i]
            while last >= 0 and row >= 0 and at < begins[i + 1]:
                found[at] = long_number(row, begin)
                at += 1
                row = -1 if row == last else links[row & mask]
            if at < begins[i + 1] or (last >= 0 and row >= 0):
                return False
    return True


class Ring(RowLinks):
    """Forward links; a new row is found its place by going round the ring."""

    linking, collecting = staticmethod(_append), staticmethod(_collect)

    def seal(self) -> None:
        _move_ends(self.heads, self.links, self.rows.mask)
        self.show()

    def evict(self, window: BasicWindow) -> None:
        rows, short = window.end - window.begin, window.begin & SHORT
        _evict(short, rows, self.links, self.rows.mask, self.heads, self.domain.counts)
