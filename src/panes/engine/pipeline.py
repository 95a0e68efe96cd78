"""Rows to answers: cut, fill, store, roll.

A `Pipeline` owns the state of one query: numbers for keys, the pane store, and one more store for
each argument that is kept as a multiset. It knows windows and partials and nothing of streams,
lateness or clocks; whoever drives it says which windows are closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.aggregates.aggregate import Bounded, Rows
from panes.aggregates.arithmetic import COUNT
from panes.algebra.monoid import Columns
from panes.compiled import compiled
from panes.engine.fill import ALL_ROWS, fill
from panes.engine.groups import Groups
from panes.engine.workers import workers
from panes.kernels.sliding_multiset import SlidingMultiset
from panes.language.query import AGGREGATE, KEY, WINDOW_COLUMNS
from panes.planning.plan import Plan, ValueSet
from panes.stores.panes import Fragment, PaneStore, Rolled, by_group, merged
from panes.stores.slots import is_dense
from panes.windows.cover import runs_under
from panes.windows.cut import Cut, cut, in_some_window
from panes.windows.extent import edges_of, last_wid, ruler, windows_closed, windows_reached
from panes.windows.spec import Landmark, PanedSpec

_UNSEEN = -(1 << 62)


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
        self._values = [_ValueStore(v, plan, self.spec, self._executor) for v in plan.value_sets]
        self.first_open = _UNSEEN
        self._newest = _UNSEEN

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
        self._newest = max(self._newest, int(at.max()))
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

    def has_open_window(self, at: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which positions belong to a window that is still open."""
        if isinstance(self.spec, Landmark):
            return np.ones(len(at), dtype=np.bool_)
        newest: NDArray[np.int64] = last_wid(at, *ruler(self.spec))
        return newest >= self.first_open

    def advance(self, progress: int) -> pa.Table:
        """Answer the windows that end at or before `progress`, and forget what they alone held."""
        return self._answer_before(windows_closed(self.spec, progress))

    def finish(self) -> pa.Table:
        """Answer every window that holds a row."""
        if self._newest == _UNSEEN:
            return self.empty()
        return self._answer_before(windows_reached(self.spec, self._newest))

    def add_partials(
        self, starts: NDArray[np.int64], keys: Sequence[pa.Array], partials: Sequence[Columns]
    ) -> None:
        """Take in partials that another host filled, one per pane and key or several."""
        groups = self._groups.encode(keys, len(starts)).astype(np.int64)
        self._newest = max(self._newest, int(starts.max(initial=_UNSEEN)))
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

    def lowered(self, newest: int) -> pa.Table:
        """Every answer up to the stream's greatest position, before the SELECT's expressions.

        In no particular order: whoever asks has its own.
        """
        end = windows_reached(self.spec, newest)
        if self._newest == _UNSEEN:
            return self.plan.lowered_schema().empty_table()
        return self._lowered(self.first_open, end, in_order=False)

    def empty(self) -> pa.Table:
        """No answers, with the columns that answers have."""
        if self._no_answers is None:
            self._no_answers = self.plan.schema().empty_table()
        return self._no_answers

    def _answer_before(self, end: int) -> pa.Table:
        if self._newest == _UNSEEN:
            self.first_open = max(self.first_open, end)
            return self.empty()
        end_due = min(end, windows_reached(self.spec, self._newest))
        answers = self.empty()
        if end_due > self.first_open and len(self._store):
            answers = self._project(self._lowered(self.first_open, end_due, in_order=True))
        # A landmark window past the last row is answered only once a later row makes it count.
        reached = end_due if isinstance(self.spec, Landmark) else end
        if reached > self.first_open:
            self.first_open = reached
            self._forget()
        return answers

    def _lowered(self, first_due: int, end_due: int, *, in_order: bool) -> pa.Table:
        """Windows, keys and lowered aggregates of the due windows, under their numbers."""
        rolled = self._store.answer(first_due, end_due, self._groups.order)
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

    def _project(self, table: pa.Table) -> pa.Table:
        """What was selected, of the answers that HAVING keeps."""
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


