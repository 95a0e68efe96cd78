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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.windows.cut import Cut, Edges
from panes.windows.families import common_of_columns
from panes.windows.many import Rulers

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
        """The choice."""
        return min(self.options, key=lambda o: o.cost).way


def choose_cut(windows: Rulers) -> SharedCut:
    """The cheapest cut that serves all these windows.

    >>> from panes.windows.spec import Sliding
    >>> minutes = Rulers.of([Sliding(size=600, slide=60), Sliding(size=300, slide=30)])
    >>> choose_cut(minutes).cut.families
    (Edges(slide=30, phase=0),)
    >>> choose_cut(Rulers.of([Sliding(size=60, slide=1), Sliding(size=86400, slide=3600)])).way
    'factor'
    """
    wanted = _edges(windows)
    longest = int(windows.size.max())
    union, gcd = Cut(_without_redundant(wanted)), Cut((common_of_columns(*wanted),))
    plain = (_option("union", union, longest), _option("gcd", gcd, longest))
    best = min(plain, key=lambda o: o.cost)
    chosen = union if best.way == "union" else gcd
    older = _older_level(windows, longest)
    if older is None:
        return SharedCut(chosen, _reason(best, plain, None), plain)
    panes = panes_in(chosen, older.reach) + panes_in(older.cut, longest - older.reach)
    cost = max(best.cost - (best.panes - panes), _WORTH_FOLDING * best.cost)
    factor = CutOption("factor", panes, best.families, cost)
    if panes > _WORTH_FOLDING * best.panes:
        older, factor = None, replace(factor, cost=best.cost)
    return SharedCut(chosen, _reason(best, plain, older), (*plain, factor), older)


def panes_in(cut: Cut, length: int) -> float:
    """The number of panes in a stretch of this length, about: edges that coincide count once.

    Families are taken as independent on the grid they share.
    """
    grid, free = cut.grid, 1.0
    for family in cut.families:
        free *= 1 - grid / family.slide
    return length * (1 - free) / grid


def _option(way: Way, cut: Cut, length: int) -> CutOption:
    panes, families = panes_in(cut, length), len(cut.families)
    return CutOption(way, panes, families, panes * (1 + _LOOK * families))


def _edges(windows: Rulers) -> NDArray[np.int64]:
    """The families of all window ends and starts, each once, in order: slides and phases."""
    slide, origin = windows.slide, windows.origin
    ends = np.stack([slide, origin % slide])
    starts = np.stack([slide, (origin - windows.size) % slide])
    every = np.concatenate([ends, starts], axis=1)
    slides, phases = every[:, np.lexsort(every[::-1])]
    is_new = np.ones(len(slides), dtype=np.bool_)
    is_new[1:] = (slides[1:] != slides[:-1]) | (phases[1:] != phases[:-1])
    return np.stack([slides[is_new], phases[is_new]])


def _older_level(windows: Rulers, longest: int) -> Level | None:
    """The split by range that leaves the fewest panes: short windows need theirs only so long."""
    order = np.argsort(-windows.size, kind="stable")
    sizes, origins = windows.size[order], windows.origin[order]
    steps = np.gcd(np.gcd(windows.slide[order], origins - origins[0]), sizes)
    steps = np.gcd.accumulate(steps)  # of the windows up to each: the grid of their edges
    finest = int(steps[-1])
    shorter = np.flatnonzero(sizes[1:] != sizes[:-1])  # the last window before those of less size
    reach, grid = sizes[shorter + 1], steps[shorter]
    panes = (longest - reach) / grid + reach / finest
    if not len(panes) or panes.min() >= longest / finest:
        return None
    best = int(np.argmin(panes))
    step = int(grid[best])
    return Level(int(reach[best]), Cut((Edges(step, int(origins[0]) % step),)))


def _without_redundant(families: NDArray[np.int64]) -> tuple[Edges, ...]:
    """The families that no other one contains, by divisibility; each pair is looked at once."""
    needed = np.ones(families.shape[1], dtype=np.bool_)
    _drop_redundant(families, needed)
    return tuple(Edges(*family) for family in families[:, needed].T.tolist())


@compiled
def _drop_redundant(families, needed):  # type: ignore[no-untyped-def]
    slides, phases = families[0], families[1]
    for i in range(slides.shape[0]):
        for j in range(i):
            if (
                needed[j]
                and slides[i] % slides[j] == 0
                and (phases[i] - phases[j]) % slides[j] == 0
            ):
                needed[i] = False
                break


def _reason(best: CutOption, plain: Sequence[CutOption], older: Level | None) -> str:
    other = next(o for o in plain if o.way != best.way)
    said = "fewer panes" if best.panes < other.panes else "fewer look-ups for as many panes"
    if best.way == "gcd" and best.panes >= other.panes:
        said = "nearly every step is an edge, and one family is found faster than many"
    if older is not None:
        said += "; older panes are folded, since only long windows still need them"
    return said
