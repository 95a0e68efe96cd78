"""The sliding tree: test a group only if the group above it is due.

Algorithm 1 of *Knowing When to Slide* (VI-B), for count-based slides and, with a clock's ticks for
the tuple count, for time-based ones (VI-C). It tests `tc mod slide = 0`, tuple by tuple. Progress
moves in jumps, so here a group is tested for an edge in ``(previous, now]``; a step of one is the
paper's test. The tree prunes as well as before: an edge of a group is one of all groups above it.

The tree lies in pre-order, and each group knows where its own subtree ends. A group that is not
due is answered by going there, so there is no stack::

    group    1   2   4   8   12  24  3   9  ...         tc = 9:   1 due,  2 not due: skip to 3,
    skip to  .   3   3   12  3   3   5   5  ...                   3 due,  9 due, ...

Cost: the groups that are due and their children. Where many slides share no divisor the root has
many children; `panes.progress.optimise` adds dummies then, and `panes.progress.timers` needs none.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from panes.arrays.compiled import compiled
from panes.progress.sliding_graph import SlidingGraph
from panes.windows.cut import Edges
from panes.windows.families import last_edge


class SlidingTree:
    """The tree of a sliding graph as it is now; later changes of the graph do not reach it.

    >>> graph = SlidingGraph()
    >>> for slide in (2, 4, 5):
    ...     graph.add(f"every {slide}", Edges(slide, 0))
    >>> tree = SlidingTree(graph)
    >>> tree.due(3, 4)
    [Edges(slide=2, phase=0), Edges(slide=4, phase=0)]
    >>> tree.due(4, 7)
    [Edges(slide=2, phase=0), Edges(slide=5, phase=0)]
    """

    def __init__(self, graph: SlidingGraph) -> None:
        families, skips = _pre_order(graph)
        self._families = np.array(families, dtype=np.object_)
        self._slides = np.array([f.slide for f in families], dtype=np.int64)
        self._phases = np.array([f.phase for f in families], dtype=np.int64)
        self._skips = np.array(skips, dtype=np.int64)
        asked = [not graph.group(f).is_dummy for f in families]
        self._is_asked = np.array(asked, dtype=np.bool_)

    @property
    def tick(self) -> int | None:
        """The unit of the one timer that serves all groups: the root's slide (VI-C)."""
        return int(self._slides[0]) if len(self._slides) else None

    def due(self, previous: int, now: int) -> list[Edges]:
        """Groups with an edge in ``(previous, now]``, in pre-order, without dummies."""
        named: list[Edges] = self._families[self.find(previous, now)].tolist()
        return named

    def find(self, previous: int, now: int) -> np.ndarray:
        """As `due`, but places in pre-order only."""
        return self._descend(previous, now)[0]

    def tests(self, previous: int, now: int) -> int:
        """How many groups, dummies included, `due` tests for the same step."""
        return self._descend(previous, now)[1]

    def _descend(self, previous: int, now: int) -> tuple[np.ndarray, int]:
        found = np.empty(len(self._families), dtype=np.int64)
        layout = (self._slides, self._phases, self._skips, self._is_asked)
        count, tests = _descend(*layout, previous, now, found)
        return found[:count], tests


def mean_tests(graph: SlidingGraph) -> Fraction:
    """What Algorithm 1 costs: tests per tuple, or tick, on average (VI-E).

    The root is tested always, every other group when its strong parent is due.

    >>> graph = SlidingGraph()
    >>> for slide in (7, 8, 12, 20):
    ...     graph.add(f"every {slide}", Edges(slide, 0))
    >>> mean_tests(graph)
    Fraction(5, 1)
    """
    below = graph.tree()
    tests = sum((Fraction(len(below[f]), f.slide) for f in below), Fraction(0))
    return tests + 1 if below else tests


def _pre_order(graph: SlidingGraph) -> tuple[list[Edges], list[int]]:
    below = graph.tree()
    families: list[Edges] = []
    waiting = [] if graph.root is None else [graph.root]
    while waiting:
        family = waiting.pop()
        families.append(family)
        waiting.extend(reversed(below[family]))
    lengths: dict[Edges, int] = {}
    for family in reversed(families):
        lengths[family] = 1 + sum(lengths[child] for child in below[family])
    skips = [i + lengths[family] for i, family in enumerate(families)]
    return families, skips


@compiled
def _descend(slides, phases, skips, is_asked, previous, now, found):  # type: ignore[no-untyped-def]
    count, tests, i = 0, 0, 0
    while i < slides.shape[0]:
        tests += 1
        if last_edge(slides[i], phases[i], now) > previous:
            if is_asked[i]:
                found[count] = i
                count += 1
            i += 1
        else:
            i = skips[i]
    return count, tests
