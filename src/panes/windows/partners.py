"""The positions of one stream that a row of another can be joined with: bands and common windows.

`Partners` says it from both sides, on whole columns, as intervals with both ends included::

    left row at t      joins right rows at  first(t) <= at <= last(t)
    right row at t     joins left rows at   first'(t) <= at <= last'(t)

The two sides always agree: a pair is within one exactly if it is within the other. Both ends never
decrease with `t`, except where an interval is empty (``last < first``), as between sampling
windows. `left_from` and `right_from` tell from where on rows can still find a partner, once the
other stream has made progress. (thesis 5.2.1 and 5.2.2, with the edges of its own example)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from panes.axis import BEGINNING, FOREVER
from panes.windows.extent import first_wid, last_wid, ruler, window_end, windows_closed
from panes.windows.spec import Landmark, PanedSpec

Positions: TypeAlias = NDArray[np.int64]


class Reach(NamedTuple):
    """Intervals of positions, one for each row: ``first + after <= at <= last + before``.

    In a band all distances are the same, so that no column need be made of them.
    """

    first: Positions
    after: int
    last: Positions
    before: int


@dataclass(frozen=True, slots=True)
class Band:
    """Pairs whose distance ``right - left`` lies in ``[low, high]``, both included.

    A band that is open to one side has `BEGINNING` or `FOREVER` there.

    >>> Band(-2, 2).of_left(np.array([10]))
    (array([8]), array([12]))
    """

    low: int
    high: int

    @property
    def width(self) -> int:
        """The number of positions that a row can be joined with."""
        return max(self.high - self.low + 1, 0)

    @property
    def farthest(self) -> int:
        """The greatest distance of two partners; in a band that does not hold 0, not its width."""
        return max(abs(self.low), abs(self.high))

    @property
    def is_open(self) -> bool:
        """True if some row could be joined for ever."""
        return self.low <= BEGINNING or self.high >= FOREVER

    def of_left(self, at: Positions) -> tuple[Positions, Positions]:
        """The right positions that rows on the left can be joined with."""
        return at + self.low, at + self.high

    def of_right(self, at: Positions) -> tuple[Positions, Positions]:
        """The left positions that rows on the right can be joined with."""
        return at - self.high, at - self.low

    def reach(self, at: Positions, *, of_left: bool) -> Reach:
        """The same, of either side, for compiled loops."""
        if of_left:
            return Reach(at, self.low, at, self.high)
        return Reach(at, -self.high, at, -self.low)

    def span(self, low: int, high: int, *, of_left: bool) -> tuple[int, int]:
        """All positions that rows between two positions of one side can be joined with."""
        first, last = (self.low, self.high) if of_left else (-self.high, -self.low)
        return low + first, high + last

    def left_from(self, right_progress: int) -> int:
        """From here on, rows on the left may still be joined with a right row to come."""
        return _moved(right_progress, -self.high)

    def right_from(self, left_progress: int) -> int:
        """From here on, rows on the right may still be joined with a left row to come."""
        return _moved(left_progress, self.low)


@dataclass(frozen=True, slots=True)
class CommonWindows:
    """Pairs that some window holds both rows of (thesis 5.2.2: `widjoin` is equality of ids).

    The windows that hold a row overlap or touch, so together they are one interval.

    >>> from panes.windows.spec import Sliding
    >>> CommonWindows(Sliding(size=10, slide=5)).of_left(np.array([12]))
    (array([5]), array([19]))
    """

    spec: PanedSpec

    @property
    def width(self) -> int:
        """At most how many positions a row can be joined with."""
        return min(2 * ruler(self.spec).size - 1, FOREVER)

    @property
    def farthest(self) -> int:
        """The greatest distance of two partners: both are in one window."""
        return min(ruler(self.spec).size - 1, FOREVER)

    @property
    def is_open(self) -> bool:
        """True if some row could be joined for ever."""
        return isinstance(self.spec, Landmark)

    def of_left(self, at: Positions) -> tuple[Positions, Positions]:
        """The right positions that rows on the left can be joined with."""
        if isinstance(self.spec, Landmark):
            return np.full(len(at), BEGINNING), np.full(len(at), FOREVER)
        size, slide, origin = ruler(self.spec)
        oldest, newest = first_wid(at, slide, origin), last_wid(at, size, slide, origin)
        first = window_end(oldest, slide, origin) - size
        last = window_end(newest, slide, origin) - 1
        held = newest >= oldest
        return np.where(held, first, FOREVER), np.where(held, last, BEGINNING)

    def of_right(self, at: Positions) -> tuple[Positions, Positions]:
        """The left positions that rows on the right can be joined with: the relation is even."""
        return self.of_left(at)

    def reach(self, at: Positions, *, of_left: bool) -> Reach:  # noqa: ARG002
        """The same, of either side, for compiled loops."""
        first, last = self.of_left(at)
        return Reach(first, 0, last, 0)

    def span(self, low: int, high: int, *, of_left: bool) -> tuple[int, int]:  # noqa: ARG002
        """All positions that rows between two positions of one side can be joined with."""
        size = ruler(self.spec).size
        return max(low - size + 1, BEGINNING), min(high + size - 1, FOREVER)

    def left_from(self, right_progress: int) -> int:
        """From here on, rows on the left may still be joined with a right row to come."""
        if isinstance(self.spec, Landmark) or right_progress <= BEGINNING:
            return BEGINNING
        if right_progress >= FOREVER:
            return FOREVER
        return window_end(windows_closed(self.spec, right_progress), self.spec.slide,
                          self.spec.origin) - self.spec.size  # fmt: skip

    def right_from(self, left_progress: int) -> int:
        """From here on, rows on the right may still be joined with a left row to come."""
        return self.left_from(left_progress)


Partners: TypeAlias = Band | CommonWindows


def common_wids(
    spec: PanedSpec, left: Positions, right: Positions, *, end: int = FOREVER
) -> tuple[Positions, Positions]:
    """The windows ``[first, last]`` that hold both rows of each pair, of those before `end`.

    A landmark window, once it holds both, does so for ever: its last is the one before `end`.

    >>> from panes.windows.spec import Sliding
    >>> common_wids(Sliding(size=10, slide=5), np.array([12]), np.array([16]))
    (array([3]), array([3]))
    """
    size, slide, origin = ruler(spec)
    first = first_wid(np.maximum(left, right), slide, origin)
    if isinstance(spec, Landmark):
        return first, np.full(len(first), end - 1)
    last = last_wid(np.minimum(left, right), size, slide, origin)
    return first, np.minimum(last, end - 1)


def _moved(progress: int, by: int) -> int:
    """A promise at some distance; nothing promised is nothing, and the end is the end."""
    if progress <= BEGINNING or progress >= FOREVER:
        return progress
    return max(min(progress + by, FOREVER), BEGINNING)
