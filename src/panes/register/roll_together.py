"""Many due windows of many queries, answered from one store in one pass.

Pieces that several queries need are rolled once, and queries that differ only in windows and
filters are lowered and named together::

    due windows of all queries ─► runs of panes [first, last)
    every piece                ─► a table per filter, panes x keys ─► one combine per (window, key)
    queries with equal calls   ─► lower, select and project ─► a portion: one table, cut by query

Where panes hold few of the keys, or a piece is not made of numbers, each query is rolled by itself
as it would be alone (`panes.windows.cover`), from panes to which its filter has been applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Bounded, Piece
from panes.algebra.lanes import INTEGER_OPS, Op
from panes.algebra.monoid import Columns, Lanes, Monoid, merge_slots
from panes.answers.lower import labelled
from panes.answers.portions import Portion
from panes.answers.select import selected
from panes.arrays.slots import compact_slots, places_among
from panes.arrays.spread import spread
from panes.arrays.workers import workers
from panes.fill.fragment import Fragment
from panes.kernels.disjoint_table import disjoint_table
from panes.kernels.prefix_differences import prefix_differences
from panes.kernels.sliding_multiset import SlidingMultiset
from panes.language.query import WINDOW_COLUMNS
from panes.planning.answer_columns import lowered_names
from panes.planning.plan import Plan
from panes.register.pane_tables import Filter, PaneTables, tables_over
from panes.register.shape import Member, Shape
from panes.register.shared_store import SharedStore
from panes.stores.contents import ValueSet
from panes.stores.panes import PaneStore, Rolled, by_window
from panes.windows.many import Rulers

_MOST_ANSWERS = 1 << 22
_FEW_ANSWERS = 1 << 20
_MOST_CELLS = 1 << 23
_LOWERED_AT_ONCE = 16  # answers that are lowered in the time in which one row is added up

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
        first, last = places_among(panes, starts), places_among(panes, ends)
        bounds = accumulate((one.windows for one in due), initial=0)
        return cls(starts, ends, first, last, [slice(a, b) for a, b in pairwise(bounds)])


@dataclass(slots=True)
class Group:
    """Shapes that are lowered together: the windows ``[begin, end)`` of a batch are theirs.

    `rolled` has the partials of what they want, in the order in which they list it.
    """

    due: list[Due]
    begin: int
    end: int
    rolled: dict[int, Columns] = field(default_factory=dict)


@dataclass(slots=True)
class Job:
    """What is rolled of one piece: the windows of some shapes, each under a filter.

    Windows stand group by group; `users` are these, and for which of their wants.
    """

    parts: list[int] = field(default_factory=list)
    filters: list[Filter] = field(default_factory=list)
    users: list[tuple[Group, list[int]]] = field(default_factory=list)


def answer(store: SharedStore, due: Sequence[Due], finish: Finish = selected) -> Iterator[Portion]:
    """The answers of every query that has any, the first ones first.

    `finish` makes of windows, keys and lowered aggregates what is given.
    """
    kept = under = None
    if any(one.shape.is_compiled for one in due) and len(store.fragments):
        kept = tables_over(store)
    cells = 0 if kept is None else kept.size
    if kept is not None and kept.is_dense:
        kept.make(_wanted(kept, [one.shape for one in due if one.shape.is_compiled]))
    for batch in _batches(due, len(store.groups), cells):
        panes, is_compiled = kept, batch[0].shape.is_compiled
        if panes is None or not is_compiled or not panes.is_dense:
            panes = under = PaneTables(store, _under(store, due)) if under is None else under
        if not panes.size:
            continue
        if is_compiled and panes.is_dense:
            yield from _together(panes, batch, finish)
        else:
            for one in batch:
                yield from _one_by_one(store, panes, one, finish)
    if kept is not None:
        kept.forget_whole()


def _wanted(panes: PaneTables, shapes: Iterable[Shape]) -> dict[Piece, list[Filter]]:
    """The pieces of some shapes, and the filters each is wanted under."""
    found: dict[Piece, list[Filter]] = {}
    for shape in shapes:
        for wanted in shape.wanted:
            found.setdefault(panes.same_as(wanted.piece), []).append(wanted.where)
    return found


def _under(store: SharedStore, due: Sequence[Due]) -> Fragment:
    """The panes under all due windows."""
    lows, highs = [], []
    for one in due:
        some = np.flatnonzero(one.end > one.first)
        rulers = one.shape.rulers.take(one.which[some])
        lows.append(int(rulers.starts(one.first[some]).min()))
        highs.append(int((rulers.starts(one.end[some] - 1) + rulers.size).max()))
    return store.fragments.everything().between(min(lows), max(highs))


def _batches(due: Sequence[Due], groups: int, cells: int) -> Iterator[list[Due]]:
    """Shapes that are rolled together: those with the same filter, as far as they fit memory.

    Filters that few answers are due of share a batch, if their tables of so many cells fit too.
    """
    alike: dict[tuple[bool, Filter], list[Due]] = {}
    for one in due:
        alike.setdefault((one.shape.is_compiled, one.shape.where), []).append(one)
    batch: list[Due] = []
    answers = filters = 0
    for several in alike.values():
        most, filters = _FEW_ANSWERS, filters + 1
        for one in several:
            own = one.windows * groups
            is_other = batch and batch[0].shape.is_compiled != one.shape.is_compiled
            is_full = answers + own > most or filters * cells > _MOST_CELLS
            if batch and (is_other or is_full):
                yield batch
                batch, answers, filters = [], 0, 1
            batch.append(one)
            answers, most = answers + own, _MOST_ANSWERS
    yield batch


def _together(panes: PaneTables, batch: Sequence[Due], finish: Finish) -> Iterator[Portion]:
    """Shapes whose pieces are all numbers: every piece is rolled once for all of them."""
    groups = _groups(batch)
    runs = Runs.of([one for group in groups for one in group.due], panes.starts)
    jobs = _jobs(panes, groups)
    is_kept = panes.make({piece: job.filters for piece, job in jobs.items()})
    width = len(panes.groups)
    rolled = spread(
        workers(),
        lambda piece: _roll(panes, piece, jobs[piece], runs, is_kept=is_kept),
        jobs,
        rows=panes.size,
    )
    for job, partials in zip(jobs.values(), rolled, strict=True):
        begin = 0
        for group, places in job.users:
            end = begin + (group.end - group.begin) * width
            group.rolled |= dict.fromkeys(places, partials[:, begin:end])
            begin = end
    axis = batch[0].shape.plan.axis
    starts, ends = spread(
        workers(),
        lambda edges: axis.label(np.repeat(edges, width)),
        (runs.starts, runs.ends),
        rows=len(runs.first) * width,
    )
    keys = panes.keys(max(group.end - group.begin for group in groups))

    def lower(group: Group) -> Portion:
        begin, length = group.begin * width, (group.end - group.begin) * width
        given = [c.slice(begin, length) for c in (starts, ends)]
        given += [c.slice(0, length) for c in keys]
        return _portion(group, given, width, finish)

    answers = len(runs.first) * width // len(groups)
    yield from spread(workers(), lower, groups, rows=answers // _LOWERED_AT_ONCE)


def _groups(batch: Sequence[Due]) -> list[Group]:
    """Shapes that differ only in filters are one group; those with a nearer deadline come first."""
    alike: dict[tuple[int, int | None], list[Due]] = {}
    for one in batch:
        alike.setdefault((one.shape.alike, one.shape.least_deadline), []).append(one)
    bounds = accumulate((sum(one.windows for one in due) for due in alike.values()), initial=0)
    return [Group(due, *span) for due, span in zip(alike.values(), pairwise(bounds), strict=True)]


def _jobs(panes: PaneTables, groups: Sequence[Group]) -> dict[Piece, Job]:
    """What there is to roll, by piece, each once; what takes longest comes first."""
    jobs: dict[Piece, Job] = {}
    part = 0
    for group in groups:
        shapes = [one.shape for one in group.due]
        places: dict[tuple[Piece, tuple[Filter, ...]], list[int]] = {}
        for place, wanted in enumerate(shapes[0].wanted):
            filters = tuple(shape.wanted[place].where for shape in shapes)
            places.setdefault((panes.same_as(wanted.piece), filters), []).append(place)
        for (piece, filters), some in places.items():
            job = jobs.setdefault(piece, Job())
            job.parts += range(part, part + len(shapes))
            job.filters += filters
            job.users.append((group, some))
        part += len(shapes)
    return dict(sorted(jobs.items(), key=lambda job: -_weight(job[0])))


def _weight(piece: Piece) -> int:
    """How long a combine takes, roughly: floats are rounded, integers are not."""
    monoid = piece.monoid
    assert isinstance(monoid, Lanes)
    return len(monoid.names) * (1 if monoid.op in INTEGER_OPS else 4)


def _roll(panes: PaneTables, piece: Piece, job: Job, runs: Runs, *, is_kept: bool) -> Columns:
    """A piece for all keys in each window of some shapes, under their filters."""
    monoid = piece.monoid
    assert isinstance(monoid, Lanes)
    parts = [runs.parts[p] for p in job.parts]
    first = np.concatenate([runs.first[p] for p in parts])
    last = np.concatenate([runs.last[p] for p in parts])
    if is_kept:
        tables = panes.tables(piece)
    else:
        stretch, first, last = _stretches(first, last, len(panes.starts))
        tables = panes.stretched(piece, job.filters, stretch)
    places = np.array([tables.places[f] for f in job.filters])
    of = np.repeat(places, [p.stop - p.start for p in parts])
    answer_runs = prefix_differences if monoid.op is Op.ADD else disjoint_table
    return answer_runs(monoid, tables.stack, first, last, of=of, groups=len(panes.groups))


def _stretches(
    first: NDArray[np.int64], last: NDArray[np.int64], panes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The stretch of each pane, and runs of stretches for runs of panes.

    >>> _stretches(np.array([1, 3]), np.array([5, 5]), 6)
    (array([-1,  0,  0,  1,  1,  2]), array([0, 1]), array([2, 2]))
    """
    is_edge = np.zeros(panes + 1, dtype=np.int64)
    is_edge[first] = is_edge[last] = 1
    number = np.cumsum(is_edge) - 1
    return number[:-1], number[first], number[last]


