"""AdaptWID: eager or lazy, group by group, whichever takes less memory (thesis 6.3).

Every group begins lazy: its rows are buffered. Once they take more than the partials of the windows
they are in, the group turns eager. An eager group through which fewer rows pass than the partials
are worth turns lazy again; until its partials are answered it is *in transition*, and its windows
are answered from both sides. Two thresholds, the second at half of the first, keep a group from
going back and forth.

Of a lazy group everything is known, so it is weighed exactly. Of an eager one only what passes
through is counted, from one epoch (the length of a window) to the next, and Cond. 6.9 decides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.arrays.ordering import number_pairs
from panes.axis import FOREVER
from panes.stores.contents import Contents
from panes.stores.cost import prefers_eager
from panes.stores.durations import ArrivalSkew, Durations
from panes.stores.row_buffer import BufferedRows
from panes.stores.rows_and_partials import RowsAndPartials
from panes.stores.wid import Wid
from panes.windows.cover import Wids
from panes.windows.cut import cut
from panes.windows.extent import extent
from panes.windows.spec import PanedSpec
from panes.windows.tag import window_bounds

_BACK = 0.5


class AdaptWid(Wid):
    """Rows of lazy groups, partials of eager ones, both of those in transition."""

    def __init__(
        self, contents: Contents, spec: PanedSpec, skew: ArrivalSkew | None = None
    ) -> None:
        super().__init__(contents, spec)
        self._skew = ArrivalSkew() if skew is None else skew
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
        """The number of groups that are eager."""
        return len(self._eager)

    def receive(self, rows: BufferedRows) -> None:
        self._durations.saw(int(rows.at.min()), int(rows.at.max()), self.first_open)
        index = np.searchsorted(self._eager, rows.groups)
        is_eager = np.zeros(len(rows), dtype=np.bool_)
        if len(self._eager):
            is_eager = self._eager[np.minimum(index, len(self._eager) - 1)] == rows.groups
        if is_eager.any():
            passing = np.bincount(index[is_eager], minlength=len(self._eager))
            self._passed = self._passed + passing.astype(np.uint32)
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
        buffered = self.buffer.everything()
        if buffered is None:
            return
        taken = np.bincount(buffered.groups) * self.row_bytes
        may_turn = np.zeros(len(taken), dtype=np.bool_)
        may_turn[touched] = taken[touched] > self.partial_bytes
        rows = np.flatnonzero(may_turn[buffered.groups])
        if not len(rows):
            return
        heavy = buffered.taken(rows)
        windows = self._open_windows(heavy, len(taken))
        would_take = windows * self.partial_bytes_of(heavy, heavy.groups, len(taken))
        turning = (taken > would_take) & (windows > 0)
        if turning.any():
            which = turning[buffered.groups]
            self.put(buffered.taken(np.flatnonzero(which)), self.first_open, FOREVER)
            self.buffer.keep(~which)
            self._join(np.flatnonzero(turning))

    def _open_windows(self, rows: BufferedRows, groups: int) -> NDArray[np.int64]:
        """The number of open windows that hold some of these rows, group by group."""
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
                lag=volume / _BACK * (self._skew.offset / duration),
            )
            self._passed = np.zeros_like(self._passed)
            self._epoch = progress
        self._eager, self._passed = self._eager[holds], self._passed[holds]

    def _join(self, groups: NDArray[np.int64]) -> None:
        eager = np.concatenate([self._eager, groups.astype(np.int32)])
        # A group that joins in the midst of an epoch is given the benefit of the doubt.
        many = np.full(len(groups), np.iinfo(np.uint32).max // 2, dtype=np.uint32)
        passed = np.concatenate([self._passed, many])
        order = np.argsort(eager)
        self._eager, self._passed = eager[order], passed[order]


class AdaptivePanes(RowsAndPartials):
    """Rows of sparse panes, partials of dense ones: whichever is smaller (thesis 6.3.4).

    A pane only fills until it is closed, so a pair of a pane and a group begins with rows, turns
    into a partial once its rows take more than that, and never turns back.
    """

    def __init__(self, contents: Contents, spec: PanedSpec) -> None:
        super().__init__(contents, spec, spec)
        self._cut = cut(spec)

    def receive(self, rows: BufferedRows) -> None:
        self.buffer.add(rows)
        buffered = self.buffer.everything()
        assert buffered is not None
        pairs, starts, groups = number_pairs(self._cut.pane_start(buffered.at), buffered.groups)
        taken = np.bincount(pairs) * self.row_bytes
        turning = taken > self.partial_bytes_of(buffered, pairs, len(starts))
        turning |= self.partials.holds(starts, groups)
        if turning.any():
            which = turning[pairs]
            turned = buffered.taken(np.flatnonzero(which))
            self.partials.add(turned.at, turned.columns, turned.groups)
            self.buffer.keep(~which)

    def put(self, rows: BufferedRows, first: Wids, end: Wids) -> None:  # noqa: ARG002
        """Fill the panes under the windows with these rows; buffered rows lie in no older ones."""
        high = extent(self.spec, int(np.max(end)) - 1).end
        under = rows.taken(np.flatnonzero(rows.at < high))
        if len(under):
            self.partials.add(under.at, under.columns, under.groups)


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
