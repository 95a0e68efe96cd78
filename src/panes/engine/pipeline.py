"""Rows to answers: cut, fill, store, roll.

A `Pipeline` owns the state of one query: numbers for keys, the pane store, and one more store for
each argument that is kept as a multiset. It knows windows and partials and nothing of streams,
lateness or clocks; whoever drives it says which windows are closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Bounded, Rows
from panes.algebra.monoid import Columns
from panes.compiled import compiled
from panes.engine.fill import fill
from panes.engine.groups import Groups
from panes.engine.parcel import Counted, Parcel
from panes.engine.values import ValueStore
from panes.engine.workers import workers
from panes.kernels.sliding_multiset import SlidingMultiset
from panes.language.query import AGGREGATE, KEY, WINDOW_COLUMNS
from panes.planning.plan import Plan
from panes.stores.panes import Fragment, PaneStore, Rolled, merged
from panes.stores.slots import is_dense
from panes.windows.cut import cut, in_some_window
from panes.windows.extent import edges_of, last_wid, ruler, windows_closed, windows_reached
from panes.windows.spec import Landmark, PanedSpec

NOWHERE = -(1 << 62)
"""The newest position while there is no row."""

PartOf: TypeAlias = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]
"""Tells the part that each pair of a pane's start and a group belongs to."""


