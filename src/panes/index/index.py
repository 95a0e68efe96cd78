"""The interface of all indexes of a window.

An index takes rows in as they come, hidden; `seal` makes them part of the window, `evict` takes
the oldest basic window out of it again. Every index gives the same answers. They differ in what
arrivals, evictions and questions cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.arrays.slots import distinct
from panes.index.basic_windows import BasicWindow, BasicWindows, Summary
from panes.index.domain import NULL, Domain, Entries, Keys
from panes.index.h_index import HIndex
from panes.index.row_ring import RowRing, Rows

Nulls = NDArray[np.bool_] | None
_NONE = np.zeros(1, dtype=np.bool_)


class Index(ABC):
    """Finds values and rows of a window. `windows` are its sealed basic windows."""

    def __init__(self, rows: RowRing, windows: BasicWindows) -> None:
        self.rows, self.windows = rows, windows

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the index, rows and basic windows aside."""

    @abstractmethod
    def add(self, first: int, keys: Keys, is_null: Nulls) -> None:
        """Rows that were appended to the newest basic window, from number `first` on."""

    @abstractmethod
    def seal(self) -> Summary | None:
        """The newest basic window becomes part of the window; gives what evicting it needs."""

    @abstractmethod
    def evict(self, window: BasicWindow) -> None:
        """The oldest basic window leaves the window."""

    @abstractmethod
    def count_one(self, key: int) -> int:
        """The number of rows that have a key."""

    @abstractmethod
    def counts(self, keys: Keys) -> NDArray[np.int64]:
        """The number of rows that have each key."""

    @abstractmethod
    def present(self) -> tuple[Keys, NDArray[np.int64]]:
        """The keys that rows have, ascending, and how many have each."""

    @abstractmethod
    def rows_by_key(self, keys: Keys) -> tuple[Rows, NDArray[np.int64]]:
        """The rows of keys, key after key and ascending for each; and where each key's begin.

        No key is named twice. There is one more beginning than there are keys: the end.
        """

    def rows_of_one(self, key: int) -> Rows:
        """The rows of one key, ascending."""
        return self.rows_by_key(np.array([key]))[0]

    def table_of_one(self, key: int) -> pa.Table:
        """The rows of one key, ascending, as a table."""
        return self.rows.take(self.rows_of_one(key))

    @abstractmethod
    def null_rows(self) -> Rows:
        """The rows without a value, ascending."""

    def purge(self) -> None:  # noqa: B027 - an index without entries has nothing to forget
        """Forget values that no row has any more; no row may be hidden."""

    @abstractmethod
    def live_keys(self) -> Keys:
        """The keys that are stored, those of hidden rows included, ascending."""

    @abstractmethod
    def rekey(self, number_of: NDArray[np.int64]) -> None:
        """Every key is ``number_of[key]`` from now on; keys ascend as before."""


class DomainIndex(Index):
    """The common part of indexes that find the entries of values in a domain."""

    def __init__(self, rows: RowRing, windows: BasicWindows, domain: Domain) -> None:
        super().__init__(rows, windows)
        self.domain = domain

    @property
    def nbytes(self) -> int:
        return self.domain.nbytes

    def count_one(self, key: int) -> int:
        entry = self.domain.find_one(key)
        return 0 if entry < 0 else int(self.domain.counts[entry])

    def counts(self, keys: Keys) -> NDArray[np.int64]:
        found = np.empty(len(keys), dtype=np.int64)
        _look_up(self.domain.find(keys), self.domain.counts, found)
        return found

    def present(self) -> tuple[Keys, NDArray[np.int64]]:
        return self.domain.present()

    def evict(self, window: BasicWindow) -> None:
        gone = window.summary
        assert gone is not None
        self.domain.add_counts(gone.entries, gone.counts, sign=-1)

    def purge(self) -> None:
        self.domain.purge()

    def live_keys(self) -> Keys:
        return np.sort(self.domain.keys[self.domain.ordered()])

    def rekey(self, number_of: NDArray[np.int64]) -> None:
        self.domain.rekey(number_of)


