"""Set-valued indexes: L-, T- and H-INDEX over basic windows of any form.

They hold values and counts (a domain), which the form of the basic windows keeps up to date. They
answer by themselves which values a window holds and how often. Rows have to be read through.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.arrays.slots import distinct
from panes.index.basic_windows import BasicWindow, BasicWindows, Summary
from panes.index.domain import NULL, Domain, Keys
from panes.index.form import Form
from panes.index.index import DomainIndex, Index, KeyedRows, Nulls
from panes.index.row_ring import RowRing, Rows


class SetIndex(DomainIndex, KeyedRows):
    """A domain and the form that feeds it."""

    def __init__(
        self, rows: RowRing, windows: BasicWindows, domain: Domain, form: type[Form]
    ) -> None:
        Index.__init__(self, rows, windows)
        self.domain = domain
        self.form = form(rows, domain)

    @property
    def nbytes(self) -> int:
        return self.domain.nbytes

    def add(self, first: int, keys: Keys, is_null: Nulls) -> None:
        self.form.add(first, keys, is_null)

    def seal(self) -> Summary | None:
        return self.form.seal()

    def evict(self, window: BasicWindow) -> None:
        self.form.evict(window)

    def rows_by_key(self, keys: Keys) -> tuple[Rows, NDArray[np.int64]]:
        if not self.form.stores_entries:
            return super().rows_by_key(keys)
        return self._rows_of(self.domain.find(keys))

    def null_rows(self) -> Rows:
        if not self.form.stores_entries:
            return super().null_rows()
        return self._rows_of(np.array([NULL], dtype=np.int32))[0]

    def _rows_of(self, entries: NDArray[np.int32]) -> tuple[Rows, NDArray[np.int64]]:
        """The rows of entries, by one pass over the pointers of all rows."""
        sizes = np.where(entries >= 0, self.domain.counts[np.maximum(entries, 0)], 0)
        begins = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        found = np.empty(int(begins[-1]), dtype=np.int64)
        write_at = np.full(self.domain.size, -1, dtype=np.int64)
        known = entries >= 0
        write_at[entries[known]] = begins[:-1][known]
        for first, place, rows in self.rows.runs(self.rows.begin, self.rows.sealed):
            _gather(self.rows.pointers[place : place + rows], first, write_at, found)
        return found, begins

    def purge(self) -> None:
        self.domain.purge()

    def live_keys(self) -> Keys:
        entered = np.sort(self.domain.keys[self.domain.ordered()])
        if self.form.stores_entries:
            return entered
        return distinct(np.concatenate([entered, super().live_keys()]))

    def rekey(self, number_of: NDArray[np.int64]) -> None:
        self.domain.rekey(number_of)
        if not self.form.stores_entries:
            super().rekey(number_of)


@compiled
def _gather(pointers, first, write_at, found):  # type: ignore[no-untyped-def]
    for i in range(pointers.shape[0]):
        at = write_at[pointers[i]]
        if at >= 0:
            found[at] = first + i
            write_at[pointers[i]] = at + 1
