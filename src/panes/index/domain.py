"""Domain storage: every value of a window is stored once, as an entry with its count.

Rows and basic windows refer to values by the numbers of entries. Entry 0 stands for NULL: it is
counted, but it is no value and no search finds it. Values are 64-bit keys (`panes.index.keys`).

An entry whose count has come to 0 stays until the next purge, as the paper proposes (4.4): a value
that comes back finds its entry again, and no structure is balanced twice. Numbers of purged
entries are given out again. What differs between L-, T- and H-INDEX is only how an entry is found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from panes.arrays.compiled import compiled

Keys = NDArray[np.int64]
Entries = NDArray[np.int32]

Number = TypeVar("Number", bound=np.generic)

NULL = 0
"""The entry of rows without a value."""
_FIRST_SIZE = 64
_WORTH_PURGING = 8
"""Entries are purged once more than an eighth of them have no rows."""
_MERGED = 8
"""New entries are merged into the known order as long as they are fewer than an eighth of it."""

USED, FREE, NEW, HEAD = range(4)
"""What the integers of `Domain.state` are: entries in use so far, free ones among them, new ones
since the order was last asked for, and where the structure begins."""


class Domain(ABC):
    """The values of a window, each with its count.

    `keys` and `counts` are by entry; an entry without rows may wait to be purged. `size` is the
    room there is for entries: arrays by entry that others keep must be as long.
    """

    def __init__(self) -> None:
        self.keys: Keys = np.zeros(_FIRST_SIZE, dtype=np.int64)
        self.counts: NDArray[np.int32] = np.zeros(_FIRST_SIZE, dtype=np.int32)
        self.state: NDArray[np.int64] = np.array([1, 0, 0, -1], dtype=np.int64)
        self._free: Entries = np.zeros(_FIRST_SIZE, dtype=np.int32)
        self._new: Entries = np.zeros(_FIRST_SIZE, dtype=np.int32)
        self._order: Entries = np.zeros(0, dtype=np.int32)
        self._ordered_keys: Keys = np.zeros(0, dtype=np.int64)

    @property
    def size(self) -> int:
        """The room there is for entries."""
        return len(self.keys)

    def __len__(self) -> int:
        """The number of entries, with those that wait to be purged."""
        return int(self.state[USED] - self.state[FREE] - 1)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(a.nbytes for a in vars(self).values() if isinstance(a, np.ndarray))

    def enter(self, keys: Keys) -> Entries:
        """The entry of each key; keys that are not known get one."""
        entries = np.empty(len(keys), dtype=np.int32)
        done = 0
        while True:
            done = self._enter(keys, entries, done)
            if done == len(keys):
                return entries
            self._grow(2 * self.size)

    def enter_rows(self, keys: Keys, is_null: NDArray[np.bool_] | None) -> Entries:
        """The entry of each row, by its key; all rows without a value have the same one."""
        if is_null is None:
            return self.enter(keys)
        entries = np.full(len(keys), NULL, dtype=np.int32)
        entries[~is_null] = self.enter(keys[~is_null])
        return entries

    def find(self, keys: Keys) -> Entries:
        """The entry of each key, -1 if it has none."""
        entries = np.empty(len(keys), dtype=np.int32)
        self._find(keys, entries)
        return entries

    def add(self, entries: Entries) -> None:
        """One row more for each of these."""
        _count(self.counts, entries, 1)

    def evict(self, entries: Entries) -> None:
        """One row less for each of these."""
        _count(self.counts, entries, -1)

    def add_counts(self, entries: Entries, counts: NDArray[np.int32], *, sign: int = 1) -> None:
        """So many rows more, or less, for entries that are named once each."""
        _count_many(self.counts, entries, counts, sign)

    def ordered(self) -> Entries:
        """All entries, ascending by key; what has come since the last time is merged in."""
        new = int(self.state[NEW])
        if not new:
            return self._order
        if new * _MERGED < len(self._order):
            self._merge_in(self._new[:new])
        else:
            self._order = self.walk()
            self._ordered_keys = self.keys[self._order]
        self.state[NEW] = 0
        return self._order

    def _merge_in(self, came: Entries) -> None:
        came_keys = self.keys[came]
        ranked = np.argsort(came_keys, kind="stable")
        order, keys = self._order, self._ordered_keys
        self._order = np.empty(len(order) + len(came), dtype=np.int32)
        self._ordered_keys = np.empty(len(self._order), dtype=np.int64)
        merged = (self._order, self._ordered_keys)
        _merge(order, keys, came[ranked], came_keys[ranked], *merged)

    def present(self) -> tuple[Keys, NDArray[np.int64]]:
        """The keys that have rows, ascending, and their counts."""
        order = self.ordered()
        keys, counts = np.empty(len(order), dtype=np.int64), np.empty(len(order), dtype=np.int64)
        found = _present(order, self._ordered_keys, self.counts, keys, counts)
        return keys[:found], counts[:found]

    def purge(self) -> Entries:
        """Forget entries without rows, unless they are few; gives those that are gone.

        No row may be hidden: hidden rows have entries, but are not counted.
        """
        used = int(self.state[USED])
        alive = int(np.count_nonzero(self.counts[1:used]))
        if (len(self) - alive) * _WORTH_PURGING <= len(self):
            return np.zeros(0, dtype=np.int32)
        order = self.ordered()
        is_left = self.counts[order] > 0
        gone = order[~is_left]
        free = int(self.state[FREE])
        self._free[free : free + len(gone)] = gone
        self.state[FREE] = free + len(gone)
        self._order, self._ordered_keys = order[is_left], self._ordered_keys[is_left]
        self.rebuild(self._order)
        return gone

    def rekey(self, number_of: NDArray[np.int64]) -> None:
        """Give every entry the key ``number_of[key]``, in which keys ascend as before."""
        order = self.ordered()
        self._ordered_keys = number_of[self._ordered_keys]
        self.keys[order] = self._ordered_keys
        self.rebuild(order)

    def _grow(self, size: int) -> None:
        """Make room for so many entries."""
        self.keys = resized(self.keys, size)
        self.counts = resized(self.counts, size)
        self._free = resized(self._free, size)
        self._new = resized(self._new, size)

    @abstractmethod
    def _enter(self, keys: Keys, entries: Entries, done: int) -> int:
        """Find or make the entries of keys from `done` on; stops where there is no more room."""

    @abstractmethod
    def _find(self, keys: Keys, entries: Entries) -> None:
        """Find the entries of keys, -1 where there is none."""

    @abstractmethod
    def find_one(self, key: int) -> int:
        """The entry of one key, -1 if it has none."""

    @abstractmethod
    def walk(self) -> Entries:
        """All entries ascending by key, read off the structure itself."""

    @abstractmethod
    def rebuild(self, order: Entries) -> None:
        """Hold just these entries, which ascend by key."""


def resized(array: NDArray[Number], size: int, filler: int = 0) -> NDArray[Number]:
    """A longer copy of an array, along its first axis."""
    longer = np.full((size, *array.shape[1:]), filler, dtype=array.dtype)
    longer[: len(array)] = array
    return longer


@register_jitable
def take_entry(key, keys, counts, free, new, state):  # type: ignore[no-untyped-def]
    """A new entry for a key, or -1 if there is no room for one."""
    if state[1] > 0:
        state[1] -= 1
        entry = free[state[1]]
    elif state[0] < keys.shape[0]:
        entry = np.int32(state[0])
        state[0] += 1
    else:
        return np.int32(-1)
    keys[entry] = key
    counts[entry] = 0
    new[state[2]] = entry
    state[2] += 1
    return entry


@compiled
def _count(counts, entries, change):  # type: ignore[no-untyped-def]
    for i in range(entries.shape[0]):
        counts[entries[i]] += change


@compiled
def _count_many(counts, entries, changes, sign):  # type: ignore[no-untyped-def]
    for i in range(entries.shape[0]):
        counts[entries[i]] += sign * changes[i]


@compiled
def _merge(order, keys, came, came_keys, merged, merged_keys):  # type: ignore[no-untyped-def]
    i, j = 0, 0
    for k in range(merged.shape[0]):
        if j == came.shape[0] or (i < order.shape[0] and keys[i] < came_keys[j]):
            merged[k], merged_keys[k] = order[i], keys[i]
            i += 1
        else:
            merged[k], merged_keys[k] = came[j], came_keys[j]
            j += 1


@compiled
def _present(order, keys, counts, out_keys, out_counts):  # type: ignore[no-untyped-def]
    found = 0
    for i in range(order.shape[0]):  # without a branch: which entries have rows is anyone's guess
        count = counts[order[i]]
        out_keys[found] = keys[i]
        out_counts[found] = count
        found += 1 if count > 0 else 0
    return found
