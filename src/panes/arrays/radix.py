"""A stable order of integers, by their digits.

Sorting by comparison costs several times as much as the rest of a per-row window. Keys are
ordered digit by digit from the least significant one, as many digits as their span needs. A key
and the index it came from share one 64-bit word, so that a pass moves a single array; keys too
wide for that are ordered by their lower half first and then by the upper one.
"""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled

_BITS = 12
_HALF = 32
_WORD = 63
_FEW = 1 << 12
_PARTS = 4
_SHORT = 32


def stable_order(
    keys: NDArray[np.int64],
    before: NDArray[np.int64] | None = None,
    *,
    executor: Executor | None = None,
) -> NDArray[np.int64]:
    """Where to find the smallest key, the next one, ...; equal keys keep their order.

    Their order is that of `before`, if it is given, which lists every index once.

    >>> stable_order(np.array([30, 10, 30, 20]))
    array([1, 3, 0, 2])
    """
    return sort(keys, before, executor=executor)[0]


def sort(
    keys: NDArray[np.int64],
    before: NDArray[np.int64] | None = None,
    *,
    executor: Executor | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The order as `stable_order` gives it, and the keys in that order."""
    order = np.arange(len(keys)) if before is None else before
    keys_before = keys if before is None else keys[before]
    if is_sorted(keys_before):
        return order, keys_before
    if len(keys) < _FEW:
        ranked = np.argsort(keys_before, kind="stable")
        return order[ranked], keys_before[ranked]
    low, index_bits = int(keys.min()), (len(keys) - 1).bit_length()
    key_bits = (int(keys.max()) - low).bit_length()
    if key_bits + index_bits > _WORD:
        by_lower = stable_order(keys & ((1 << _HALF) - 1), before, executor=executor)
        order = stable_order(keys >> _HALF, by_lower, executor=executor)
        return order, keys[order]
    words = keys_before - low
    words <<= index_bits
    words |= order
    words = by_digits(words, range(index_bits, index_bits + key_bits), executor)
    order = words & ((1 << index_bits) - 1)
    words >>= index_bits
    words += low
    return order, words


def by_digits(
    words: NDArray[np.int64], bits: range, executor: Executor | None
) -> NDArray[np.int64]:
    """Words sorted by some of their bits, the highest ones they have; they may be overwritten."""
    other = np.empty_like(words)
    for shift in range(bits.start, bits.stop, _BITS):
        _pass(words, other, shift, executor)
        words, other = other, words
    return words


def _pass(
    words: NDArray[np.int64], to: NDArray[np.int64], shift: int, executor: Executor | None
) -> None:
    """Sort by one digit, keeping the order of equal digits; each thread takes some of the words."""
    run = map if executor is None else executor.map
    parts = np.array_split(words, 1 if executor is None else _PARTS)
    counts = np.stack(list(run(lambda part: _count(part, shift), parts)), axis=1)
    # Words with one digit stand part after part, so that they keep their order.
    begins = (np.cumsum(counts) - counts.ravel()).reshape(counts.shape).T.copy()
    list(run(lambda part, begin: _move(part, to, begin, shift), parts, begins))


def number_pairs(
    majors: NDArray[np.int64],
    minors: NDArray[np.signedinteger],
    *,
    width: int | None = None,
    executor: Executor | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
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
        by_minor = stable_order(minors.astype(np.int64), executor=executor)
        order = stable_order(majors, by_minor, executor=executor)
        seen = _number(majors, minors, order, major, minor, numbers)
    return numbers, major[:seen], minor[:seen]


def is_sorted(keys: NDArray[np.int64]) -> bool:
    """Whether no key is smaller than the one before it."""
    return bool(_is_sorted(keys))


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


@compiled
def _count(words, shift):  # type: ignore[no-untyped-def]
    """How many words have each digit."""
    counts = np.zeros(1 << _BITS, dtype=np.int64)
    for i in range(words.shape[0]):
        counts[(words[i] >> shift) & ((1 << _BITS) - 1)] += 1
    return counts


@compiled
def _move(words, to, begins, shift):  # type: ignore[no-untyped-def]
    """Move each word to where its digit's words begin, one after the other."""
    for i in range(words.shape[0]):
        digit = (words[i] >> shift) & ((1 << _BITS) - 1)
        to[begins[digit]] = words[i]
        begins[digit] += 1
