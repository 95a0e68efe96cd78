"""Row windows whose rows are numbered here: those of a partition, and those a column orders.

A row's position is its rank inside its partition, so the windows are sliding windows over ranks
and share the panes of all others. Only progress is different: it is the number of rows that a
partition has had (thesis 5.1.3). Where a column orders the rows, they wait until progress on that
column has passed them, and are numbered then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.key_numbers import KeyNumbers
from panes.axis import FOREVER
from panes.nodes.arrival import Arrival
from panes.nodes.pipeline import StorePipeline
from panes.nodes.ranks import Ranks
from panes.planning.plan import Plan
from panes.stores.by_name import StoreName, window_store
from panes.stores.durations import ArrivalSkew
from panes.stores.keyed_panes import KeyedPanes, inside
from panes.stores.parcel import Parcel
from panes.stores.store import WindowStore
from panes.stores.waiting_rows import OpenRows, Waiting, arrays, numbered
from panes.windows.extent import first_wid


class RankedRowsPipeline(StorePipeline):
    """The state of one query over rows that it numbers itself."""

    store: WindowStore

    def __init__(
        self, plan: Plan, *, store: StoreName = "panes", skew: ArrivalSkew | None = None
    ) -> None:
        super().__init__(plan, plan.spec)
        self.store = window_store(store, plan.contents, plan.spec, skew)
        self._waiting = OpenRows()
        self._partitions = KeyNumbers([plan.row_types[c] for c in plan.partition_columns])
        self._ranks = Ranks()
        self._partition_of = np.zeros(0, dtype=np.int64)
        self._answered = np.zeros(0, dtype=np.int64)

    @property
    def waiting(self) -> int:
        """How many rows wait to be numbered."""
        return len(self._waiting)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the rows that wait, and of the number of rows each partition has had."""
        counted = (self._ranks.count, self._partition_of, self._answered)
        return self._waiting.nbytes + self._partitions.nbytes + sum(a.nbytes for a in counted)

    def add(self, arrival: Arrival) -> None:
        """Take in rows; those behind progress are left out, for their rank is taken."""
        partition = self._partitions.encode(arrival.partition, len(arrival.at))
        passing = arrival.passing_rows
        row = np.full(len(arrival.at), -1, dtype=np.int64)
        row[passing] = np.arange(len(passing))
        rows = Waiting(arrival.at, partition, row, tuple(arrival.columns))
        if self.plan.order is None:
            self._number(rows)
            return
        if len(rows):
            self.reach(int(arrival.at.max()))
        in_time = arrival.at >= self.first_open
        self._waiting.add(rows if in_time.all() else rows.taken(in_time))

    def _number(self, rows: Waiting) -> None:
        """Give rows their ranks, in the order they are in."""
        ranks = self._ranks.take(rows.group)[rows.row >= 0]
        at, columns = inside(self.spec, ranks, rows.columns)
        if len(at):
            self.store.add(at, columns)
            self._meet()

    def _meet(self) -> None:
        """Note which partition the new groups belong to: the first keys are its columns."""
        new = np.arange(len(self._partition_of), self.store.keys)
        if len(new):
            keys = self.store.key_values(new)[: len(self.plan.partition_columns)]
            partition = self._partitions.encode(keys, len(new))
            self._partition_of = np.r_[self._partition_of, partition]
            self._ranks.meet(len(self._partitions))
            self._answered = np.r_[self._answered, np.zeros(len(new), dtype=np.int64)]

    @property
    def open_from(self) -> int:
        """No row that comes late has a window: its rank is taken."""
        return FOREVER

    def close_all(self, *, in_order: bool = True) -> pa.Table:
        """The same for all rows. A window that is not full when the stream ends has no answer."""
        return self.close(self.ended, in_order=in_order)

    def close_all_in_steps(self) -> Iterator[pa.Table]:
        """As `close_all`, a few windows with each step."""
        return self.close_in_steps(self.ended)

    def close_in_steps(self, progress: int) -> Iterator[pa.Table]:
        """As `close`, a few windows with each step."""
        end_due = self._end_due(progress)
        if len(end_due) and isinstance(self.store, KeyedPanes):
            first, end = int(self._answered.min()), int(end_due.max())
            for pause in self._pauses(self.store, first, end):
                yield self._answers_before(np.minimum(end_due, pause), in_order=True)
        yield self._answers_before(end_due, in_order=True)

    def close(self, progress: int, *, in_order: bool = True) -> pa.Table:
        """Number the rows before `progress`, and answer the windows whose last row has come."""
        return self._answers_before(self._end_due(progress), in_order=in_order)

    def _end_due(self, progress: int) -> NDArray[np.int64]:
        """Number the rows before `progress`; gives for each group where its full windows end."""
        self.first_open = max(self.first_open, progress)
        self._number(self._waiting.due(progress))
        counted = self._ranks.count[self._partition_of]
        end_due: NDArray[np.int64] = first_wid(counted, self.spec.slide, self.spec.origin)
        return end_due

    def _answers_before(self, end_due: NDArray[np.int64], *, in_order: bool) -> pa.Table:
        """Answer the windows before that of each group, which is not yet answered."""
        if not len(end_due):
            return self._nothing()
        end_due = np.maximum(end_due, self._answered)
        answers = self._lowered(self.store.roll(self._answered, end_due, in_order=in_order))
        if len(answers):
            self.store.evict(end_due if self.plan.partition_columns else int(end_due[0]))
        self._answered = end_due
        return answers

    @property
    def ended(self) -> int:
        """The progress that has passed every row."""
        return self.newest + 1

    def closes_any(self, progress: int) -> bool:
        """Whether `progress` may number a row that waits."""
        return progress > self.first_open

    def take(self, parcels: Sequence[Parcel]) -> None:
        """Take in what another pipeline of this plan handed over."""
        self.panes.take(parcels, lambda starts: np.ones(len(starts), dtype=np.bool_))
        self._meet()
        counted = self._ranks.count[self._partition_of]
        self._answered = first_wid(counted, self.spec.slide, self.spec.origin)

    def tables(self) -> dict[str, pa.Table]:
        """What is stored beside panes: rows that wait, and how many each partition has had."""
        keys = self._partitions.columns(np.arange(len(self._ranks.count)))
        count = pa.table({"count": pa.array(self._ranks.count), **numbered(keys)})
        return {"counts": count, **self._waiting.tables(self._partitions.columns)}

    def put_back(self, tables: Mapping[str, pa.Table]) -> None:
        """Take in what `tables` gave, in a pipeline that is still empty."""
        count, *keys = arrays(tables["counts"])
        self._ranks.restore(self._partitions.encode(keys, len(count)), count.to_numpy())
        self._waiting.put_back(tables, self._partitions.encode)
