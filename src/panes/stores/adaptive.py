"""AdaptWID: eager or lazy, group by group, whichever takes less memory (thesis 6.3).

Every group begins lazy: its rows are kept. Once they take more than the partials of the windows
they are in, the group turns eager. An eager group through which fewer rows pass than the partials
are worth turns lazy again; until its partials are answered it is *in transition*, and its windows
are answered from both sides. Two thresholds, the second at half of the first, keep a group from
going back and forth.

Of a lazy group everything is known, so it is weighed exactly. Of an eager one only what passes
through is counted, from one epoch (the length of a window) to the next, and Cond. 6.9 decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.axis import BEGINNING, FOREVER
from panes.stores.contents import Contents
from panes.stores.cost import prefers_eager
from panes.stores.row_buffer import BufferedRows
from panes.stores.wid import Tagging
from panes.windows.cover import Wids
from panes.windows.extent import extent, first_wid, last_wid, ruler
from panes.windows.spec import PanedSpec, Sliding
from panes.windows.tag import window_bounds

_BACK = 0.5


@dataclass(slots=True)
class Sources:
    """How far each source is, and how many rows it has sent (thesis 6.3.1, arrival-time skew)."""

    newest: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)

    def hear(self, source: str, newest: int, rows: int) -> None:
        """A batch of a source has come."""
        self.newest[source] = max(newest, self.newest.get(source, newest))
        self.rows[source] = rows + self.rows.get(source, 0)

    @property
    def offset(self) -> float:
        """How far a row's source is behind the earliest one, on average over the rows.

        >>> sources = Sources()
        >>> sources.hear("main", 100, rows=3)
        >>> sources.hear("control", 60, rows=1)
        >>> sources.offset
        10.0
        """
        total = sum(self.rows.values())
        if not total:
            return 0.0
        earliest = max(self.newest.values())
        behind = [(earliest - self.newest[name]) * rows for name, rows in self.rows.items()]
        return sum(behind) / total


class Durations:
    """How long windows stay open: *wed* (thesis 6.3.4.1).

    From the low-watermark when the first row of a window came to the high-watermark when it was
    closed. `latest` is that of the window that was closed last, at first the length of a window;
    `longest` is the longest of all.
    """

    def __init__(self, spec: Sliding) -> None:
        self.latest = self.longest = spec.size
        self._spec = spec
        self._started: list[tuple[int, int, int | None]] = []
        self._next: int | None = None
        self._high = BEGINNING

    def saw(self, oldest: int, newest: int, first_open: int) -> None:
        """Rows from `oldest` to `newest` have come while windows from `first_open` on were open."""
        self._high = max(self._high, newest)
        size, slide, origin = ruler(self._spec)
        first = int(first_wid(oldest, slide, origin)) if self._next is None else self._next
        end = int(last_wid(newest, size, slide, origin)) + 1
        if end > first:
            low = None if first_open == BEGINNING else extent(self._spec, first_open - 1).end
            self._started.append((first, end, low))
            self._next = end

    def closed(self, first_open: int) -> None:
        """Windows before `first_open` are closed."""
        while self._started and self._started[0][0] < first_open:
            first, end, low = self._started.pop(0)
            self.longest = max(self.longest, self._high - self._low(first, low))
            last = min(end, first_open)
            self.latest = max(self._spec.size, self._high - self._low(last - 1, low))
            if last < end:
                self._started.insert(0, (last, end, low))
                break

    def _low(self, wid: int, low: int | None) -> int:
        """The low-watermark when a window started; before any promise, the window's own start."""
        start = extent(self._spec, wid).start
        return start if low is None else min(low, start)


