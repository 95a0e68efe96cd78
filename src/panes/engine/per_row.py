"""Per-row windows: a row's window reaches back from the row itself (thesis 5.1.5, 6.1.4).

    window of the row at d  =  rows at  d - size < at <= d  in its partition

Positions are bins: all rows of a partition at one position share one partial, which enters the
windows at its position and leaves them `size` later. No row is kept, only bins, and the selected
columns of rows whose window is not complete yet. When progress passes a row's position its
window is rolled from the bins under it, so rows may come in any order, and each bin is combined a
constant number of times however many windows hold it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.compiled import compiled
from panes.engine.arrival import Arrival, Ranks
from panes.engine.parcel import Parcel
from panes.engine.partials import Partials, PartOf
from panes.engine.pipeline import NOWHERE, projected
from panes.engine.workers import workers
from panes.planning.plan import Plan
from panes.stores.panes import by_group
from panes.stores.radix import is_sorted, stable_order
from panes.windows.spec import PerRow


@dataclass(frozen=True, slots=True)
class Waiting:
    """Rows whose window is not complete.

    `row` is where a row's columns stand in `columns`, which ascends; -1 for a row that is only
    counted.
    """

    at: NDArray[np.int64]
    group: NDArray[np.signedinteger]
    row: NDArray[np.int64]
    columns: tuple[pa.Array, ...]

    def __len__(self) -> int:
        return len(self.at)


class PerRowPipeline:
    """The state of one query over per-row windows."""

    def __init__(self, plan: Plan) -> None:
        spec = plan.window.spec
        assert isinstance(spec, PerRow)
        self.plan, self._window = plan, spec
        self.held = Partials(plan, plan.spec)
        self._ranks = Ranks()
        self._waiting: list[Waiting] = []
        self.first_open = NOWHERE
        self.newest = NOWHERE

    @property
    def _by_rank(self) -> bool:
        return self._window.every > 1 and self._window.counted_by == "rank"

    @property
    def waiting(self) -> int:
        """How many rows wait for their window to be complete."""
        return sum(map(len, self._waiting))

    def add(self, arrival: Arrival) -> None:
        """Take in rows; those behind progress count in open windows but have none of their own."""
        group = self.held.number(arrival.partition, len(arrival.at))
        kept = np.zeros(len(arrival.at), dtype=np.bool_)
        kept[arrival.kept] = True
        if len(arrival.at):
            self.reach(int(arrival.at.max()))
        wanted = arrival.at >= self.first_open
        if not self._by_rank:
            wanted &= kept
            if self._window.every > 1:
                wanted &= (self._ranks.take(group) + 1) % self._window.every == 0
        # From here on in the order of positions: bins fill faster so, and answers need it.
        order = stable_order(arrival.at)
        at, group = arrival.at[order], group[order]
        columns, row = arrival.columns, order
        if not kept.all():
            number = np.cumsum(kept) - 1
            kept, row = kept[order], number[order]
            row = row[kept]
        taken = pa.array(row)
        columns = list(workers().map(lambda c: c.take(taken), columns))
        if kept.all():
            self.held.add(at, columns, group)
            rows = np.arange(len(at))
        elif len(row):
            self.held.add(at[kept], columns, group[kept])
            rows = np.where(kept, np.cumsum(kept) - 1, -1)
        else:
            rows = np.full(len(at), -1)
        everything = Waiting(at, group, rows, tuple(columns[c] for c in self.plan.defining_columns))
        if not wanted.all():
            everything = _taken(everything, wanted[order])
        self._waiting.append(everything)

    def has_open_window(self, at: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which positions a row at or after progress may still reach."""
        return at > self.first_open - self._window.size

    def advance(self, progress: int) -> pa.Table:
        """Answer the rows before `progress`, oldest first, and forget what they alone needed."""
        return projected(self.plan, self.close(progress))

    def finish(self) -> pa.Table:
        """Answer the rest."""
        return projected(self.plan, self.close_all())

    def close_all(self, *, in_order: bool = True) -> pa.Table:
        """As `finish`, before the SELECT's expressions: nothing that comes later reaches back."""
        return self.close(self.newest + self._window.size, in_order=in_order)

    def close(self, progress: int, *, in_order: bool = True) -> pa.Table:  # noqa: ARG002
        """As `advance`, before the SELECT's expressions: what these are made of, by number."""
        due = self._due(progress)
        self.first_open = max(self.first_open, progress)
        answers = self._lowered(due)
        if self.held.evict(self.first_open) and self._window.every == 1:
            self._rename(self.held.forget_keys())
        return answers

    def closes_any(self, progress: int) -> bool:
        """Whether `progress` may close a window that was open."""
        return progress > self.first_open

    def resume(self, first_open: int, newest: int) -> None:
        """Go on where another pipeline of this plan stopped; its parcels are to be taken in."""
        self.first_open, self.newest = first_open, newest

    def reach(self, newest: int) -> None:
        """A row at `newest` has come somewhere in the stream, here or at another host."""
        self.newest = max(self.newest, newest)

    def take(self, parcels: Sequence[Parcel]) -> None:
        """Take in what other pipelines of this plan handed over, as far as it is still needed."""
        self.held.take(parcels, self.has_open_window)

    def split(self, part_of: PartOf) -> dict[int, Parcel]:
        """All bins, part by part."""
        return self.held.split(part_of)

    def tables(self) -> dict[str, pa.Table]:
        """What is held beside bins: rows that wait, and how many rows each partition has had."""
        held = _joined(self._waiting)
        if not len(held) and not len(self._ranks.count):
            return {}
        named = {"at": pa.array(held.at), "row": pa.array(held.row)}
        named |= _numbered(self.held.key_values(held.group.astype(np.int64)))
        tables = {"waiting": pa.table(named)}
        if held.columns:
            tables["columns"] = pa.table(_numbered(held.columns))
        if self._by_rank:
            counted = np.arange(len(self._ranks.count))
            keys = _numbered(self.held.key_values(counted))
            tables["counts"] = pa.table({"count": pa.array(self._ranks.count), **keys})
        return tables

    def put_back(self, tables: Mapping[str, pa.Table]) -> None:
        """What `tables` gave, in a pipeline that has taken in nothing yet."""
        if "counts" in tables:
            count, *keys = _arrays(tables["counts"])
            numbers = self.held.number(keys, len(count))
            self._ranks.restore(numbers, count.to_numpy())
        at, row, *keys = _arrays(tables["waiting"])
        columns = tuple(_arrays(tables["columns"])) if "columns" in tables else ()
        group = self.held.number(keys, len(at))
        self._waiting = [Waiting(at.to_numpy(), group, row.to_numpy(), columns)]

    def _rename(self, new_name: NDArray[np.int64] | None) -> None:
        """Groups have new numbers; a row that waits has a bin, so its group has one too."""
        if new_name is not None:
            self._waiting = [replace(w, group=new_name[w.group]) for w in self._waiting]

    def _due(self, progress: int) -> Waiting:
        """The waiting rows before `progress`, in the order of their positions, then of arrival."""
        everything = _joined(self._waiting)
        if not is_sorted(everything.at):
            everything = _taken(everything, stable_order(everything.at))
        is_due = everything.at < progress
        due, self._waiting = everything, []
        if not is_due.all():
            due, self._waiting = _taken(everything, is_due), [_taken(everything, ~is_due)]
        if not self._by_rank:
            return due
        nth = (self._ranks.take(due.group) + 1) % self._window.every == 0
        return _taken(due, nth & (due.row >= 0))

    def _lowered(self, due: Waiting) -> pa.Table:
        """Aggregates of the due rows' windows, and what is selected of the rows."""
        if not len(due):
            return self.plan.lowered_schema().empty_table()
        groups = np.flatnonzero(np.bincount(due.group))
        position, begins = by_group(due.group, groups)
        ends = due.at[position]
        answer, wid, offsets = _distinct(ends, begins)
        lowered = self.held.answer_at(groups, offsets, wid)
        of_row = np.empty(len(due), dtype=np.int64)
        of_row[position] = answer
        taken = pa.array(of_row)
        columns: list[pa.Array] = [*workers().map(lambda c: c.take(taken), lowered)]
        columns += due.columns
        return pa.table(columns, schema=self.plan.lowered_schema())


