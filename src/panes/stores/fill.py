"""Fill: rows into panes, one partial per pane and group (the pane-level query, PLQ).

Stateless but for the numbers given to keys, so any split of the rows into batches fills the same
panes. Each row is touched once per piece, whatever the overlap of the windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np
from numpy.typing import NDArray

from panes.aggregates.aggregate import Piece, Rows, Selection
from panes.aggregates.arithmetic import Count
from panes.aggregates.monoid import Columns, Slots
from panes.arrays.ordering import is_sorted, number_pairs, stable_order
from panes.arrays.slots import Ragged, is_dense, packed
from panes.arrays.spread import spread
from panes.stores.fragment import Fragment
from panes.windows.cut import Cut

ALL_ROWS = Count(Selection())


def fill(
    rows: Rows,
    groups: NDArray[np.int32],
    group_count: int,
    *,
    cut: Cut,
    pieces: Sequence[Piece],
    executor: Executor,
    cut_at: NDArray[np.int64] | None = None,
) -> Fragment:
    """One fragment of partials from a batch of rows, cut at their positions or at `cut_at`."""
    at = rows.at if cut_at is None else cut_at
    if not len(rows):
        nothing = np.empty(0, dtype=np.int64)
        return Fragment(nothing, nothing, tuple(p.monoid.empty(0) for p in pieces))
    base = int(cut.pane_start(at.min(keepdims=True))[0])
    panes = int((at.max() - base) // cut.grid) + 1
    cells = panes * group_count
    if len(rows) < cells and is_dense(len(rows), cells) and is_sorted(at):
        return _fill_pairs(rows, cut.pane_start(at), groups, group_count, pieces, executor)
    if is_dense(len(rows), cells):
        slots = cut.pane_slots(at, base, groups, group_count)
        pairs, partials = _fill_table(rows, slots, cells, pieces, executor)
        starts = base + pairs // group_count * cut.grid
        return Fragment(starts, pairs % group_count, partials)
    if panes < 1 << 31 and is_dense(len(rows), group_count):
        pane = cut.pane_slots(at, base, np.zeros_like(groups), 1)
        ragged = Ragged.over(pane, groups, group_count)
        if is_dense(len(rows), ragged.size):
            slots = ragged.slots(pane, groups)
            pairs, partials = _fill_table(rows, slots, ragged.size, pieces, executor)
            return _by_pane(ragged, pairs, partials, base, cut.grid)
    return _fill_pairs(rows, cut.pane_start(at), groups, None, pieces, executor)


def _fill_pairs(
    rows: Rows,
    starts: NDArray[np.int64],
    groups: NDArray[np.int32],
    width: int | None,
    pieces: Sequence[Piece],
    executor: Executor,
) -> Fragment:
    """Lift into the pairs that occur only; see `number_pairs` for the `width` of the groups."""
    slots, panes, numbers = number_pairs(starts, groups, width=width)
    meant = [_plainest(p, rows) for p in pieces]
    of = _lift(meant, rows, slots, len(panes), executor)
    return Fragment(panes, numbers, tuple(of[p] for p in meant))


def _fill_table(
    rows: Rows, slots: Slots, size: int, pieces: Sequence[Piece], executor: Executor
) -> tuple[NDArray[np.int64], tuple[Columns, ...]]:
    """Lift into every slot of a table; the slots that got a row, and their partials."""
    meant = [_plainest(p, rows) for p in pieces]
    lifted = _lift([ALL_ROWS, *meant], rows, slots, size, executor)
    filled = np.flatnonzero(lifted[ALL_ROWS][0])
    dense = spread(executor, lambda p: packed(p, filled), lifted.values(), rows=len(filled))
    of = dict(zip(lifted, dense, strict=True))
    return filled, tuple(of[p] for p in meant)


def _lift(
    pieces: Sequence[Piece], rows: Rows, slots: Slots, size: int, executor: Executor
) -> dict[Piece, Columns]:
    """The partials of every piece, each lifted once however often it is needed."""
    wanted = list(dict.fromkeys(pieces))
    lifted = spread(executor, lambda p: p.lift(rows, slots, size), wanted, rows=len(rows))
    return dict(zip(wanted, lifted, strict=True))


def _by_pane(
    ragged: Ragged,
    slots: NDArray[np.int64],
    partials: Sequence[Columns],
    base: int,
    grid: int,
) -> Fragment:
    """Partials that stand group by group, as a fragment."""
    panes, groups = ragged.pairs(slots)
    order = stable_order(panes)
    of = {id(p): np.take(p, order, axis=1) for p in partials}
    starts = base + panes[order] * grid
    return Fragment(starts, groups[order], tuple(of[id(p)] for p in partials))


def _plainest(piece: Piece, rows: Rows) -> Piece:
    """``count(x)`` is ``count(*)`` in a batch where x is never NULL, and shares its partials."""
    if isinstance(piece, Count) and piece.selection.keeps_all(rows):
        return ALL_ROWS
    return piece
