"""The tail of a stream: its last rows as they came, for questions that count rows.

Invariant: a tail has the last `keep` rows that arrived, or all of them if there were fewer; after
a restart, those of them that had been kept. All rows at or after `known_from` are among them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.answers.select import projected
from panes.asking.refusals import no_rows, not_known_yet, too_few_rows
from panes.axis import ARRIVAL, BEGINNING
from panes.nodes.arrival import Arrival
from panes.nodes.sliding import SlidingPipeline
from panes.planning.plan import Plan
from panes.windows.spec import Sliding

Came = tuple[NDArray[np.int64], pa.Table]
"""The positions of rows, and the rows."""


class RowTail:
    """The last rows of a stream, at most so many, as they came."""

    def __init__(self, keep: int) -> None:
        self.keep = keep
        self.arrived = 0
        self.known_from = BEGINNING
        self.batches: deque[Came] = deque()
        self._held = 0

    def __len__(self) -> int:
        return self._held

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and their positions."""
        return sum(at.nbytes + rows.nbytes for at, rows in self.batches)

    def push(self, at: NDArray[np.int64], rows: pa.Table) -> None:
        """Take in rows; those that are too many go."""
        if not len(rows):
            return
        self.arrived += len(rows)
        self._held += len(rows)
        self.batches.append((at, rows))
        while self._held > self.keep:
            at, rows = self.batches.popleft()
            gone = min(self._held - self.keep, len(at))
            if gone < len(at):
                self.batches.appendleft((at[gone:], rows.slice(gone)))
            self.known_from = max(self.known_from, int(at[:gone].max(initial=BEGINNING)) + 1)
            self._held -= gone

    def resume(self, arrived: int, known_from: int) -> None:
        """So many rows had arrived when what has been pushed was saved, and this was known."""
        self.arrived, self.known_from = arrived, max(self.known_from, known_from)

    def last(self, count: int) -> pa.Table:
        """The last rows, at most so many; there is one."""
        every = pa.concat_tables(rows for _, rows in self.batches)
        return every.slice(max(0, len(every) - count)).combine_chunks()

    def has(self, count: int) -> bool:
        """Whether the last rows are there, if so many have come."""
        return count <= self.keep and (count <= self._held or self._held == self.arrived)


def require_rows(tail: RowTail | None, count: int, hint: str) -> RowTail:
    """The tail, if it has the last `count` rows; the `hint` is for where none are kept."""
    if tail is None:
        raise no_rows(hint)
    if count > tail.keep:
        raise too_few_rows(count, tail.keep)
    if not tail.has(count):
        raise not_known_yet(ARRIVAL, tail.arrived - count, tail.arrived - len(tail))
    return tail


def ask_rows(plan: Plan, tail: RowTail | None, count: int, hint: str) -> pa.Table:
    """The answer over the last `count` rows: one window, from the rows themselves.

    The `hint` says what to do if no rows are there.
    """
    tail = require_rows(tail, count, hint)
    spec = Sliding(size=count, slide=count, origin=tail.arrived)
    plan = replace(plan, window=replace(plan.window, spec=spec))
    pipeline = SlidingPipeline(plan)
    if len(tail):
        rows = tail.last(count)
        passing, columns = plan.rows(rows)
        at = np.arange(len(rows)) if passing is None else passing
        pipeline.add(Arrival(at + tail.arrived - len(rows), columns))
    return projected(plan, pipeline.close_all())
