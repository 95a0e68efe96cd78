"""The meaning of windows: `windows`, `extent` and `wids`, written once for every kind.

An extent is always half open, ``[start, end)``, on the position of a row: its axis value, its
arrival number, or its rank inside its partition. `extent` and `wids` are duals::

    at in extent(spec, w)   <=>   w in wids(spec, at)

The scalar arithmetic at the top is compiled, so that the hot loops of the engine and the
one-line definitions below are the same code. (thesis 5.1, with the floors of its own example
instead of the printed ceilings)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.axis import FOREVER
from panes.windows.spec import Landmark, PanedSpec, PartitionedRows, PerRow, Sliding, Spec, paned


class Extent(NamedTuple):
    """The positions a window holds: ``start <= at < end``."""

    start: int
    end: int


@compiled(inline="always")
def window_end(w: int, slide: int, origin: int) -> int:
    """Where window `w` ends."""
    return origin + (w + 1) * slide


@compiled(inline="always")
def first_wid(at: int, slide: int, origin: int) -> int:
    """The oldest window that ends after `at`."""
    return (at - origin) // slide


@compiled(inline="always")
def last_wid(at: int, size: int, slide: int, origin: int) -> int:
    """The newest window that starts at or before `at`; before `first_wid` if `at` is in a gap."""
    return (at - origin + size) // slide - 1


class Ruler(NamedTuple):
    """A paned spec as three integers, for compiled loops. A landmark reaches back for ever."""

    size: int
    slide: int
    origin: int


def ruler(spec: PanedSpec) -> Ruler:
    """The three integers of a sliding or landmark window."""
    size = spec.size if isinstance(spec, Sliding) else FOREVER
    return Ruler(size, spec.slide, spec.origin)


def extent(spec: Spec, wid: int) -> Extent:
    """The positions window `wid` holds.

    >>> extent(Sliding(size=600, slide=60), 10)
    Extent(start=60, end=660)
    >>> extent(PerRow(size=5), 100)
    Extent(start=96, end=101)
    """
    size, slide, origin = ruler(paned(spec))
    end = window_end(wid, slide, origin)
    return Extent(end - size, end)


def wids(spec: Spec, at: int, ids: Sequence[int] = ()) -> Sequence[int]:
    """The windows that hold position `at`, oldest first.

    A landmark window never closes behind a row, and a per-row window exists only where a row
    defines one: these two kinds ask for the window ids of the stream, `ids`, in order.

    >>> wids(Sliding(size=600, slide=60), 5)
    range(0, 10)
    >>> wids(Landmark(slide=60), 125, ids=[0, 1, 2, 3])
    [2, 3]
    """
    if isinstance(spec, PerRow):
        return [w for w in ids if at <= w < at + spec.size]
    if isinstance(spec, Landmark):
        first = first_wid(at, spec.slide, spec.origin)
        return [w for w in ids if w >= first]
    origin = spec.origin if isinstance(spec, Sliding) else 0
    return range(first_wid(at, spec.slide, origin), last_wid(at, spec.size, spec.slide, origin) + 1)


def windows(spec: Spec, positions: Iterable[int]) -> Sequence[int]:
    """The ids of the windows that a bounded stream answers, oldest first.

    `positions` are those of the rows in arrival order: axis values, arrival numbers, or ranks
    inside one partition. Per-row windows have one id per defining row, so ids may repeat.

    >>> windows(Sliding(size=10, slide=10), [3, 4, 31])
    [0, 3]
    >>> windows(Landmark(slide=10), [13, 31])
    [1, 2, 3]
    """
    at = list(positions)
    if not at:
        return []
    if isinstance(spec, PerRow):
        ordered = at if spec.counted_by == "arrival" else sorted(at)
        return sorted(ordered[spec.every - 1 :: spec.every])
    if isinstance(spec, Landmark):
        return list(
            range(
                first_wid(min(at), spec.slide, spec.origin),
                first_wid(max(at), spec.slide, spec.origin) + 1,
            )
        )
    holding = sorted({w for t in at for w in wids(spec, t)})
    if isinstance(spec, PartitionedRows):
        return [w for w in holding if extent(spec, w).end <= len(at)]
    return holding


def windows_closed(spec: PanedSpec, progress: int) -> int:
    """One past the newest window that ends at or before `progress`: all before it are final."""
    _, slide, origin = ruler(spec)
    return int(first_wid(progress, slide, origin))


def windows_reached(spec: PanedSpec, at: int) -> int:
    """One past the newest window to answer for a stream whose greatest position is `at`."""
    size, slide, origin = ruler(spec)
    if isinstance(spec, Landmark):
        return int(first_wid(at, slide, origin)) + 1
    return int(last_wid(at, size, slide, origin)) + 1


def edges_of(
    spec: PanedSpec, wid: NDArray[np.int64]
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
    """Where windows start and end; a landmark has no start."""
    ends: NDArray[np.int64] = spec.origin + (wid + 1) * spec.slide
    return (ends - spec.size if isinstance(spec, Sliding) else None), ends
