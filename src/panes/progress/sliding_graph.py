"""The sliding graph: which groups need no test because another one is not due.

Between two sliding groups the one is *within* the other if each of its edges is also an edge of
the other; it can then only be due when the other is. The graph links a group to the nearest ones
it is within (*Knowing When to Slide* VI-A; there, slides that divide one another)::

         1 (dummy root)           strong ──   the parent with the greatest slide
       ┌─┴─┐                      weak   ┄┄   any other parent
       2   3
       │ ┌┄┘                      Without its weak links the graph is the sliding tree.
       4 ┊
       └┬┘
        12

Invariants: links are exactly the pairs with nothing in between, whatever was added and removed
before; of two parents the slides differ, since phases are those of the child; every group but the
root has one strong parent. The root is derived, never stored: the only group that is within no
other or, if there are several, the dummy they are all within.

Queries with the same slide and the same phase are due together, whatever their sizes, so they are
one group, tested once. It is named by its family of window ends, `Edges`; the paper's slides all
count from 0, so its groups are those of phase 0. Only families are stored: links are derived from
them when somebody looks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from panes.errors import QueryError
from panes.windows.cut import Edges
from panes.windows.families import common


@dataclass(frozen=True, slots=True, order=True)
class SlidingGroup:
    """The queries, by name and in the order they came, whose windows end at `family`.

    A group without queries is a dummy: it is there to be tested, never to be reported.

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


class SlidingGraph:
    """Sliding groups and their links, under queries that come and go.

    >>> graph = SlidingGraph()
    >>> for slide in (2, 3, 4, 12):
    ...     graph.add(f"every {slide}", Edges(slide, 0))
    >>> graph.root, graph.parents(Edges(12, 0))
    (Edges(slide=1, phase=0), [Edges(slide=4, phase=0), Edges(slide=3, phase=0)])
    """

    def __init__(self) -> None:
        self._groups: dict[Edges, list[str]] = {}
        self._family_of: dict[str, Edges] = {}
        self._known: dict[Edges, list[Edges]] | None = None

    # Queries

    def add(self, query: str, family: Edges) -> None:
        """Schedule a query whose windows end at `family`."""
        if query in self._family_of:
            raise QueryError(
                f"a query `{query}` is already scheduled", hint="remove it first, or rename one"
            )
        self._family_of[query] = family
        self.add_dummy(family)
        self._groups[family].append(query)

    def remove(self, query: str) -> Edges | None:
        """Forget a query; the family of its group if it was the last one there."""
        if query not in self._family_of:
            known = ", ".join(sorted(self._family_of)) or "none"
            raise QueryError(f"no query `{query}` is scheduled", hint=f"queries: {known}")
        family = self._family_of.pop(query)
        self._groups[family].remove(query)
        if self._groups[family]:
            return None
        self._delete(family)
        return family

    def add_dummy(self, family: Edges) -> None:
        """Add a group that only saves tests (VI-E). It leaves when fewer than two need it."""
        if family not in self._groups:
            self._groups[family], self._known = [], None

    def candidates(self, due: Iterable[Edges]) -> list[str]:
        """The paper's candidate query list: the queries of groups that are due (IV)."""
        return [query for family in due for query in self._groups[family]]

    # Groups and links

    @property
    def root(self) -> Edges | None:
        """What every group is within, the only one without a parent; None without groups."""
        tops = [family for family, parents in self._parents().items() if not parents]
        return common(tops) if tops else None

    def group(self, family: Edges) -> SlidingGroup:
        """A group by its family. One that is only derived, the dummy root, has no queries."""
        return SlidingGroup(family, tuple(self._groups.get(family, ())))

    def groups(self) -> list[SlidingGroup]:
        """Groups that have queries, in the order in which they came."""
        return [self.group(family) for family, queries in self._groups.items() if queries]

    def parents(self, family: Edges) -> list[Edges]:
        """What a group is linked from, the strong parent first; nothing for the root."""
        root, parents = self.root, self._parents()
        if root is None or family == root or family not in parents:
            return []
        return parents[family] or [root]

    def links(self) -> list[Link]:
        """Every link, by child, the strong one first."""
        root = self.root
        return [
            Link(parent, child, is_strong=i == 0)
            for child, parents in self._parents().items()
            if child != root and root is not None
            for i, parent in enumerate(parents or [root])
        ]

    def tree(self) -> dict[Edges, list[Edges]]:
        """The sliding tree: the children of every group over strong links, in order."""
        root = self.root
        below: dict[Edges, list[Edges]] = {} if root is None else {root: []}
        for child, parents in self._parents().items():
            below.setdefault(child, [])
            if child != root and root is not None:
                below[parents[0] if parents else root].append(child)
        return below

    def _parents(self) -> dict[Edges, list[Edges]]:
        """The nearest groups that each group is within, the strong parent first, in order.

        Dummies that do not stand between their parent and two others leave before.
        """
        while self._known is None:
            self._known = _nearest(self._groups)
            strong = Counter(parents[0] for parents in self._known.values() if parents)
            for family, queries in self._groups.items():
                if not queries and strong[family] < 2:
                    self._delete(family)
                    break
        return self._known

    def _delete(self, family: Edges) -> None:
        del self._groups[family]
        self._known = None


def _nearest(families: Iterable[Edges]) -> dict[Edges, list[Edges]]:
    """For each family, in order, those that it is within and no other one in between."""
    ordered = sorted(families)
    slides, phases = np.array([(f.slide, f.phase) for f in ordered], np.int64).reshape(-1, 2).T
    found: dict[Edges, list[Edges]] = {}
    for i, family in enumerate(ordered):
        apart = (family.slide % slides[:i]) | ((family.phase - phases[:i]) % slides[:i])
        above = [ordered[place] for place in np.flatnonzero(apart == 0).tolist()]
        behind = {further for near in above for further in found[near]}
        found[family] = [near for near in reversed(above) if near not in behind]
    return found
