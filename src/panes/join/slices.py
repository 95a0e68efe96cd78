"""A large batch of both sides in slices of time, each with what is known of the rows behind it.

Rows come nearly in the order of their positions. So a batch of many rows can be cut where all rows
behind lie later than most of those before, and be joined slice by slice: what is sorted and probed
stays small, and rows of earlier slices are forgotten on the way. What is known of the rest of a
batch is a fact, not a promise, so the joined rows are the same. A batch in no order has one slice,
and so has one with late rows: whom these meet is said of a batch as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from panes.axis import FOREVER
from panes.join.rule import Arrivals, Progress

_CHUNK = 1 << 14
_SLICE = 1 << 20


class Slice(NamedTuple):
    """Rows of both sides, and what is known of all rows to come when they are joined."""

    left: Arrivals
    right: Arrivals
    before: Progress
    after: Progress


def slices(
    left: Arrivals, right: Arrivals, before: Progress, after: Progress, *, reach: int
) -> Iterator[Slice]:
    """The slices of a batch, none shorter than the `reach` of a row on the axis.

    `before` is what was promised when the batch came, `after` what is promised from now on.
    """
    sides = _Chunks.of(left), _Chunks.of(right)
    begin, known = [0, 0], before
    has_late = any(side.rest(0) < at for side, at in zip(sides, before, strict=True))
    for instant in () if has_late else _cuts(*sides, reach):
        cut = [side.first_from(instant) for side in sides]
        if cut == begin:
            continue
        rests = (side.rest(at) for side, at in zip(sides, cut, strict=True))
        then = Progress(*(min(rest, at) for rest, at in zip(rests, after, strict=True)))
        yield Slice(left.part(begin[0], cut[0]), right.part(begin[1], cut[1]), known, then)
        begin, known = cut, then
    yield Slice(left.part(begin[0]), right.part(begin[1]), known, after)


def _cuts(left: _Chunks, right: _Chunks, reach: int) -> list[int]:
    """Positions that cut both sides into slices of about as many rows."""
    rests = np.sort(np.concatenate([left.rests[:-1], right.rests[:-1]]))
    wanted = (left.rows + right.rows) // _SLICE
    if wanted < 2:
        return []
    span = int(rests[-1]) - int(rests[0])
    wanted = min(wanted, span // max(reach, 1))
    return [int(rests[len(rests) * k // wanted]) for k in range(1, wanted)]


class _Chunks(NamedTuple):
    """The least position in each chunk of a side's rows and all chunks behind it."""

    rows: int
    rests: NDArray[np.int64]

    @classmethod
    def of(cls, side: Arrivals) -> _Chunks:
        rows = len(side.at)
        ends = np.full(1, FOREVER)
        if not rows:
            return cls(0, ends)
        least = np.minimum.reduceat(side.at, np.arange(0, rows, _CHUNK))
        return cls(rows, np.minimum.accumulate(np.concatenate([least, ends])[::-1])[::-1])

    def first_from(self, instant: int) -> int:
        """The first row of a chunk from which on no row lies before `instant`."""
        return min(int(np.searchsorted(self.rests, instant)) * _CHUNK, self.rows)

    def rest(self, row: int) -> int:
        """From this row on, which begins a chunk, none lies before."""
        return int(self.rests[-(-row // _CHUNK)])
