"""Where panes begin: the edges every window needs, merged.

Invariant: between two neighbouring edges no window starts or ends, so every window is a whole
number of panes. A pane is named by the position where it begins, and `pane_start` is the only
place that knows how to find it.

Edges come in families: an edge at every ``phase + k * slide``. A sliding window contributes the
family of its ends and, where the size is not a multiple of the slide, the family of its starts
("paired" panes: at most two per slide, never more than the gcd panes of *No Pane, No Gain* 3.1)::

    size 7, slide 4      ends    |   |   |   |       pane_start(t) = max over families of
                         starts   |   |   |   |          t - (t - phase) mod slide
                         panes   ||  ||  ||  ||
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

import numpy as np

from panes.arrays.compiled import compiled
from panes.windows.extent import first_wid, last_wid, ruler
from panes.windows.spec import Landmark, PanedSpec


@dataclass(frozen=True, slots=True, order=True)
class Edges:
    """An edge at ``phase + k * slide`` for every integer k; ``0 <= phase < slide``."""

    slide: int
    phase: int

    def within(self, other: Edges) -> bool:
        """True if `other` already has every edge of this family."""
        return self.slide % other.slide == 0 and (self.phase - other.phase) % other.slide == 0


@dataclass(frozen=True, slots=True)
class Cut:
    """Edge families, none within another, that cut an axis into panes."""

    families: tuple[Edges, ...]

    def pane_start(self, at: np.ndarray) -> np.ndarray:
        """Where the pane of each position begins.

        >>> cut(Landmark(slide=10)).pane_start(np.array([-1, 0, 9, 25]))
        array([-10,   0,   0,  20])
        """
        if self.families[0].slide == 1:
            return at
        starts = np.empty(len(at), dtype=np.int64)
        _pane_starts(at, *self._edges(), starts)
        return starts

    def pane_end(self, at: int) -> int:
        """Where the pane of a position ends.

        >>> cut(Landmark(slide=10)).pane_end(25)
        30
        """
        return min(at - (at - f.phase) % f.slide + f.slide for f in self.families)

    def pane_slots(self, at: np.ndarray, base: int, group: np.ndarray, groups: int) -> np.ndarray:
        """``pane number * groups + group``, panes numbered on the grid from the pane at `base`.

        In 32 bits: a table over more slots than that is never worth its memory.
        """
        slots = np.empty(len(at), dtype=np.int32)
        _pane_slots(at, *self._edges(), self.grid, base, group, groups, slots)
        return slots

    def _edges(self) -> tuple[np.ndarray, np.ndarray]:
        slides = np.array([f.slide for f in self.families], dtype=np.int64)
        phases = np.array([f.phase for f in self.families], dtype=np.int64)
        return slides, phases

    def serves(self, spec: PanedSpec) -> bool:
        """True if every window of a spec is a whole number of panes."""
        return all(any(e.within(f) for f in self.families) for e in edges_of_spec(spec))

    @property
    def grid(self) -> int:
        """The largest step that every edge lies on, counted from the first family's phase."""
        first = self.families[0]
        gaps = [f.phase - first.phase for f in self.families]
        return reduce(math.gcd, [f.slide for f in self.families] + gaps)


def cut(*specs: PanedSpec) -> Cut:
    """The panes that serve all these windows at once."""
    wanted = {edges for spec in specs for edges in edges_of_spec(spec)}
    needed = [e for e in wanted if not any(e != o and e.within(o) for o in wanted)]
    return Cut(tuple(sorted(needed)))


def panes_per_window(spec: PanedSpec) -> int | None:
    """The number of panes in a window; None for a landmark, which has no bound.

    >>> from panes.windows.spec import Sliding
    >>> panes_per_window(Sliding(size=600, slide=60)), panes_per_window(Sliding(size=7, slide=4))
    (10, 3)
    """
    if isinstance(spec, Landmark):
        return None
    slides, rest = divmod(spec.size, spec.slide)
    return slides if rest == 0 else 2 * slides + 1


def in_some_window(spec: PanedSpec, at: np.ndarray) -> np.ndarray | None:
    """The positions that belong to any window at all; None if there are no gaps."""
    size, slide, origin = ruler(spec)
    if size >= slide:
        return None
    is_inside: np.ndarray = first_wid(at, slide, origin) <= last_wid(at, size, slide, origin)
    return is_inside


def edges_of_spec(spec: PanedSpec) -> list[Edges]:
    """The families of a spec's window ends and, for a window that has one, starts."""
    ends = Edges(spec.slide, spec.origin % spec.slide)
    if isinstance(spec, Landmark):
        return [ends]
    return [ends, Edges(spec.slide, (spec.origin - spec.size) % spec.slide)]


@compiled(inline="always")
def _pane_around(t, slides, phases):  # type: ignore[no-untyped-def]
    """The nearest edges at or before, and after, a position."""
    low = t - (t - phases[0]) % slides[0]
    high = low + slides[0]
    for f in range(1, slides.shape[0]):
        edge = t - (t - phases[f]) % slides[f]
        low = max(low, edge)
        high = min(high, edge + slides[f])
    return low, high


# Streams are nearly ordered, so both loops try the last pane before they divide.


@compiled
def _pane_starts(at, slides, phases, starts):  # type: ignore[no-untyped-def]
    low, high = np.int64(0), np.int64(0)
    for i in range(at.shape[0]):
        if at[i] < low or at[i] >= high:
            low, high = _pane_around(at[i], slides, phases)
        starts[i] = low


@compiled
def _pane_slots(at, slides, phases, grid, base, group, groups, slots):  # type: ignore[no-untyped-def]
    low, high, row = np.int64(0), np.int64(0), np.int64(0)
    for i in range(at.shape[0]):
        if at[i] < low or at[i] >= high:
            low, high = _pane_around(at[i], slides, phases)
            row = (low - base) // grid * groups
        slots[i] = row + group[i]
