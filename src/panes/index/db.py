"""DB: a backward-linked ring with dirty bits (5.4).

| arrival | seal | evict | memory beside BW |
|---|---|---|---|
| search, then 1 | d per basic window | 1 per value of the basic window | D bits; none here |

D values in the window, d in a basic window. Per row, as the paper has it:
``d + (d / b) (1 + D + N / D)`` in, 1 out. A ring is not followed when rows leave it. In the paper
it keeps its youngest expired row as a stub, and its dirty bit says that it ends there. Here its end
is known without either: a ring has as many rows as its value counts, and what lies behind them, the
stub or whatever row has taken its place since, is never looked at. So nothing is stored beside BW.
"""

from __future__ import annotations

from panes.arrays.compiled import compiled
from panes.index.basic_windows import BasicWindow, Summary
from panes.index.bw import Bw
from panes.index.row_links import LAST, long_number


@compiled
def _collect(entries, begins, found, links, mask, heads, begin):  # type: ignore[no-untyped-def]
    """As many rows as each entry counts, from its last one back; all in the window, descending."""
    for i in range(entries.shape[0]):
        if entries[i] >= 0:
            row, after = heads[entries[i], LAST], begin + mask + 1
            for at in range(begins[i + 1] - 1, begins[i] - 1, -1):
                number = long_number(row, begin)
                if row < 0 or number >= after:
                    return False
                found[at] = after = number
                row = links[row & mask]
    return True


class Db(Bw):
    """Backward links that go on behind the rows of the window."""

    collecting = staticmethod(_collect)

    def seal(self) -> Summary:
        sealed = super().seal()
        return Summary(sealed.entries, sealed.counts)

    def evict(self, window: BasicWindow) -> None:
        gone = window.summary
        assert gone is not None
        self.domain.add_counts(gone.entries, gone.counts, sign=-1)