class Pipeline:
    """The state of one query over one (united) stream."""

    def __init__(self, plan: Plan, *, origin: int | None = None) -> None:
        self.plan = plan
        self.spec: PanedSpec = plan.spec
        if origin is not None:
            self.spec = replace(plan.spec, origin=plan.spec.origin + origin)
        self._cut = cut(self.spec)
        self._executor = workers()
        self._no_answers: pa.Table | None = None
        self._groups = Groups(plan.key_types)
        monoids = [p.monoid for p in plan.pieces]
        self._store = PaneStore(self.spec, monoids, self._executor)
        self._values = [ValueStore(v, plan, self.spec, self._executor) for v in plan.value_sets]
        self.first_open = NOWHERE
        self.newest = NOWHERE

    @property
    def partials(self) -> int:
        """How many partials the state holds."""
        return len(self._store) + sum(len(v.store) for v in self._values)

    @property
    def keys(self) -> int:
        """How many combinations of key values have a number."""
        return len(self._groups)

    @property
    def nbytes(self) -> int:
        """Bytes the partials take."""
        return self._store.nbytes + sum(v.store.nbytes for v in self._values)

    def add(self, at: NDArray[np.int64], columns: Sequence[pa.Array]) -> None:
        """Take in rows: positions, and the plan's projected columns."""
        at, columns = self._inside(at, columns)
        if not len(at):
            return
        keys = len(self.plan.key_types)
        rows = Rows(at, tuple(columns))
        groups = self._groups.encode(columns[:keys], len(at))
        filled = fill(
            rows,
            groups,
            len(self._groups),
            cut=self._cut,
            pieces=self.plan.pieces,
            executor=self._executor,
        )
        counted = [v.fill(rows, groups, self._cut, self._executor) for v in self._values]
        self.newest = max(self.newest, int(at.max()))
        self._store.add(filled)
        for values, fragment in zip(self._values, counted, strict=True):
            values.store.add(fragment)

    def _inside(
        self, at: NDArray[np.int64], columns: Sequence[pa.Array]
    ) -> tuple[NDArray[np.int64], Sequence[pa.Array]]:
        """Without rows that no window holds, as between sampling windows."""
        held = in_some_window(self.spec, at)
        if held is None or held.all():
            return at, columns
        kept = pa.array(np.flatnonzero(held))
        return at[held], [c.take(kept) for c in columns]

    @property
    def key_columns(self) -> list[pa.Array]:
        """The key values of every group, by its number."""
        return self._groups.columns(np.arange(len(self._groups)))

    def has_open_window(self, at: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which positions belong to a window that is still open."""
        if isinstance(self.spec, Landmark):
            return np.ones(len(at), dtype=np.bool_)
        newest: NDArray[np.int64] = last_wid(at, *ruler(self.spec))
        return newest >= self.first_open

    def advance(self, progress: int) -> pa.Table:
        """Answer the windows that end at or before `progress`, and forget what they alone held."""
        return self.projected(self.close(progress))

    def finish(self) -> pa.Table:
        """Answer every window that holds a row."""
        return self.projected(self.close_all())

    def close(self, progress: int, *, in_order: bool = True) -> pa.Table:
        """As `advance`, before the SELECT's expressions."""
        return self._close_before(windows_closed(self.spec, progress), in_order=in_order)

    def close_all(self, *, in_order: bool = True) -> pa.Table:
        """As `finish`, before the SELECT's expressions."""
        if self.newest == NOWHERE:
            return self.plan.lowered_schema().empty_table()
        return self._close_before(windows_reached(self.spec, self.newest), in_order=in_order)

    def closes_any(self, progress: int) -> bool:
        """Whether `progress` closes a window that was open."""
        return windows_closed(self.spec, progress) > self.first_open

    def resume(self, first_open: int, newest: int) -> None:
        """Go on where another pipeline of this plan stopped; its parcels are to be taken in."""
        self.first_open, self.newest = first_open, newest

    def reach(self, newest: int) -> None:
        """A row at `newest` has come somewhere in the stream, here or at another host."""
        self.newest = max(self.newest, newest)

    def add_partials(
        self, starts: NDArray[np.int64], keys: Sequence[pa.Array], partials: Sequence[Columns]
    ) -> None:
        """Take in partials that another host filled, one per pane and key or several."""
        groups = self._groups.encode(keys, len(starts)).astype(np.int64)
        self.newest = max(self.newest, int(starts.max(initial=NOWHERE)))
        self._store.add(merged([Fragment(starts, groups, tuple(partials))], self._store.monoids))

    def add_values(
        self,
        index: int,
        starts: NDArray[np.int64],
        keys: Sequence[pa.Array],
        values: Sequence[pa.Array],
        counts: NDArray[np.int64],
    ) -> None:
        """Take in counted values of multiset `index` that another host filled."""
        groups = self._groups.encode(keys, len(starts))
        self._values[index].add_counts(starts, groups, values, counts)

    def take(self, parcels: Sequence[Parcel]) -> None:
        """Take in what other pipelines of this plan handed over, as far as it is still needed."""
        fragments = []
        counted: list[list[tuple[Counted, NDArray[np.int64]]]] = [[] for _ in self._values]
        for parcel in parcels:
            size = len(parcel.keys[0]) if parcel.keys else 1
            number = self._groups.encode(parcel.keys, size).astype(np.int64)
            arrived = Fragment(parcel.starts, number[parcel.groups], parcel.partials)
            fragments.append(self._still_open(arrived))
            for held, values in zip(counted, parcel.values, strict=True):
                held.append((values, number[values.groups]))
        self._store.add(merged(fragments, self._store.monoids))
        newest = max((int(f.starts.max(initial=NOWHERE)) for f in fragments), default=NOWHERE)
        self.reach(newest)
        for store, held in zip(self._values, counted, strict=True):
            for values, groups in held:
                store.add_counts(values.starts, groups, values.values, values.counts)
            if self.first_open != NOWHERE:
                store.store.evict(self.first_open)

    def _still_open(self, fragment: Fragment) -> Fragment:
        is_open = self.has_open_window(fragment.starts)
        if is_open.all():
            return fragment
        kept = np.flatnonzero(is_open)
        partials = tuple(np.take(p, kept, axis=1) for p in fragment.partials)
        return Fragment(fragment.starts[kept], fragment.groups[kept], partials)

    def pane_starts(self) -> NDArray[np.int64]:
        """Where the panes that hold anything begin."""
        held = [self._store.everything().starts]
        held += [v.store.everything().starts for v in self._values]
        return np.unique(np.concatenate(held))

    def split(self, part_of: PartOf) -> dict[int, Parcel]:
        """Everything held, part by part: `part_of` tells the part of each pane and group."""
        held = self._store.everything()
        panes = _by_part(part_of(held.starts, held.groups))
        counted = [v.everything() for v in self._values]
        values = [_by_part(part_of(c.starts, c.groups)) for c in counted]
        parts = set(panes).union(*values)
        return {part: self._parcel(part, held, panes, counted, values) for part in sorted(parts)}

    def _parcel(
        self,
        part: int,
        held: Fragment,
        panes: dict[int, NDArray[np.int64]],
        counted: Sequence[Counted],
        values: Sequence[dict[int, NDArray[np.int64]]],
    ) -> Parcel:
        nothing = np.empty(0, dtype=np.int64)
        kept = panes.get(part, nothing)
        kept_values = [v.get(part, nothing) for v in values]
        groups = [held.groups[kept]]
        groups += [c.groups[k] for c, k in zip(counted, kept_values, strict=True)]
        present = np.flatnonzero(np.bincount(np.concatenate(groups), minlength=1))
        local = np.zeros(int(present.max(initial=0)) + 1, dtype=np.int64)
        local[present] = np.arange(len(present))
        return Parcel(
            keys=self._groups.columns(present),
            starts=held.starts[kept],
            groups=local[groups[0]],
            partials=tuple(np.take(p, kept, axis=1) for p in held.partials),
            values=tuple(
                Counted(c.starts[k], local[g], [v.take(pa.array(k)) for v in c.values], c.counts[k])
                for c, k, g in zip(counted, kept_values, groups[1:], strict=True)
            ),
        )

    def empty(self) -> pa.Table:
        """No answers, with the columns that answers have."""
        if self._no_answers is None:
            self._no_answers = self.plan.schema().empty_table()
        return self._no_answers

    def _close_before(self, end: int, *, in_order: bool) -> pa.Table:
        answers = self.plan.lowered_schema().empty_table()
        if self.newest == NOWHERE:
            self.first_open = max(self.first_open, end)
            return answers
        end_due = min(end, windows_reached(self.spec, self.newest))
        if end_due > self.first_open and len(self._store):
            answers = self._lowered(self.first_open, end_due, in_order=in_order)
        # A landmark window past the last row is answered only once a later row makes it count.
        reached = end_due if isinstance(self.spec, Landmark) else end
        if reached > self.first_open:
            self.first_open = reached
            self._forget()
        return answers

    def _lowered(self, first_due: int, end_due: int, *, in_order: bool) -> pa.Table:
        """Windows, keys and lowered aggregates of the due windows, under their numbers."""
        order_of = self._groups.order if in_order else _as_they_are
        rolled = self._store.answer(first_due, end_due, order_of)
        if not len(rolled.cover):
            return self.plan.lowered_schema().empty_table()
        multisets = [v.under(rolled) for v in self._values]
        order = _by_window(rolled) if in_order else None
        lowered = self._executor.map(
            lambda i: self._lower(i, rolled, multisets, order), range(len(self.plan.aggregates))
        )
        return self._named(rolled, order, list(lowered))

    def _lower(
        self,
        index: int,
        rolled: Rolled,
        multisets: Sequence[SlidingMultiset],
        order: NDArray[np.int64] | None,
    ) -> pa.Array:
        aggregate, needed = self.plan.aggregates[index], self.plan.piece_of[index]
        if isinstance(aggregate, Bounded):
            lowered = aggregate.lower([rolled.partials[p] for p in needed])
        else:
            lowered = aggregate.lower(multisets[needed[0]])
        return lowered if order is None else lowered.take(pa.array(order))

    def _named(
        self, rolled: Rolled, order: NDArray[np.int64] | None, lowered: Sequence[pa.Array]
    ) -> pa.Table:
        axis = self.plan.axis
        group = np.repeat(np.arange(len(rolled.groups)), np.diff(rolled.cover.offsets))
        wid = rolled.cover.wid
        if order is not None:
            group, wid = group[order], wid[order]
        start, end = edges_of(self.spec, wid)
        starts = pa.nulls(len(end), axis.type) if start is None else axis.label(start)
        taken = pa.array(group)
        keys = [c.take(taken) for c in self._groups.columns(rolled.groups)]
        names = [*WINDOW_COLUMNS, *(f"{KEY}{i}" for i in range(len(keys)))]
        names += [f"{AGGREGATE}{i}" for i in range(len(lowered))]
        return pa.table([starts, axis.label(end), *keys, *lowered], names=names)

    def projected(self, table: pa.Table) -> pa.Table:
        """What was selected, of the answers that HAVING keeps."""
        if not len(table):
            return self.empty()
        query = self.plan.query
        kept, outputs = self.plan.answers(table)
        if kept is not None:
            table = table.take(pa.array(kept))
        given = [table.column(i) for i in range(2)]
        given += [table.column(2 + i) for i in query.shown_keys]
        titles = [*WINDOW_COLUMNS, *(query.keys[i].name for i in query.shown_keys)]
        titles += [o.name for o in query.outputs]
        return pa.table([*given, *outputs], names=titles)

    def _forget(self) -> None:
        """Drop panes that no open window holds, and keys that no pane holds."""
        dropped = self._store.evict(self.first_open)
        for values in self._values:
            if values.store.evict(self.first_open):
                values.forget_keys()
        live = self._store.live_groups() if dropped else None
        if live is not None and self._groups.mostly_dead(len(live)):
            keys = self._groups.columns(live)
            self._groups = Groups(self.plan.key_types)
            renamed = np.full(int(live.max(initial=-1)) + 1, -1, dtype=np.int64)
            renamed[live] = self._groups.encode(keys, len(live))
            self._store.rename_groups(renamed)
            for values in self._values:
                values.rename_groups(renamed)


def _as_they_are(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    return groups


def _by_part(parts: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """Where each part's rows stand, in their order."""
    order = np.argsort(parts, kind="stable")
    numbers, begins = np.unique(parts[order], return_index=True)
    return (
        dict(zip(numbers.tolist(), np.split(order, begins[1:]), strict=True)) if len(parts) else {}
    )


def _by_window(rolled: Rolled) -> NDArray[np.int64]:
    """Answers rearranged window by window, groups in order inside each."""
    wid = rolled.cover.wid
    oldest, newest = int(wid.min()), int(wid.max())
    if not is_dense(len(wid), newest - oldest + 1):
        return np.argsort(wid, kind="stable")
    order = np.empty(len(wid), dtype=np.int64)
    _sort_windows(wid, oldest, newest, order)
    return order


@compiled
def _sort_windows(wid, oldest, newest, order):  # type: ignore[no-untyped-def]
    begin = np.zeros(newest - oldest + 2, dtype=np.int64)
    for k in range(wid.shape[0]):
        begin[wid[k] - oldest + 1] += 1
    for w in range(1, begin.shape[0]):
        begin[w] += begin[w - 1]
    for k in range(wid.shape[0]):
        w = wid[k] - oldest
        order[begin[w]] = k
        begin[w] += 1
