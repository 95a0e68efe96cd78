"""A stable order of integers, by their digits.

Sorting by comparison costs several times as much as the rest of a per-row window. Keys are
ordered digit by digit from the least significant one, as many digits as their span needs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.compiled import compiled

_BITS = 12
_FEW = 1 << 12
_SHORT = 32


def stable_order(
    keys: NDArray[np.int64], before: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Where to find the smallest key, the next one, ...; equal keys keep their order.

    Their order is that of `before`, if it is given, which lists every place once.

    >>> stable_order(np.array([30, 10, 30, 20]))
    array([1, 3, 0, 2])
    """
    return sort(keys, before)[0]


def sort(
    keys: NDArray[np.int64], before: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The order as `stable_order` gives it, and the keys in that order."""
    order = np.arange(len(keys)) if before is None else before.copy()
    keys = keys if before is None else keys[before]
    if is_sorted(keys):
        return order, keys
    if len(keys) < _FEW:
        ranked = np.argsort(keys, kind="stable")
        return order[ranked], keys[ranked]
    low, high = int(keys.min()), int(keys.max())
    digits = -(-(high - low).bit_length() // _BITS)
    other = np.empty(len(keys), dtype=np.int64)
    left, right = keys - low, np.empty(len(keys), dtype=np.int64)
    for digit in range(digits):
        _pass(left, order, right, other, _BITS * digit)
        left, right, order, other = right, left, other, order
    left += low
    return order, left


def number_pairs(
    majors: NDArray[np.int64], minors: NDArray[np.signedinteger]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """A number for every different pair, ascending; and the pair of each number.

    >>> number_pairs(np.array([5, 3, 5]), np.array([1, 2, 1]))
    (array([1, 0, 1], dtype=int32), array([3, 5]), array([2, 1]))
    """
    numbers = np.empty(len(majors), dtype=np.int32)
    if is_sorted(majors):
        major, minor = majors.copy(), minors.astype(np.int64)
        seen = _number_runs(major, minor, numbers)
    else:
        order, major = sort(majors, stable_order(minors.astype(np.int64)))
        minor = minors[order].astype(np.int64)
        seen = _number(major, minor, order, numbers)
    return numbers, major[:seen], minor[:seen]


def is_sorted(keys: NDArray[np.int64]) -> bool:
    """Whether no key is smaller than the one before it."""
    return bool((keys[1:] >= keys[:-1]).all())


@compiled
def _number(major, minor, order, numbers):  # type: ignore[no-untyped-def]
    """Number sorted pairs, and move each different one to the place of its number."""
    seen = -1
    for i in range(order.shape[0]):
        if seen < 0 or major[i] != major[seen] or minor[i] != minor[seen]:
            seen += 1
            major[seen], minor[seen] = major[i], minor[i]
        numbers[order[i]] = seen
    return seen + 1


@compiled
def _insertion_sort(keys, order):  # type: ignore[no-untyped-def]
    for i in range(1, order.shape[0]):
        here, j = order[i], i
        while j > 0 and keys[order[j - 1]] > keys[here]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = here


@compiled
def _number_runs(major, minor, numbers):  # type: ignore[no-untyped-def]
    """As `_number`, where only pairs with the same first number are still to be sorted."""
    seen, begin = 0, 0
    while begin < major.shape[0]:
        end = begin + 1
        while end < major.shape[0] and major[end] == major[begin]:
            end += 1
        key = major[begin]
        if end == begin + 1:
            major[seen], minor[seen], numbers[begin] = key, minor[begin], seen
            seen += 1
        else:
            own = minor[begin:end].copy()
            ranked = np.arange(end - begin) if end - begin < _SHORT else np.argsort(own)
            if end - begin < _SHORT:
                _insertion_sort(own, ranked)
            first = seen
            for i in ranked:
                if seen == first or own[i] != minor[seen - 1]:
                    major[seen], minor[seen] = key, own[i]
                    seen += 1
                numbers[begin + i] = seen - 1
        begin = end
    return seen


@compiled
def _pass(keys, order, to_keys, to_order, shift):  # type: ignore[no-untyped-def]
    """Sort by one digit, keeping the order of equal digits."""
    mask = (1 << _BITS) - 1
    begins = np.zeros((1 << _BITS) + 1, dtype=np.int64)
    for i in range(keys.shape[0]):
        begins[((keys[i] >> shift) & mask) + 1] += 1
    for d in range(1 << _BITS):
        begins[d + 1] += begins[d]
    for i in range(keys.shape[0]):
        d = (keys[i] >> shift) & mask
        to_keys[begins[d]] = keys[i]
        to_order[begins[d]] = order[i]
        begins[d] += 1