def _portion(group: Group, given: list[pa.Array], width: int, finish: Finish) -> Portion:
    """The answers of shapes that are alike: lowered, selected, with the bounds of each query."""
    shape, rolled = group.due[0].shape, group.rolled
    counts = rolled[0][0]
    windows = np.concatenate([np.maximum(one.end - one.first, 0) for one in group.due])
    bounds = np.concatenate([[0], np.cumsum(windows * width)])
    if not counts.all():
        kept = np.flatnonzero(counts)
        taken = pa.array(kept)
        given = [c.take(taken) for c in given]
        rolled = {place: np.take(c, kept, axis=1) for place, c in rolled.items()}
        bounds = np.searchsorted(kept, bounds)
    lowered = []
    for need, places in zip(shape.needs, shape.places_of_needs, strict=True):
        assert isinstance(need.aggregate, Bounded)
        lowered.append(need.aggregate.lower([rolled[p] for p in places]))
    having, table = _finished(shape, [*given, *lowered], finish)
    if having is not None:
        bounds = np.searchsorted(having, bounds)
    names = [name for one in group.due for name in one.shape.names(one.which)]
    return Portion.of(shape.answer_columns, names, bounds, table)


def _finished(
    shape: Shape, columns: Sequence[pa.Array], finish: Finish
) -> tuple[NDArray[np.int64] | None, pa.Table]:
    """As `finish` does it; where that only names columns, without asking it."""
    if finish is selected and shape.outputs is not None and len(columns[0]):
        places, titles = shape.outputs
        return None, pa.table([columns[i] for i in places], names=titles)
    keys = len(columns) - len(WINDOW_COLUMNS) - len(shape.needs)
    names = lowered_names(keys, len(shape.needs))
    return finish(shape.plan, pa.table(columns, names=names))


