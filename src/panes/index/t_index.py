"""T-INDEX: the values of a window in a self-balancing search tree (paper, 4.2).

| per row, over | cost (paper, Table 1) |
|---|---|
| LIST | log D |
| AGGR | d + (d / b) log D |
| HASH | d / h + (d / b) log D |

D values in the window, d in a basic window of b rows, h buckets. The tree is an AVL tree in three
arrays. Nothing is deleted from it one by one: a purge builds a tree of what is left, which is as
flat as a tree can be. Values in order are one walk through it.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.index.domain import Domain, Entries, Keys, resized, take_entry

_DEEPEST = 64
"""An AVL tree of 2**31 entries is less than 46 deep."""


class TIndex(Domain):
    """Entries in an AVL tree. `_child[e]` are the entries below on either side, -1 if none."""

    def __init__(self) -> None:
        super().__init__()
        self._child: Entries = np.full((self.size, 2), -1, dtype=np.int32)
        self._height: NDArray[np.int8] = np.zeros(self.size, dtype=np.int8)

    def _grow(self, size: int) -> None:
        super()._grow(size)
        self._child = resized(self._child, size, -1)
        self._height = resized(self._height, size)

    def _enter(self, keys: Keys, entries: Entries, done: int) -> int:
        parts = (self.keys, self.counts, self._free, self._new, self.state)
        return int(_enter(keys, entries, done, *parts, self._child, self._height))

    def _find(self, keys: Keys, entries: Entries) -> None:
        _find(keys, entries, self.keys, self.state, self._child)

    def find_one(self, key: int) -> int:
        return int(_search(key, self.keys, self.state[3], self._child))

    def walk(self) -> Entries:
        return _walk(np.empty(len(self), dtype=np.int32), self.state, self._child)

    def rebuild(self, order: Entries) -> None:
        self.state[3] = _build(order, self._child, self._height)


@compiled
def _search(key, keys, root, child):  # type: ignore[no-untyped-def]
    at = root
    while at >= 0 and keys[at] != key:
        at = child[at, 1 if keys[at] < key else 0]
    return at


@compiled
def _find(wanted, entries, keys, state, child):  # type: ignore[no-untyped-def]
    for i in range(wanted.shape[0]):
        entries[i] = _search(wanted[i], keys, state[3], child)


@compiled
def _enter(wanted, entries, done, keys, counts, free, new, state, child, height):  # type: ignore[no-untyped-def]
    path = np.empty(_DEEPEST, dtype=np.int32)
    for i in range(done, wanted.shape[0]):
        key = wanted[i]
        at, depth = np.int32(state[3]), 0
        while at >= 0 and keys[at] != key:
            path[depth] = at
            depth += 1
            at = child[at, 1 if keys[at] < key else 0]
        if at < 0:
            at = take_entry(key, keys, counts, free, new, state)
            if at < 0:
                return i
            child[at, 0] = child[at, 1] = -1
            height[at] = 1
            if depth == 0:
                state[3] = at
            else:
                parent = path[depth - 1]
                child[parent, 1 if keys[parent] < key else 0] = at
                _balance(path, depth, state, child, height)
        entries[i] = at
    return wanted.shape[0]


@register_jitable
def _height_of(entry, height):  # type: ignore[no-untyped-def]
    return 0 if entry < 0 else height[entry]


@register_jitable
def _rotate(at, side, child, height):  # type: ignore[no-untyped-def]
    """Lift the entry on a side of `at` above it; gives the lifted one."""
    lifted = child[at, side]
    child[at, side] = child[lifted, 1 - side]
    child[lifted, 1 - side] = at
    for entry in (at, lifted):
        low, high = _height_of(child[entry, 0], height), _height_of(child[entry, 1], height)
        height[entry] = 1 + max(low, high)
    return lifted


@register_jitable
def _balance(path, depth, state, child, height):  # type: ignore[no-untyped-def]
    """Restore heights and balance from the last entry of a path up to the root."""
    for level in range(depth - 1, -1, -1):
        at = path[level]
        low, high = _height_of(child[at, 0], height), _height_of(child[at, 1], height)
        if abs(high - low) > 1:
            side = 1 if high > low else 0
            below = child[at, side]
            inner = _height_of(child[below, 1 - side], height)
            if inner > _height_of(child[below, side], height):
                child[at, side] = _rotate(below, 1 - side, child, height)
            lifted = _rotate(at, side, child, height)
            if level == 0:
                state[3] = lifted
            else:
                parent = path[level - 1]
                child[parent, 1 if child[parent, 1] == at else 0] = lifted
            return
        taller = 1 + max(low, high)
        if height[at] == taller:
            return
        height[at] = taller


@compiled
def _walk(order, state, child):  # type: ignore[no-untyped-def]
    path = np.empty(_DEEPEST, dtype=np.int32)
    depth, found, at = 0, 0, np.int32(state[3])
    while at >= 0 or depth > 0:
        while at >= 0:
            path[depth] = at
            depth += 1
            at = child[at, 0]
        depth -= 1
        order[found] = path[depth]
        found += 1
        at = child[path[depth], 1]
    return order


@compiled
def _build(order, child, height):  # type: ignore[no-untyped-def]
    """A flat tree of entries that ascend; gives its root. Halves are taken from a stack."""
    if order.shape[0] == 0:
        return -1
    first, last = np.empty(_DEEPEST, np.int64), np.empty(_DEEPEST, np.int64)
    above, sides = np.empty(_DEEPEST, np.int64), np.empty(_DEEPEST, np.int64)
    first[0], last[0], above[0], sides[0] = 0, order.shape[0], -1, 0
    waiting, root = 1, -1
    while waiting:
        waiting -= 1
        low, high, parent, side = first[waiting], last[waiting], above[waiting], sides[waiting]
        middle = (low + high) // 2
        at = order[middle]
        child[at, 0] = child[at, 1] = -1
        height[at] = _levels(high - low)
        if parent < 0:
            root = at
        else:
            child[parent, side] = at
        if low < middle:
            first[waiting], last[waiting], above[waiting], sides[waiting] = low, middle, at, 0
            waiting += 1
        if middle + 1 < high:
            first[waiting], last[waiting], above[waiting], sides[waiting] = middle + 1, high, at, 1
            waiting += 1
    return root


@register_jitable
def _levels(entries):  # type: ignore[no-untyped-def]
    """The depth of a tree of this many entries if it is built from halves."""
    levels = 0
    while entries > 0:
        entries //= 2
        levels += 1
    return levels
