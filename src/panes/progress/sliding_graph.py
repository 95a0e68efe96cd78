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

A new group is compared with every other once, in one compiled pass; all else is done among its
neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from panes.errors import QueryError
from panes.progress.roster import Roster
from panes.progress.sliding_group import Link, SlidingGroup
from panes.windows.cut import Edges
from panes.windows.families import common


@dataclass(slots=True)
class _Node:
    queries: list[str]
    parents: set[Edges]
    children: set[Edges]


class SlidingGraph:
    """Sliding groups and their links, under queries that come and go.

    >>> graph = SlidingGraph()
    >>> for slide in (2, 3, 4, 12):
    ...     graph.add(f"every {slide}", Edges(slide, 0))
    >>> graph.root, graph.parents(Edges(12, 0))
    (Edges(slide=1, phase=0), [Edges(slide=4, phase=0), Edges(slide=3, phase=0)])
    """

    def __init__(self) -> None:
        self._nodes: dict[Edges, _Node] = {}
        self._roster = Roster()
        self._family_of: dict[str, Edges] = {}
        self._root: Edges | None = None

    # Queries

    def add(self, query: str, family: Edges) -> None:
        """Schedule a query whose windows end at `family`."""
        if query in self._family_of:
            raise QueryError(
                f"a query `{query}` is already scheduled", hint="remove it first, or rename one"
            )
        self._family_of[query] = family
        if family in self._nodes:
            self._nodes[family].queries.append(query)
        else:
            self._insert(family, [query])

    def remove(self, query: str) -> Edges | None:
        """Forget a query; the family of its group if it was the last one there."""
        if query not in self._family_of:
            known = ", ".join(sorted(self._family_of)) or "none"
            raise QueryError(f"no query `{query}` is scheduled", hint=f"queries: {known}")
        family = self._family_of.pop(query)
        queries = self._nodes[family].queries
        queries.remove(query)
        if queries:
            return None
        self._delete(family)
        return family

    def add_dummy(self, family: Edges) -> None:
        """Add a group that only saves tests (VI-E). It leaves when fewer than two need it."""
        if family not in self._nodes:
            self._insert(family, [])

    def candidates(self, due: Iterable[Edges]) -> list[str]:
        """The paper's candidate query list: the queries of groups that are due (IV)."""
        return [query for family in due for query in self._nodes[family].queries]

    # Groups and links

    @property
    def root(self) -> Edges | None:
        """What every group is within, the only one without a parent; None without groups."""
        if self._root is None and self._nodes:
            self._root = common(f for f, node in self._nodes.items() if not node.parents)
        return self._root

    def group(self, family: Edges) -> SlidingGroup:
        """A group by its family. One that is only derived, the dummy root, has no queries."""
        node = self._nodes.get(family)
        return SlidingGroup(family, tuple(node.queries) if node else ())

    def groups(self) -> list[SlidingGroup]:
        """Groups that have queries, in the order in which they came."""
        return [self.group(f) for f, node in self._nodes.items() if node.queries]

    def parents(self, family: Edges) -> list[Edges]:
        """What a group is linked from, the strong parent first; nothing for the root."""
        node = self._nodes.get(family)
        if family == self.root or node is None:
            return []
        return sorted(node.parents, reverse=True) or [_known(self.root)]

    def links(self) -> list[Link]:
        """Every link, by child, the strong one first."""
        return [
            Link(parent, child, is_strong=i == 0)
            for child in sorted(self._nodes)
            for i, parent in enumerate(self.parents(child))
        ]

    def tree(self) -> dict[Edges, list[Edges]]:
        """The sliding tree: the children of every group over strong links, in order."""
        root = self.root
        below: dict[Edges, list[Edges]] = {} if root is None else {root: []}
        for child in sorted(self._nodes):
            below.setdefault(child, [])
            if child != root:
                below[self._strong_parent(child)].append(child)
        return below

    # Changes

    def _insert(self, family: Edges, queries: list[str]) -> None:
        above, below = self._roster.related(family)
        parents = {p for p in above if not any(p != o and o.within(p) for o in above)}
        children = {c for c in below if self._nodes[c].parents.isdisjoint(below)}
        self._nodes[family] = _Node(queries, parents, children)
        self._roster.add(family)
        self._root = None
        displaced = {p for c in children for p in self._nodes[c].parents}
        for child in children:
            for parent in self._nodes[child].parents & parents:
                self._nodes[parent].children.remove(child)
            self._nodes[child].parents -= parents
            self._nodes[child].parents.add(family)
        for parent in parents:
            self._nodes[parent].children.add(family)
        self._prune(parents | displaced)

    def _delete(self, family: Edges) -> None:
        node = self._nodes.pop(family)
        self._roster.remove(family)
        self._root = None
        for parent in node.parents:
            self._nodes[parent].children.remove(family)
        for child in node.children:
            above = self._nodes[child].parents
            above.remove(family)
            reached = {p for p in node.parents if not any(o.within(p) for o in above)}
            above |= reached
            for parent in reached:
                self._nodes[parent].children.add(child)
        self._prune(node.parents)

    def _prune(self, families: Iterable[Edges]) -> None:
        """Delete dummies that no longer stand between their parent and two others."""
        for family in sorted(families):
            node = self._nodes.get(family)
            if node and not node.queries and self._strong_children(node, family) < 2:
                self._delete(family)

    def _strong_children(self, node: _Node, family: Edges) -> int:
        return sum(self._strong_parent(child) == family for child in node.children)

    def _strong_parent(self, child: Edges) -> Edges:
        return max(self._nodes[child].parents, default=None) or _known(self.root)


def _known(root: Edges | None) -> Edges:
    if root is None:
        raise AssertionError("a graph with groups has a root")
    return root
