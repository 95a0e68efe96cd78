"""Which windows are answered by which panes.

Given panes that exist, sorted by group and position, `cover` lists every due window that holds
at least one of them, as the run of panes it holds. Windows without panes are never visited, so
the cost follows what exists and not the length of a silence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from panes.windows.extent import first_wid, ruler, window_end
from panes.windows.spec import PanedSpec


@dataclass(frozen=True, slots=True)
class Cover:
    """Answers to give, group by group and oldest first: each a run of panes ``[first, last)``.

    Within one group `first` and `last` never decrease. `offsets[g]` is where group g's answers
    begin; it has one more entry than there are groups.
    """

    offsets: np.ndarray
    wid: np.ndarray
    first: np.ndarray
    last: np.ndarray

    def __len__(self) -> int:
        return len(self.wid)


def cover(
    spec: PanedSpec, *, starts: np.ndarray, groups: np.ndarray, first_due: int, end_due: int
) -> Cover:
    """The windows with ids in ``[first_due, end_due)`` that hold a pane.

    Parameters
    ----------
    starts
        Where each pane begins, ascending inside each group.
    groups
        Where each group's panes begin in `starts`, with one more entry than groups.
    """
    size, slide, origin = ruler(spec)
    bounds = (size, slide, origin, first_due, end_due)
    offsets = np.zeros(len(groups), dtype=np.int64)
    _count(starts, groups, *bounds, offsets)
    np.cumsum(offsets, out=offsets)
    wid, first, last = (np.empty(int(offsets[-1]), dtype=np.int64) for _ in range(3))
    _list(starts, groups, *bounds, offsets, wid, first, last)
    return Cover(offsets, wid, first, last)


@njit(cache=True, inline="always")
def _next_held(starts, begin, stop, w, first, last, size, slide, origin, end_due):  # type: ignore[no-untyped-def]
    """The first window from `w` on that holds a pane of ``[begin, stop)``, and its run."""
    while w < end_due:
        end = window_end(w, slide, origin)
        while last < stop and starts[last] < end:
            last += 1
        while first < last and starts[first] < end - size:
            first += 1
        if first < last:
            return w, first, last
        if last == stop:
            return end_due, first, last
        w = max(w + 1, first_wid(starts[last], slide, origin))
    return end_due, first, last


@njit(cache=True, nogil=True)
def _count(starts, groups, size, slide, origin, first_due, end_due, counts):  # type: ignore[no-untyped-def]
    for g in range(groups.shape[0] - 1):
        begin, stop = groups[g], groups[g + 1]
        if begin == stop:
            continue
        w = max(first_due, first_wid(starts[begin], slide, origin))
        first, last = begin, begin
        while w < end_due:
            w, first, last = _next_held(
                starts, begin, stop, w, first, last, size, slide, origin, end_due
            )
            if w < end_due:
                counts[g + 1] += 1
                w += 1


@njit(cache=True, nogil=True)
def _list(starts, groups, size, slide, origin, first_due, end_due, offsets, wid, firsts, lasts):  # type: ignore[no-untyped-def]
    for g in range(groups.shape[0] - 1):
        begin, stop = groups[g], groups[g + 1]
        if begin == stop:
            continue
        w = max(first_due, first_wid(starts[begin], slide, origin))
        first, last = begin, begin
        k = offsets[g]
        while w < end_due:
            w, first, last = _next_held(
                starts, begin, stop, w, first, last, size, slide, origin, end_due
            )
            if w < end_due:
                wid[k], firsts[k], lasts[k] = w, first, last
                k += 1
                w += 1


def runs_under(
    spec: PanedSpec, wid: np.ndarray, offsets: np.ndarray, *, starts: np.ndarray, groups: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For answers already listed, the run of panes ``[first, last)`` in another set of panes.

    `starts` and `groups` describe the other panes as in `cover`, over the same groups; `wid` and
    `offsets` are those of the answers. A run may be empty.
    """
    size, slide, origin = ruler(spec)
    first, last = np.empty(len(wid), dtype=np.int64), np.empty(len(wid), dtype=np.int64)
    _runs(starts, groups, size, slide, origin, wid, offsets, first, last)
    return first, last


@njit(cache=True, nogil=True)
def _runs(starts, groups, size, slide, origin, wid, offsets, firsts, lasts):  # type: ignore[no-untyped-def]
    for g in range(groups.shape[0] - 1):
        first, last, stop = groups[g], groups[g], groups[g + 1]
        for k in range(offsets[g], offsets[g + 1]):
            end = window_end(wid[k], slide, origin)
            while last < stop and starts[last] < end:
                last += 1
            while first < last and starts[first] < end - size:
                first += 1
            firsts[k], lasts[k] = first, last
