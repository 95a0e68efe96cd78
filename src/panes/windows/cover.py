"""The panes under each window that is answered.

Given panes that exist, sorted by group and position, `cover` lists every due window that holds
at least one of them, as the run of panes it holds. Windows without panes are never visited, so
the cost follows what exists and not the length of a silence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.windows.extent import first_wid, last_wid, ruler, window_end
from panes.windows.limit import require_room
from panes.windows.spec import PanedSpec

Wids: TypeAlias = "int | NDArray[np.int64]"
"""A window of all groups, or of each its own."""


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
    spec: PanedSpec, *, starts: np.ndarray, groups: np.ndarray, first_due: Wids, end_due: Wids
) -> Cover:
    """The windows with ids in ``[first_due, end_due)`` that hold a pane.

    Both bounds are one id, or one for each group.

    Parameters
    ----------
    starts
        Where each pane begins, ascending inside each group.
    groups
        Where each group's panes begin in `starts`, with one more entry than groups.
    """
    count = len(groups) - 1
    due = [np.ascontiguousarray(np.broadcast_to(np.int64(d), count)) for d in (first_due, end_due)]
    bounds = (*ruler(spec), *due)
    offsets = np.zeros(len(groups), dtype=np.int64)
    most = float(_at_most(starts, groups, *bounds))
    require_room(most)
    room = int(most)
    wid, first, last = (np.empty(room, dtype=np.int64) for _ in range(3))
    _list(starts, groups, *bounds, offsets, wid, first, last)
    listed = int(offsets[-1])
    return Cover(offsets, wid[:listed], first[:listed], last[:listed])


@compiled
def _at_most(starts, groups, size, slide, origin, first_due, end_due):  # type: ignore[no-untyped-def]
    """No fewer than the windows to list: those between a group's ends, or those of its panes."""
    total = 0.0
    for g in range(groups.shape[0] - 1):
        panes = groups[g + 1] - groups[g]
        if panes > 0:
            oldest = max(first_due[g], first_wid(starts[groups[g]], slide, origin))
            newest = min(end_due[g], last_wid(starts[groups[g + 1] - 1], size, slide, origin) + 1)
            span, per_pane = max(newest - oldest, 0), size // slide + 2
            total += min(float(span), float(panes) * per_pane)
    return total


@compiled
def _list(starts, groups, size, slide, origin, first_due, end_due, offsets, wid, firsts, lasts):  # type: ignore[no-untyped-def]
    k = 0
    for g in range(groups.shape[0] - 1):
        first, stop = groups[g], groups[g + 1]
        last = first
        w = end_due[g]
        if first < stop:
            w = max(first_due[g], first_wid(starts[first], slide, origin))
        while w < end_due[g]:
            end = window_end(w, slide, origin)
            while last < stop and starts[last] < end:
                last += 1
            while first < last and starts[first] < end - size:
                first += 1
            if first < last:
                wid[k], firsts[k], lasts[k] = w, first, last
                k += 1
                w += 1
            elif last == stop:
                break
            else:
                w = max(w + 1, first_wid(starts[last], slide, origin))
        offsets[g + 1] = k


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


@compiled
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
