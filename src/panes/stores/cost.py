"""The cost of stores: the formulas of the thesis, 6.1-6.4 for time and 6.5-6.9 for memory.

They are per window and per group, as the thesis writes them; `panes.planning.cost` puts them
together for a whole run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCosts:
    """Seconds for one step: `a`, `b`, `c` and `a'` of the thesis, and `answer` beside them.

    An answer has to be lowered, labelled and put in order, which costs as much whatever the store;
    the thesis leaves that out. The defaults are orders of magnitude, not measurements: they are
    there to compare stores, and `explain` shows the measured time beside them.
    """

    fill_row: float = 30e-9
    close_pane: float = 60e-9
    roll_pane: float = 10e-9
    window_row: float = 60e-9
    answer: float = 300e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The load of a query: rows per window, panes per window, groups per pane.

    `slides` is the number of panes in a slide, `overlap` the number of windows that hold a row.
    """

    rows: float
    panes: float
    groups: float
    slides: float
    overlap: float


def paned_time(load: Load, unit: UnitCosts, *, differential: bool) -> float:
    """Seconds per window with panes (Eq. 6.1; Eq. 6.2 where a window follows from the last one).

    >>> load = Load(rows=1000, panes=10, groups=1, slides=1, overlap=10)
    >>> paned_time(load, UnitCosts(), differential=False) < window_time(load, UnitCosts())
    True
    """
    filled = unit.fill_row * load.rows / load.panes * load.slides
    closed = unit.close_pane * load.groups * load.slides
    rolled = 2 * load.slides if differential else load.panes
    return filled + closed + unit.roll_pane * load.groups * rolled


def window_time(load: Load, unit: UnitCosts) -> float:
    """Seconds per window where every window takes in each of its rows (Eq. 6.3)."""
    return unit.window_row * load.rows


def differential_time(load: Load, unit: UnitCosts) -> float:
    """Seconds per window where rows enter one window and leave it again (Eq. 6.4)."""
    return 2 * unit.window_row * load.rows / load.overlap


def eager_bytes(*, partial: float, duration: float, slide: float) -> float:
    """Memory of a group that has a partial in every open window (Eq. 6.5).

    `duration` is how long a window stays open on the axis, the thesis's *wed*.

    >>> eager_bytes(partial=24, duration=600, slide=60)
    240.0
    """
    return partial * duration / slide


def lazy_rows(*, volume: float, lag: float = 0.0) -> float:
    """The number of rows of a group that are buffered (Eq. 6.7).

    `volume` is *winVol*, rows per tick times the duration of a window; `lag` is the sum over the
    sources of their rows per tick times their offset behind the earliest one.
    """
    return max(volume - lag, 0.0)


def lazy_bytes(*, row: float, volume: float, lag: float = 0.0) -> float:
    """Memory of a group whose rows are buffered (Eq. 6.6; with several sources, Eq. 6.8)."""
    return row * lazy_rows(volume=volume, lag=lag)


def prefers_eager(
    volume: NDArray[np.float64],
    *,
    partial: float,
    row: float,
    duration: float,
    slide: float,
    lag: NDArray[np.float64] | float = 0.0,
) -> NDArray[np.bool_]:
    """Of which groups partials take less memory than rows (Cond. 6.9).

    >>> volume = np.array([8.0, 30.0])
    >>> prefers_eager(volume, partial=24, row=20, duration=600, slide=60)
    array([False,  True])
    >>> prefers_eager(volume, partial=24, row=20, duration=600, slide=60, lag=25)
    array([False, False])
    """
    threshold = eager_bytes(partial=partial, duration=duration, slide=slide) / row
    preferred: NDArray[np.bool_] = volume > threshold + lag
    return preferred
