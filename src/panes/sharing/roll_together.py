"""Many due windows of many queries, answered from one store in one pass.

Pieces that several queries need are rolled once, and queries that differ only in windows and
filters are lowered and named together::

    due windows of all queries ─► runs of panes [first, last)
    every piece                ─► a table per filter, panes x keys ─► one combine per (window, key)
    queries with equal calls   ─► lower, select and project ─► a portion: one table, cut by query

Where panes hold few of the keys, or a piece is not made of numbers, each query is rolled by itself
(`panes.sharing.roll_alone`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Bounded, Piece
from panes.aggregates.lanes import INTEGER_OPS, Op
from panes.aggregates.monoid import Columns, Lanes
from panes.answers.portions import Portion
from panes.answers.select import selected
from panes.arrays.spread import spread
from panes.arrays.workers import workers
from panes.kernels.disjoint_table import disjoint_table
from panes.kernels.prefix_differences import prefix_differences
from panes.language.query import WINDOW_COLUMNS
from panes.planning.answer_columns import lowered_names
from panes.sharing.classed_panes import ClassedPanes
from panes.sharing.due import Due, Finish, Runs, span_of
from panes.sharing.pane_tables import Filter, PaneTables, tables_over
from panes.sharing.roll_alone import roll_alone
from panes.sharing.shape import Shape
from panes.windows.limit import require_room

_MOST_ANSWERS = 1 << 22
_FEW_ANSWERS = 1 << 20
_MOST_CELLS = 1 << 23
_LOWERED_AT_ONCE = 16  # answers that are lowered in the time in which one row is added up


@dataclass(slots=True)
class Bundle:
    """Shapes that are lowered together: the windows ``[begin, end)`` of a batch are theirs.

    `rolled` has the partials of what they want, in the order in which they list it.
    """

    due: list[Due]
    begin: int
    end: int
    rolled: dict[int, Columns] = field(default_factory=dict)


@dataclass(slots=True)
class RollJob:
    """What is rolled of one piece: the windows of some shapes, each under a filter.

    Windows stand bundle by bundle; `users` are these, and for which of their wants.
    """

    parts: list[int] = field(default_factory=list)
    filters: list[Filter] = field(default_factory=list)
    users: list[tuple[Bundle, list[int]]] = field(default_factory=list)


def answer(panes: ClassedPanes, due: Sequence[Due], finish: Finish = selected) -> Iterator[Portion]:
    """The answers of every query that has any, the first ones first.

    `finish` makes of windows, keys and lowered aggregates what is given.
    """
    lasting = passing = None
    compiled = {id(one) for one in due if _is_compiled(one, len(panes.fragments))}
    if compiled and len(panes.fragments):
        lasting = tables_over(panes)
    cells = 0 if lasting is None else lasting.size
    if lasting is not None and lasting.is_dense:
        compiled -= {id(one) for one in due if lasting.is_sparse_under(one.shape.where)}
        lasting.make(_wanted(lasting, [one.shape for one in due if id(one) in compiled]))
    for batch in _batches(due, compiled, len(panes.groups), cells):
        tables, is_compiled = lasting, id(batch[0]) in compiled
        if tables is None or not is_compiled or not tables.is_dense:
            if passing is None:
                under = panes.fragments.everything().between(*span_of(due))
                passing = PaneTables(panes, under)
            tables = passing
        if not tables.size:
            continue
        if is_compiled and tables.is_dense:
            require_room(sum(one.windows for one in batch) * len(tables.groups))
            yield from _together(tables, batch, finish)
        else:
            for one in batch:
                yield from roll_alone(panes, tables, one, finish)
    if lasting is not None:
        lasting.forget_whole()


def _wanted(tables: PaneTables, shapes: Iterable[Shape]) -> dict[Piece, list[Filter]]:
    """The pieces of some shapes, and the filters each is wanted under."""
    found: dict[Piece, list[Filter]] = {}
    for shape in shapes:
        for wanted in shape.wanted:
            found.setdefault(tables.same_as(wanted.piece), []).append(wanted.where)
    return found


def _is_compiled(one: Due, partials: int) -> bool:
    """Whether tables answer it: they have a cell for every due window, and visit the empty ones."""
    return one.shape.is_compiled and not one.is_mostly_empty(partials)


def _batches(
    due: Sequence[Due], compiled: Container[int], groups: int, cells: int
) -> Iterator[list[Due]]:
    """Shapes that are rolled together: those with the same filter, as far as they fit memory.

    Filters that few answers are due of share a batch, if their tables of so many cells fit too.
    """
    alike: dict[tuple[bool, Filter], list[Due]] = {}
    for one in due:
        alike.setdefault((id(one) in compiled, one.shape.where), []).append(one)
    batch: list[Due] = []
    answers = filters = 0
    for several in alike.values():
        most, filters = _FEW_ANSWERS, filters + 1
        for one in several:
            own = one.windows * groups
            is_other = batch and (id(batch[0]) in compiled) != (id(one) in compiled)
            is_full = answers + own > most or filters * cells > _MOST_CELLS
            if batch and (is_other or is_full):
                yield batch
                batch, answers, filters = [], 0, 1
            batch.append(one)
            answers, most = answers + own, _MOST_ANSWERS
    yield batch


def _together(tables: PaneTables, batch: Sequence[Due], finish: Finish) -> Iterator[Portion]:
    """Shapes whose pieces are all numbers: every piece is rolled once for all of them."""
    bundles = _bundles(batch)
    runs = Runs.of([one for bundle in bundles for one in bundle.due], tables.starts)
    jobs = _jobs(tables, bundles)
    is_lasting = tables.make({piece: job.filters for piece, job in jobs.items()})
    width = len(tables.groups)
    rolled = spread(
        workers(),
        lambda piece: _roll(tables, piece, jobs[piece], runs, is_lasting=is_lasting),
        jobs,
        rows=tables.size,
    )
    for job, partials in zip(jobs.values(), rolled, strict=True):
        begin = 0
        for bundle, wants in job.users:
            end = begin + (bundle.end - bundle.begin) * width
            bundle.rolled |= dict.fromkeys(wants, partials[:, begin:end])
            begin = end
    axis = batch[0].shape.plan.axis
    starts, ends = spread(
        workers(),
        lambda edges: axis.label(np.repeat(edges, width)),
        (runs.starts, runs.ends),
        rows=len(runs.first) * width,
    )
    keys = tables.keys(max(bundle.end - bundle.begin for bundle in bundles))

    def lower(bundle: Bundle) -> Portion:
        begin, length = bundle.begin * width, (bundle.end - bundle.begin) * width
        given = [c.slice(begin, length) for c in (starts, ends)]
        given += [c.slice(0, length) for c in keys]
        return _portion(bundle, given, width, finish)

    answers = len(runs.first) * width // len(bundles)
    yield from spread(workers(), lower, bundles, rows=answers // _LOWERED_AT_ONCE)


def _bundles(batch: Sequence[Due]) -> list[Bundle]:
    """Shapes that differ only in filters are one bundle; nearer deadlines come first."""
    alike: dict[tuple[int, int | None], list[Due]] = {}
    for one in batch:
        alike.setdefault((one.shape.alike, one.shape.least_deadline), []).append(one)
    bounds = accumulate((sum(one.windows for one in due) for due in alike.values()), initial=0)
    return [Bundle(due, *span) for due, span in zip(alike.values(), pairwise(bounds), strict=True)]


def _jobs(tables: PaneTables, bundles: Sequence[Bundle]) -> dict[Piece, RollJob]:
    """What there is to roll, by piece, each once; what takes longest comes first."""
    jobs: dict[Piece, RollJob] = {}
    part = 0
    for bundle in bundles:
        shapes = [one.shape for one in bundle.due]
        wants: dict[tuple[Piece, tuple[Filter, ...]], list[int]] = {}
        for index, wanted in enumerate(shapes[0].wanted):
            filters = tuple(shape.wanted[index].where for shape in shapes)
            wants.setdefault((tables.same_as(wanted.piece), filters), []).append(index)
        for (piece, filters), some in wants.items():
            job = jobs.setdefault(piece, RollJob())
            job.parts += range(part, part + len(shapes))
            job.filters += filters
            job.users.append((bundle, some))
        part += len(shapes)
    return dict(sorted(jobs.items(), key=lambda job: -_weight(job[0])))


def _weight(piece: Piece) -> int:
    """How long a combine takes, roughly: floats are rounded, integers are not."""
    monoid = piece.monoid
    assert isinstance(monoid, Lanes)
    return len(monoid.names) * (1 if monoid.op in INTEGER_OPS else 4)


def _roll(
    tables: PaneTables, piece: Piece, job: RollJob, runs: Runs, *, is_lasting: bool
) -> Columns:
    """A piece for all keys in each window of some shapes, under their filters."""
    monoid = piece.monoid
    assert isinstance(monoid, Lanes)
    parts = [runs.parts[p] for p in job.parts]
    first = np.concatenate([runs.first[p] for p in parts])
    last = np.concatenate([runs.last[p] for p in parts])
    if is_lasting:
        made = tables.tables(piece)
    else:
        stretch, first, last = _stretches(first, last, len(tables.starts))
        made = tables.stretched(piece, job.filters, stretch)
    indexes = np.array([made.indexes[f] for f in job.filters])
    of = np.repeat(indexes, [p.stop - p.start for p in parts])
    answer_runs = prefix_differences if monoid.op is Op.ADD else disjoint_table
    return answer_runs(monoid, made.stack, first, last, of=of, groups=len(tables.groups))


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


def _portion(bundle: Bundle, given: list[pa.Array], width: int, finish: Finish) -> Portion:
    """The answers of shapes that are alike: lowered, selected, with the bounds of each query."""
    shape, rolled = bundle.due[0].shape, bundle.rolled
    counts = rolled[0][0]
    windows = np.concatenate([np.maximum(one.end - one.first, 0) for one in bundle.due])
    bounds = np.concatenate([[0], np.cumsum(windows * width)])
    if not counts.all():
        found = np.flatnonzero(counts)
        taken = pa.array(found)
        given = [c.take(taken) for c in given]
        rolled = {index: np.take(c, found, axis=1) for index, c in rolled.items()}
        bounds = np.searchsorted(found, bounds)
    lowered = []
    for need, indexes in zip(shape.needs, shape.indexes_of_needs, strict=True):
        assert isinstance(need.aggregate, Bounded)
        lowered.append(need.aggregate.lower([rolled[i] for i in indexes]))
    having, table = _finished(shape, [*given, *lowered], finish)
    if having is not None:
        bounds = np.searchsorted(having, bounds)
    names = [name for one in bundle.due for name in one.shape.names(one.which)]
    return Portion.of(shape.answer_columns, names, bounds, table)


def _finished(
    shape: Shape, columns: Sequence[pa.Array], finish: Finish
) -> tuple[NDArray[np.int64] | None, pa.Table]:
    """As `finish` does it; where that only names columns, without asking it."""
    if finish is selected and shape.outputs is not None and len(columns[0]):
        indexes, titles = shape.outputs
        return None, pa.table([columns[i] for i in indexes], names=titles)
    keys = len(columns) - len(WINDOW_COLUMNS) - len(shape.needs)
    names = lowered_names(keys, len(shape.needs))
    return finish(shape.plan, pa.table(columns, names=names))
