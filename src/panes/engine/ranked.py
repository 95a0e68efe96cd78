"""Partitioned row windows: each partition counts its own rows, and closes its own windows.

A row's position is its rank inside its partition, so the windows are sliding windows over ranks
and share the panes of all others. Only progress is different: it is the number of rows that a
partition has had (thesis 5.1.3).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.engine.arrival import Arrival, Ranks
from panes.engine.groups import Groups
from panes.engine.partials import Partials
from panes.engine.pipeline import projected
from panes.planning.plan import Plan
from panes.windows.extent import first_wid


class RankedPipeline:
    """The state of one query over partitioned rows."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.spec = plan, plan.spec
        self.held = Partials(plan, self.spec)
        self._partitions = Groups([plan.row_types[c] for c in plan.partition_columns])
        self._ranks = Ranks()
        self._partition_of = np.zeros(0, dtype=np.int64)
        self._first_open = np.zeros(0, dtype=np.int64)

    def add(self, arrival: Arrival) -> None:
        """Take in rows, each at its rank."""
        partition = self._partitions.encode(arrival.partition, len(arrival.at))
        ranks = self._ranks.take(partition)[arrival.kept]
        at, columns = self.held.inside(ranks, arrival.columns)
        if len(at):
            self.held.add(at, columns)
            self._meet()

    def _meet(self) -> None:
        """Note which partition the new groups belong to: the first keys are its columns."""
        known = len(self._partition_of)
        new = np.arange(known, self.held.keys)
        if len(new):
            keys = self.held.key_values(new)[: len(self.plan.partition_columns)]
            self._partition_of = np.r_[self._partition_of, self._partitions.encode(keys, len(new))]
            self._first_open = np.r_[self._first_open, np.zeros(len(new), dtype=np.int64)]

    def has_open_window(self, at: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Every row is the newest of its partition."""
        return np.ones(len(at), dtype=np.bool_)

    def advance(self, _progress: int = 0) -> pa.Table:
        """Answer the windows whose last row has come."""
        if not len(self._partition_of):
            return self.plan.schema().empty_table()
        counted = self._ranks.count[self._partition_of]
        end_due = first_wid(counted, self.spec.slide, self.spec.origin)
        answers = self.held.answer(self._first_open, end_due)
        if len(answers):
            self.held.evict(end_due)
        self._first_open = end_due
        return projected(self.plan, answers)

    def finish(self) -> pa.Table:
        """A window that is not full when the stream ends has no answer."""
        return self.advance()
