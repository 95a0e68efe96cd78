"""The windows around progress: those that are open, and the last that have closed.

At most so many are shown. Where more are open they are evenly left out, never the next to close.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from panes.axis import BEGINNING
from panes.live.snapshot import WindowsShown
from panes.windows.extent import edges_of, windows_closed, windows_reached
from panes.windows.spec import PanedSpec

MOST_WINDOWS = 28
MOST_QUERIES = 7
_CLOSED = 5


def windows_of(
    specs: Mapping[str, PanedSpec], progress: int, oldest: int, newest: int
) -> WindowsShown:
    """The windows of the first few queries. `oldest` is the first position that is shown anyway."""
    if newest == BEGINNING:
        return WindowsShown(note="no row has come yet")
    start: list[int | None] = []
    end: list[int] = []
    closed: list[bool] = []
    of: list[str] = []
    total = 0
    few = list(specs.items())[:MOST_QUERIES]
    for name, spec in few:
        first_open = windows_closed(spec, oldest if progress == BEGINNING else progress)
        reached = max(windows_reached(spec, newest), first_open)
        total += reached - first_open
        wids = _chosen(first_open, reached, max(4, MOST_WINDOWS // len(few)))
        starts, ends = edges_of(spec, np.array(wids, dtype=np.int64))
        end += ends.tolist()
        start += [None] * len(wids) if starts is None else starts.tolist()
        closed += [wid < first_open and progress != BEGINNING for wid in wids]
        of += [name] * len(wids)
    return WindowsShown(start=start, end=end, closed=closed, of=of, total=total)


def _chosen(first_open: int, reached: int, most: int) -> Sequence[int]:
    """Some windows: a few closed ones, and open ones evenly from the next to close on.

    >>> _chosen(10, 13, most=28)
    [5, 6, 7, 8, 9, 10, 11, 12]
    >>> _chosen(0, 1_000, most=9)
    [-3, -2, -1, 0, 167, 334, 501, 668, 835]
    """
    before = min(_CLOSED, most // 3)
    room = most - before
    step = max(1, -(-(reached - first_open) // room))
    return [*range(first_open - before, first_open), *range(first_open, reached, step)]
