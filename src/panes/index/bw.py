"""BW: a ring that is linked backwards, the newest row first (5.3).

| arrival | seal | evict | memory beside AUX |
|---|---|---|---|
| search, then 1 | d per basic window | N / D per value of the basic window | none (paper), d here |

N rows and D values in the window, d values in a basic window. Per row, as the paper has it:
``d + (d / b) (1 + D + N / D)`` in, ``(d / b) N / D`` out. All rows of a value leave together: its
ring is followed once, from the index to the oldest row that stays. Here a basic window remembers
its values and the youngest row of each, so that none of its own rows need be looked at.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from panes.arrays.compiled import compiled
from panes.index.basic_windows import BasicWindow, Summary
from panes.index.row_links import (
    HIDDEN,
    HIDDEN_FIRST,
    HIDDEN_LAST,
    LAST,
    RowLinks,
    long_number,
)
from panes.index.row_ring import SHORT


@compiled
def _prepend(entries, first, links, mask, heads, came, different):  # type: ignore[no-untyped-def]
    for i in range(entries.shape[0]):
        entry, row = entries[i], np.int32((first + i) & SHORT)
        if heads[entry, HIDDEN] == 0:
            came[different] = entry
            different += 1
            heads[entry, HIDDEN_FIRST] = row
            links[row & mask] = -1 - entry
        else:
            links[row & mask] = heads[entry, HIDDEN_LAST]
        heads[entry, HIDDEN_LAST] = row
        heads[entry, HIDDEN] += 1
    return different


@compiled
def _connect(entries, youngest, heads, links, mask):  # type: ignore[no-untyped-def]
    for i in range(entries.shape[0]):
        entry = entries[i]
        if heads[entry, LAST] >= 0:
            links[heads[entry, HIDDEN_FIRST] & mask] = heads[entry, LAST]
        heads[entry, LAST] = youngest[i] = heads[entry, HIDDEN_LAST]


@compiled
def _cut_off(entries, youngest, heads, links, mask):  # type: ignore[no-untyped-def]
    """Let each ring end before its youngest row of the oldest basic window."""
    for i in range(entries.shape[0]):
        entry = entries[i]
        row = heads[entry, LAST]
        if row == youngest[i]:
            heads[entry, LAST] = -1
            continue
        while links[row & mask] != youngest[i]:
            row = links[row & mask]
        links[row & mask] = -1 - entry


@compiled
def _collect(entries, begins, found, links, mask, heads, begin):  # type: ignore[no-untyped-def]
    for i in range(entries.shape[0]):
        if entries[i] >= 0:
            row, at = heads[entries[i], LAST], begins[i + 1]
            while row >= 0:
                at -= 1
                if at < begins[i]:
                    return False
                found[at] = long_number(row, begin)
                row = links[row & mask]
            if at > begins[i]:
                return False
    return True


class Bw(RowLinks):
    """Backward links, local to the newest basic window until it is sealed."""

    linking, collecting = staticmethod(_prepend), staticmethod(_collect)

    def seal(self) -> Summary:
        youngest = np.empty_like(self.hidden)
        _connect(self.hidden, youngest, self.heads, self.links, self.rows.mask)
        return replace(self.show(), youngest=youngest)

    def evict(self, window: BasicWindow) -> None:
        super().evict(window)
        gone = window.summary
        assert gone is not None
        _cut_off(gone.entries, gone.youngest, self.heads, self.links, self.rows.mask)