class _ValueStore:
    """One argument kept as a multiset: pairs of (group, value), counted per pane."""

    def __init__(self, values: ValueSet, plan: Plan, spec: PanedSpec, executor: Executor) -> None:
        self._set = values
        self._types = [plan.row_types[c] for c in values.columns]
        self._pairs = Groups([pa.int64(), *self._types])
        self._spec = spec
        self.store = PaneStore(spec, [COUNT], executor)

    def fill(self, rows: Rows, groups: NDArray[np.int32], cut: Cut, executor: Executor) -> Fragment:
        """The values of a batch, counted per pane; nothing is kept yet."""
        kept = np.flatnonzero(self._set.selection.slots(rows, groups) >= 0)
        indexes = pa.array(kept)
        columns = [rows.columns[c].take(indexes) for c in self._set.columns]
        owners = pa.array(groups[kept], pa.int64())
        pairs = self._pairs.encode([owners, *columns], len(kept))
        counted = Rows(rows.at[kept], ())
        return fill(counted, pairs, len(self._pairs), cut=cut, pieces=[ALL_ROWS], executor=executor)

    def add_counts(
        self,
        starts: NDArray[np.int64],
        groups: NDArray[np.int32],
        values: Sequence[pa.Array],
        counts: NDArray[np.int64],
    ) -> None:
        """Take in values that are counted already."""
        pairs = self._pairs.encode([pa.array(groups, pa.int64()), *values], len(starts))
        fragment = Fragment(starts, pairs.astype(np.int64), (counts[None, :],))
        self.store.add(merged([fragment], self.store.monoids))

    def under(self, rolled: Rolled) -> SlidingMultiset:
        """The multisets of the answers, at least one, that the pane store gave."""
        wids = rolled.cover.wid
        held = self.store.under(int(wids.min()), int(wids.max()) + 1)
        pairs = np.unique(held.groups)
        group_of, *values = self._pairs.columns(pairs)
        rank, distinct = _ranked(values)
        of_pair = np.searchsorted(pairs, held.groups)
        groups = group_of.to_numpy()[of_pair]
        position, offsets = by_group(groups, rolled.groups)
        starts = held.starts[position]
        first, last = runs_under(
            self._spec, wids, rolled.cover.offsets, starts=starts, groups=offsets
        )
        return SlidingMultiset(
            values=distinct,
            groups=offsets,
            rank=rank[of_pair[position]],
            count=held.partials[0][0][position],
            offsets=rolled.cover.offsets,
            first=first,
            last=last,
        )

    def forget_keys(self) -> None:
        """Drop pairs that no pane holds."""
        live = self.store.live_groups()
        if self._pairs.mostly_dead(len(live)):
            self._renumber(live, self._pairs.columns(live))

    def rename_groups(self, renamed: NDArray[np.int64]) -> None:
        """The groups have new numbers."""
        live = self.store.live_groups()
        group, *values = self._pairs.columns(live)
        self._renumber(live, [pa.array(renamed[group.to_numpy()]), *values])

    def _renumber(self, live: NDArray[np.int64], columns: Sequence[pa.Array]) -> None:
        self._pairs = Groups([pa.int64(), *self._types])
        renamed = np.full(int(live.max(initial=-1)) + 1, -1, dtype=np.int64)
        renamed[live] = self._pairs.encode(columns, len(live))
        self.store.rename_groups(renamed)


def _ranked(columns: Sequence[pa.Array]) -> tuple[NDArray[np.signedinteger], pa.Array]:
    """The rank of each value among the distinct ones, and those, ascending, NaN last.

    Several columns are tuples, which can only be told apart: their values stand for themselves.
    """
    if len(columns) > 1:
        tuples = Groups([c.type for c in columns])
        rank = tuples.encode(columns, len(columns[0]))
        return rank, pa.array(np.arange(len(tuples)))
    encoded = columns[0].dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank_of = np.empty(len(order), dtype=np.int64)
    rank_of[order] = np.arange(len(order))
    return rank_of[encoded.indices.to_numpy()], encoded.dictionary.take(pa.array(order))


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
