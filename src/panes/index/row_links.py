"""Attribute-valued indexes: all rows of a value are linked, and its entry points to them.

RING, AUX, BW and DB differ in the direction of the links and in what arrivals and evictions do
with them (paper, 5). A link is the short number of a row, or, where the ring goes back to the
index, the entry: ``-1 - entry``. Rows that are not sealed stand in links of their own, except in
DB. All four are built on a domain, which finds the entry of a value.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from panes.arrays.compiled import Loop, compiled
from panes.errors import StateError
from panes.index.basic_windows import BasicWindows, Summary
from panes.index.domain import Domain, Entries, Keys, resized
from panes.index.index import EntryIndex, Nulls
from panes.index.row_ring import SHORT, RowRing, Rows

FIRST, LAST, HIDDEN_FIRST, HIDDEN_LAST, HIDDEN = 0, 1, 2, 3, 7
"""What the integers of an entry are: its first and last row in the window, those among rows that
are not sealed, and how many of these there are. DB has its newest rows in the first six places."""
_NO_ROWS: Rows = np.zeros(0, dtype=np.int64)


class RowLinks(EntryIndex):
    """A domain, and for each entry where its rows begin and end. Rows carry links.

    `linking` links hidden rows and gives how many entries have such rows. `collecting` writes the
    rows of each entry from where they begin, ascending, and says whether every ring had as many
    rows as its value's count. Both are whole loops, and what `linking` of each kind does alike is
    written in each: a function for one row would count references to its arrays, which takes
    longer than the rest.
    """

    linking: ClassVar[Loop]
    collecting: ClassVar[Loop]

    def __init__(self, rows: RowRing, windows: BasicWindows, domain: Domain) -> None:
        super().__init__(rows, windows, domain)
        self.heads: NDArray[np.int32] = np.zeros((0, 8), dtype=np.int32)  # half a cache line each
        self._came: Entries = np.empty(1024, dtype=np.int32)
        self._different = 0
        self._one: Entries = np.zeros(1, dtype=np.int32)
        self._one_begins: NDArray[np.int64] = np.zeros(2, dtype=np.int64)
        self._grow()

    @property
    def nbytes(self) -> int:
        return int(self.domain.nbytes + self.heads.nbytes + self._came.nbytes)

    def add(self, first: int, keys: Keys, is_null: Nulls) -> None:
        entries = self.domain.enter_rows(keys, is_null)
        self._grow()
        if self._different + len(keys) > len(self._came):
            self._came = resized(self._came, 2 * (self._different + len(keys)))
        place = (self.links, self.rows.mask, self.heads)
        self._different = self.linking(entries, first & SHORT, *place, self._came, self._different)

    def _grow(self) -> None:
        if len(self.heads) < self.domain.size:
            before = len(self.heads)
            self.heads = resized(self.heads, self.domain.size, -1)
            self.heads[before:, HIDDEN] = 0

    @property
    def links(self) -> NDArray[np.int32]:
        """The link of each row, by place."""
        return self.rows.pointers

    @property
    def hidden(self) -> Entries:
        """The entries that have hidden rows."""
        return self._came[: self._different]

    def show(self) -> Summary:
        """Hidden rows are part of the window; gives their entries, and how many each has."""
        entries = self.hidden.copy()
        counts = np.empty_like(entries)
        _show(entries, counts, self.heads, self.domain.counts)
        self._different = 0
        return Summary(entries, counts)

    def rows_of_one(self, key: int) -> Rows:
        entry = self.domain.find_one(key)
        if entry < 0:
            return _NO_ROWS
        self._one[0], self._one_begins[1] = entry, self.domain.counts[entry]
        return self._collect(self._one, self._one_begins)

    def _collect(self, entries: Entries, begins: NDArray[np.int64]) -> Rows:
        found = np.empty(begins[-1], dtype=np.int64)
        place = (self.rows.pointers, self.rows.size - 1, self.heads, self.rows.begin)
        if not self.collecting(entries, begins, found, *place):
            raise damaged()
        return found

    def purge(self) -> None:
        gone = self.domain.purge()
        self.heads[gone] = -1
        self.heads[gone, HIDDEN] = 0


@compiled
def _show(entries, came, heads, counts):  # type: ignore[no-untyped-def]
    for i in range(entries.shape[0]):
        entry = entries[i]
        came[i] = heads[entry, HIDDEN]
        counts[entry] += came[i]
        heads[entry, HIDDEN] = 0


def damaged() -> StateError:
    """The links of a value are not as many as its rows."""
    return StateError("a window index is damaged: links and counts of a value differ")


@register_jitable
def long_number(row, begin):  # type: ignore[no-untyped-def]
    """The number of a row of the window that begins with row `begin`."""
    return begin + ((row - begin) & SHORT)
