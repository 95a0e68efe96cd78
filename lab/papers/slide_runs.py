"""A stream of tuples, and who is due at each: the algorithms of *Knowing When to Slide*.

`plain` and `algorithm_1` are the paper's two (VI-B, VII), over a whole stream in one compiled loop,
so that what they cost is not drowned by calls: `algorithm_1` keeps the stack that it is printed
with and counts its tests and pushes. `tuple_by_tuple` calls the library's own finders as an engine
calls them, once a tuple. Every run says who was due when; `same_due` compares.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab.papers.plain_scan import PlainScan
from lab.papers.sliding_tree import SlidingTree
from panes.arrays.compiled import compiled
from panes.errors import WrongAnswerError
from panes.progress.sliding_graph import SlidingGraph
from panes.progress.timers import Timers
from panes.windows.cut import Edges

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Run:
    """What a stream gave and cost. `due` has a row (tuple, slide) for each group that was due."""

    due: Integers
    seconds: float
    tests: int
    pushes: int = 0


def random_slides(queries: int, *, most: int, seed: int) -> list[int]:
    """The slides of that many queries, each as likely as any in ``[2, most]``; equal ones once."""
    rng = np.random.default_rng([seed, queries, most])
    slides: list[int] = np.unique(rng.integers(2, most + 1, queries)).tolist()
    return slides


def graph_of(slides: list[int]) -> SlidingGraph:
    """The sliding graph of one query for each slide."""
    graph = SlidingGraph()
    for slide in slides:
        graph.add(f"every {slide}", Edges(slide, 0))
    return graph


def plain(slides: list[int], *, tuples: int) -> Run:
    """The plain algorithm: every group is tested at every tuple."""
    columns = np.array(slides, dtype=np.int64)
    due = _room(slides, tuples)
    begin = time.thread_time()
    _plain(columns, tuples, due)
    return Run(due, time.thread_time() - begin, tests=tuples * len(slides))


def algorithm_1(graph: SlidingGraph, *, tuples: int) -> Run:
    """Algorithm 1 over a sliding graph, dummies and all."""
    slides, begins, ends, is_asked = _layout(graph)
    due = _room(slides[is_asked].tolist(), tuples)
    stack = np.empty(len(slides), dtype=np.int64)
    begin = time.thread_time()
    tests, pushes = _algorithm_1(slides, begins, ends, is_asked, tuples, stack, due)
    return Run(due, time.thread_time() - begin, tests=tests, pushes=pushes)


Find = Callable[[int, int], object]
Name = Callable[[int, int], list[Edges]]

FINDERS: dict[str, Callable[[SlidingGraph], Find]] = {
    "plain scan": lambda graph: PlainScan(_families(graph)).find,
    "sliding tree": lambda graph: SlidingTree(graph).find,
    "timers": lambda graph: _ringing(_timers(graph)),
}
NAMERS: dict[str, Callable[[SlidingGraph], Name]] = {
    "plain scan": lambda graph: PlainScan(_families(graph)).due,
    "sliding tree": lambda graph: SlidingTree(graph).due,
    "timers": lambda graph: _naming(_timers(graph)),
}


def tuple_by_tuple(find: Find, *, tuples: int) -> float:
    """Seconds of CPU time that so many calls take, one for each tuple."""
    begin = time.thread_time()
    for now in range(1, tuples + 1):
        find(now - 1, now)
    return time.thread_time() - begin


def same_due(graph: SlidingGraph, runs: dict[str, Run], *, tuples: int) -> None:
    """Check all runs against the first, and the library's finders over the first so many tuples."""
    first, *_ = runs.values()
    expected = _keys(first.due)
    for name, run in runs.items():
        if not np.array_equal(_keys(run.due), expected):
            raise WrongAnswerError(f"{name}: groups were due at other tuples than by plain tests")
    begun = _keys(first.due[first.due[:, 0] <= tuples])
    for name, namer in NAMERS.items():
        name_due = namer(graph)
        named = [(now, f.slide) for now in range(1, tuples + 1) for f in name_due(now - 1, now)]
        if not np.array_equal(_keys(np.array(named, dtype=np.int64).reshape(-1, 2)), begun):
            raise WrongAnswerError(f"{name}: names other groups than plain tests do")


def _keys(due: Integers) -> Integers:
    """Tuple and slide in one integer, in order: who was due, whatever the order of a traversal."""
    return np.sort(due[:, 0] << 32 | due[:, 1])


def _room(slides: list[int], tuples: int) -> Integers:
    """One row for every time that one of the slides divides a tuple's number."""
    return np.zeros((sum(tuples // slide for slide in slides), 2), dtype=np.int64)


def _families(graph: SlidingGraph) -> list[Edges]:
    return [group.family for group in graph.groups()]


def _timers(graph: SlidingGraph) -> Timers:
    timers = Timers(at=0)
    for family in _families(graph):
        timers.add(family)
    return timers


def _ringing(timers: Timers) -> Find:
    return lambda _, now: timers.ring(now)


def _naming(timers: Timers) -> Name:
    return lambda _, now: timers.advance(now)


def _layout(graph: SlidingGraph) -> tuple[Integers, Integers, Integers, NDArray[np.bool_]]:
    """The sliding tree by levels, so that children lie side by side: ``[begin, end)`` of each."""
    below = graph.tree()
    order = [] if graph.root is None else [graph.root]
    begins, ends = [], []
    for family in order:  # grows while it is gone through
        begins.append(len(order))
        order += below[family]
        ends.append(len(order))
    return (
        np.array([family.slide for family in order], dtype=np.int64),
        np.array(begins, dtype=np.int64),
        np.array(ends, dtype=np.int64),
        np.array([not graph.group(family).is_dummy for family in order], dtype=np.bool_),
    )


@compiled
def _plain(slides, tuples, due):  # type: ignore[no-untyped-def]
    count = 0
    for tc in range(1, tuples + 1):
        for i in range(slides.shape[0]):
            if tc % slides[i] == 0:
                due[count, 0] = tc
                due[count, 1] = slides[i]
                count += 1


@compiled
def _algorithm_1(slides, begins, ends, is_asked, tuples, stack, due):  # type: ignore[no-untyped-def]
    count, tests, pushes = 0, 0, 0
    for tc in range(1, tuples + 1):
        depth = 0
        tests += 1
        if tc % slides[0] == 0:
            stack[depth] = 0
            depth += 1
            pushes += 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if is_asked[node]:
                due[count, 0] = tc
                due[count, 1] = slides[node]
                count += 1
            for child in range(begins[node], ends[node]):
                tests += 1
                if tc % slides[child] == 0:
                    stack[depth] = child
                    depth += 1
                    pushes += 1
    return tests, pushes
