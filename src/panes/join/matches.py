"""Which rows of two sorted sides have the same key and lie within reach of each other.

Both sides stand by key and position, so a probe is a merge: two marks run over the other side, one
at the first row within reach, one behind the last, and neither ever goes back within a key. Where
one side is much longer, marks leap: the distance doubles until it is too far, and is halved again
(galloping). A pair costs one step to write, whatever the sizes; a key that the other side does not
have costs a leap.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.arrays.spread import parts, spread
from panes.arrays.workers import workers
from panes.axis import BEGINNING
from panes.join.sorted_rows import SortedRows
from panes.windows.limit import require_room
from panes.windows.partners import Reach

Numbers = NDArray[np.int64]


def matches(
    probe: SortedRows, reach: Reach, other: SortedRows, *, floor: int = BEGINNING
) -> tuple[Numbers, Numbers]:
    """Pairs of a probe row and another row of its key within its reach, by their places.

    Only rows from the `floor` on are looked at. Within a key neither end of the reach decreases,
    except where it is empty.
    """
    begin, count = reached(probe, reach, other, floor=floor)
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    require_room(total)
    left, right = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)

    def write(part: tuple[int, int]) -> None:
        _write(begin, count, ends, *part, left, right)

    spread(workers(), write, parts(len(probe)), rows=max(total, len(probe)))
    return left, right


def reached(
    probe: SortedRows, reach: Reach, other: SortedRows, *, floor: int = BEGINNING
) -> tuple[Numbers, Numbers]:
    """For each probe row, where the rows within its reach begin, and how many there are."""
    begin, count = np.zeros(len(probe), dtype=np.int64), np.zeros(len(probe), dtype=np.int64)
    if not len(other):
        return begin, count

    def find(part: tuple[int, int]) -> None:
        _find(probe.code, *reach, floor, other.code, other.at, *part, begin, count)

    spread(workers(), find, parts(len(probe)), rows=len(probe))
    return begin, count


@compiled
def _find(code, first, after, last, before, floor, other_code, other_at, start, stop, begin, count):  # type: ignore[no-untyped-def]
    n = other_code.shape[0]
    low = 0  # rows before it come before everything that is still to be reached
    high = 0
    for i in range(start, stop):
        c, f, l = code[i], max(first[i] + after, floor), last[i] + before
        if l < f:
            continue
        # Leap to the first row at or behind (c, f).
        step = 1
        at = low
        while at < n and (other_code[at] < c or (other_code[at] == c and other_at[at] < f)):
            low = at + 1
            at += step
            step *= 2
        upper = min(at, n)
        while low < upper:
            middle = (low + upper) // 2
            if other_code[middle] < c or (other_code[middle] == c and other_at[middle] < f):
                low = middle + 1
            else:
                upper = middle
        # And from there, or from where the row before came to, behind (c, l).
        high = max(high, low)
        step = 1
        at = high
        while at < n and (other_code[at] < c or (other_code[at] == c and other_at[at] <= l)):
            high = at + 1
            at += step
            step *= 2
        upper = min(at, n)
        while high < upper:
            middle = (high + upper) // 2
            if other_code[middle] < c or (other_code[middle] == c and other_at[middle] <= l):
                high = middle + 1
            else:
                upper = middle
        begin[i], count[i] = low, high - low


@compiled
def _write(begin, count, ends, start, stop, left, right):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        k = ends[i] - count[i]
        for j in range(count[i]):
            left[k + j], right[k + j] = i, begin[i] + j
