"""A disjoint sparse table: any run of panes in one combine.

Level ``k`` cuts the panes into blocks of ``2 * 2**k`` and keeps, on both sides of each block's
middle, what lies between the middle and every pane. A run crosses the middle of exactly one block,
on the level of the highest bit in which its ends differ::

    level 1   |a ab.c cd|      |e ef.g gh|       run b..c = suffix(b) combined with prefix(c)
                ──╴ ╶──                          (b = 1, c = 2: bits differ from the second on)

Needs compiled lanes; any associative combine, no subtraction. ``O(n log n)`` combines to build, one
for each answer, whatever the runs are: made for many windows of all sizes over the same panes,
where two stacks would pass over the panes once for every query. (Alon and Schieber 1987, on-line
product queries in any semigroup.)

Only one level is kept at a time, for a few groups at a time and as far as runs reach, so scratch is
a few megabytes. Panes are numbered so that the middle of the highest level lies before the earliest
end of a run: windows that are due together mostly cross it, and the panes behind them, however
many, are on no other level.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from panes.algebra.lanes import Scalar, combine, load, store
from panes.algebra.monoid import Columns, Lanes
from panes.compiled import compiled

_SCRATCH = 1 << 19  # partials of one level that fit the processor's cache, or nearly


def disjoint_table(
    monoid: Lanes,
    panes: Columns,
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    *,
    groups: int = 1,
) -> Columns:
    """One partial per run ``[first, last)`` and group, run by run; empty runs give empty partials.

    Panes stand pane by pane, each with all its `groups`.

    >>> from panes.algebra.lanes import Op
    >>> count = Lanes(Op.ADD, ("n",), (0,))
    >>> panes = np.array([[1, 10, 2, 20, 3, 30]])
    >>> disjoint_table(count, panes, np.array([0, 1]), np.array([3, 2]), groups=2)
    array([[ 6, 60,  2, 20]])
    """
    answers = np.empty((len(panes), len(first) * groups), dtype=panes.dtype)
    length = panes.shape[1] // groups
    width = max(1, min(groups, _SCRATCH // max(length, 1)))
    scratch = np.empty((len(panes), length * width), dtype=panes.dtype)
    shift = _shift(first, last, length)
    begins, order = _by_level(first + shift, last + shift)
    table = _table(int(monoid.op), len(panes))
    empty = monoid.empty(1)
    table(empty, panes, first, last, begins, order, shift, groups, width, scratch, answers)
    return answers


def _shift(first: NDArray[np.int64], last: NDArray[np.int64], length: int) -> int:
    """What to add to pane numbers, so that the earliest end of a run becomes a power of two."""
    ends = last[last > first]
    earliest = int(ends.min()) - 1 if len(ends) else 0
    return (1 << length.bit_length()) - earliest


def _by_level(
    first: NDArray[np.int64], last: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs by level, and where each level begins: empty ones, single panes, then level 0, 1, ..."""
    level = np.zeros(len(first), dtype=np.uint8)
    _find_levels(first, last, level)
    order = np.argsort(level, kind="stable")
    begins = np.searchsorted(level[order], np.arange(int(level.max(initial=0)) + 2))
    return begins, order


@compiled
def _find_levels(first, last, level):  # type: ignore[no-untyped-def]
    for w in range(first.shape[0]):
        if last[w] > first[w]:
            differing = first[w] ^ (last[w] - 1)
            level[w] = 1
            while differing:
                level[w] += 1
                differing >>= 1


@cache
def _table(op: int, lanes: int) -> Scalar:
    @compiled
    def build(panes, half, low, high, shift, begin, width, groups, scratch):  # type: ignore[no-untyped-def]
        """One level over ``[low, high)``: running combines away from the middle of every block."""
        block = (low + shift) // (2 * half) * (2 * half) - shift
        while block < high:
            middle = block + half
            for i in range(min(middle, high) - 1, max(block, low) - 1, -1):
                for g in range(width):
                    own = load(panes, i * groups + begin + g, lanes)
                    if i + 1 < min(middle, high):
                        own = combine(op, own, load(scratch, (i + 1) * width + g, lanes))
                    store(scratch, i * width + g, own)
            for i in range(max(middle, low), min(middle + half, high)):
                for g in range(width):
                    own = load(panes, i * groups + begin + g, lanes)
                    if i > middle:
                        own = combine(op, load(scratch, (i - 1) * width + g, lanes), own)
                    store(scratch, i * width + g, own)
            block += 2 * half

    @compiled
    def table(empty, panes, first, last, begins, order, shift, groups, most, scratch, answers):  # type: ignore[no-untyped-def]
        neutral = load(empty, 0, lanes)
        for begin in range(0, groups, most):
            width = min(most, groups - begin)
            for level in range(begins.shape[0] - 1):
                runs = order[begins[level] : begins[level + 1]]
                if level > 1 and runs.shape[0]:
                    low, high = first[runs[0]], last[runs[0]]
                    for w in runs:
                        low, high = min(low, first[w]), max(high, last[w])
                    half = 1 << (level - 2)
                    build(panes, half, low, high, shift, begin, width, groups, scratch)
                for w in runs:
                    a, b, to = first[w], last[w] - 1, w * groups + begin
                    for g in range(width):
                        if level == 0:
                            store(answers, to + g, neutral)
                        elif level == 1:
                            store(answers, to + g, load(panes, a * groups + begin + g, lanes))
                        else:
                            older = load(scratch, a * width + g, lanes)
                            newer = load(scratch, b * width + g, lanes)
                            store(answers, to + g, combine(op, older, newer))

    return table
