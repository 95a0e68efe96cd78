"""LIST: a basic window is its rows, each with a pointer to its value's entry (paper, 2.2).

| arrival | seal | evict | memory |
|---|---|---|---|
| 1, and one search in the index | 1 per row | 1 per row | b |

b rows in a basic window. The cheapest form unless a basic window has the same values many times.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.index.basic_windows import BasicWindow, Summary
from panes.index.domain import Entries, Keys
from panes.index.index import EntryIndex, Nulls
from panes.index.row_ring import Rows


class ListForm(EntryIndex):
    """A domain over rows with entries."""

    def add(self, first: int, keys: Keys, is_null: Nulls) -> None:
        self.rows.set_pointers(first, self.domain.enter_rows(keys, is_null))

    def seal(self) -> Summary | None:
        for entries in self._entries(self.rows.sealed, self.rows.end):
            self.domain.add(entries)
        return None

    def evict(self, window: BasicWindow) -> None:
        for entries in self._entries(window.begin, window.end):
            self.domain.evict(entries)

    def _entries(self, begin: int, end: int) -> list[Entries]:
        runs = self.rows.runs(begin, end)
        return [self.rows.pointers[place : place + rows] for _, place, rows in runs]

    def _collect(self, entries: Entries, begins: NDArray[np.int64]) -> Rows:
        """One pass over the pointers of all rows."""
        found = np.empty(int(begins[-1]), dtype=np.int64)
        write_at = np.full(self.domain.size, -1, dtype=np.int64)
        known = entries >= 0
        write_at[entries[known]] = begins[:-1][known]
        for first, place, rows in self.rows.runs(self.rows.begin, self.rows.sealed):
            _gather(self.rows.pointers[place : place + rows], first, write_at, found)
        return found


@compiled
def _gather(pointers, first, write_at, found):  # type: ignore[no-untyped-def]
    for i in range(pointers.shape[0]):
        at = write_at[pointers[i]]
        if at >= 0:
            found[at] = first + i
            write_at[pointers[i]] = at + 1
