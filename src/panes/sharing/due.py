"""Windows that are due: of which queries, which ones, and the runs of panes under them.

Invariant: windows stand shape by shape and query by query, in the order of those that are due.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.slots import places_among
from panes.planning.plan import Plan
from panes.sharing.shape import Shape
from panes.windows.many import Rulers

Finish: TypeAlias = Callable[[Plan, pa.Table], tuple[NDArray[np.int64] | None, pa.Table]]
"""From lowered answers to those that are given: which of them, None for all, and these."""


@dataclass(slots=True)
class Due:
    """The windows ``[first, end)`` that are due of some queries of a shape; how many in all.

    After a silence most of them hold nothing.
    """

    shape: Shape
    which: NDArray[np.int64]
    first: NDArray[np.int64]
    end: NDArray[np.int64]
    windows: int = field(init=False)

    def is_mostly_empty(self, partials: int) -> bool:
        """Whether there are more windows than so many partials can be in."""
        rulers = self.shape.rulers.take(self.which)
        per_partial = rulers.size // rulers.slide + 2
        return self.windows > partials * float(per_partial.sum(dtype=np.float64))

    def __post_init__(self) -> None:
        self.windows = int(np.maximum(self.end - self.first, 0).sum(dtype=np.float64))


def close(due: Iterable[Due], names: Collection[str]) -> None:
    """The due windows of some queries have been answered."""
    for one in due:
        which = [i for i, name in enumerate(one.shape.names(one.which)) if name in names]
        one.shape.close_before(one.which[which], one.end[which])


@dataclass(frozen=True, slots=True)
class Runs:
    """Windows of several shapes, and the panes ``[first, last)`` of each.

    The windows of each shape are one of the `parts`.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    parts: Sequence[slice]

    @classmethod
    def of(cls, due: Sequence[Due], panes: NDArray[np.int64]) -> Runs:
        """All windows that are due, over panes that begin at these positions."""
        rulers = Rulers.joined([one.shape.rulers.take(one.which) for one in due])
        begin, end = (np.concatenate(x) for x in zip(*((d.first, d.end) for d in due), strict=True))
        starts, ends = rulers.listed(begin, end)
        first, last = places_among(panes, starts), places_among(panes, ends)
        bounds = accumulate((one.windows for one in due), initial=0)
        return cls(starts, ends, first, last, [slice(a, b) for a, b in pairwise(bounds)])


def span_of(due: Sequence[Due]) -> tuple[int, int]:
    """Where the first of all due windows starts, and where the last one ends."""
    starts, ends = [], []
    for one in due:
        some = np.flatnonzero(one.end > one.first)
        rulers = one.shape.rulers.take(one.which[some])
        starts.append(int(rulers.starts(one.first[some]).min()))
        ends.append(int((rulers.starts(one.end[some] - 1) + rulers.size).max()))
    return min(starts), max(ends)
