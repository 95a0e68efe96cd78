"""The tail of a stream: its last rows as they came, for questions that count rows.

Invariant: a tail has the last `keep` rows that arrived, or all of them if there were fewer.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
import pyarrow as pa

from panes.admit.arrival import Arrival
from panes.answers.select import projected
from panes.asking.refusals import no_rows, too_few_rows
from panes.pipelines.sliding import SlidingPipeline
from panes.planning.plan import Plan
from panes.windows.spec import Sliding


class RowTail:
    """The last rows of a stream, at least so many, as they came."""

    def __init__(self, keep: int) -> None:
        self.keep = keep
        self.arrived = 0
        self._batches: deque[pa.Table] = deque()

    def __len__(self) -> int:
        return sum(len(b) for b in self._batches)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return sum(batch.nbytes for batch in self._batches)

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


def ask_rows(plan: Plan, tail: RowTail | None, count: int, hint: str) -> pa.Table:
    """The answer over the last `count` rows: one window, from the rows themselves.

    The `hint` says what to do if no rows are there.
    """
    if tail is None:
        raise no_rows(hint)
    if count > tail.keep:
        raise too_few_rows(count, tail.keep)
    spec = Sliding(size=count, slide=count, origin=tail.arrived)
    plan = replace(plan, window=replace(plan.window, spec=spec))
    pipeline = SlidingPipeline(plan)
    if tail.arrived:
        rows = tail.last(count)
        passing, columns = plan.rows(rows)
        at = np.arange(len(rows)) if passing is None else passing
        pipeline.add(Arrival(at + tail.arrived - len(rows), columns))
    return projected(plan, pipeline.close_all())
