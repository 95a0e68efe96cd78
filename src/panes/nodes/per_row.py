"""Per-row windows: a row's window reaches back from the row itself (thesis 5.1.5, 6.1.4).

    window of the row at d  =  rows at  d - size < at <= d  in its partition

Every position with a row is a pane: all rows of a partition there share one partial, which enters
the windows at its position and leaves them `size` later. No row is stored, only panes, and the
selected columns of rows whose window is not complete yet. When progress passes a row's position its
window is rolled from the panes under it, so rows may come in any order, and each pane is combined a
constant number of times however many windows hold it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.answers.lower import lower
from panes.arrays.compiled import compiled
from panes.arrays.ordering import sort
from panes.arrays.workers import workers
from panes.axis import BEGINNING
from panes.nodes.arrival import Arrival
from panes.nodes.pipeline import StorePipeline
from panes.nodes.ranks import Ranks
from panes.nodes.steps import row_pauses
from panes.planning.plan import Plan
from panes.stores.by_name import StoreName, position_store
from panes.stores.parcel import Parcel
from panes.stores.store import Store
from panes.stores.waiting_rows import OpenRows, Waiting, arrays, numbered
from panes.windows.spec import PerRow


class PerRowPipeline(StorePipeline):
    """The state of one query over per-row windows."""

    store: Store

    def __init__(self, plan: Plan, *, store: StoreName = "panes") -> None:
        spec = plan.window.spec
        assert isinstance(spec, PerRow)
        super().__init__(plan, plan.spec)
        self.store = position_store(store, plan.contents, plan.spec)
        self._window = spec
        self._ranks = Ranks()
        self._waiting = OpenRows()

    @property
    def _by_rank(self) -> bool:
        return self._window.every > 1 and self._window.counted_by == "rank"

    @property
    def waiting(self) -> int:
        """How many rows wait for their window to be complete."""
        return len(self._waiting)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the rows that wait, and of the number of rows each partition has had."""
        return self._waiting.nbytes + self._ranks.count.nbytes

    def add(self, arrival: Arrival) -> None:
        """Take in rows; those behind progress count in open windows but have none of their own."""
        group = self.store.number(arrival.partition, len(arrival.at))
        is_passing = np.zeros(len(arrival.at), dtype=np.bool_)
        is_passing[arrival.passing_rows] = True
        if len(arrival.at):
            self.reach(int(arrival.at.max()))
        wanted = arrival.at >= self.first_open
        if not self._by_rank:
            wanted &= is_passing
            if self._window.every > 1:
                wanted &= (self._ranks.take(group) + 1) % self._window.every == 0
        # From here on in the order of positions: bins fill faster so, and answers need it.
        order, at = sort(arrival.at)
        moved = workers().submit(np.take, group, order)
        indexes, row, which = _in_order(is_passing, order)
        columns = list(workers().map(lambda c: c.take(indexes), arrival.columns))
        group = moved.result()
        if len(indexes):
            self.store.add(at[which], columns, group[which])
        everything = Waiting(at, group, row, tuple(columns[c] for c in self.plan.defining_columns))
        self._waiting.add(everything if wanted.all() else everything.taken(wanted[order]))

    @property
    def open_from(self) -> int:
        """The first position that the window of a row at or after progress reaches back to."""
        return self.first_open - self._window.size + 1

    def close_all(self, *, in_order: bool = True) -> pa.Table:
        """The same for all rows: nothing that comes later reaches back to them."""
        return self.close(self.newest + self._window.size, in_order=in_order)

    def close_in_steps(self, progress: int) -> Iterator[pa.Table]:
        """As `close`, the windows of some rows with each step."""
        for pause in row_pauses(self._waiting.positions(), self.first_open, progress):
            yield self.close(pause)
        yield self.close(progress)

    def close_all_in_steps(self) -> Iterator[pa.Table]:
        """As `close_all`, the windows of some rows with each step."""
        return self.close_in_steps(self.newest + self._window.size)

    @property
    def next_end(self) -> int:
        """Just behind the first row that may still be answered."""
        return self.first_open if self.first_open == BEGINNING else self.first_open + 1

    @property
    def ended(self) -> int:
        """The progress that has passed everything that was answered."""
        return self.first_open

    def close(self, progress: int, *, in_order: bool = True) -> pa.Table:  # noqa: ARG002
        """Answer the rows before `progress`, oldest first, and forget what only they needed."""
        due = self._due(progress)
        self.first_open = max(self.first_open, progress)
        answers = self._answered(due)
        if self.store.evict(self.first_open) and self._window.every == 1:
            new_name = self.store.forget_keys()
            if new_name is not None:  # a row that waits has a bin, so its group has a new name
                self._waiting.rename(new_name)
        return answers

    def closes_any(self, progress: int) -> bool:
        """Whether `progress` may close a window that was open."""
        return progress > self.first_open

    def take(self, parcels: Sequence[Parcel]) -> None:
        """Take in what other pipelines of this plan handed over, as far as it is still needed."""
        self.panes.take(parcels, self.has_open_window)

    def tables(self) -> dict[str, pa.Table]:
        """What is stored beside bins: rows that wait, and how many rows each partition has had."""
        if not len(self._waiting) and not len(self._ranks.count):
            return {}
        tables = self._waiting.tables(self.store.key_values)
        if self._by_rank:
            keys = self.store.key_values(np.arange(len(self._ranks.count)))
            tables["counts"] = pa.table({"count": pa.array(self._ranks.count), **numbered(keys)})
        return tables

    def put_back(self, tables: Mapping[str, pa.Table]) -> None:
        """Take in what `tables` gave, in a pipeline that is still empty."""
        if "counts" in tables:
            count, *keys = arrays(tables["counts"])
            self._ranks.restore(self.store.number(keys, len(count)), count.to_numpy())
        self._waiting.put_back(tables, self.store.number)

    def _due(self, progress: int) -> Waiting:
        """The rows before `progress` that have a window, by position and then by arrival."""
        due = self._waiting.due(progress)
        if not self._by_rank:
            return due
        nth = (self._ranks.take(due.group) + 1) % self._window.every == 0
        return due.taken(nth & (due.row >= 0))

    def _answered(self, due: Waiting) -> pa.Table:
        """Aggregates of the due rows' windows, and what is selected of the rows."""
        if not len(due):
            return self._nothing()
        groups = np.flatnonzero(np.bincount(due.group))
        of_row, wid, offsets = _distinct(due.at, due.group, groups)
        lowered = lower(self.plan, self.store.roll_named(groups, offsets, wid))
        taken = pa.array(of_row)
        columns: list[pa.Array] = [*workers().map(lambda c: c.take(taken), lowered)]
        columns += due.columns
        return pa.table(columns, schema=self.plan.lowered_schema())


