"""Asking on demand: an answer now, from what a register has stored.

``[RANGE 10 minutes WATTR ts]`` is the window of that size that ends with the pane of the newest
row; it is exact where it begins with a pane, and refused elsewhere. ``[ROWS 500]`` are the last
rows, of those that a tail keeps.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
import pyarrow as pa

from panes.admit.arrival import Arrival
from panes.answers.select import projected, selected
from panes.axis import BEGINNING, format_duration
from panes.errors import QueryError
from panes.pipelines.sliding import SlidingPipeline
from panes.planning.plan import Plan
from panes.register.roll_together import Due, Finish, answer
from panes.register.shape import Member
from panes.register.shared_store import SharedStore
from panes.windows.families import next_edge
from panes.windows.spec import Sliding


class RowTail:
    """The last rows of a stream, at least so many, as they came."""

    def __init__(self, keep: int) -> None:
        self.keep = keep
        self.arrived = 0
        self._batches: deque[pa.Table] = deque()

    def __len__(self) -> int:
        return sum(len(b) for b in self._batches)

    def push(self, rows: pa.Table) -> None:
        """Take in rows; batches that are no longer needed are dropped."""
        self.arrived += len(rows)
        self._batches.append(rows.slice(max(0, len(rows) - self.keep)))
        while len(self) - len(self._batches[0]) >= self.keep and len(self._batches) > 1:
            self._batches.popleft()

    def last(self, count: int) -> pa.Table:
        """The last rows, at most so many."""
        every = pa.concat_tables(self._batches)
        return every.slice(max(0, len(every) - count)).combine_chunks()


def ask_rows(bound: Plan, tail: RowTail, count: int) -> pa.Table:
    """The answer over the last `count` rows: one window, from the rows themselves."""
    if count > tail.keep:
        raise QueryError(
            f"the last {count} rows are asked for, and {tail.keep} are kept",
            hint=f"panes.register(..., keep_rows={count})",
        )
    spec = Sliding(size=count, slide=count, origin=tail.arrived)
    bound = replace(bound, window=replace(bound.window, spec=spec))
    rows = tail.last(count) if tail.arrived else None
    pipeline = SlidingPipeline(bound)
    if rows is not None:
        kept, columns = bound.rows(rows)
        at = np.arange(len(rows)) if kept is None else kept
        pipeline.add(Arrival(at + tail.arrived - len(rows), columns))
    return projected(bound, pipeline.close_all())


def ask_panes(bound: Plan, store: SharedStore, size: int, newest: int) -> pa.Table:
    """The answer over the window of `size` that ends with the pane of the newest row."""
    found = answer_now(bound, store, size, newest, selected)
    return bound.schema().empty_table() if found is None else found


def answer_now(
    bound: Plan, store: SharedStore, size: int, newest: int, finish: Finish
) -> pa.Table | None:
    """The same, finished as `finish` does; None if the window holds no row."""
    if newest == BEGINNING:
        return None
    end = min(int(next_edge(f.slide, f.phase, newest)) for f in store.cut.families)
    start = end - size
    _require_edge(bound, store, start, end)
    shape = store.shape_of(bound, newest)
    try:
        since = max(store.since[n] for n in store.needed_by(shape))
        if max(since, store.evicted_before) > start:
            raise _not_stored(bound, since == newest + 1)
        spec = Sliding(size=size, slide=size, origin=end)
        shape.add(Member("asked", spec, None, BEGINNING))
        due = Due(shape, np.array([0]), np.array([-1]), np.array([0]))
        found = [portion.table for portion in answer(store, [due], finish) if portion.names]
    finally:
        store.trim(shape)
    return found[0] if found else None


def _require_edge(bound: Plan, store: SharedStore, start: int, end: int) -> None:
    """Refuse a window that begins inside a pane, and name sizes that do not."""
    cuts = [c for c in store.cuts_at(start) if int(c.pane_start(np.array([start]))[0]) != start]
    if not cuts:
        return
    longer = end - int(cuts[0].pane_start(np.array([start]))[0])
    shorter = end - min(int(next_edge(f.slide, f.phase, start)) for f in cuts[0].families)
    sizes = [s for s in (shorter, longer) if s > 0]
    is_time = bound.axis.kind == "time"
    shown = " or ".join(format_duration(s) if is_time else str(s) for s in sizes)
    raise QueryError(
        f"a window of that size would begin at {bound.axis.format(start)}, inside a pane",
        hint=f"RANGE {shown} is exact; what reg.prepare(..., within=10) keeps knows any by an "
        "interval",
    )


def _not_stored(bound: Plan, is_missing: bool) -> QueryError:
    calls = ", ".join(call.sql for call in bound.query.calls)
    if is_missing:
        return QueryError(
            f"nothing is stored that answers {calls} with that filter",
            hint="add a query that needs it; it is answered from the rows to come",
        )
    return QueryError(
        f"panes do not reach back far enough to answer {calls}",
        hint="add a query with a RANGE as long; it is answered from the rows to come",
    )
