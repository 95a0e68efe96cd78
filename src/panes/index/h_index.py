"""H-INDEX: the values of a window in a hash table (paper, 4.2).

| per row, over | cost (paper, Table 1) |
|---|---|
| LIST | D / h |
| AGGR | d + (D / h) d / b |
| HASH | d / h + (D / h) d / b |

D values in the window, d in a basic window of b rows, h buckets. Buckets double with the values, so
that D / h is at most 1. The paper's table has a fixed number of buckets, chosen by the remainder of
a value: `buckets` asks for that one. Values in order have to be sorted.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from panes.arrays.compiled import compiled
from panes.index.domain import Domain, Entries, Keys, resized, take_entry

_SPREAD = np.int64(-7046029254386353131)  # the golden ratio, as 64 bits
_FIRST_BITS = 7


class HIndex(Domain):
    """Entries in buckets, each a linked list."""

    def __init__(self, buckets: int | None = None) -> None:
        super().__init__()
        self._fixed = 0 if buckets is None else buckets
        self._bits = _FIRST_BITS
        self._first: Entries = np.full(buckets or 1 << _FIRST_BITS, -1, dtype=np.int32)
        self._next: Entries = np.full(self.size, -1, dtype=np.int32)

    def _grow(self, size: int) -> None:
        super()._grow(size)
        self._next = resized(self._next, size, -1)
        if not self._fixed:
            self._bits = (size - 1).bit_length() + 1
            order = self.walk_unordered()
            self._first = np.full(1 << self._bits, -1, dtype=np.int32)
            _rebuild(order, self.keys, self._first, self._next, self._fixed, 64 - self._bits)

    def _enter(self, keys: Keys, entries: Entries, done: int) -> int:
        parts = (self.keys, self.counts, self._free, self._new, self.state)
        places = (self._first, self._next, self._fixed, 64 - self._bits)
        return int(_enter(keys, entries, done, *parts, *places))

    def _find(self, keys: Keys, entries: Entries) -> None:
        _find(
            keys, entries, self.keys, self._first, self._next, self._fixed, 64 - self._bits
        )  # fmt: skip

    def find_one(self, key: int) -> int:
        return int(_find_one(key, self.keys, self._first, self._next, self._fixed, 64 - self._bits))

    def walk(self) -> Entries:
        order = self.walk_unordered()
        return order[np.argsort(self.keys[order], kind="stable")]

    def walk_unordered(self) -> Entries:
        """All entries, bucket by bucket."""
        return _walk(np.empty(len(self), dtype=np.int32), self._first, self._next)

    def rebuild(self, order: Entries) -> None:
        self._first[:] = -1
        _rebuild(order, self.keys, self._first, self._next, self._fixed, 64 - self._bits)


@register_jitable
def _bucket(key, fixed, shift):  # type: ignore[no-untyped-def]
    """The bucket of a key: its remainder if their number is fixed, else its topmost mixed bits."""
    if fixed > 0:
        return key % fixed
    mixed = np.int64(key ^ (key >> 32)) * _SPREAD
    return np.int64(np.uint64(mixed) >> np.uint64(shift))


@compiled
def _enter(wanted, entries, done, keys, counts, free, new, state, first, following, fixed, shift):  # type: ignore[no-untyped-def]
    for i in range(done, wanted.shape[0]):
        key = wanted[i]
        bucket = _bucket(key, fixed, shift)
        at = first[bucket]
        while at >= 0 and keys[at] != key:
            at = following[at]
        if at < 0:
            at = take_entry(key, keys, counts, free, new, state)
            if at < 0:
                return i
            following[at] = first[bucket]
            first[bucket] = at
        entries[i] = at
    return wanted.shape[0]


@compiled
def _find(wanted, entries, keys, first, following, fixed, shift):  # type: ignore[no-untyped-def]
    for i in range(wanted.shape[0]):
        at = first[_bucket(wanted[i], fixed, shift)]
        while at >= 0 and keys[at] != wanted[i]:
            at = following[at]
        entries[i] = at


@compiled
def _find_one(key, keys, first, following, fixed, shift):  # type: ignore[no-untyped-def]
    at = first[_bucket(key, fixed, shift)]
    while at >= 0 and keys[at] != key:
        at = following[at]
    return at


@compiled
def _walk(order, first, following):  # type: ignore[no-untyped-def]
    found = 0
    for bucket in range(first.shape[0]):
        at = first[bucket]
        while at >= 0:
            order[found] = at
            found += 1
            at = following[at]
    return order


@compiled
def _rebuild(order, keys, first, following, fixed, shift):  # type: ignore[no-untyped-def]
    for i in range(order.shape[0]):
        bucket = _bucket(keys[order[i]], fixed, shift)
        following[order[i]] = first[bucket]
        first[bucket] = order[i]
