"""DB: a backward-linked ring with dirty bits (5.4).

| arrival | seal | evict | memory beside BW |
|---|---|---|---|
| search, then 1 | d per basic window | 1 per value of the basic window | D bits and D rows |

D values in the window, d in a basic window. Per row, as the paper has it:
``d + (d / b) (1 + D + N / D)`` in, 1 out. A ring is not followed when rows leave it. It keeps its
youngest expired row as a stub, and its dirty bit says that it ends there. Here a stub is just the
row's number, so that its place can be given to another row, and the bit is whether there is one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.index.basic_windows import BasicWindow
from panes.index.bw import Bw
from panes.index.domain import Entries
from panes.index.row_links import LAST, STUB, long_number
from panes.index.row_ring import Rows


class Db(Bw):
    """Backward links that may end in a row that has left the window."""

    def evict(self, window: BasicWindow) -> None:
        gone = window.summary
        assert gone is not None
        assert gone.youngest is not None
        _mark_dirty(gone.entries, gone.youngest, gone.counts, self.heads, self.domain.counts)

    def _collect(self, entries: Entries, begins: NDArray[np.int64], found: Rows) -> bool:
        place = (self.links, self.rows.mask, self.heads, self.rows.begin)
        return bool(_collect_clean(entries, begins, found, *place))


@compiled
def _mark_dirty(entries, youngest, gone, heads, counts):  # type: ignore[no-untyped-def]
    for i in range(entries.shape[0]):
        entry = entries[i]
        counts[entry] -= gone[i]
        heads[entry, STUB] = youngest[i]


@compiled
def _collect_clean(entries, begins, found, links, mask, heads, begin):  # type: ignore[no-untyped-def]
    for i in range(entries.shape[0]):
        if entries[i] >= 0:
            row, at, stub = heads[entries[i], LAST], begins[i + 1], heads[entries[i], STUB]
            while row >= 0 and row != stub:
                at -= 1
                if at < begins[i]:
                    return False
                found[at] = long_number(row, begin)
                row = links[row & mask]
            if at > begins[i]:
                return False
    return True
