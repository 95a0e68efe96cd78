"""The scalar operations all numeric partials are built from, compiled once.

Every operation is written twice and only here: as `combine`, of two partials, and as `absorb`, of
a partial and one row's value. In compiled code a partial is a tuple, one number per lane, and the
operation is a constant, so that a loop over partials keeps them in registers.

| operation | lanes | combine |
|---|---|---|
| ADD       | any integers | lane by lane |
| LEAST     | a tuple of integers | the lexicographically smaller tuple |
| GREATEST  | a tuple of integers | the lexicographically greater tuple |
| BITS_AND, BITS_OR, BITS_XOR | one integer | bit by bit |
| SUM       | high, low | a float sum carried in two doubles (Knuth's two-sum): no drift |
| MOMENTS   | n, mean, M2 | Chan, Golub and LeVeque 1979 |
| HIGHER_MOMENTS | n, mean, M2, M3, M4 | Pébay 2008 |
| COMOMENTS | n, mean x, mean y, M2 x, M2 y, C | the same, for pairs |

Nothing is ever subtracted out of a float.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload, register_jitable

from panes.arrays.compiled import compiled


class Op(IntEnum):
    """Names of the operations."""

    ADD = 0
    LEAST = 1
    GREATEST = 2
    SUM = 3
    MOMENTS = 4
    COMOMENTS = 5
    BITS_AND = 6
    BITS_OR = 7
    BITS_XOR = 8
    HIGHER_MOMENTS = 9


INTEGER_OPS = frozenset({Op.ADD, Op.LEAST, Op.GREATEST, Op.BITS_AND, Op.BITS_OR, Op.BITS_XOR})
Scalar = Callable[..., Any]


def load(p: Any, i: int, lanes: int) -> tuple[Any, ...]:
    """Column `i` of a 2-D array as a tuple. Compiled; here as plain Python says it."""
    return tuple(p[lane, i] for lane in range(lanes))


def combine(op: int, older: tuple[Any, ...], newer: tuple[Any, ...]) -> tuple[Any, ...]:
    """The partial of both. In compiled code `op` must be a constant."""
    return _COMBINE[Op(op)](older, newer)


def absorb(op: int, partial: tuple[Any, ...], value: tuple[Any, ...]) -> tuple[Any, ...]:
    """The partial with one row more. In compiled code `op` must be a constant."""
    return _ABSORB[Op(op)](partial, value)


@register_jitable
def store(partials: Any, i: int, partial: tuple[Any, ...]) -> None:
    """Write a tuple to column `i`."""
    for lane in range(len(partial)):
        partials[lane, i] = partial[lane]


def _add(a, b):  # type: ignore[no-untyped-def]
    if len(a) == 1:
        return (a[0] + b[0],)
    if len(a) == 2:
        return (a[0] + b[0], a[1] + b[1])
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3])


def _least(a, b):  # type: ignore[no-untyped-def]
    return b if b < a else a


def _greatest(a, b):  # type: ignore[no-untyped-def]
    return b if b > a else a


def _bits_and(a, b):  # type: ignore[no-untyped-def]
    return (a[0] & b[0],)


def _bits_or(a, b):  # type: ignore[no-untyped-def]
    return (a[0] | b[0],)


def _bits_xor(a, b):  # type: ignore[no-untyped-def]
    return (a[0] ^ b[0],)


def _sum(a, b):  # type: ignore[no-untyped-def]
    total = a[0] + b[0]
    if not np.isfinite(total):
        return (total, 0.0)
    b0 = total - a[0]
    return (total, a[1] + ((a[0] - (total - b0)) + (b[0] - b0) + b[1]))


def _absorb_sum(a, value):  # type: ignore[no-untyped-def]
    total = a[0] + value[0]
    if not np.isfinite(total):
        return (total, 0.0)
    b0 = total - a[0]
    return (total, a[1] + ((a[0] - (total - b0)) + (value[0] - b0)))


def _of_both(moments: Scalar) -> Scalar:
    """Moments of the union of two sets of rows, of which one may be empty."""
    of_rows = register_jitable(moments)

    def combined(a, b):  # type: ignore[no-untyped-def]
        if b[0] == 0.0:
            return a
        if a[0] == 0.0:
            return b
        return of_rows(a, b)

    return combined


@_of_both
def _moments(a, b):  # type: ignore[no-untyped-def]
    n = a[0] + b[0]
    share = b[0] / n
    delta = b[1] - a[1]
    return (n, a[1] + delta * share, a[2] + b[2] + delta * delta * (a[0] * share))


def _absorb_moments(a, value):  # type: ignore[no-untyped-def]
    n = a[0] + 1.0
    delta = value[0] - a[1]
    mean = a[1] + delta / n
    return (n, mean, a[2] + delta * (value[0] - mean))


@_of_both
def _higher_moments(a, b):  # type: ignore[no-untyped-def]
    na, nb = a[0], b[0]
    n = na + nb
    delta = b[1] - a[1]
    step = delta / n
    weight = delta * step * na * nb
    m2 = a[2] + b[2] + weight
    m3 = a[3] + b[3] + step * weight * (na - nb) + 3.0 * step * (na * b[2] - nb * a[2])
    m4 = (
        a[4]
        + b[4]
        + step * step * weight * (na * na - na * nb + nb * nb)
        + 6.0 * step * step * (na * na * b[2] + nb * nb * a[2])
        + 4.0 * step * (na * b[3] - nb * a[3])
    )
    return (n, a[1] + step * nb, m2, m3, m4)


def _absorb_higher_moments(a, value):  # type: ignore[no-untyped-def]
    n = a[0] + 1.0
    delta = value[0] - a[1]
    step = delta / n
    m2 = a[2] + delta * (delta - step)
    m3 = a[3] - 3.0 * step * m2 + delta * (delta * delta - step * step)
    m4 = (
        a[4]
        - 4.0 * step * m3
        - 6.0 * step * step * m2
        + delta * (delta * delta * delta - step * step * step)
    )
    return (n, a[1] + step, m2, m3, m4)


@_of_both
def _comoments(a, b):  # type: ignore[no-untyped-def]
    n = a[0] + b[0]
    share = b[0] / n
    weight = a[0] * share
    dx, dy = b[1] - a[1], b[2] - a[2]
    return (
        n,
        a[1] + dx * share,
        a[2] + dy * share,
        a[3] + b[3] + dx * dx * weight,
        a[4] + b[4] + dy * dy * weight,
        a[5] + b[5] + dx * dy * weight,
    )


def _absorb_comoments(a, value):  # type: ignore[no-untyped-def]
    n = a[0] + 1.0
    dx, dy = value[0] - a[1], value[1] - a[2]
    mean_x, mean_y = a[1] + dx / n, a[2] + dy / n
    return (
        n,
        mean_x,
        mean_y,
        a[3] + dx * (value[0] - mean_x),
        a[4] + dy * (value[1] - mean_y),
        a[5] + dx * (value[1] - mean_y),
    )


_COMBINE: dict[Op, Scalar] = {
    Op.ADD: _add,
    Op.LEAST: _least,
    Op.GREATEST: _greatest,
    Op.SUM: _sum,
    Op.MOMENTS: _moments,
    Op.COMOMENTS: _comoments,
    Op.BITS_AND: _bits_and,
    Op.BITS_OR: _bits_or,
    Op.BITS_XOR: _bits_xor,
    Op.HIGHER_MOMENTS: _higher_moments,
}
_ABSORB: dict[Op, Scalar] = {
    **_COMBINE,
    Op.SUM: _absorb_sum,
    Op.MOMENTS: _absorb_moments,
    Op.COMOMENTS: _absorb_comoments,
    Op.HIGHER_MOMENTS: _absorb_higher_moments,
}
_LOAD: dict[int, Scalar] = {
    1: lambda p, i, lanes: (p[0, i],),
    2: lambda p, i, lanes: (p[0, i], p[1, i]),
    3: lambda p, i, lanes: (p[0, i], p[1, i], p[2, i]),
    4: lambda p, i, lanes: (p[0, i], p[1, i], p[2, i], p[3, i]),
    5: lambda p, i, lanes: (p[0, i], p[1, i], p[2, i], p[3, i], p[4, i]),
    6: lambda p, i, lanes: (p[0, i], p[1, i], p[2, i], p[3, i], p[4, i], p[5, i]),
}


@overload(load, prefer_literal=True, inline="always")
def _typed_load(p, i, lanes):  # type: ignore[no-untyped-def]
    return _LOAD[lanes.literal_value] if isinstance(lanes, types.IntegerLiteral) else None


@overload(combine, prefer_literal=True)
def _typed_combine(op, older, newer):  # type: ignore[no-untyped-def]
    if not isinstance(op, types.IntegerLiteral):
        return None
    scalar = register_jitable(_COMBINE[Op(op.literal_value)])
    return lambda op, older, newer: scalar(older, newer)


@overload(absorb, prefer_literal=True)
def _typed_absorb(op, partial, value):  # type: ignore[no-untyped-def]
    if not isinstance(op, types.IntegerLiteral):
        return None
    scalar = register_jitable(_ABSORB[Op(op.literal_value)])
    return lambda op, partial, value: scalar(partial, value)


@cache
def combine_slots(op: int, lanes: int) -> Scalar:
    """A loop that combines column k of `other` into the column of `into` that a slot names."""

    @compiled
    def loop(into, other, slots):  # type: ignore[no-untyped-def]
        for k in range(slots.shape[0]):
            i = slots[k]
            store(into, i, combine(op, load(into, i, lanes), load(other, k, lanes)))

    return loop


@cache
def combine_cells(op: int, lanes: int) -> Scalar:
    """A loop that combines partials of panes and keys into tables with `width` keys in a row.

    The tables stand behind each other, `cells` in each. `rows` names the row of each pane, -1 is
    none. A partial of class c belongs to the tables ``which[begins[c]:begins[c + 1]]``.
    """

    @compiled
    def loop(tables, cells, partials, rows, panes, keys, width, classes, begins, which):  # type: ignore[no-untyped-def]
        for k in range(panes.shape[0]):
            row, c = rows[panes[k]], classes[k]
            if row >= 0:
                cell = row * width + keys[k]
                for j in range(begins[c], begins[c + 1]):
                    i = which[j] * cells + cell
                    store(tables, i, combine(op, load(tables, i, lanes), load(partials, k, lanes)))

    return loop


@cache
def combine_pairs(op: int, lanes: int) -> Scalar:
    """A loop that combines two arrays of partials, column by column, into a third."""

    @compiled
    def loop(older, newer, result):  # type: ignore[no-untyped-def]
        for k in range(older.shape[1]):
            store(result, k, combine(op, load(older, k, lanes), load(newer, k, lanes)))

    return loop


@cache
def absorb_rows(op: int, lanes: int, inputs: int) -> Scalar:
    """A loop that absorbs the value of row k into the partial a slot names; -1 is none."""

    @compiled
    def loop(into, values, slots):  # type: ignore[no-untyped-def]
        for k in range(slots.shape[0]):
            i = slots[k]
            if i >= 0:
                store(into, i, absorb(op, load(into, i, lanes), load(values, k, inputs)))

    return loop
