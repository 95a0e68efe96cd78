"""Dummy groups that save tests: Algorithm 3 of *Knowing When to Slide* (VI-E).

Children of a group that share more than the group itself can wait behind a dummy::

        1  (dummy root)                    1
    ┌──┬┴─┬──┐                          ┌──┴──┐
    7  8  12 20                         7     4  (dummy)
                                           ┌──┼──┐
    5 tests a tick                         8  12 20      3.75 tests a tick

Of a node n whose children take C0 tests, and C1 after σ dummies (whose own tests count), each time
n is due: ``O = (C0 - C1) / C0 / slide(n)`` and ``θ = O / cf(σ)``. Nodes are taken by falling θ; a
node stays as it is if its θ is below `node_limit` (θl), or if all that was gained so far per cost
would not stay above `graph_limit` (θg). Feasible dummies are the families that children have in
common; the sets of a node are built greedily, the dummy that saves most first.

Invariant: an added dummy lowers `mean_tests`, whatever was added before.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from panes.progress.sliding_graph import SlidingGraph
from panes.windows.cut import Edges
from panes.windows.families import common

Cost = Callable[[int], float]
"""What a number of extra groups costs: the paper's cf(σ). It grows, and is positive from 1 on."""


@dataclass(slots=True)
class Balance:
    """What was gained (the paper's sumOpt) with how many dummies (sumSigma)."""

    gained: float = 0.0
    dummies: int = 0


@dataclass(frozen=True, slots=True)
class Dummy:
    """Children of a node that wait behind the family they share; `gain` is its part of O."""

    children: tuple[Edges, ...]
    gain: float


def optimise(
    graph: SlidingGraph,
    *,
    node_limit: float = 0.0,
    graph_limit: float = 0.0,
    cost: Cost = float,
    most_children: int = 64,
    rounds: int = 8,
) -> list[Edges]:
    """Add dummies to a graph until none is worth its cost; the ones that were added.

    Of a node with more than `most_children`, so many are looked at for what they have in common,
    evenly chosen: the limit on the computation that the paper advises. Dummies may get dummies
    of their own, in up to so many `rounds` of Algorithm 3.

    >>> graph = SlidingGraph()
    >>> for slide in (7, 8, 12, 20):
    ...     graph.add(f"every {slide}", Edges(slide, 0))
    >>> optimise(graph)
    [Edges(slide=4, phase=0)]
    """
    balance = Balance()
    added: list[Edges] = []
    for _ in range(rounds):
        feasible = {
            node: feasible_dummies(node, children, most_children)
            for node, children in graph.tree().items()
        }
        fresh = algorithm_3(graph, feasible, balance, node_limit, graph_limit, cost)
        added += fresh
        if not fresh:
            break
    return [family for family in added if graph.parents(family)]


def algorithm_3(
    graph: SlidingGraph,
    feasible: dict[Edges, list[Dummy]],
    balance: Balance,
    node_limit: float,
    graph_limit: float,
    cost: Cost,
) -> list[Edges]:
    """One run of Algorithm 3 over the feasible dummies of every node; those it added.

    A node that was optimised comes again with the dummies it has left. One that was refused comes
    again with fewer (line 14).
    """
    added: list[Edges] = []
    node_list: list[tuple[float, Edges, int, list[Dummy]]] = []

    def enlist(node: Edges, dummies: list[Dummy], most: int) -> None:
        theta, sigma = best_theta(dummies[:most], cost)
        if sigma and theta >= node_limit:
            heapq.heappush(node_list, (-theta, node, sigma, dummies))

    for node, dummies in feasible.items():
        enlist(node, dummies, len(dummies))
    while node_list:
        _, node, sigma, dummies = heapq.heappop(node_list)
        gained = balance.gained + sum(dummy.gain for dummy in dummies[:sigma])
        if gained / cost(balance.dummies + sigma) > graph_limit:
            added += _apply(graph, node, dummies[:sigma])
            balance.gained, balance.dummies = gained, balance.dummies + sigma
            enlist(node, dummies[sigma:], len(dummies))
        else:
            enlist(node, dummies, sigma - 1)
    return added


def best_theta(dummies: Sequence[Dummy], cost: Cost) -> tuple[float, int]:
    """The greatest θ that the first σ dummies reach, and that σ; (0, 0) without dummies."""
    best, sigma, gained = 0.0, 0, 0.0
    for extra, dummy in enumerate(dummies, start=1):
        gained += dummy.gain
        if gained / cost(extra) > best:
            best, sigma = gained / cost(extra), extra
    return best, sigma


def feasible_dummies(node: Edges, children: Sequence[Edges], most_children: int) -> list[Dummy]:
    """Disjoint sets of a node's children that would wait behind a dummy, the best first.

    >>> children = [Edges(7, 0), Edges(8, 0), Edges(12, 0), Edges(20, 0)]
    >>> [(common(d.children).slide, d.gain) for d in feasible_dummies(Edges(1, 0), children, 64)]
    [(4, 0.3125)]
    """
    shared = _shared_families(node, children, most_children)
    if not shared:
        return []
    slides = np.array([f.slide for f in shared], dtype=np.int64)
    phases = np.array([f.phase for f in shared], dtype=np.int64)
    own = np.array([(f.slide, f.phase) for f in children], dtype=np.int64)
    holds = (own[:, 0] % slides[:, None] == 0) & (
        (own[:, 1] - phases[:, None]) % slides[:, None] == 0
    )
    covered = holds.sum(axis=1)
    dummies: list[Dummy] = []
    while True:
        saved = covered * (1 - node.slide / slides) - 1
        best = int(np.argmax(saved))
        if saved[best] <= 1e-9:
            return dummies
        members = np.flatnonzero(holds[best])
        gain = float(saved[best]) / len(children) / node.slide
        dummies.append(Dummy(tuple(children[i] for i in members.tolist()), gain))
        covered = covered - holds[:, members].sum(axis=1)
        holds[:, members] = False


def _shared_families(node: Edges, children: Sequence[Edges], most_children: int) -> list[Edges]:
    """Families that two or more of these children are within, and that are not the node."""
    step = -(-len(children) // most_children) or 1
    shared = {common(pair) for pair in combinations(children[::step], 2)}
    fresh = shared - {node}
    while fresh and len(shared) < most_children:
        fresh = {common(pair) for pair in combinations(shared, 2)} - shared
        shared |= fresh
    return sorted(shared - {node})


def _apply(graph: SlidingGraph, node: Edges, dummies: Sequence[Dummy]) -> list[Edges]:
    """Add dummies, for the children that other dummies have not taken since."""
    added: list[Edges] = []
    mine = set(graph.tree().get(node, ()))
    for dummy in dummies:
        left = [child for child in dummy.children if child in mine]
        if len(left) < 2:
            continue
        family = common(left)
        if len(left) * (1 - Fraction(node.slide, family.slide)) > 1:
            graph.add_dummy(family)
            added.append(family)
            mine -= set(left)
    return added
