"""Timers: every sliding group waits at its next edge, on the page of a calendar.

Algorithm 2 of *Knowing When to Slide* (VI-D) keeps groups sorted by their next slide times. Here
they hang in a calendar queue (Brown 1988), and each timer is set to the next edge of its family
instead of the slide after the tuple that set it off, so it never drifts and any jump of progress
is right::

    pages     0..3   4..7   8..11  12..15  16..19       progress goes from 5 to 10: turn the
    groups     .      A      B C     .       D          pages 4..7 and 8..11, look at A, B, C

A page is about as wide as edges lie apart on average (a power of two), and there are about as many
pages as groups; beyond the last page the calendar starts again. So a step turns about as many
pages as groups are due, and a group far ahead is met in vain less often than others are due.

Invariant: every timer stands at the first edge of its group after `at`, on the page of that edge.
Cost: what is due, on average; never more than one look at every group and page. Slides that share
no divisor cost nothing extra.
"""

from __future__ import annotations

import numpy as np

from panes.arrays.compiled import compiled
from panes.axis import LIMIT
from panes.windows.cut import Edges
from panes.windows.families import next_edge

_NEXT, _SLIDE, _LINK = 0, 1, 2  # of a timer: its edge, its slide, the next timer on its page
_NO_ONE = -1
_FEWEST = 16


class Timers:
    """Families waiting for progress that stands at `at`.

    >>> timers = Timers(at=958)
    >>> timers.add(Edges(10, 0))
    >>> timers.advance(959), timers.advance(960)
    ([], [Edges(slide=10, phase=0)])
    """

    def __init__(self, at: int) -> None:
        self.at = at
        self._slots: dict[Edges, int] = {}
        self._free: list[int] = []
        self._families = np.empty(_FEWEST, dtype=np.object_)  # by slot
        self._timers = np.empty((_FEWEST, 3), dtype=np.int64)
        self._pages = np.full(_FEWEST, _NO_ONE, dtype=np.int64)
        self._rung = np.empty(_FEWEST, dtype=np.int64)
        self._shift = 0  # a page is 2**shift wide
        self._rate = 0.0  # edges per tick, all families together

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, family: Edges) -> None:
        """Wait for the edges of a family, from the first one after `at`."""
        if family in self._slots:
            return
        slot = self._free_slot()
        self._slots[family] = slot
        self._families[slot] = family
        self._timers[slot] = next_edge(family.slide, family.phase, self.at), family.slide, _NO_ONE
        self._rate += 1 / family.slide
        _hang(self._timers, self._pages, self._shift, slot)
        self._suit_calendar()

    def remove(self, family: Edges) -> None:
        """Wait for a family no longer."""
        slot = self._slots.pop(family)
        _take_down(self._timers, self._pages, self._shift, slot)
        self._free.append(slot)
        self._rate -= 1 / family.slide
        self._suit_calendar()

    def advance(self, now: int) -> list[Edges]:
        """Move progress to `now`: families with an edge on the way.

        They come in the order in which they were added; one that was removed leaves its place to
        the next. Progress that does not grow reaches nothing.
        """
        due = self.ring(now)
        due.sort()
        named: list[Edges] = self._families[due].tolist()
        return named

    def ring(self, now: int) -> np.ndarray:
        """As `advance`, but places in that order only, as they are met."""
        previous, self.at = self.at, max(self.at, now)
        count = _ring(self._timers, self._pages, self._shift, previous, self.at, self._rung)
        return self._rung[:count].copy()

    def _free_slot(self) -> int:
        if self._free:
            return self._free.pop()
        slot, room = len(self), len(self._timers)
        if slot == room:
            self._families = np.concatenate([self._families, np.empty(room, dtype=np.object_)])
            self._timers = np.concatenate([self._timers, np.empty_like(self._timers)])
            self._rung = np.empty(2 * room, dtype=np.int64)
        return slot

    def _suit_calendar(self) -> None:
        """Hang all timers anew where pages have become too few, too many, too wide or narrow."""
        pages, groups = len(self._pages), len(self)
        fits = groups <= pages and (pages <= 8 * groups or pages == _FEWEST)
        if fits and self._mean_gap() / 4 < 1 << self._shift < self._mean_gap() * 4:
            return
        self._rate = sum(1 / family.slide for family in self._slots)
        self._shift = int(self._mean_gap()).bit_length() - 1
        self._pages = np.full(max(_FEWEST, 1 << (2 * groups).bit_length()), _NO_ONE, dtype=np.int64)
        slots = np.fromiter(self._slots.values(), dtype=np.int64, count=groups)
        _hang_all(self._timers, self._pages, self._shift, slots)

    def _mean_gap(self) -> float:
        """How far edges lie apart on average. Rounding may have left no rate, or one below 0."""
        return max(1.0, 1 / max(self._rate, 1 / LIMIT))


@compiled
def _ring(timers, pages, shift, at, now, rung):  # type: ignore[no-untyped-def]
    """Set every timer that is due to its next edge after `now`; their slots go to `rung`."""
    count = 0
    first = at >> shift
    last = min(now >> shift, first + pages.shape[0] - 1)
    for number in range(first, last + 1):
        page = number & (pages.shape[0] - 1)
        slot = pages[page]
        pages[page] = _NO_ONE
        while slot != _NO_ONE:
            following = timers[slot, _LINK]
            if timers[slot, _NEXT] <= now:
                rung[count] = slot
                count += 1
                timers[slot, _NEXT] = next_edge(timers[slot, _SLIDE], timers[slot, _NEXT], now)
            _hang(timers, pages, shift, slot)
            slot = following
    return count


@compiled
def _hang(timers, pages, shift, slot):  # type: ignore[no-untyped-def]
    page = (timers[slot, _NEXT] >> shift) & (pages.shape[0] - 1)
    timers[slot, _LINK] = pages[page]
    pages[page] = slot


@compiled
def _hang_all(timers, pages, shift, slots):  # type: ignore[no-untyped-def]
    for slot in slots:
        _hang(timers, pages, shift, slot)


@compiled
def _take_down(timers, pages, shift, slot):  # type: ignore[no-untyped-def]
    page = (timers[slot, _NEXT] >> shift) & (pages.shape[0] - 1)
    if pages[page] == slot:
        pages[page] = timers[slot, _LINK]
        return
    before = pages[page]
    while timers[before, _LINK] != slot:
        before = timers[before, _LINK]
    timers[before, _LINK] = timers[slot, _LINK]
