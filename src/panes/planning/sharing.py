"""Where the panes of many queries begin: a choice by what it costs.

Three ways to cut the axis so that every window of every query is a whole number of panes:

| way | panes begin | costs |
|---|---|---|
| union  | at every edge of every query | a look at each edge family for every new pane |
| gcd    | at every step of the grid that all edges lie on | panes where no window begins or ends |
| factor | as above; once only longer windows need a pane, at the edges of those | folding panes |

Costs are in panes to keep and look-ups to make, per pass over the longest range: what a store
holds and what a roll reads. Answers cost the same whichever way is taken. (*No Pane, No Gain* 3.1;
"paired" and "factor" windows, Krishnamurthy et al. 2006, Wu et al. 2020)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from panes.compiled import compiled
from panes.windows.cut import Cut, Edges, edges_of_spec
from panes.windows.families import common
from panes.windows.spec import Sliding

Way = Literal["union", "gcd", "factor"]
# A look at one edge family against keeping and reading one pane of one group:
# `_pane_around` takes about 2 ns a family, a partial about 40 ns from fill to roll.
_LOOK = 0.05
_WORTH_FOLDING = 0.7


@dataclass(frozen=True, slots=True)
class Level:
    """Panes that end at or before `reach` behind progress are cut by `cut`."""

    reach: int
    cut: Cut


@dataclass(frozen=True, slots=True)
class CutOption:
    """One way to cut: panes held over the longest range, families looked at, and both weighed."""

    way: Way
    panes: float
    families: int
    cost: float


@dataclass(frozen=True, slots=True)
class SharedCut:
    """The cut of a set of queries, the coarser one that older panes are folded to, and why."""

    cut: Cut
    why: str
    options: tuple[CutOption, ...]
    older: Level | None = None

    @property
    def way(self) -> Way:
        """What was chosen."""
        return min(self.options, key=lambda o: o.cost).way


def choose_cut(specs: Sequence[Sliding]) -> SharedCut:
    """The cheapest cut that serves all these windows.

    >>> choose_cut([Sliding(size=600, slide=60), Sliding(size=300, slide=30)]).cut.families
    (Edges(slide=30, phase=0),)
    >>> choose_cut([Sliding(size=60, slide=1), Sliding(size=86400, slide=3600)]).way
    'factor'
    """
    wanted = {edges for spec in specs for edges in edges_of_spec(spec)}
    longest = max(spec.size for spec in specs)
    union, gcd = Cut(_without_redundant(wanted)), Cut((common(wanted),))
    plain = (_option("union", union, longest), _option("gcd", gcd, longest))
    best = min(plain, key=lambda o: o.cost)
    chosen = union if best.way == "union" else gcd
    older = _older_level(specs, longest)
    if older is None:
        return SharedCut(chosen, _reason(best, plain, None), plain)
    panes = held(chosen, older.reach) + held(older.cut, longest - older.reach)
    cost = max(best.cost - (best.panes - panes), _WORTH_FOLDING * best.cost)
    factor = CutOption("factor", panes, best.families, cost)
    if panes > _WORTH_FOLDING * best.panes:
        older, factor = None, replace(factor, cost=best.cost)
    return SharedCut(chosen, _reason(best, plain, older), (*plain, factor), older)


def held(cut: Cut, length: int) -> float:
    """How many panes a stretch of this length has, about: edges that coincide count once.

    Families are taken as independent on the grid they share.
    """
    grid, free = cut.grid, 1.0
    for family in cut.families:
        free *= 1 - grid / family.slide
    return length * (1 - free) / grid


def _option(way: Way, cut: Cut, length: int) -> CutOption:
    panes, families = held(cut, length), len(cut.families)
    return CutOption(way, panes, families, panes * (1 + _LOOK * families))


def _older_level(specs: Sequence[Sliding], longest: int) -> Level | None:
    """The split by range that leaves the fewest panes: short windows need theirs only so long."""
    by_size = sorted(specs, key=lambda s: -s.size)
    step, origin = 0, by_size[0].origin
    grids: dict[int, int] = {}  # for windows longer than a size: the grid of their edges
    for spec in by_size:
        if step and spec.size not in grids:
            grids[spec.size] = step
        step = math.gcd(step, spec.slide, spec.origin - origin, spec.size)
    finest = step
    best, fewest = None, longest / finest
    for reach, grid in grids.items():
        panes = (longest - reach) / grid + reach / finest
        if panes < fewest:
            best, fewest = Level(reach, Cut((Edges(grid, origin % grid),))), panes
    return best


def _without_redundant(wanted: set[Edges]) -> tuple[Edges, ...]:
    """The families that no other one contains, by divisibility; each pair is looked at once."""
    ordered = sorted(wanted)
    columns = np.array([(e.slide, e.phase) for e in ordered], dtype=np.int64)
    kept = np.ones(len(ordered), dtype=np.bool_)
    _drop_redundant(columns, kept)
    return tuple(e for e, keep in zip(ordered, kept, strict=True) if keep)


@compiled
def _drop_redundant(columns, kept):  # type: ignore[no-untyped-def]
    for i in range(columns.shape[0]):
        for j in range(i):
            slide, phase = columns[j, 0], columns[j, 1]
            if kept[j] and columns[i, 0] % slide == 0 and (columns[i, 1] - phase) % slide == 0:
                kept[i] = False
                break


def _reason(best: CutOption, plain: Sequence[CutOption], older: Level | None) -> str:
    other = next(o for o in plain if o.way != best.way)
    said = "fewer panes" if best.panes < other.panes else "fewer look-ups for as many panes"
    if best.way == "gcd" and best.panes >= other.panes:
        said = "nearly every step is an edge, and one family is found faster than many"
    if older is not None:
        said += "; older panes are folded, since only long windows still need them"
    return said
