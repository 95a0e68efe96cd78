"""A stable order of integers.

A key and the place it comes from share one 64-bit word, and NumPy sorts words: with the vector
instructions of the processor, several times as fast as it finds the order of keys. Keys too wide
for that are ordered by their lower half first and then by the upper one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.arrays.spread import parts, spread
from panes.arrays.workers import workers

Numbers = NDArray[np.int64]
_HALF = 32
_WORD = 63
_SHORT = 32


def stable_order(keys: Numbers, before: Numbers | None = None) -> Numbers:
    """Where to find the smallest key, the next one, ...; equal keys keep their order.

    Their order is that of `before`, if it is given, which lists every index once.

    >>> stable_order(np.array([30, 10, 30, 20]))
    array([1, 3, 0, 2])
    """
    return sort(keys, before)[0]


def sort(keys: Numbers, before: Numbers | None = None) -> tuple[Numbers, Numbers]:
    """The order as `stable_order` gives it, and the keys in that order."""
    in_order = keys if before is None else keys[before]
    if is_sorted(in_order):
        return np.arange(len(keys)) if before is None else before, in_order
    low, place_bits = int(keys.min()), (len(keys) - 1).bit_length()
    if (int(keys.max()) - low).bit_length() + place_bits > _WORD:
        by_lower = stable_order(keys & ((1 << _HALF) - 1), before)
        order = stable_order(keys >> _HALF, by_lower)
        return order, keys[order]
    words = packed(in_order, low, place_bits)
    words.sort()
    places = np.empty(len(words), dtype=np.int64)
    spread(
        workers(),
        lambda part: _unpack(words, low, place_bits, *part, places),
        parts(len(words)),
        rows=len(words),
    )
    return places if before is None else before[places], words


def packed(keys: Numbers, low: int, place_bits: int, *, dropped: int = 0) -> Numbers:
    """The distance of each key from the lowest, without its last bits, above the key's place."""
    words = np.empty(len(keys), dtype=np.int64)
    spread(
        workers(),
        lambda part: _pack(keys, low, dropped, place_bits, *part, words),
        parts(len(keys)),
        rows=len(keys),
    )
    return words


def number_pairs(
    majors: Numbers,
    minors: NDArray[np.signedinteger],
    *,
    width: int | None = None,
) -> tuple[NDArray[np.int32], Numbers, Numbers]:
    """A number for every different pair, ascending; and the pair of each number.

    If minors are known to be below a `width` that is small beside the rows of a major, they are
    not sorted but marked in a table.

    >>> number_pairs(np.array([5, 3, 5]), np.array([1, 2, 1]))
    (array([1, 0, 1], dtype=int32), array([3, 5]), array([2, 1]))
    """
    numbers = np.empty(len(majors), dtype=np.int32)
    major, minor = np.empty(len(majors), dtype=np.int64), np.empty(len(majors), dtype=np.int64)
    if is_sorted(majors) and width is not None:
        seen = _number_marked(majors, minors, width, major, minor, numbers)
    elif is_sorted(majors):
        seen = _number_runs(majors, minors, major, minor, numbers)
    else:
        by_minor = stable_order(minors.astype(np.int64))
        order = stable_order(majors, by_minor)
        seen = _number(majors, minors, order, major, minor, numbers)
    return numbers, major[:seen], minor[:seen]


def is_sorted(keys: Numbers) -> bool:
    """True if no key is smaller than the one before it."""
    return bool(_is_sorted(keys))


@compiled
def _pack(keys, low, dropped, place_bits, begin, end, words):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        # The difference may take all 64 bits: it is shifted as an unsigned number.
        distance = np.uint64(keys[i]) - np.uint64(low)
        words[i] = (np.int64(distance >> np.uint64(dropped)) << place_bits) | i


@compiled
def _unpack(words, low, place_bits, begin, end, places):  # type: ignore[no-untyped-def]
    mask = (np.int64(1) << place_bits) - 1
    for i in range(begin, end):
        places[i] = words[i] & mask
        words[i] = (words[i] >> place_bits) + low


@compiled
def _is_sorted(keys):  # type: ignore[no-untyped-def]
    i = 1
    while i < keys.shape[0] and keys[i - 1] <= keys[i]:
        i += 1
    return i >= keys.shape[0]


@compiled
def _number(majors, minors, order, major, minor, numbers):  # type: ignore[no-untyped-def]
    """Number pairs in their order, and put each different one at the index of its number."""
    seen = 0
    for i in order:
        if seen == 0 or majors[i] != major[seen - 1] or minors[i] != minor[seen - 1]:
            major[seen], minor[seen] = majors[i], minors[i]
            seen += 1
        numbers[i] = seen - 1
    return seen


@compiled
def _insertion_sort(keys, order):  # type: ignore[no-untyped-def]
    """Fill `order` with the indexes of the keys, from the smallest key on."""
    for i in range(keys.shape[0]):
        j = i
        while j > 0 and keys[order[j - 1]] > keys[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i


@compiled
def _number_runs(majors, minors, major, minor, numbers):  # type: ignore[no-untyped-def]
    """As `_number`, where only pairs with the same first number are still to be sorted."""
    seen, begin = 0, 0
    few = np.empty(_SHORT, dtype=np.int64)
    while begin < majors.shape[0]:
        end = begin + 1
        while end < majors.shape[0] and majors[end] == majors[begin]:
            end += 1
        if end == begin + 1:
            major[seen], minor[seen], numbers[begin] = majors[begin], minors[begin], seen
            seen += 1
        else:
            own, ranked = minors[begin:end], few[: end - begin]
            if end - begin > _SHORT:
                ranked = np.argsort(own)
            else:
                _insertion_sort(own, ranked)
            first = seen
            for i in ranked:
                if seen == first or own[i] != minor[seen - 1]:
                    major[seen], minor[seen] = majors[begin], own[i]
                    seen += 1
                numbers[begin + i] = seen - 1
        begin = end
    return seen


@compiled
def _number_marked(majors, minors, width, major, minor, numbers):  # type: ignore[no-untyped-def]
    """As `_number_runs`, by a table of the minors that a run has."""
    seen, begin = 0, 0
    number = np.full(width, -1, dtype=np.int64)
    while begin < majors.shape[0]:
        end = begin
        while end < majors.shape[0] and majors[end] == majors[begin]:
            number[minors[end]] = 0
            end += 1
        for m in range(width):
            if number[m] == 0:
                major[seen], minor[seen], number[m] = majors[begin], m, seen
                seen += 1
        for i in range(begin, end):
            numbers[i] = number[minors[i]]
        number[:] = -1
        begin = end
    return seen
