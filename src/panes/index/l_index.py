"""L-INDEX: the values of a window as one sorted linked list (paper, 4.1).

A search starts at the value that was found last, if that is not greater, and else at the first. So
ascending values, as AGGR gives them, are found in one pass over the list, however many they are.

| per row, over | cost (paper, Table 1) |
|---|---|
| LIST | D |
| AGGR | d + D d / b |
| HASH | d / h + D d / b |

D values in the window, d in a basic window of b rows, h buckets. The list is what DISTINCT asks for
as it stands; everything else about it is slow.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from panes.arrays.compiled import compiled
from panes.index.domain import HEAD, Domain, Entries, Keys, resized, take_entry


class LIndex(Domain):
    """Entries in a linked list, ascending by key."""

    def __init__(self) -> None:
        super().__init__()
        self._next: Entries = np.full(self.size, -1, dtype=np.int32)

    def _grow(self, size: int) -> None:
        super()._grow(size)
        self._next = resized(self._next, size, -1)

    def _enter(self, keys: Keys, entries: Entries, done: int) -> int:
        parts = (self.keys, self.counts, self._free, self._new, self.state, self._next)
        return int(_enter(keys, entries, done, *parts))

    def _find(self, keys: Keys, entries: Entries) -> None:
        _find(keys, entries, self.keys, self.state, self._next)

    def find_one(self, key: int) -> int:
        return int(_find_one(key, self.keys, self.state, self._next))

    def walk(self) -> Entries:
        return _walk(np.empty(len(self), dtype=np.int32), self.state, self._next)

    def rebuild(self, order: Entries) -> None:
        _rebuild(order, self.state, self._next)


@register_jitable
def _before(key, start, keys, following, head):  # type: ignore[no-untyped-def]
    """The last entry whose key is smaller than a key, -1 if there is none."""
    before, at = np.int32(-1), head
    if start >= 0 and keys[start] < key:
        before, at = np.int32(start), following[start]
    while at >= 0 and keys[at] < key:
        before, at = np.int32(at), following[at]
    return before


@compiled
def _enter(wanted, entries, done, keys, counts, free, new, state, following):  # type: ignore[no-untyped-def]
    before = np.int32(-1)
    for i in range(done, wanted.shape[0]):
        before = _before(wanted[i], before, keys, following, state[3])
        at = state[3] if before < 0 else following[before]
        if at < 0 or keys[at] != wanted[i]:
            entry = take_entry(wanted[i], keys, counts, free, new, state)
            if entry < 0:
                return i
            following[entry] = at
            if before < 0:
                state[3] = entry
            else:
                following[before] = entry
            at = entry
        entries[i] = at
    return wanted.shape[0]


@compiled
def _find(wanted, entries, keys, state, following):  # type: ignore[no-untyped-def]
    before = np.int32(-1)
    for i in range(wanted.shape[0]):
        before = _before(wanted[i], before, keys, following, state[3])
        at = state[3] if before < 0 else following[before]
        entries[i] = at if at >= 0 and keys[at] == wanted[i] else -1


@compiled
def _find_one(key, keys, state, following):  # type: ignore[no-untyped-def]
    before = _before(key, np.int32(-1), keys, following, state[3])
    at = state[3] if before < 0 else following[before]
    return at if at >= 0 and keys[at] == key else -1


@compiled
def _walk(order, state, following):  # type: ignore[no-untyped-def]
    at = state[3]
    for i in range(order.shape[0]):
        order[i] = at
        at = following[at]
    return order


@compiled
def _rebuild(order, state, following):  # type: ignore[no-untyped-def]
    at = -1
    for i in range(order.shape[0] - 1, -1, -1):
        following[order[i]] = at
        at = order[i]
    state[3] = at


assert HEAD == 3, "compiled loops read the list's beginning from state[3]"
