"""No index: rows are read through for every question (the paper's LIST without an index).

| arrival | eviction | look-up | values in order |
|---|---|---|---|
| 1 per row | nothing | N | N log N |

N rows in the window. Nothing is maintained, so this is the cheapest where questions are rare.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.arrays.ordering import sort
from panes.index.basic_windows import BasicWindow, Summary
from panes.index.domain import Keys
from panes.index.h_index import HIndex
from panes.index.index import KeyedRows, Nulls


class Scan(KeyedRows):
    """Rows with their keys, and nothing beside them."""

    @property
    def nbytes(self) -> int:
        return 0

    def add(self, first: int, keys: Keys, is_null: Nulls) -> None:
        self.rows.set_keys(first, keys, is_null)

    def seal(self) -> Summary | None:
        return None

    def evict(self, window: BasicWindow) -> None:
        """Rows leave by themselves."""

    def count_one(self, key: int) -> int:
        return self._count_in(key, self.rows.begin, self.rows.sealed)

    def counts(self, keys: Keys) -> NDArray[np.int64]:
        wanted = HIndex()
        asked = wanted.enter(keys)
        entries = wanted.find(self.keys_of(self.rows.begin, self.rows.sealed))
        found = np.bincount(entries[entries > 0], minlength=len(wanted) + 1)
        return found[asked]

    def present(self) -> tuple[Keys, NDArray[np.int64]]:
        return runs_of(self.keys_of(self.rows.begin, self.rows.sealed))


def runs_of(keys: Keys) -> tuple[Keys, NDArray[np.int64]]:
    """Different keys, ascending, and how often each stands there.

    >>> runs_of(np.array([5, 3, 5]))
    (array([3, 5]), array([1, 2]))
    """
    _, ranked = sort(np.ascontiguousarray(keys))
    if not len(ranked):
        return ranked, np.zeros(0, dtype=np.int64)
    begins = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    return ranked[begins], np.diff(begins, append=len(ranked))
