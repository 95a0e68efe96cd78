"""Many due windows of many queries, answered from one store in one pass.

Queries of one shape are answered together, and pieces that several shapes need are rolled once::

    due windows of all queries  ─► runs of panes [first, last)
    every piece under its filter ─► table over panes x keys ─► one combine per (window, key)
    lower, select and project per shape ─► slice per query

Where panes hold few of the keys, or a piece is not made of numbers, each query is rolled by itself
as it would be alone (`panes.windows.cover`), from panes to which its filter has been applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Bounded
from panes.algebra.lanes import Op, combine_cells
from panes.algebra.monoid import Columns, Lanes, Monoid, merge_slots
from panes.engine.fill import ALL_ROWS
from panes.engine.partials import by_window, named
from panes.engine.pipeline import selected
from panes.engine.shape import Member, Shape, Wanted
from panes.engine.shared_store import SharedStore
from panes.engine.workers import workers
from panes.kernels.disjoint_table import disjoint_table
from panes.kernels.prefix_differences import prefix_differences
from panes.kernels.sliding_multiset import SlidingMultiset
from panes.language.query import AGGREGATE, KEY, WINDOW_COLUMNS
from panes.planning.plan import Plan, ValueSet
from panes.stores.fragments import Fragment
from panes.stores.panes import PaneStore, Rolled
from panes.stores.slots import compact_slots
from panes.stores.spread import spread

# Below one filled pair in so many, going through the panes of each query visits less.
_SPARSE = 16
_MOST_ANSWERS = 1 << 22

Finish = Callable[[Plan, pa.Table], tuple[NDArray[np.int64] | None, pa.Table]]
"""From lowered answers to those that are given: which of them, None for all, and these."""


@dataclass(frozen=True, slots=True)
class Due:
    """The windows ``[first, end)`` that are due of some queries of a shape."""

    shape: Shape
    which: NDArray[np.int64]
    first: NDArray[np.int64]
    end: NDArray[np.int64]

    @property
    def windows(self) -> int:
        """How many windows there are."""
        return int(np.maximum(self.end - self.first, 0).sum())


@dataclass(frozen=True, slots=True)
class Runs:
    """Windows, and the panes ``[first, last)`` of each."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]


def answer(
    store: SharedStore, due: Sequence[Due], finish: Finish = selected
) -> Iterator[tuple[Shape, dict[str, pa.Table]]]:
    """The answers of every query that has any, shape by shape, the first ones first.

    `finish` makes of windows, keys and lowered aggregates what is given.
    """
    held = _under(store, due)
    if not len(held):
        return
    panes = Panes(store, held)
    for batch in _batches(due, panes):
        if panes.is_dense and batch[0].shape.is_compiled:
            yield from _together(panes, batch, finish)
        else:
            for one in batch:
                yield one.shape, _one_by_one(panes, one, finish)


def _under(store: SharedStore, due: Sequence[Due]) -> Fragment:
    """The panes under all due windows."""
    lows, highs = [], []
    for one in due:
        some = np.flatnonzero(one.end > one.first)
        rulers = one.shape.rulers.take(one.which[some])
        lows.append(int(rulers.starts(one.first[some]).min()))
        highs.append(int((rulers.starts(one.end[some] - 1) + rulers.size).max()))
    return store.fragments.everything().between(min(lows), max(highs))


def _batches(due: Sequence[Due], panes: Panes) -> Iterator[list[Due]]:
    """Shapes that are rolled together: those with the same filter, as far as they fit memory."""
    alike: dict[tuple[bool, int | None], list[Due]] = {}
    for one in due:
        alike.setdefault((one.shape.is_compiled, one.shape.where), []).append(one)
    for several in alike.values():
        batch: list[Due] = []
        for one in several:
            answers = sum(o.windows for o in (*batch, one)) * len(panes.groups)
            if batch and answers > _MOST_ANSWERS:
                yield batch
                batch = []
            batch.append(one)
        yield batch