def _in_order(
    is_passing: NDArray[np.bool_], order: NDArray[np.int64]
) -> tuple[pa.Array, NDArray[np.int64], NDArray[np.int64] | slice]:
    """Rows that pass, brought into the order of all rows; mostly that is all of them.

    Gives the indexes of their columns in that order, which of these each row has (-1: none), and
    which rows pass.
    """
    if is_passing.all():
        return pa.array(order), np.arange(len(order)), slice(None)
    index, moved = np.cumsum(is_passing) - 1, is_passing[order]
    row = np.where(moved, np.cumsum(moved) - 1, -1)
    return pa.array(index[order][moved]), row, np.flatnonzero(moved)


def _distinct(
    at: NDArray[np.int64], group: NDArray[np.signedinteger], groups: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Rows of a group at one position share an answer: which one, the answers', the groups'.

    Rows come by position; answers stand group by group, each group's by position.
    """
    index = np.zeros(int(groups[-1]) + 1, dtype=np.int64)
    index[groups] = np.arange(len(groups))
    offsets = np.zeros(len(groups) + 1, dtype=np.int64)
    _count_answers(at, group, index, offsets)
    of_row = np.empty(len(at), dtype=np.int32)
    wid = np.empty(offsets[-1], dtype=np.int64)
    _number_answers(at, group, index, offsets, of_row, wid)
    return of_row, wid, offsets


@compiled
def _count_answers(at, group, index, offsets):  # type: ignore[no-untyped-def]
    last = np.full(offsets.shape[0] - 1, at[0] - 1)
    for i in range(at.shape[0]):
        g = index[group[i]]
        offsets[g + 1] += at[i] != last[g]
        last[g] = at[i]
    for g in range(offsets.shape[0] - 1):
        offsets[g + 1] += offsets[g]


@compiled
def _number_answers(at, group, index, offsets, of_row, wid):  # type: ignore[no-untyped-def]
    next_free = offsets[:-1].copy()
    for i in range(at.shape[0]):
        g = index[group[i]]
        k = next_free[g]
        if k == offsets[g] or wid[k - 1] != at[i]:
            wid[k] = at[i]
            next_free[g] = k = k + 1
        of_row[i] = k - 1
