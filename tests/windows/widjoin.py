"""Joins of windows, defined by windows: which extents of two streams are joined (thesis 5.2.2).

Each stream is cut into extents as for an aggregation. `widjoin` pairs extents by their ids, `match`
tells a row which extents of the other stream it meets, and two rows join if some pair of extents
that hold them does (Eq. 5.19-5.22). It is the definition to read and to test against; joins run on
intervals of positions (`panes.windows.partners`), and the two agree:

    one clause for both       widjoin is equality, a pair for each id        `CommonWindows`
    RANGE a and RANGE b       windows that slide by one tick, a pair once     `Band`

In the second, windows of one id end together, so a row at `t` has the ids from `t` on, as many as
its window is long. With windows of `a` and `b` ticks, as the thesis prints it, rows share an id
exactly if ``l - b < r < l + a``. Its own example (Q5-8) has ``l - b <= r``: that is what a band
means here, and takes windows one tick longer on R (`band_extents`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from panes.windows.extent import extent, wids
from panes.windows.partners import Band
from panes.windows.spec import Sliding


def widjoin(left: Iterable[int], right: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The pairs of extents that are joined, by id: equal ids (Eq. 5.20).

    >>> list(widjoin([1, 2, 3], [2, 3, 4]))
    [(2, 2), (3, 3)]
    """
    others = set(right)
    return ((w, w) for w in left if w in others)


def match(spec: Sliding, at: int) -> Sequence[int]:
    """The extents of the other stream that a row meets: those with its own ids (Eq. 5.21, 5.22).

    >>> match(Sliding(size=3, slide=1), 10)
    range(10, 13)
    """
    return wids(spec, at)


def joined_ids(left: Sliding, right: Sliding, *, at: int, other: int) -> list[int]:
    """The ids of the pairs of extents that join a row at `at` with one at `other` (Eq. 5.19).

    >>> clause = Sliding(size=10, slide=5)
    >>> joined_ids(clause, clause, at=12, other=16)
    [3]
    """
    pairs = widjoin(match(left, at), match(right, other))
    held = ((extent(left, i), extent(right, j), i) for i, j in pairs)
    return [i for one, two, i in held
            if one.start <= at < one.end and two.start <= other < two.end]  # fmt: skip


def band_extents(band: Band) -> tuple[Sliding, Sliding]:
    """Windows of both streams whose `widjoin` joins what a band around zero does.

    A band ``-b <= right - left <= a - 1`` has windows of `a` ticks on the left and ``b + 1`` on the
    right, which slide by one tick.

    >>> band_extents(Band(-2, 2))
    (Sliding(size=3, slide=1, origin=0), Sliding(size=3, slide=1, origin=0))
    """
    return Sliding(size=band.high + 1, slide=1), Sliding(size=1 - band.low, slide=1)