class Panes:
    """The panes under due windows, as one matrix: pane by pane, each with all keys in order."""

    def __init__(self, store: SharedStore, held: Fragment) -> None:
        self.store, self.held = store, held
        self.executor = workers()
        self.group, self._class = np.divmod(held.groups, store.width)
        is_first = np.ones(len(held), dtype=np.bool_)
        is_first[1:] = held.starts[1:] != held.starts[:-1]
        self.starts = held.starts[is_first]
        self.groups = store.groups.order(np.flatnonzero(np.bincount(self.group)))
        rank = np.zeros(int(self.groups.max()) + 1, dtype=np.int64)
        rank[self.groups] = np.arange(len(self.groups))
        self._pane, self._rank = np.cumsum(is_first) - 1, rank[self.group]

    @property
    def size(self) -> int:
        """How many pairs of a pane and a key there could be."""
        return len(self.starts) * len(self.groups)

    @property
    def is_dense(self) -> bool:
        """Whether a matrix is no waste."""
        return self.size <= _SPARSE * len(self.held) + 65_536

    def slots(self, where: int | None) -> NDArray[np.int64]:
        """The place of each partial in the matrix; -1 where the filter does not hold."""
        holds = self.store.holding(where)[self._class]
        return np.where(holds, self._pane * len(self.groups) + self._rank, -1)

    def partials(self, wanted: Wanted) -> Columns:
        """The partials of a piece as they are held, before its filter."""
        return self.held.partials[self.store.pieces.index(wanted.piece)]

    def matrix(self, wanted: Wanted, monoid: Lanes, stretch: NDArray[np.int64]) -> Columns:
        """A piece under its filter, for every stretch of panes and key; `stretch` of -1 is none."""
        into = monoid.empty((int(stretch.max(initial=-1)) + 1) * len(self.groups))
        combine = combine_cells(int(monoid.op), len(into))
        holds, width = self.store.holding(wanted.where), len(self.groups)
        rows = stretch[self._pane]
        combine(into, self.partials(wanted), rows, self._rank, width, self._class, holds)
        return into

    def runs(self, one: Due) -> Runs:
        """The due windows of a shape as runs of panes."""
        starts, ends = one.shape.rulers.take(one.which).listed(one.first, one.end)
        first = np.searchsorted(self.starts, starts)
        last = np.searchsorted(self.starts, ends)
        return Runs(starts, ends, first, last)

    def roll(self, wanted: Wanted, runs: Sequence[Runs]) -> list[Columns]:
        """A piece under its filter, for all keys in each of these windows."""
        monoid = wanted.piece.monoid
        assert isinstance(monoid, Lanes)
        first = np.concatenate([r.first for r in runs])
        last = np.concatenate([r.last for r in runs])
        stretch, first, last = _stretches(first, last, len(self.starts))
        table = prefix_differences if monoid.op is Op.ADD else disjoint_table
        matrix = self.matrix(wanted, monoid, stretch)
        rolled = table(monoid, matrix, first, last, groups=len(self.groups))
        bounds = np.cumsum([0, *(len(r.first) for r in runs)]) * len(self.groups)
        return [rolled[:, a:b] for a, b in pairwise(bounds.tolist())]


def _stretches(
    first: NDArray[np.int64], last: NDArray[np.int64], panes: int
) -> tuple[NDArray[np.int64], ...]:
    """Panes that no run begins or ends between are one; which, and runs of these.

    >>> _stretches(np.array([1, 3]), np.array([5, 5]), 6)
    (array([-1,  0,  0,  1,  1,  2]), array([0, 1]), array([2, 2]))
    """
    is_edge = np.zeros(panes + 1, dtype=np.int64)
    is_edge[first] = is_edge[last] = 1
    number = np.cumsum(is_edge) - 1
    return number[:-1], number[first], number[last]


def _together(
    panes: Panes, batch: Sequence[Due], finish: Finish
) -> Iterator[tuple[Shape, dict[str, pa.Table]]]:
    """Shapes whose pieces are all numbers: every piece is rolled once for all of them."""
    runs = [panes.runs(one) for one in batch]
    users: dict[Wanted, list[int]] = {}
    for i, one in enumerate(batch):
        for wanted in dict.fromkeys([Wanted(ALL_ROWS, one.shape.where), *one.shape.pieces]):
            users.setdefault(wanted, []).append(i)
    rolled = spread(
        panes.executor,
        lambda wanted: panes.roll(wanted, [runs[i] for i in users[wanted]]),
        users,
        rows=panes.size,
    )
    found: list[dict[Wanted, Columns]] = [{} for _ in batch]
    for (wanted, using), each in zip(users.items(), rolled, strict=True):
        for i, columns in zip(using, each, strict=True):
            found[i][wanted] = columns
    tables = spread(
        panes.executor,
        lambda i: _cut_apart(panes, batch[i], runs[i], found[i], finish),
        range(len(batch)),
        rows=sum(len(r.first) for r in runs) * len(panes.groups) // len(batch),
    )
    for one, table in zip(batch, tables, strict=True):
        yield one.shape, table


