"""Rows to answers, for windows that close for all keys at the same progress.

A `Pipeline` owns the state of one query: its partials, and which windows are still open. It
knows nothing of streams, lateness or clocks; whoever drives it says how far the stream is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.algebra.monoid import Columns
from panes.answers.lower import lowered_windows
from panes.arrays.radix import number_pairs
from panes.axis import BEGINNING
from panes.planning.plan import Plan
from panes.stores.adaptive import Sources
from panes.stores.keyed_panes import KeyedPanes, PartOf, inside
from panes.stores.parcel import Parcel
from panes.stores.rolled import WindowPartials
from panes.stores.store import Store, StoreName, WindowStore, window_store
from panes.windows.extent import extent, first_wid, last_wid, ruler, windows_closed, windows_reached
from panes.windows.spec import Landmark, PanedSpec
from panes.windows.tag import tagged

StoreT = TypeVar("StoreT", bound=Store)


class Progressing(Generic[StoreT]):
    """What pipelines of all kinds share: their store, and how far the stream is.

    `first_open` is where open windows begin, as each kind counts them; `newest` is the greatest
    position of any row.
    """

    def __init__(self, plan: Plan, spec: PanedSpec, store: StoreT) -> None:
        self.plan, self.spec = plan, spec
        self.store = store
        self.first_open = BEGINNING
        self.newest = BEGINNING

    def resume(self, first_open: int, newest: int) -> None:
        """Go on where another pipeline of this plan stopped; its parcels are to be taken in."""
        self.first_open, self.newest = first_open, newest

    def reach(self, newest: int) -> None:
        """A row at `newest` has come somewhere in the stream, here or at another host."""
        self.newest = max(self.newest, newest)

    @property
    def panes(self) -> KeyedPanes:
        """The pane store: the only one that is handed from host to host."""
        assert isinstance(self.store, KeyedPanes)
        return self.store

    def _lowered(self, found: WindowPartials | None) -> pa.Table:
        """Windows, keys and lowered aggregates, under their numbers."""
        return lowered_windows(self.plan, self.spec, found)

    def split(self, part_of: PartOf) -> dict[int, Parcel]:
        """Everything stored, part by part: `part_of` tells the part of each pane and group."""
        return self.panes.split(part_of)


class Pipeline(Progressing[WindowStore]):
    """The state of one query over one (united) stream."""

    def __init__(
        self,
        plan: Plan,
        *,
        origin: int | None = None,
        store: StoreName = "panes",
        sources: Sources | None = None,
        keep: int | None = 0,
    ) -> None:
        """`keep` is how far behind progress closed windows can still be revised; None: always."""
        spec = plan.spec
        if origin is not None:
            spec = replace(spec, origin=spec.origin + origin)
        super().__init__(plan, spec, window_store(store, plan.contents, spec, sources))
        self._keep = keep
        self.first_kept = BEGINNING

    def add(self, at: NDArray[np.int64], columns: Sequence[pa.Array]) -> None:
        """Take in rows: positions, and the plan's projected columns."""
        at, columns = inside(self.spec, at, columns)
        if len(at):
            self.store.add(at, columns)
            self.reach(int(at.max()))

    def has_open_window(self, at: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which positions belong to a window that is still open."""
        if isinstance(self.spec, Landmark):
            return np.ones(len(at), dtype=np.bool_)
        newest: NDArray[np.int64] = last_wid(at, *ruler(self.spec))
        return newest >= self._needed

    def close(self, progress: int, *, in_order: bool = True) -> pa.Table:
        """Answer the windows that end at or before `progress`, and forget what they alone stored.

        Answers are given before the SELECT's expressions: windows, keys, lowered aggregates.
        """
        if self._keep is not None:
            kept = windows_closed(self.spec, progress - self._keep)
            self.first_kept = max(self.first_kept, kept)
        return self._close_before(windows_closed(self.spec, progress), in_order=in_order)

    def close_all(self, *, in_order: bool = True) -> pa.Table:
        """The same for every window that holds a row."""
        if self.newest == BEGINNING:
            return self.plan.lowered_schema().empty_table()
        reached = windows_reached(self.spec, self.newest)
        self.first_kept = reached
        return self._close_before(reached, in_order=in_order)

    @property
    def _needed(self) -> int:
        """The first window of which anything is needed: open, or closed and still revised."""
        return self.first_open if self._keep == 0 else self.first_kept

    def open_windows(self) -> pa.Table:
        """The windows that are still open, as they are now, before the SELECT's expressions."""
        if self.newest == BEGINNING:
            return self.plan.lowered_schema().empty_table()
        reached = windows_reached(self.spec, self.newest)
        return self._lowered(self.store.roll(self.first_open, max(reached, self.first_open)))

    def revised(self, at: NDArray[np.int64], keys: Sequence[pa.Array]) -> pa.Table:
        """The closed windows that hold rows at these positions, as they are now.

        The rows have been taken in; `keys` are their grouping columns.
        """
        pairs = list(tagged(self.spec, at, self.first_kept, self.first_open))
        if not pairs:
            return self.plan.lowered_schema().empty_table()
        row, wid = (np.concatenate(side) for side in zip(*pairs, strict=True))
        group = self.store.number(keys, len(at))[row]
        _, groups, wids = number_pairs(group.astype(np.int64), wid)
        named, begins = np.unique(groups, return_index=True)
        return self._lowered(self.store.roll_named(named, np.append(begins, len(groups)), wids))

    @property
    def ended(self) -> int:
        """Where the last window that was closed ends."""
        return extent(self.spec, self.first_open - 1).end

    def close_each(
        self, before: NDArray[np.int64], now: NDArray[np.int64], general: int
    ) -> pa.Table:
        """As `close`, where each group has its own progress: what it was, and what it is now.

        `general` is what is promised of every group, those yet to come too.
        """
        _, slide, origin = ruler(self.spec)
        closed, closes = first_wid(before, slide, origin), first_wid(now, slide, origin)
        first = np.maximum(closed, self.first_open)
        end = np.maximum(closes, first)
        self.first_open = max(self.first_open, windows_closed(self.spec, general))
        if self.newest == BEGINNING:
            return self.plan.lowered_schema().empty_table()
        reached = windows_reached(self.spec, self.newest)
        answers = self._lowered(self.store.roll(first, np.maximum(np.minimum(end, reached), first)))
        self.store.evict(end)
        return answers

    def closes_any(self, progress: int) -> bool:
        """Whether `progress` closes a window that was open."""
        return windows_closed(self.spec, progress) > self.first_open

    def add_partials(
        self, starts: NDArray[np.int64], keys: Sequence[pa.Array], partials: Sequence[Columns]
    ) -> None:
        """Take in partials that another host filled, one per pane and key or several."""
        self.panes.add_partials(starts, keys, partials)
        self.reach(int(starts.max(initial=BEGINNING)))

    def take(self, parcels: Sequence[Parcel]) -> None:
        """Take in what other pipelines of this plan handed over, as far as it is still needed."""
        starts = self.panes.take(parcels, self.has_open_window)
        self.reach(int(starts.max(initial=BEGINNING)))

    def _close_before(self, end: int, *, in_order: bool) -> pa.Table:
        answers = self.plan.lowered_schema().empty_table()
        if self.newest == BEGINNING:
            self.first_open = max(self.first_open, end)
            return answers
        end_due = min(end, windows_reached(self.spec, self.newest))
        if end_due > self.first_open:
            answers = self._lowered(self.store.roll(self.first_open, end_due, in_order=in_order))
        # A landmark window past the last row is answered only once a later row makes it count.
        reached = end_due if isinstance(self.spec, Landmark) else end
        if reached > self.first_open:
            self.first_open = reached
            if self._needed != BEGINNING and self.store.evict(self._needed):
                self.store.forget_keys()
        return answers
