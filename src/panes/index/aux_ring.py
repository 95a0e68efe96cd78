"""AUX: a ring, and an auxiliary index of the newest basic window's own rings (5.2).

| arrival | seal | evict | memory beside RING |
|---|---|---|---|
| search, then 1 | d per basic window | N / D per row | 3 d |

N rows and D values in the window, d values in a basic window. Per row, as the paper has it:
``d + (d / b) (1 + D + N / D)`` in, ``N / D`` out. A new row joins the local ring of its value; when
the basic window is sealed, local rings are appended to the others through their end pointers.
"""

from __future__ import annotations

import numpy as np

from panes.arrays.compiled import compiled
from panes.index.ring import Ring
from panes.index.row_links import FIRST, HIDDEN, HIDDEN_FIRST, HIDDEN_LAST, LAST
from panes.index.row_ring import SHORT


@compiled
def _append(entries, first, links, mask, heads, came, different):  # type: ignore[no-untyped-def]
    for i in range(entries.shape[0]):
        entry, row = entries[i], np.int32((first + i) & SHORT)
        if heads[entry, HIDDEN] == 0:
            came[different] = entry
            different += 1
            heads[entry, HIDDEN_FIRST] = row
        else:
            links[heads[entry, HIDDEN_LAST] & mask] = row
        links[row & mask] = -1 - entry
        heads[entry, HIDDEN_LAST] = row
        heads[entry, HIDDEN] += 1
    return different


@compiled
def _connect(came, heads, links, mask):  # type: ignore[no-untyped-def]
    for i in range(came.shape[0]):
        entry = came[i]
        if heads[entry, LAST] >= 0:
            links[heads[entry, LAST] & mask] = heads[entry, HIDDEN_FIRST]
        else:
            heads[entry, FIRST] = heads[entry, HIDDEN_FIRST]
        heads[entry, LAST] = heads[entry, HIDDEN_LAST]


class Aux(Ring):
    """Forward links, local to the newest basic window until it is sealed."""

    linking = staticmethod(_append)

    def seal(self) -> None:
        _connect(self.hidden, self.heads, self.links, self.rows.mask)
        self.show()