def _cut_apart(
    panes: Panes, one: Due, runs: Runs, rolled: Mapping[Wanted, Columns], finish: Finish
) -> dict[str, pa.Table]:
    """The answers of one shape: lowered, selected, and a slice for each query."""
    shape, width = one.shape, len(panes.groups)
    counts = rolled[Wanted(ALL_ROWS, shape.where)][0]
    bounds = np.cumsum(np.r_[0, np.maximum(one.end - one.first, 0)]) * width
    kept: NDArray[np.int64] | None = np.flatnonzero(counts)
    if kept is not None and len(kept) == len(counts):
        kept = None
    group = np.tile(np.arange(width), len(runs.first))
    starts, ends = np.repeat(runs.starts, width), np.repeat(runs.ends, width)
    if kept is not None:
        group, starts, ends = group[kept], starts[kept], ends[kept]
        rolled = {w: np.take(c, kept, axis=1) for w, c in rolled.items()}
        bounds = np.searchsorted(kept, bounds)
    axis, taken = shape.plan.axis, pa.array(group)
    keys = [c.take(taken) for c in panes.store.groups.columns(panes.groups)]
    lowered = []
    for need in shape.needs:
        assert isinstance(need.aggregate, Bounded)
        lowered.append(need.aggregate.lower([rolled[w] for w in need.pieces]))
    names = [*WINDOW_COLUMNS, *(f"{KEY}{i}" for i in range(len(keys)))]
    names += [f"{AGGREGATE}{i}" for i in range(len(lowered))]
    table = pa.table([axis.label(starts), axis.label(ends), *keys, *lowered], names=names)
    having, table = finish(shape.plan, table)
    if having is not None:
        bounds = np.searchsorted(having, bounds)
    return {
        shape.members[place].name: table.slice(a, b - a)
        for place, (a, b) in zip(one.which.tolist(), pairwise(bounds.tolist()), strict=True)
        if b > a
    }


def _one_by_one(panes: Panes, one: Due, finish: Finish) -> dict[str, pa.Table]:
    """The answers of one shape, each query rolled by itself as if it were alone."""
    shape, found = one.shape, {}
    fragment, monoids = _filtered(panes, shape)
    for place, first, end in zip(
        one.which.tolist(), one.first.tolist(), one.end.tolist(), strict=True
    ):
        member = shape.members[place]
        store = PaneStore(member.spec, monoids, panes.executor)
        store.fragments = (fragment,)
        if end <= first or not len(fragment):
            continue
        rolled = store.answer(first, end, panes.store.groups.order)
        if not len(rolled.cover):
            continue
        order = by_window(rolled)
        lowered = [column.take(pa.array(order)) for column in _lowered(panes, one, member, rolled)]
        axis, groups = shape.plan.axis, panes.store.groups
        table = named(axis, member.spec, groups, rolled, order, lowered)
        table = finish(shape.plan, table)[1]
        if len(table):
            found[member.name] = table
    return found


def _lowered(panes: Panes, one: Due, member: Member, rolled: Rolled) -> Iterator[pa.Array]:
    shape = one.shape
    partials = dict(zip(shape.pieces, rolled.partials, strict=True))
    multisets: dict[ValueSet, SlidingMultiset] = {
        v: panes.store.values[v].over(member.spec).under(rolled) for v in shape.value_sets
    }
    for need in shape.needs:
        if isinstance(need.aggregate, Bounded):
            yield need.aggregate.lower([partials[w] for w in need.pieces])
        else:
            assert need.values is not None
            yield need.aggregate.lower(multisets[need.values])


def _filtered(panes: Panes, shape: Shape) -> tuple[Fragment, list[Monoid]]:
    """The panes of a shape: keys without classes, its pieces under their filters."""
    slots = panes.slots(shape.where)
    numbers, pairs = compact_slots(slots[slots >= 0], panes.size)
    place = np.full(len(slots), -1, dtype=np.int64)
    place[slots >= 0] = numbers
    partials, monoids = [], []
    for wanted in shape.pieces:
        own = np.flatnonzero(panes.slots(wanted.where) >= 0)
        monoid = wanted.piece.monoid
        held = np.take(panes.partials(wanted), own, axis=1)
        partials.append(merge_slots(monoid, held, place[own], len(pairs)))
        monoids.append(monoid)
    width = len(panes.groups)
    fragment = Fragment(panes.starts[pairs // width], panes.groups[pairs % width], tuple(partials))
    return fragment, monoids
