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
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Bounded
from panes.algebra.lanes import Op
from panes.algebra.monoid import Columns, Lanes, Monoid, merge_slots
from panes.engine.pane_tables import PaneTables, tables_over
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
from panes.windows.many import Rulers

_MOST_ANSWERS = 1 << 22
_FEW_ANSWERS = 1 << 18

Finish = Callable[[Plan, pa.Table], tuple[NDArray[np.int64] | None, pa.Table]]
"""From lowered answers to those that are given: which of them, None for all, and these."""


@dataclass(slots=True)
class Due:
    """The windows ``[first, end)`` that are due of some queries of a shape; how many in all."""

    shape: Shape
    which: NDArray[np.int64]
    first: NDArray[np.int64]
    end: NDArray[np.int64]
    windows: int = field(init=False)

    def __post_init__(self) -> None:
        self.windows = int(np.maximum(self.end - self.first, 0).sum())


@dataclass(frozen=True, slots=True)
class Runs:
    """Windows of several shapes, and the panes ``[first, last)`` of each.

    The windows of each shape are one of the `parts`.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    parts: Sequence[slice]

    @classmethod
    def of(cls, due: Sequence[Due], panes: NDArray[np.int64]) -> Runs:
        """All windows that are due, over panes that begin at these positions."""
        rulers = Rulers.joined([one.shape.rulers.take(one.which) for one in due])
        begin, end = (np.concatenate(x) for x in zip(*((d.first, d.end) for d in due), strict=True))
        starts, ends = rulers.listed(begin, end)
        first, last = np.searchsorted(panes, starts), np.searchsorted(panes, ends)
        bounds = accumulate((one.windows for one in due), initial=0)
        return cls(starts, ends, first, last, [slice(a, b) for a, b in pairwise(bounds)])


def answer(
    store: SharedStore, due: Sequence[Due], finish: Finish = selected
) -> Iterator[tuple[Shape, dict[str, pa.Table]]]:
    """The answers of every query that has any, shape by shape, the first ones first.

    `finish` makes of windows, keys and lowered aggregates what is given.
    """
    kept = under = None
    if any(one.shape.is_compiled for one in due) and len(store.fragments):
        kept = tables_over(store)
    for batch in _batches(due, len(store.groups)):
        panes, is_compiled = kept, batch[0].shape.is_compiled
        if panes is None or not is_compiled or not panes.is_dense:
            panes = under = PaneTables(store, _under(store, due)) if under is None else under
        if not panes.size:
            continue
        if is_compiled and panes.is_dense:
            yield from _together(panes, batch, finish)
        else:
            for one in batch:
                yield one.shape, _one_by_one(store, panes, one, finish)
    if kept is not None:
        kept.forget_whole()


def _under(store: SharedStore, due: Sequence[Due]) -> Fragment:
    """The panes under all due windows."""
    lows, highs = [], []
    for one in due:
        some = np.flatnonzero(one.end > one.first)
        rulers = one.shape.rulers.take(one.which[some])
        lows.append(int(rulers.starts(one.first[some]).min()))
        highs.append(int((rulers.starts(one.end[some] - 1) + rulers.size).max()))
    return store.fragments.everything().between(min(lows), max(highs))


def _batches(due: Sequence[Due], groups: int) -> Iterator[list[Due]]:
    """Shapes that are rolled together: those with the same filter, as far as they fit memory.

    Filters that few answers are due of share a batch.
    """
    alike: dict[tuple[bool, int | None], list[Due]] = {}
    for one in due:
        alike.setdefault((one.shape.is_compiled, one.shape.where), []).append(one)
    batch: list[Due] = []
    answers = 0
    for several in alike.values():
        most = _FEW_ANSWERS
        for one in several:
            own = one.windows * groups
            is_other = batch and batch[0].shape.is_compiled != one.shape.is_compiled
            if batch and (is_other or answers + own > most):
                yield batch
                batch, answers = [], 0
            batch.append(one)
            answers, most = answers + own, _MOST_ANSWERS
    yield batch


def _together(
    panes: PaneTables, batch: Sequence[Due], finish: Finish
) -> Iterator[tuple[Shape, dict[str, pa.Table]]]:
    """Shapes whose pieces are all numbers: every piece is rolled once for all of them."""
    runs = Runs.of(batch, panes.starts)
    users: dict[Wanted, list[int]] = {}
    for i, one in enumerate(batch):
        for wanted in dict.fromkeys([one.shape.counted, *one.shape.pieces]):
            users.setdefault(wanted, []).append(i)
    panes.prepare(users)
    rolled = spread(
        workers(),
        lambda wanted: _roll(panes, wanted, [runs.parts[i] for i in users[wanted]], runs),
        users,
        rows=panes.size,
    )
    found: list[dict[Wanted, Columns]] = [{} for _ in batch]
    for (wanted, using), each in zip(users.items(), rolled, strict=True):
        for i, columns in zip(using, each, strict=True):
            found[i][wanted] = columns
    axis, width = batch[0].shape.plan.axis, len(panes.groups)
    starts, ends = (axis.label(np.repeat(x, width)) for x in (runs.starts, runs.ends))
    keys = panes.keys(max(p.stop - p.start for p in runs.parts))

    def cut_apart(i: int) -> dict[str, pa.Table]:
        part, length = runs.parts[i], runs.parts[i].stop - runs.parts[i].start
        given = [c.slice(part.start * width, length * width) for c in (starts, ends)]
        given += [c.slice(0, length * width) for c in keys]
        return _cut_apart(batch[i], given, width, found[i], finish)

    tables = spread(
        workers(), cut_apart, range(len(batch)), rows=len(runs.first) * width // len(batch)
    )
    for one, table in zip(batch, tables, strict=True):
        yield one.shape, table


def _roll(panes: PaneTables, wanted: Wanted, parts: Sequence[slice], runs: Runs) -> list[Columns]:
    """A piece under its filter, for all keys in each window of some shapes."""
    monoid, width = wanted.piece.monoid, len(panes.groups)
    assert isinstance(monoid, Lanes)
    first = np.concatenate([runs.first[p] for p in parts])
    last = np.concatenate([runs.last[p] for p in parts])
    table = prefix_differences if monoid.op is Op.ADD else disjoint_table
    rolled = table(monoid, panes.matrix(wanted), first, last, groups=width)
    bounds = accumulate((p.stop - p.start for p in parts), initial=0)
    return [rolled[:, a * width : b * width] for a, b in pairwise(bounds)]


def _cut_apart(
    one: Due,
    given: list[pa.Array],
    width: int,
    rolled: Mapping[Wanted, Columns],
    finish: Finish,
) -> dict[str, pa.Table]:
    """The answers of one shape: lowered, selected, and a slice for each query."""
    shape = one.shape
    counts = rolled[shape.counted][0]
    bounds = np.zeros(len(one.which) + 1, dtype=np.int64)
    np.cumsum(np.maximum(one.end - one.first, 0) * width, out=bounds[1:])
    if not counts.all():
        kept = np.flatnonzero(counts)
        taken = pa.array(kept)
        given = [c.take(taken) for c in given]
        rolled = {w: np.take(c, kept, axis=1) for w, c in rolled.items()}
        bounds = np.searchsorted(kept, bounds)
    lowered = []
    for need in shape.needs:
        assert isinstance(need.aggregate, Bounded)
        lowered.append(need.aggregate.lower([rolled[w] for w in need.pieces]))
    having, table = _finished(shape, [*given, *lowered], finish)
    if having is not None:
        bounds = np.searchsorted(having, bounds)
    return {
        shape.members[place].name: table.slice(a, b - a)
        for place, (a, b) in zip(one.which.tolist(), pairwise(bounds.tolist()), strict=True)
        if b > a
    }


def _finished(
    shape: Shape, columns: Sequence[pa.Array], finish: Finish
) -> tuple[NDArray[np.int64] | None, pa.Table]:
    """As `finish` does it; where that only names columns, without asking it."""
    if finish is selected and shape.outputs is not None and len(columns[0]):
        places, titles = shape.outputs
        return None, pa.table([columns[i] for i in places], names=titles)
    keys = len(columns) - len(WINDOW_COLUMNS) - len(shape.needs)
    names = [*WINDOW_COLUMNS, *(f"{KEY}{i}" for i in range(keys))]
    names += [f"{AGGREGATE}{i}" for i in range(len(shape.needs))]
    return finish(shape.plan, pa.table(columns, names=names))


def _one_by_one(
    store: SharedStore, panes: PaneTables, one: Due, finish: Finish
) -> dict[str, pa.Table]:
    """The answers of one shape, each query rolled by itself as if it were alone."""
    shape, found = one.shape, {}
    fragment, monoids = _filtered(store, panes, shape)
    for place, first, end in zip(
        one.which.tolist(), one.first.tolist(), one.end.tolist(), strict=True
    ):
        member = shape.members[place]
        alone = PaneStore(member.spec, monoids, workers())
        alone.fragments = (fragment,)
        if end <= first or not len(fragment):
            continue
        rolled = alone.answer(first, end, store.groups.order)
        if not len(rolled.cover):
            continue
        order = by_window(rolled)
        lowered = [
            column.take(pa.array(order)) for column in _lowered(store, shape, member, rolled)
        ]
        table = named(shape.plan.axis, member.spec, store.groups, rolled, order, lowered)
        table = finish(shape.plan, table)[1]
        if len(table):
            found[member.name] = table
    return found


def _lowered(
    store: SharedStore, shape: Shape, member: Member, rolled: Rolled
) -> Iterator[pa.Array]:
    partials = dict(zip(shape.pieces, rolled.partials, strict=True))
    multisets: dict[ValueSet, SlidingMultiset] = {
        v: store.values[v].over(member.spec).under(rolled) for v in shape.value_sets
    }
    for need in shape.needs:
        if isinstance(need.aggregate, Bounded):
            yield need.aggregate.lower([partials[w] for w in need.pieces])
        else:
            assert need.values is not None
            yield need.aggregate.lower(multisets[need.values])


def _filtered(store: SharedStore, panes: PaneTables, shape: Shape) -> tuple[Fragment, list[Monoid]]:
    """The panes of a shape: keys without classes, its pieces under their filters."""
    whole = panes.whole()
    own = np.flatnonzero(store.holding(shape.where)[whole.kinds])
    numbers, pairs = compact_slots(whole.cells[own], panes.size)
    place = np.full(len(whole.cells), -1, dtype=np.int64)
    place[own] = numbers
    partials, monoids = [], []
    for wanted in shape.pieces:
        own = np.flatnonzero(store.holding(wanted.where)[whole.kinds])
        monoid = wanted.piece.monoid
        held = np.take(whole.partials[wanted.piece], own, axis=1)
        partials.append(merge_slots(monoid, held, place[own], len(pairs)))
        monoids.append(monoid)
    width = len(panes.groups)
    fragment = Fragment(panes.starts[pairs // width], panes.groups[pairs % width], tuple(partials))
    return fragment, monoids
