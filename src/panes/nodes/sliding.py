"""Sliding, tumbling and landmark windows, which close in the order of their ends.

Windows before `first_open` are answered and never change again, unless late rows revise them: then
those from `first_revisable` on are still stored, and answered again when a row changes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.monoid import Columns
from panes.arrays.ordering import number_pairs
from panes.axis import BEGINNING
from panes.nodes.arrival import Arrival
from panes.nodes.pipeline import StorePipeline
from panes.nodes.promises import Promised
from panes.planning.plan import Plan
from panes.stores.by_name import StoreName, window_store
from panes.stores.durations import ArrivalSkew
from panes.stores.keyed_panes import KeyedPanes, inside
from panes.stores.parcel import Parcel
from panes.stores.store import WindowStore
from panes.windows.extent import extent, first_wid, ruler, windows_closed, windows_reached
from panes.windows.spec import Landmark, Sliding
from panes.windows.tag import tagged


class SlidingPipeline(StorePipeline):
    """The state of one query over windows of one size, or over ever growing ones."""

    store: WindowStore

    def __init__(
        self,
        plan: Plan,
        *,
        origin: int | None = None,
        store: StoreName = "panes",
        skew: ArrivalSkew | None = None,
        revisable: int | None = 0,
    ) -> None:
        """`origin` moves all windows.

        `revisable` is how far behind progress closed windows can still be revised; None: always.
        """
        spec = plan.spec
        if origin is not None:
            spec = replace(spec, origin=spec.origin + origin)
        super().__init__(plan, spec)
        self.store = window_store(store, plan.contents, spec, skew)
        self._revisable = revisable
        self.first_revisable = BEGINNING

    def add(self, arrival: Arrival) -> None:
        """Take in the rows that pass, as far as any window holds them."""
        at, columns = inside(self.spec, arrival.passing_at, arrival.columns)
        if len(at):
            self.store.add(at, columns)
            self.reach(int(at.max()))

    @property
    def open_from(self) -> int:
        """Where the first window starts that is open or can be revised."""
        if isinstance(self.spec, Landmark) or self.first_needed == BEGINNING:
            return BEGINNING
        return extent(self.spec, self.first_needed).start

    @property
    def next_end(self) -> int:
        """Where the first open window ends."""
        if self.first_open == BEGINNING:
            return BEGINNING
        return extent(self.spec, self.first_open).end

    @property
    def closing_at_ends(self) -> Sliding | None:
        """The windows, unless they are landmarks: there, a later row frees answers that wait."""
        return None if isinstance(self.spec, Landmark) else self.spec

    def close(self, progress: int, *, in_order: bool = True) -> pa.Table:
        """Answer the windows that end at or before `progress`, and forget what only they needed."""
        if self._revisable is not None:
            first = windows_closed(self.spec, progress - self._revisable)
            self.first_revisable = max(self.first_revisable, first)
        return self._close_before(windows_closed(self.spec, progress), in_order=in_order)

    def close_all(self, *, in_order: bool = True) -> pa.Table:
        """The same for every window that holds a row."""
        if self.newest == BEGINNING:
            return self._nothing()
        reached = windows_reached(self.spec, self.newest)
        self.first_revisable = reached
        return self._close_before(reached, in_order=in_order)

    def close_in_steps(self, progress: int) -> Iterator[pa.Table]:
        """As `close`, a few windows with each step."""
        yield from self._steps_before(windows_closed(self.spec, progress))
        yield self.close(progress)

    def close_all_in_steps(self) -> Iterator[pa.Table]:
        """As `close_all`, a few windows with each step."""
        if self.newest != BEGINNING:
            yield from self._steps_before(windows_reached(self.spec, self.newest))
        yield self.close_all()

    @property
    def first_needed(self) -> int:
        """The first window of which anything is needed: it is open, or can be revised."""
        return self.first_open if self._revisable == 0 else self.first_revisable

    def resume(self, first_open: int, newest: int, first_needed: int = BEGINNING) -> None:
        """Go on where another pipeline of this plan stopped; its parcels are to be taken in."""
        super().resume(first_open, newest)
        self.first_revisable = first_needed

    def open_windows(self) -> pa.Table:
        """The windows that are still open, as they are now."""
        if self.newest == BEGINNING:
            return self._nothing()
        reached = windows_reached(self.spec, self.newest)
        return self._lowered(self.store.roll(self.first_open, max(reached, self.first_open)))

    def revised(self, at: NDArray[np.int64], keys: Sequence[pa.Array]) -> pa.Table:
        """The closed windows that hold rows at these positions, as they are now.

        The rows have been taken in; `keys` are their grouping columns.
        """
        pairs = list(tagged(self.spec, at, self.first_revisable, self.first_open))
        if not pairs:
            return self._nothing()
        row, wid = (np.concatenate(side) for side in zip(*pairs, strict=True))
        group = self.store.number(keys, len(at))[row]
        _, groups, wids = number_pairs(group.astype(np.int64), wid)
        named, begins = np.unique(groups, return_index=True)
        return self._lowered(self.store.roll_named(named, np.append(begins, len(groups)), wids))

    @property
    def ended(self) -> int:
        """Where the last window that was closed ends."""
        return extent(self.spec, self.first_open - 1).end

    def close_each(self, before: Promised, now: Promised) -> pa.Table:
        """As `close`, where each group has its own progress: what it was, and what it is now.

        Groups yet to come have the progress of all.
        """
        _, slide, origin = ruler(self.spec)
        keys, count = self.store.key_columns, self.store.keys
        closed = first_wid(before.of_groups(keys, count), slide, origin)
        closes = first_wid(now.of_groups(keys, count), slide, origin)
        first = np.maximum(closed, self.first_open)
        end = np.maximum(closes, first)
        self.first_open = max(self.first_open, windows_closed(self.spec, now.progress))
        if self.newest == BEGINNING:
            return self._nothing()
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

    def _steps_before(self, end: int) -> Iterator[pa.Table]:
        """Close what is before a window, but for the last step."""
        if self.newest == BEGINNING or not isinstance(self.store, KeyedPanes):
            return
        end_due = min(end, windows_reached(self.spec, self.newest))
        for pause in self._pauses(self.store, self.first_open, end_due):
            yield self._close_before(pause, in_order=True)

    def _close_before(self, end: int, *, in_order: bool) -> pa.Table:
        answers = self._nothing()
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
            if self.first_needed != BEGINNING and self.store.evict(self.first_needed):
                self.store.forget_keys()
        return answers
