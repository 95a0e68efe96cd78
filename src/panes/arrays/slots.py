"""Dense numbers for sparse codes.

Codes (a pane and a group packed into one integer) become consecutive slots in the order of the
codes. A table is used where the codes are dense enough to afford one, sorting otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled

Value = TypeVar("Value", bound=np.generic)
_AFFORDABLE = 8
_NEARLY_ALL = 0.9
_MOST = (1 << 31) - 1


def is_dense(rows: int, domain: int) -> bool:
    """True if a table over the whole domain costs little more than the rows themselves."""
    return domain <= min(_AFFORDABLE * rows + 65_536, _MOST)


def compact_slots(
    codes: NDArray[np.int64], domain: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The slot of each code, and the code of each slot, ascending.

    >>> compact_slots(np.array([7, 3, 7]), 10)
    (array([1, 0, 1]), array([3, 7]))
    """
    if not is_dense(len(codes), domain):
        distinct, slots = np.unique(codes, return_inverse=True)
        return slots, distinct
    present = np.zeros(domain, dtype=np.bool_)
    present[codes] = True
    distinct = np.flatnonzero(present)
    slot_of = np.cumsum(present, dtype=np.int64) - 1
    return slot_of[codes], distinct


def distinct(values: NDArray[np.signedinteger]) -> NDArray[np.int64]:
    """The different values, ascending. Memory follows how many values there are.

    `np.unique` hashes, and takes many times as long where most values are different.

    >>> distinct(np.array([7, 3, 7, 10**12]))
    array([            3,             7, 1000000000000])
    """
    if not len(values):
        return np.empty(0, dtype=np.int64)
    if is_dense(len(values), int(values.max()) + 1) and values.min() >= 0:
        return np.flatnonzero(np.bincount(values))
    ascending = np.sort(values)
    is_first = np.concatenate([[True], ascending[1:] != ascending[:-1]])
    return ascending[is_first].astype(np.int64, copy=False)


def places_among(ascending: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """As `np.searchsorted`, faster where what is ascending mostly stands at equal distances.

    >>> places_among(np.array([10, 20, 30]), np.array([5, 10, 11, 40]))
    array([0, 0, 1, 3])
    """
    places = np.empty(len(values), dtype=np.int64)
    _find_places(ascending, values, places)
    return places


@compiled
def _find_places(ascending, values, places):  # type: ignore[no-untyped-def]
    """Look where a value would be at equal distances, then search."""
    count, share = ascending.shape[0], 0.0
    if count > 1:
        share = (count - 1) / (ascending[-1] - ascending[0])
    for i in range(values.shape[0]):
        low, high = 0, count
        if count > 1:
            ahead = min(max((values[i] - ascending[0]) * share, 0.0), count - 1.0)
            near = int(ahead)
            if ascending[near] < values[i]:
                low = near + 1
                high = near + 1 if low < count and ascending[low] >= values[i] else count
            else:
                high = near
                low = near if near == 0 or ascending[near - 1] < values[i] else 0
        while low < high:
            half = (low + high) >> 1
            if ascending[half] < values[i]:
                low = half + 1
            else:
                high = half
        places[i] = low


def moved(values: NDArray[Value], targets: NDArray[np.int32], size: int) -> NDArray[Value]:
    """Each value, or column of partials, at its target, an index; -1 is none. No target is twice.

    >>> moved(np.array([7, 8, 9]), np.array([1, -1, 0], dtype=np.int32), 2)
    array([9, 7])
    """
    result = np.empty((*values.shape[:-1], size), dtype=values.dtype)
    if values.dtype == object:
        which = np.flatnonzero(targets >= 0)
        result[..., targets[which]] = values[..., which]
        return result
    for lane, to in zip(np.atleast_2d(values), np.atleast_2d(result), strict=True):
        _move(lane, targets, to)
    return result


@compiled
def _move(values, targets, to):  # type: ignore[no-untyped-def]
    for i in range(targets.shape[0]):
        if targets[i] >= 0:
            to[targets[i]] = values[i]


def packed(values: NDArray[Value], which: NDArray[np.int64]) -> NDArray[Value]:
    """Some columns of partials, by ascending index; the array they are in is used up.

    If they are nearly all, they move up in it: fresh memory costs more than the move.

    >>> packed(np.array([[1, 2, 3], [4, 5, 6]]), np.array([0, 2]))
    array([[1, 3],
           [4, 6]])
    """
    lanes, size = values.shape
    is_plain = values.dtype in (np.int64, np.float64)  # a user's own may be anything
    if not is_plain or len(which) < _NEARLY_ALL * size:
        return np.take(values, which, axis=1)
    flat = values.reshape(-1)
    _pack(flat, lanes, size, which)
    return flat[: lanes * len(which)].reshape(lanes, -1)


@compiled
def _pack(flat, lanes, size, which):  # type: ignore[no-untyped-def]
    for lane in range(lanes):
        for i in range(which.shape[0]):
            flat[lane * which.shape[0] + i] = flat[lane * size + which[i]]


@dataclass(frozen=True, slots=True)
class Ragged:
    """A table with a row of slots per group, as long as the panes that the group spans."""

    low: NDArray[np.int64]
    begin: NDArray[np.int64]

    @classmethod
    def over(cls, pane: NDArray[np.int32], groups: NDArray[np.int32], group_count: int) -> Ragged:
        """The table for these pairs of a pane and a group."""
        low = np.full(group_count, 1 << 31, dtype=np.int64)
        high = np.full(group_count, -1, dtype=np.int64)
        _span(pane, groups, low, high)
        length = np.maximum(high - low + 1, 0)
        return cls(low, np.r_[0, np.cumsum(length)])

    @property
    def size(self) -> int:
        """The number of slots."""
        return int(self.begin[-1])

    def slots(self, pane: NDArray[np.int32], groups: NDArray[np.int32]) -> NDArray[np.int32]:
        """The slot of each pair."""
        slots = np.empty(len(pane), dtype=np.int32)
        _ragged_slots(pane, groups, self.begin[:-1] - self.low, slots)
        return slots

    def pairs(self, slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The pane and the group of each slot, which ascend."""
        groups = np.searchsorted(self.begin, slots, side="right") - 1
        return slots - self.begin[groups] + self.low[groups], groups


@compiled
def _span(pane, groups, low, high):  # type: ignore[no-untyped-def]
    for i in range(pane.shape[0]):
        low[groups[i]] = min(low[groups[i]], pane[i])
        high[groups[i]] = max(high[groups[i]], pane[i])


@compiled
def _ragged_slots(pane, groups, shift, slots):  # type: ignore[no-untyped-def]
    for i in range(pane.shape[0]):
        slots[i] = pane[i] + shift[groups[i]]
