"""Pairs of integers in order, where the second ones come nearly in order already.

Rows of a stream come nearly in the order of their positions. Sorted by key alone, keeping their
order, the rows of each key are nearly in order too, and moving the few that are not costs next to
nothing. Where the rows of a key are in no order, they are sorted by comparison.

A key and the index it came from share one 64-bit word, as in `panes.arrays.ordering`. If a key is
too wide for that, its upper bits stand for it, and rows that agree in those are told apart
afterwards.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.arrays.ordering import packed, sort, stable_order
from panes.arrays.spread import parts, spread
from panes.arrays.workers import workers

Numbers = NDArray[np.int64]
_WORD = 63
_FEW = 1 << 12
_LONG = 1 << 10


def sort_pairs(majors: Numbers, minors: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Where to find the smallest pair, the next one, ...; and the pairs in that order.

    >>> sort_pairs(np.array([7, 3, 7]), np.array([2, 9, 1]))
    (array([1, 2, 0]), array([3, 7, 7]), array([9, 1, 2]))
    """
    if len(majors) < _FEW:
        order = np.lexsort((minors, majors))
        return order, majors[order], minors[order]
    low, high = int(majors.min()), int(majors.max())
    if low == high:
        order, minor = sort(minors)
        return order, majors, minor
    index_bits = (len(majors) - 1).bit_length()
    key_bits = (high - low).bit_length()
    dropped = max(key_bits + index_bits - _WORD, 0)
    words = packed(majors, low, index_bits, dropped=dropped)
    words.sort()
    order, major, minor = (np.empty(len(words), dtype=np.int64) for _ in range(3))

    def unpack(part: tuple[int, int]) -> None:
        _unpack(words, index_bits, low, dropped, majors, minors, *part, order, major, minor)

    def straighten(part: tuple[int, int]) -> int:
        return int(_straighten(words, index_bits, *part, order, major, minor))

    some = parts(len(words))
    spread(workers(), unpack, some, rows=len(words))
    between = _between_keys(words, index_bits, some)
    if sum(spread(workers(), straighten, between, rows=len(words))):
        return _in_no_order(majors, minors)
    return order, major, minor


def _in_no_order(majors: Numbers, minors: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The same for pairs in no order at all."""
    order = stable_order(minors)
    order = stable_order(majors, order)
    return order, majors[order], minors[order]


def _between_keys(
    words: Numbers, index_bits: int, some: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Parts, moved so that none begins within a key."""
    edges = [0]
    for _, end in some[:-1]:
        key = words[end] >> index_bits
        moved = int(np.searchsorted(words, (key + 1) << index_bits))
        edges.append(max(moved, edges[-1]))
    edges.append(len(words))
    return [(a, b) for a, b in pairwise(edges) if b > a]


@compiled
def _unpack(words, index_bits, low, dropped, majors, minors, begin, end, order, major, minor):  # type: ignore[no-untyped-def]
    # Reading in the order of keys misses the cache; nothing else is done meanwhile, so that the
    # processor can wait for many of these reads at once.
    mask = (np.int64(1) << index_bits) - 1
    for i in range(begin, end):
        order[i] = words[i] & mask
        minor[i] = minors[order[i]]
    for i in range(begin, end):
        major[i] = majors[order[i]] if dropped else low + (words[i] >> index_bits)


@compiled
def _straighten(words, index_bits, begin, end, order, major, minor):  # type: ignore[no-untyped-def]
    """Sort the pairs of each key; gives how many stood in long runs that are far from sorted.

    Those are left as they are.
    """
    left_alone = 0
    i = begin
    while i < end:
        key = words[i] >> index_bits
        start = i
        budget = 64
        i += 1
        while i < end and words[i] >> index_bits == key and budget > 0:
            a, b, index = major[i], minor[i], order[i]
            budget += 8
            j = i
            while j > start and (major[j - 1] > a or (major[j - 1] == a and minor[j - 1] > b)):
                order[j], major[j], minor[j] = order[j - 1], major[j - 1], minor[j - 1]
                j -= 1
                budget -= 1
            order[j], major[j], minor[j] = index, a, b
            i += 1
        if budget <= 0:
            while i < end and words[i] >> index_bits == key:
                i += 1
            if i - start > _LONG:
                left_alone += i - start
                continue
            by_minor = np.argsort(minor[start:i], kind="mergesort")
            both = by_minor[np.argsort(major[start:i][by_minor], kind="mergesort")]
            order[start:i] = order[start:i][both]
            major[start:i] = major[start:i][both]
            minor[start:i] = minor[start:i][both]
    return left_alone
