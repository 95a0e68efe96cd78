"""Edge families as sets: the edges around a position, and the family that several share.

A family has an edge at every ``phase + k * slide`` (`panes.windows.cut.Edges`). The scalar
arithmetic is compiled, so that the loops which look for due windows use the same lines::

    slide 4, phase 1        |   |   |   |   |        last_edge(6) = 5     next_edge(6) = 9
                            1   5   9                last_edge(5) = 5     next_edge(5) = 9

There is an edge in ``(previous, now]`` exactly if ``last_edge(now) > previous``. Positions may be
any promise, the ones before and after everything included: nothing here leaves 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.windows.cut import Edges
from panes.windows.spec import PanedSpec


@compiled(inline="always")
def last_edge(slide: int, phase: int, at: int) -> int:
    """The newest edge at or before a position.

    >>> last_edge(4, 1, 6), last_edge(4, 1, 5), last_edge(4, 1, -1)
    (5, 5, -3)
    """
    return at - (at - phase) % slide


@compiled(inline="always")
def next_edge(slide: int, phase: int, at: int) -> int:
    """The oldest edge after a position.

    >>> next_edge(10, 0, 958), next_edge(10, 0, 960)
    (960, 970)
    """
    return at - (at - phase) % slide + slide


def ends_of(spec: PanedSpec) -> Edges:
    """The family of a spec's window ends.

    >>> from panes.windows.spec import Sliding
    >>> ends_of(Sliding(size=600, slide=60, origin=75))
    Edges(slide=60, phase=15)
    """
    return Edges(spec.slide, spec.origin % spec.slide)


def common(families: Iterable[Edges]) -> Edges:
    """The sparsest family that has every edge of all these.

    Its slide is the greatest common divisor of the slides and of the distances between phases.

    >>> common([Edges(8, 0), Edges(12, 0), Edges(20, 0)])
    Edges(slide=4, phase=0)
    >>> common([Edges(12, 1), Edges(12, 7)])
    Edges(slide=6, phase=1)
    """
    slides, phases = np.array([(f.slide, f.phase) for f in families], dtype=np.int64).T
    return common_of_columns(slides, phases)


def common_of_columns(slides: NDArray[np.int64], phases: NDArray[np.int64]) -> Edges:
    """The same, of families given as columns: thousands of queries have as many families."""
    slide = int(np.gcd(np.gcd.reduce(slides), np.gcd.reduce(phases - phases[0])))
    return Edges(slide, int(phases[0]) % slide)