class Adaptive(Tagging):
    """Rows of lazy groups, partials of eager ones, both of those in transition."""

    def __init__(self, contents: Contents, spec: PanedSpec, sources: Sources | None = None) -> None:
        super().__init__(contents, spec)
        self._sources = Sources() if sources is None else sources
        self._durations = Durations(self.spec)
        self._eager = np.empty(0, dtype=np.int32)
        self._passed = np.empty(0, dtype=np.uint32)
        self._epoch: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of partials, rows, and of what is noted of eager groups."""
        return super().nbytes + self._eager.nbytes + self._passed.nbytes

    @property
    def eager_groups(self) -> int:
        """How many groups are eager."""
        return len(self._eager)

    def receive(self, rows: BufferedRows) -> None:
        self._durations.saw(int(rows.at.min()), int(rows.at.max()), self.first_open)
        place = np.searchsorted(self._eager, rows.groups)
        is_eager = np.zeros(len(rows), dtype=np.bool_)
        if len(self._eager):
            is_eager = self._eager[np.minimum(place, len(self._eager) - 1)] == rows.groups
        if is_eager.any():
            self._passed += np.bincount(place[is_eager], minlength=len(self._eager)).astype(
                np.uint32
            )
            self.put(rows.taken(np.flatnonzero(is_eager)), self.first_open, FOREVER)
            rows = rows.taken(np.flatnonzero(~is_eager))
        self.buffer.add(rows)
        self._turn_eager(rows.groups)

    def evict(self, first_open: Wids) -> bool:
        """Drop what no open window holds; groups with few rows turn lazy."""
        dropped = super().evict(first_open)
        oldest = int(np.min(first_open, initial=FOREVER))
        self._durations.closed(oldest)
        self._turn_lazy(oldest)
        return dropped

    def forget_keys(self) -> NDArray[np.int64] | None:
        """Drop keys that nothing is stored of, if they are many."""
        renamed = super().forget_keys()
        if renamed is not None:
            self._eager = renamed[self._eager].astype(np.int32)
        return renamed

    def _turn_eager(self, touched: NDArray[np.int32]) -> None:
        """Of the groups that have new rows, those whose rows take more than partials would."""
        kept = self.buffer.everything()
        if kept is None:
            return
        taken = np.bincount(kept.groups) * self.row_bytes
        may_turn = np.zeros(len(taken), dtype=np.bool_)
        may_turn[touched] = taken[touched] > self.partial_bytes
        rows = np.flatnonzero(may_turn[kept.groups])
        if not len(rows):
            return
        heavy = kept.taken(rows)
        windows = self._open_windows(heavy, len(taken))
        would_take = windows * self.partial_bytes_of(heavy, heavy.groups, len(taken))
        turning = (taken > would_take) & (windows > 0)
        if turning.any():
            which = turning[kept.groups]
            self.put(kept.taken(np.flatnonzero(which)), self.first_open, FOREVER)
            self.buffer.keep(~which)
            self._join(np.flatnonzero(turning))

    def _open_windows(self, rows: BufferedRows, groups: int) -> NDArray[np.int64]:
        """How many open windows hold some of these rows, group by group."""
        order = np.lexsort((rows.at, rows.groups))
        low, high = window_bounds(self.spec, rows.at[order], self.first_open, FOREVER)
        windows = np.zeros(groups, dtype=np.int64)
        _count_windows(rows.groups[order], low, high, windows)
        return windows

    def _turn_lazy(self, oldest: int) -> None:
        """Groups that hold nothing are forgotten; at the end of an epoch, sparse ones turn lazy.

        `oldest` is the first window that is open for any group.
        """
        if not len(self._eager):
            return
        holds = np.isin(self._eager, self.partials.live_groups())
        progress = extent(self.spec, oldest - 1).end
        self._epoch = progress if self._epoch is None else self._epoch
        passed = progress - self._epoch
        if passed >= self.spec.size:
            duration = self._durations.latest
            volume = self._passed.astype(np.float64) * (duration / passed)
            holds &= prefers_eager(
                volume / _BACK,
                partial=self.partial_bytes,
                row=self.row_bytes,
                duration=duration,
                slide=self.spec.slide,
                lag=volume / _BACK * (self._sources.offset / duration),
            )
            self._passed[:] = 0
            self._epoch = progress
        self._eager, self._passed = self._eager[holds], self._passed[holds]

    def _join(self, groups: NDArray[np.int64]) -> None:
        eager = np.concatenate([self._eager, groups.astype(np.int32)])
        # A group that joins in the midst of an epoch is given the benefit of the doubt.
        many = np.full(len(groups), np.iinfo(np.uint32).max // 2, dtype=np.uint32)
        passed = np.concatenate([self._passed, many])
        order = np.argsort(eager)
        self._eager, self._passed = eager[order], passed[order]


@compiled
def _count_windows(groups, low, high, windows):  # type: ignore[no-untyped-def]
    """Windows in the union of intervals, which ascend within each group."""
    reached = low[0]
    for i in range(groups.shape[0]):
        if i == 0 or groups[i] != groups[i - 1]:
            reached = low[i]
        begin = max(low[i], reached)
        if high[i] > begin:
            windows[groups[i]] += high[i] - begin
            reached = high[i]
