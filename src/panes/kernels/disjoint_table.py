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

Only one level is kept at a time, for a few groups at a time, and of each block only what runs
across its middle reach: scratch is a few megabytes, and a level that few runs are on costs little.
Panes are numbered so that the middle of the highest level lies before the earliest end of a run:
windows that are due together mostly cross it, and the panes behind them, however many, are on no
other level.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from panes.aggregates.lanes import Scalar, combine, load, store
from panes.aggregates.monoid import Columns, Lanes
from panes.arrays.compiled import compiled
from panes.axis import BEGINNING, FOREVER
from panes.kernels.tables import by_table

_SCRATCH = 1 << 19  # partials of one level that fit the processor's cache, or nearly
_LEVELS = 128


def disjoint_table(
    monoid: Lanes,
    tables: Columns,
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    *,
    of: NDArray[np.integer] | None = None,
    groups: int = 1,
) -> Columns:
    """One partial per run ``[first, last)`` and group, run by run; empty runs give empty partials.

    Panes stand pane by pane, each with all its `groups`; `of` says which of several tables of panes
    a run is over.

    >>> from panes.aggregates.lanes import Op
    >>> count = Lanes(Op.ADD, ("n",), (0,))
    >>> panes = np.array([[1, 10, 2, 20, 3, 30]])
    >>> disjoint_table(count, panes, np.array([0, 1]), np.array([3, 2]), groups=2)
    array([[ 6, 60,  2, 20]])
    """
    lanes, cells = len(tables), tables.shape[-1]
    answers = np.empty((lanes, len(first) * groups), dtype=tables.dtype)
    length = cells // groups
    width = max(1, min(groups, _SCRATCH // max(length, 1)))
    scratch = np.empty((lanes, length * width), dtype=tables.dtype)
    reach = np.empty((2, length // 2 + 2), dtype=np.int64)
    shift = _shift(first, last, length)
    level = np.zeros(len(first), dtype=np.int64)
    _find_levels(first + shift, last + shift, level)
    if of is not None:
        level += of * _LEVELS
    _, order, parts, begins = by_table(tables, level, len(first))
    combined, empty = _table(int(monoid.op), lanes), monoid.empty(1)
    behind = tables.reshape(lanes, -1), cells
    listed = order, parts, begins
    combined(empty, behind, first, last, listed, shift, groups, width, scratch, reach, answers)
    return answers


def _shift(first: NDArray[np.int64], last: NDArray[np.int64], length: int) -> int:
    """A shift of pane numbers, so that the earliest end of a run becomes a power of two."""
    ends = last[last > first]
    earliest = int(ends.min()) - 1 if len(ends) else 0
    return (1 << length.bit_length()) - earliest


@compiled
def _find_levels(first, last, level):  # type: ignore[no-untyped-def]
    """The level of each run, from 2 on; empty ones have 0, and single panes 1."""
    for w in range(first.shape[0]):
        if last[w] > first[w]:
            differing = first[w] ^ (last[w] - 1)
            level[w] = 1
            while differing:
                level[w] += 1
                differing >>= 1


@cache
def _table(op: int, lanes: int) -> Scalar:
    # One function: Numba keeps none on disk that refers to another compiled one.
    @compiled
    def table(empty, tables, first, last, listed, shift, groups, most, scratch, reach, answers):  # type: ignore[no-untyped-def]
        (panes, cells), (order, parts, begins) = tables, listed
        neutral = load(empty, 0, lanes)
        for begin in range(0, groups, most):
            width = min(most, groups - begin)
            for part in range(parts.shape[0]):
                own_cells, level = parts[part] // _LEVELS * cells + begin, parts[part] % _LEVELS
                runs = order[begins[part] : begins[part + 1]]
                # One level: running combines away from the middle of each block that is crossed.
                bits = max(level - 1, 1)
                block = end = (first[runs[0]] + shift) >> bits
                for w in runs:
                    block = min(block, (first[w] + shift) >> bits)
                    end = max(end, (first[w] + shift) >> bits)
                blocks = end - block + 1 if level > 1 else 0
                reach[0, :blocks], reach[1, :blocks] = FOREVER, BEGINNING
                for w in runs[: blocks * runs.shape[0]]:
                    b = ((first[w] + shift) >> bits) - block
                    reach[0, b] = min(reach[0, b], first[w])
                    reach[1, b] = max(reach[1, b], last[w])
                for b in range(blocks):
                    middle = ((2 * (block + b) + 1) << (bits - 1)) - shift
                    for i in range(middle - 1, reach[0, b] - 1, -1):
                        for g in range(width):
                            own = load(panes, own_cells + i * groups + g, lanes)
                            if i + 1 < middle:
                                own = combine(op, own, load(scratch, (i + 1) * width + g, lanes))
                            store(scratch, i * width + g, own)
                    for i in range(middle, reach[1, b]):
                        for g in range(width):
                            own = load(panes, own_cells + i * groups + g, lanes)
                            if i > middle:
                                own = combine(op, load(scratch, (i - 1) * width + g, lanes), own)
                            store(scratch, i * width + g, own)
                for w in runs:
                    a, b, to = first[w], last[w] - 1, w * groups + begin
                    for g in range(width):
                        if level == 0:
                            store(answers, to + g, neutral)
                        elif level == 1:
                            store(answers, to + g, load(panes, own_cells + a * groups + g, lanes))
                        else:
                            older = load(scratch, a * width + g, lanes)
                            newer = load(scratch, b * width + g, lanes)
                            store(answers, to + g, combine(op, older, newer))

    return table
