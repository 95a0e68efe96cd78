"""The schedule: which queries have windows due when progress moves.

The paper's sliding manager (*Knowing When to Slide* IV): queries come and go, progress moves, and
each move gives the candidate query list. Queries are grouped by the sliding graph, which can be
drawn; groups are found by timers, which are as fast whether slides divide one another or not.

Invariant: a query is named by `advance` exactly if one of its windows ends in the stretch that
progress has passed since the query was added.
"""

from __future__ import annotations

from panes.progress.sliding_graph import SlidingGraph
from panes.progress.timers import Timers
from panes.windows.families import ends_of
from panes.windows.spec import PanedSpec


class Schedule:
    """Queries waiting for progress that stands at `at`.

    A query that is added while the stream runs is due at its next window's end, as if it had been
    there before (VI-B).

    >>> from panes.windows.spec import Sliding
    >>> schedule = Schedule(at=0)
    >>> schedule.add("busy", Sliding(size=600, slide=60))
    >>> schedule.add("hot", Sliding(size=10, slide=10, origin=5))
    >>> schedule.advance(54), schedule.advance(60)
    (['hot'], ['busy', 'hot'])
    """

    def __init__(self, at: int) -> None:
        self.graph = SlidingGraph()
        self._timers = Timers(at)

    @property
    def at(self) -> int:
        """Where progress stands."""
        return self._timers.at

    def add(self, query: str, spec: PanedSpec) -> None:
        """Wait for the windows of a query that end after `at`."""
        family = ends_of(spec)
        self.graph.add(query, family)
        self._timers.add(family)

    def remove(self, query: str) -> None:
        """Wait for a query no longer."""
        family = self.graph.remove(query)
        if family is not None:
            self._timers.remove(family)

    def advance(self, now: int) -> list[str]:
        """Move progress to `now`: the queries with windows that are due, group by group."""
        return self.graph.candidates(self._timers.advance(now))
