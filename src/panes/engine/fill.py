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
from panes.algebra.monoid import Slots
from panes.stores.panes import Fragment
from panes.stores.slots import compact_slots, is_dense
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
) -> Fragment:
    """One fragment of partials from a batch of rows."""
    if not len(rows):
        nothing = np.empty(0, dtype=np.int64)
        return Fragment(nothing, nothing, tuple(p.monoid.empty(0) for p in pieces))
    base = int(cut.pane_start(rows.at.min(keepdims=True))[0])
    domain = (int((rows.at.max() - base) // cut.grid) + 1) * group_count
    if is_dense(len(rows), domain):
        slots = cut.pane_slots(rows.at, base, groups, group_count)
        return _fill_table(rows, slots, domain, base, group_count, cut.grid, pieces, executor)
    starts = cut.pane_start(rows.at)
    panes, pane = np.unique(starts, return_inverse=True)
    slots, pairs = compact_slots(pane * group_count + groups, len(panes) * group_count)
    slots = slots.astype(np.int32)
    partials = executor.map(lambda p: p.lift(rows, slots, len(pairs)), pieces)
    return Fragment(panes[pairs // group_count], pairs % group_count, tuple(partials))


def _fill_table(
    rows: Rows,
    slots: Slots,
    domain: int,
    base: int,
    group_count: int,
    grid: int,
    pieces: Sequence[Piece],
    executor: Executor,
) -> Fragment:
    """Lift into every slot of a dense table, then keep the slots that got a row."""
    meant = [_plainest(p, rows) for p in pieces]
    wanted = list(dict.fromkeys([ALL_ROWS, *meant]))
    lifted = list(executor.map(lambda p: p.lift(rows, slots, domain), wanted))
    pairs = np.flatnonzero(lifted[0][0])
    kept = executor.map(lambda partials: np.take(partials, pairs, axis=1), lifted)
    of = dict(zip(wanted, kept, strict=True))
    starts, groups = base + pairs // group_count * grid, pairs % group_count
    return Fragment(starts, groups, tuple(of[p] for p in meant))


def _plainest(piece: Piece, rows: Rows) -> Piece:
    """``count(x)`` is ``count(*)`` in a batch where x is never NULL, and shares its partials."""
    if isinstance(piece, Count) and piece.selection.keeps_all(rows):
        return ALL_ROWS
    return piece