class EntryIndex(DomainIndex):
    """The common part of indexes whose rows are found by their entries (domain storage)."""

    def rows_by_key(self, keys: Keys) -> tuple[Rows, NDArray[np.int64]]:
        return self._rows_of(self.domain.find(keys))

    def null_rows(self) -> Rows:
        return self._rows_of(np.array([NULL], dtype=np.int32))[0]

    def _rows_of(self, entries: Entries) -> tuple[Rows, NDArray[np.int64]]:
        """The rows of entries, none of which is named twice; -1 has none."""
        begins = np.zeros(len(entries) + 1, dtype=np.int64)
        np.cumsum(np.where(entries >= 0, self.domain.counts[entries], 0), out=begins[1:])
        return self._collect(entries, begins), begins

    @abstractmethod
    def _collect(self, entries: Entries, begins: NDArray[np.int64]) -> Rows:
        """The rows of entries, ascending for each, from where its rows begin."""


@compiled
def _look_up(entries, counts, found):  # type: ignore[no-untyped-def]
    for i in range(entries.shape[0]):
        found[i] = counts[entries[i]] if entries[i] >= 0 else 0


class KeyedRows(Index):
    """The common part of indexes whose rows carry their keys: rows are found by reading them."""

    def rows_by_key(self, keys: Keys) -> tuple[Rows, NDArray[np.int64]]:
        if len(keys) == 1:
            found = self.rows_with(int(keys[0]))
            return found, np.array([0, len(found)])
        wanted = HIndex()
        wanted.enter(keys)  # they are numbered as they come, from 1 on
        slots = np.full(self.rows.sealed - self.rows.begin, -1, dtype=np.int64)
        for first, place, rows in self.rows.runs(self.rows.begin, self.rows.sealed):
            read, nulls = self._read(place, rows)
            begin = first - self.rows.begin
            slots[begin : begin + rows] = np.where(nulls, -1, wanted.find(read) - 1)
        found = np.flatnonzero(slots >= 0)
        ranked = np.argsort(slots[found], kind="stable")
        sizes = np.bincount(slots[found], minlength=len(keys))
        return found[ranked] + self.rows.begin, np.concatenate([[0], np.cumsum(sizes)])

    def rows_with(self, key: int) -> Rows:
        """The rows of one key, ascending."""
        return self._matching(key, self.rows.begin, self.rows.sealed)

    def _matching(self, key: int, begin: int, end: int) -> Rows:
        parts = []
        for first, place, rows in self.rows.runs(begin, end):
            keys, nulls = self._read(place, rows)
            parts.append(np.flatnonzero((keys == key) & ~nulls) + first)
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    def _count_in(self, key: int, begin: int, end: int) -> int:
        """The number of some rows that have a key."""
        found = 0
        for _, place, rows in self.rows.runs(begin, end):
            nulls = _NONE if self.rows.is_null is None else self.rows.is_null[place : place + rows]
            found += _count(self.rows.pointers[place : place + rows], key, nulls)
        return found

    def _read(self, place: int, rows: int) -> tuple[Keys, NDArray[np.bool_]]:
        nulls = self.rows.is_null
        none = np.broadcast_to(False, rows)
        read = self.rows.pointers[place : place + rows]
        return read, none if nulls is None else nulls[place : place + rows]

    def null_rows(self) -> Rows:
        if self.rows.is_null is None:
            return np.zeros(0, dtype=np.int64)
        nulls = self.rows.read(self.rows.is_null, self.rows.begin, self.rows.sealed)
        return np.flatnonzero(nulls) + self.rows.begin

    def keys_of(self, begin: int, end: int) -> Keys:
        """The keys of rows ``[begin, end)`` that have a value."""
        keys = self.rows.read(self.rows.pointers, begin, end)
        if self.rows.is_null is not None:
            keys = keys[~self.rows.read(self.rows.is_null, begin, end)]
        return keys

    def live_keys(self) -> Keys:
        return distinct(self.keys_of(self.rows.begin, self.rows.end))

    def rekey(self, number_of: NDArray[np.int64]) -> None:
        for _, place, rows in self.rows.runs(self.rows.begin, self.rows.end):
            keys = self.rows.pointers[place : place + rows]
            self.rows.pointers[place : place + rows] = number_of[np.maximum(keys, 0)]


@compiled
def _count(keys, key, nulls):  # type: ignore[no-untyped-def]
    found = 0
    has_nulls = nulls.shape[0] == keys.shape[0]
    for i in range(keys.shape[0]):
        if keys[i] == key and not (has_nulls and nulls[i]):
            found += 1
    return found