def _one_by_one(
    store: SharedStore, panes: PaneTables, one: Due, finish: Finish
) -> Iterator[Portion]:
    """The answers of one shape, each query rolled by itself as if it were alone."""
    shape = one.shape
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
        keys = store.groups.columns(rolled.groups)
        table = labelled(shape.plan.axis, member.spec, keys, rolled.cover, order, lowered)
        table = finish(shape.plan, table)[1]
        if len(table):
            yield Portion(shape.answer_columns, [member.name], np.array([0, len(table)]), table)


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
    own = np.flatnonzero(store.holding(shape.where)[whole.classes])
    width = len(panes.groups)
    cells = whole.panes[own].astype(np.int64) * width + whole.ranks[own]
    numbers, pairs = compact_slots(cells, panes.size)
    place = np.full(len(whole.classes), -1, dtype=np.int64)
    place[own] = numbers
    partials, monoids = [], []
    for wanted in shape.pieces:
        own = np.flatnonzero(store.holding(wanted.where)[whole.classes])
        monoid = wanted.piece.monoid
        stored = np.take(whole.partials[wanted.piece], own, axis=1)
        partials.append(merge_slots(monoid, stored, place[own], len(pairs)))
        monoids.append(monoid)
    fragment = Fragment(panes.starts[pairs // width], panes.groups[pairs % width], tuple(partials))
    return fragment, monoids
