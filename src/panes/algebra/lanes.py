"""The scalar operations all numeric partials are built from, compiled once.

Every operation is written twice and only here: `_combine` folds one partial into another,
`_absorb` folds one row's value into a partial. Both work in place on column `i` of `into`.

| operation | lanes | combine |
|---|---|---|
| ADD       | any integers | lane by lane |
| LEAST     | a tuple of integers | the lexicographically smaller tuple |
| GREATEST  | a tuple of integers | the lexicographically greater tuple |
| SUM       | high, low | a float sum carried in two doubles (Knuth's two-sum): no drift |
| MOMENTS   | n, mean, M2 | Chan, Golub and LeVeque 1979 |
| COMOMENTS | n, mean x, mean y, M2 x, M2 y, C | the same, for pairs |

Nothing is ever subtracted out of a float.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numba import njit


class Op(IntEnum):
    """Names of the operations; the numbers are what compiled code branches on."""

    ADD = 0
    LEAST = 1
    GREATEST = 2
    SUM = 3
    MOMENTS = 4
    COMOMENTS = 5


INTEGER_OPS = frozenset({Op.ADD, Op.LEAST, Op.GREATEST})

_ADD, _LEAST, _GREATEST, _SUM, _MOMENTS = 0, 1, 2, 3, 4


@njit(cache=True, inline="always")
def _two_sum(into, i, high, low):  # type: ignore[no-untyped-def]
    a = into[0, i]
    total = a + high
    if np.isfinite(total):
        b = total - a
        into[1, i] += (a - (total - b)) + (high - b) + low
    into[0, i] = total


@njit(cache=True, inline="always")
def _lexicographic(sign, into, i, other, j):  # type: ignore[no-untyped-def]
    for lane in range(into.shape[0]):
        if into[lane, i] != other[lane, j]:
            if (other[lane, j] < into[lane, i]) == (sign == _LEAST):
                for rest in range(lane, into.shape[0]):
                    into[rest, i] = other[rest, j]
            return


@njit(cache=True)
def _merge_moments(into, i, other, j):  # type: ignore[no-untyped-def]
    n, m = into[0, i], other[0, j]
    if m == 0:
        return
    if n == 0:
        for lane in range(into.shape[0]):
            into[lane, i] = other[lane, j]
        return
    total = n + m
    weight = n * m / total
    if into.shape[0] == 3:
        delta = other[1, j] - into[1, i]
        into[1, i] += delta * (m / total)
        into[2, i] += other[2, j] + delta * delta * weight
    else:
        dx, dy = other[1, j] - into[1, i], other[2, j] - into[2, i]
        into[1, i] += dx * (m / total)
        into[2, i] += dy * (m / total)
        into[3, i] += other[3, j] + dx * dx * weight
        into[4, i] += other[4, j] + dy * dy * weight
        into[5, i] += other[5, j] + dx * dy * weight
    into[0, i] = total


@njit(cache=True)
def _absorb_moments(into, i, values, j):  # type: ignore[no-untyped-def]
    into[0, i] += 1
    n = into[0, i]
    if into.shape[0] == 3:
        delta = values[0, j] - into[1, i]
        into[1, i] += delta / n
        into[2, i] += delta * (values[0, j] - into[1, i])
    else:
        dx, dy = values[0, j] - into[1, i], values[1, j] - into[2, i]
        into[1, i] += dx / n
        into[2, i] += dy / n
        into[3, i] += dx * (values[0, j] - into[1, i])
        into[4, i] += dy * (values[1, j] - into[2, i])
        into[5, i] += dx * (values[1, j] - into[2, i])


@njit(cache=True, inline="always")
def fold(op, into, i, other, j):  # type: ignore[no-untyped-def]
    """Combine partial `j` of `other` into partial `i` of `into`."""
    if op == _ADD:
        for lane in range(into.shape[0]):
            into[lane, i] += other[lane, j]
    elif op == _LEAST or op == _GREATEST:
        _lexicographic(op, into, i, other, j)
    elif op == _SUM:
        _two_sum(into, i, other[0, j], other[1, j])
    else:
        _merge_moments(into, i, other, j)


@njit(cache=True, nogil=True)
def combine_into(op, into, other):  # type: ignore[no-untyped-def]
    """Combine partials pairwise: column k of `other` into column k of `into`."""
    for k in range(into.shape[1]):
        fold(op, into, k, other, k)


@njit(cache=True, nogil=True)
def combine_slots(op, into, other, slots):  # type: ignore[no-untyped-def]
    """Combine column k of `other` into the column of `into` that ``slots[k]`` names."""
    for k in range(slots.shape[0]):
        fold(op, into, slots[k], other, k)


@njit(cache=True, nogil=True)
def absorb_rows(op, into, values, slots):  # type: ignore[no-untyped-def]
    """Fold the value of row k into the partial that ``slots[k]`` names; negative slots pass."""
    rows = slots.shape[0]
    if op == _ADD:
        for k in range(rows):
            i = slots[k]
            if i >= 0:
                for lane in range(into.shape[0]):
                    into[lane, i] += values[lane, k]
    elif op == _LEAST or op == _GREATEST:
        for k in range(rows):
            if slots[k] >= 0:
                _lexicographic(op, into, slots[k], values, k)
    elif op == _SUM:
        for k in range(rows):
            if slots[k] >= 0:
                _two_sum(into, slots[k], values[0, k], 0.0)
    else:
        for k in range(rows):
            if slots[k] >= 0:
                _absorb_moments(into, slots[k], values, k)
