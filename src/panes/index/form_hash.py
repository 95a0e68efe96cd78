"""HASH: a basic window is a hash table of its values and their counts (paper, 2.2).

| arrival | seal | evict | memory |
|---|---|---|---|
| d / h | d searches in the index | d | d + h |

d values in a basic window, h buckets, which double with the values unless their number is given.
"""

from __future__ import annotations

from panes.index.basic_windows import BasicWindows, Summary
from panes.index.domain import NULL, Domain, Keys
from panes.index.h_index import HIndex
from panes.index.index import Nulls
from panes.index.row_ring import RowRing
from panes.index.set_index import SetIndex


class HashForm(SetIndex):
    """A domain over values and counts, by hash."""

    def __init__(
        self, rows: RowRing, windows: BasicWindows, domain: Domain, buckets: int | None = None
    ) -> None:
        super().__init__(rows, windows, domain)
        self._buckets = buckets
        self._values = HIndex(buckets)

    def add(self, first: int, keys: Keys, is_null: Nulls) -> None:
        self.rows.set_keys(first, keys, is_null)
        if is_null is not None:
            self._values.counts[NULL] += int(is_null.sum())
            keys = keys[~is_null]
        self._values.add(self._values.enter(keys))

    def seal(self) -> Summary:
        values, self._values = self._values, HIndex(self._buckets)
        entries = values.walk_unordered()
        return self._entered(values.keys[entries], values.counts[entries], int(values.counts[NULL]))
