"""Sliding by a source's clock, which is known only from the tuples that come.

Two ways to guess when a window of a remote source ends (*Knowing When to Slide* VI-D), both
started by the first tuple. `SlideOnArrival` is Algorithm 2: it acts only when a tuple comes, so it
slides late, and the next slide counts from then. `SynchronisedClock` runs the source's clock here,
one for each sliding group, and waits a little for tuples on the way::

    slide 3       |     |     |     |     |     by the source's clock
    tuples        ●   ●   ●   ●   ●   ●   ●     every 2
    Algorithm 2           ↑       ↑       ↑     every 4
    clock               ↑     ↑     ↑     ↑     every 3, a little later

Both say when to look, never what an answer is: answers wait for progress. Invariant: no group
slides before the slide it waits for is over by the clock it goes by.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from panes.errors import OptionError


class SlideOnArrival:
    """Algorithm 2: slides, sorted by when they are next due, tested as tuples come.

    Of slides that are due it costs two moves in a heap each; the first that is not ends the search.

    >>> groups = SlideOnArrival([3, 5])
    >>> [groups.arrive(timestamp) for timestamp in (0, 2, 4, 6, 8)]
    [[], [], [3], [5], [3]]
    """

    def __init__(self, slides: Iterable[int]) -> None:
        self._slides = sorted(set(slides))
        self._next: list[tuple[int, int]] | None = None

    def arrive(self, timestamp: int) -> list[int]:
        """A tuple has come, not before the last one by its own clock; the slides due."""
        if self._next is None:
            self._next = [(timestamp + slide, slide) for slide in self._slides]
            return []
        due = []
        while self._next and self._next[0][0] <= timestamp:
            _, slide = heapq.heappop(self._next)
            due.append(slide)
        for slide in due:
            heapq.heappush(self._next, (timestamp + slide, slide))
        return due


@dataclass(slots=True, kw_only=True)
class SynchronisedClock:
    """The clock of a remote source, for one sliding group.

    It is set to the timestamp of the first tuple and ticks every `slide`. At a tick the group
    waits for λ (`wait`), or until the next tuple comes, and slides. Each tuple moves λ towards its
    own delay: ``λ = alpha * λ + (1 - alpha) * delay`` (Eq. 1), where `delay` is how far the clock
    is ahead of the tuple's timestamp. A tuple that was faster than the first has a delay below 0;
    it counts, but nobody waits for less than nothing.

    Local instants never go back.

    >>> clock = SynchronisedClock(slide=180, alpha=0.5)
    >>> clock.arrive(0, local=40), clock.arrive(120, local=180), clock.wait
    ([], [], 10)
    >>> clock.advance(local=229), clock.advance(local=230)
    ([], [230])
    """

    slide: int
    alpha: float = 0.5
    _behind: int | None = field(default=None, init=False)  # local clock minus the source's
    _tick: int = field(default=0, init=False)  # the next tick, by the local clock
    _waiting: list[int] = field(default_factory=list, init=False)
    _lambda: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        if self.slide <= 0:
            raise OptionError(f"a clock needs a positive slide, got {self.slide}")
        if not 0 <= self.alpha <= 1:
            raise OptionError(f"alpha must lie between 0 and 1, got {self.alpha}")

    @property
    def wait(self) -> int:
        """How long a tick waits for tuples that are on their way, in ticks of the axis."""
        return max(0, round(self._lambda))

    def arrive(self, timestamp: int, *, local: int) -> list[int]:
        """A tuple has come; the local instants at which the group slid since the last call."""
        if self._behind is None:
            self._behind, self._tick = local - timestamp, local + self.slide
            return []
        slid = self.advance(local=local) + [local for _ in self._waiting]
        self._waiting.clear()
        delay = local - self._behind - timestamp
        self._lambda = self.alpha * self._lambda + (1 - self.alpha) * delay
        return slid

    def advance(self, *, local: int) -> list[int]:
        """The local clock shows `local`; the instants at which the group slid since the last."""
        if self._behind is None:
            return []
        while self._tick <= local:
            self._waiting.append(self._tick + self.wait)
            self._tick += self.slide
        slid = [instant for instant in self._waiting if instant <= local]
        self._waiting = self._waiting[len(slid) :]
        return slid