def _numbered(columns: Sequence[pa.Array]) -> dict[str, pa.Array]:
    return {f"c{i}": column for i, column in enumerate(columns)}


def _arrays(table: pa.Table) -> list[pa.Array]:
    return [column.combine_chunks() for column in table.columns]


def _joined(waiting: list[Waiting]) -> Waiting:
    if len(waiting) == 1:
        return waiting[0]
    if not waiting:
        nothing = np.empty(0, dtype=np.int64)
        return Waiting(nothing, nothing, nothing, ())
    begins = np.cumsum([0, *(len(w.columns[0]) if w.columns else 0 for w in waiting[:-1])])
    rows = [np.where(w.row < 0, -1, w.row + b) for w, b in zip(waiting, begins, strict=True)]
    return Waiting(
        np.concatenate([w.at for w in waiting]),
        np.concatenate([w.group for w in waiting]),
        np.concatenate(rows),
        tuple(pa.concat_arrays(c) for c in zip(*(w.columns for w in waiting), strict=True)),
    )


def _taken(waiting: Waiting, which: NDArray[np.generic]) -> Waiting:
    """Some of the rows, with the columns of no others, in the order of the rows."""
    row = waiting.row[which]
    kept = np.flatnonzero(row >= 0)
    renamed = np.full(len(row), -1, dtype=np.int64)
    renamed[kept] = np.arange(len(kept))
    columns = tuple(c.take(pa.array(row[kept])) for c in waiting.columns)
    return Waiting(waiting.at[which], waiting.group[which], renamed, columns)


def _distinct(
    ends: NDArray[np.int64], begins: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rows of a group at one position share an answer: which one, the answers', the groups'."""
    answer = np.empty(len(ends), dtype=np.int64)
    wid = np.empty(len(ends), dtype=np.int64)
    offsets = np.zeros(len(begins), dtype=np.int64)
    _number_answers(ends, begins, answer, wid, offsets)
    return answer, wid[: offsets[-1]], offsets


@compiled
def _number_answers(ends, begins, answer, wid, offsets):  # type: ignore[no-untyped-def]
    k = -1
    for g in range(begins.shape[0] - 1):
        for i in range(begins[g], begins[g + 1]):
            if i == begins[g] or ends[i] != ends[i - 1]:
                k += 1
                wid[k] = ends[i]
            answer[i] = k
        offsets[g + 1] = k + 1
