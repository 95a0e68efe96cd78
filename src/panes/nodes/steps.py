"""Where to pause between windows, so that what is answered at once stays small.

All windows of a table are due when it ends, and together they may have far more answers than it has
rows. They are closed from pause to pause instead: every step answers a few windows for all keys, so
answers come in the order in which they would all at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from panes.windows.extent import edges_of, first_wid, last_wid, ruler
from panes.windows.limit import fitting, require_room_in_steps
from panes.windows.spec import Landmark, PanedSpec

ANSWERS_A_STEP = 1 << 20
_BYTES_A_STEP = 1 << 28
_LOOKED_AT = 64


def pauses(
    spec: PanedSpec,
    starts: NDArray[np.int64],
    first: int,
    end: int,
    *,
    keys: int,
    key_bytes: int = 0,
    most: int | None = None,
) -> Iterator[int]:
    """Windows to pause before, on the way from window `first` to window `end`.

    `starts` are those of all partials, ascending, of so many `keys` that take so many bytes. A step
    between two pauses has at most so many answers, or it is a single window. Without `most`, these
    are about a million, fewer where keys are long. Silence is not visited.

    >>> from panes.windows.spec import Sliding
    >>> starts = np.array([0, 0, 10, 10, 20, 10_000])
    >>> list(pauses(Sliding(size=20, slide=10), starts, 0, 1_002, keys=2, most=4))
    [2, 1001]
    """
    if most is None:
        wide = key_bytes // max(keys, 1)
        most = fitting(min(ANSWERS_A_STEP, max(_BYTES_A_STEP // max(wide, 1), 1)))
    if not len(starts) or end <= first:
        return
    found = _Windows.over(spec, starts, first, end)
    require_room_in_steps(min(float(len(found)) * keys, _of_partials(spec, len(starts))))
    begin, looked_at = 0, _LOOKED_AT
    while begin < len(found):
        looked = np.arange(begin, min(begin + looked_at, len(found)))
        under = _partials_under(spec, starts, found.wid(looked))
        answers = np.cumsum(np.minimum(under, keys))
        taken = int(np.searchsorted(answers, most, side="right"))
        if taken == len(looked) < len(found) - begin and looked_at < most:
            looked_at *= 2
            continue
        begin, looked_at = begin + max(taken, 1), max(2 * taken, _LOOKED_AT)
        if begin < len(found):
            yield int(found.wid(np.array([begin]))[0])


def row_pauses(at: NDArray[np.int64], first: int, end: int) -> list[int]:
    """Positions to pause at between `first` and `end`, where every row at a position has a window.

    A step has about as many answers as one of `pauses`; rows at one position stay together.
    """
    chosen = np.unique(np.sort(at)[ANSWERS_A_STEP::ANSWERS_A_STEP])
    return [pause for pause in chosen.tolist() if first < pause < end]


@dataclass(frozen=True, slots=True)
class _Windows:
    """The windows that hold anything, oldest first: those of each pane which none before it has.

    Pane `i` has the windows up to `last[i]`, and with those before it ``count[i]`` windows.
    """

    last: NDArray[np.int64]
    count: NDArray[np.int64]

    @classmethod
    def over(cls, spec: PanedSpec, starts: NDArray[np.int64], first: int, end: int) -> _Windows:
        """The windows from `first` up to `end` that hold a partial."""
        size, slide, origin = ruler(spec)
        if isinstance(spec, Landmark):
            begin = max(first, int(first_wid(int(starts[0]), slide, origin)))
            return cls(np.array([end - 1]), np.array([max(end - begin, 0)]))
        panes = starts[np.flatnonzero(np.diff(starts, prepend=starts[0] - 1))]
        last = np.clip(last_wid(panes, size, slide, origin), first - 1, end - 1)
        behind = np.concatenate([[first - 1], last[:-1]]) + 1
        begin = np.maximum(first_wid(panes, slide, origin), behind)
        return cls(last, np.cumsum(np.maximum(last - begin + 1, 0)))

    def __len__(self) -> int:
        return int(self.count[-1])

    def wid(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """The windows at some indexes."""
        pane = np.searchsorted(self.count, index, side="right")
        wid: NDArray[np.int64] = self.last[pane] - (self.count[pane] - 1 - index)
        return wid


def _partials_under(
    spec: PanedSpec, starts: NDArray[np.int64], wid: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many partials lie under each window."""
    low, high = edges_of(spec, wid)
    before_end = np.searchsorted(starts, high)
    return before_end if low is None else before_end - np.searchsorted(starts, low)


def _of_partials(spec: PanedSpec, partials: int) -> float:
    """No fewer than the answers that so many partials can be in."""
    if isinstance(spec, Landmark):
        return float("inf")
    size, slide, _ = ruler(spec)
    return float(partials) * (size // slide + 1)
