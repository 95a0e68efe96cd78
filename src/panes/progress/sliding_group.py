"""Sliding groups: the queries whose windows end at the same positions.

Queries with the same slide and the same phase are due together, whatever their sizes, so they are
tested once (*Knowing When to Slide* VI-A). The paper's slides all count from 0: its groups are
those of phase 0. A group is named by its family of window ends, `Edges`.

A group without queries is a dummy: it is there to be tested, never to be reported.
"""

from __future__ import annotations

from dataclasses import dataclass

from panes.windows.cut import Edges


@dataclass(frozen=True, slots=True, order=True)
class SlidingGroup:
    """The queries, by name and in the order they came, whose windows end at `family`.

    >>> SlidingGroup(Edges(60, 0), ("hot", "busy")).is_dummy
    False
    """

    family: Edges
    queries: tuple[str, ...]

    @property
    def is_dummy(self) -> bool:
        return not self.queries


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """An edge of the sliding graph: `child` is within `parent`, and no group lies in between.

    It is strong if no other parent of the child has a greater slide, and weak otherwise. (The
    paper says *edge*; here an edge is where a window ends.)
    """

    parent: Edges
    child: Edges
    is_strong: bool
