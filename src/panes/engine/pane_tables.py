"""What the panes of a store say of each piece under its filter: one matrix, panes by keys.

A matrix is made once, when a burst first needs it, and kept for the bursts to come. Partials that
are added to the store are combined into every matrix that is kept, wherever they lie, so rows that
come late are no exception. What would move panes or keys (a key that is new, a pane between two
others, half of the panes gone, fragments that were changed in any other way) starts anew.

Invariant: kept matrices are what they would be if they were made now, of all that the store holds
and of panes that it has evicted, which no window reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Piece
from panes.algebra.lanes import combine_cells, combine_runs, combine_slots
from panes.algebra.monoid import Columns, Lanes
from panes.engine.shape import Wanted
from panes.engine.workers import workers
from panes.stores.fragments import Fragment
from panes.stores.radix import sort
from panes.stores.spread import spread

if TYPE_CHECKING:
    from panes.engine.shared_store import SharedStore

# Below one filled pair in so many, going through the panes of each query visits less.
_SPARSE = 16
_MOST_KEPT = 1 << 24
_MANY_CLASSES = 64


@dataclass(frozen=True, slots=True)
class Placed:
    """Partials, and for each of them its cell, pane times keys plus key, and its class.

    Where there are many classes, partials stand class by class, and `begins` says where each does.
    """

    partials: Mapping[Piece, Columns]
    cells: NDArray[np.int64]
    kinds: NDArray[np.int64]
    begins: NDArray[np.int64] | None = None

    def by_class(self, classes: int) -> Placed:
        """The same, class by class: a filter then only visits what it lets through."""
        order, kinds = sort(self.kinds)
        moved = {id(p): p for p in self.partials.values()}
        taken = spread(
            workers(), lambda p: np.take(p, order, axis=1), moved.values(), rows=len(order)
        )
        of = dict(zip(moved, taken, strict=True))
        partials = {piece: of[id(p)] for piece, p in self.partials.items()}
        begins = np.searchsorted(kinds, np.arange(classes + 1))
        return Placed(partials, self.cells[order], kinds, begins)


class PaneTables:
    """The panes of a fragment of a store, as matrices: pane by pane, each with all keys in order.

    `starts` are where the panes begin, `groups` the keys.
    """

    def __init__(self, store: SharedStore, held: Fragment) -> None:
        self._store, self._partials = store, len(held)
        self._held: Fragment | None = held
        self.starts = held.starts[_is_first(held.starts)]
        self.groups = store.groups.order(np.flatnonzero(np.bincount(held.groups // store.width)))
        self._rank = np.full(int(self.groups.max(initial=-1)) + 1, -1, dtype=np.int64)
        self._rank[self.groups] = np.arange(len(self.groups))
        self._capacity = len(self.starts)
        self._kept: dict[Wanted, Columns] = {}
        self._whole: Placed | None = None

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Kept for speed alone: whoever gets a copy makes it anew."""
        return type(None), ()

    @property
    def size(self) -> int:
        """How many pairs of a pane and a key there could be."""
        return len(self.starts) * len(self.groups)

    @property
    def is_dense(self) -> bool:
        """Whether a matrix is no waste."""
        return self.size <= _SPARSE * self._partials + 65_536

    def is_mostly_held(self) -> bool:
        """Whether half of the panes, or more, are still held."""
        span = self._store.fragments.span()
        return span is not None and span[0] <= self.starts[len(self.starts) // 2]

    def keys(self, windows: int) -> list[pa.Array]:
        """The key columns of so many windows, each with all keys."""
        taken = pa.array(np.tile(np.arange(len(self.groups)), windows))
        return [c.take(taken) for c in self._store.groups.columns(self.groups)]

    def matrix(self, wanted: Wanted) -> Columns:
        """A piece under its filter, for every pane and key; behind the last pane there is room."""
        if wanted in self._kept:
            return self._kept[wanted]
        into = _lanes(wanted).empty(self._capacity * len(self.groups))
        self._combine(wanted, into, self.whole())
        if (len(self._kept) + 1) * into.size <= _MOST_KEPT:
            self._kept[wanted] = into
        return into

    def prepare(self, wanted: Iterable[Wanted]) -> None:
        """Before several threads ask for matrices: find what all of them need."""
        if not self._kept.keys() >= set(wanted):
            self.whole()

    def whole(self) -> Placed:
        """All partials, placed."""
        if self._whole is None:
            held = self._store.fragments.everything() if self._held is None else self._held
            whole, classes = self._located(held), len(self._store.holding(None))
            assert whole is not None
            self._whole = whole if classes < _MANY_CLASSES else whole.by_class(classes)
        return self._whole

    def forget_whole(self) -> None:
        """Keep the matrices alone."""
        self._whole = self._held = None

    def _combine(self, wanted: Wanted, into: Columns, placed: Placed) -> None:
        monoid, partials = _lanes(wanted), placed.partials[wanted.piece]
        if wanted.where is None:
            combine_slots(int(monoid.op), len(into))(into, partials, placed.cells)
            return
        holds = self._store.holding(wanted.where)
        if placed.begins is None:
            combine = combine_cells(int(monoid.op), len(into))
            combine(into, partials, placed.cells, placed.kinds, holds)
        else:
            combine = combine_runs(int(monoid.op), len(into))
            combine(into, partials, placed.cells, placed.begins, np.flatnonzero(holds))

    def take(self, fragment: Fragment) -> bool:
        """Take in what was added to the store; says whether there was a place for all of it."""
        before = len(self.starts)
        placed = self._located(fragment)
        if placed is None:
            return False
        self._partials += len(fragment)
        self.forget_whole()
        if len(self.starts) > self._capacity:
            self._grow(before)
        items = list(self._kept.items())
        spread(workers(), lambda i: self._combine(*i, placed), items, rows=len(fragment))
        return True

    def _located(self, fragment: Fragment) -> Placed | None:
        """Where partials belong; new panes are put behind the others. None if there is no place."""
        is_first = _is_first(fragment.starts)
        starts = fragment.starts[is_first]
        known = int(np.searchsorted(starts, self.starts[-1], side="right"))
        place = np.searchsorted(self.starts, starts)
        group, kinds = np.divmod(fragment.groups, self._store.width)
        is_known = group.max(initial=0) < len(self._rank) and (self._rank[group] >= 0).all()
        if not is_known or (self.starts[place[:known]] != starts[:known]).any():
            return None
        place[known:] = len(self.starts) + np.arange(len(starts) - known)
        self.starts = np.concatenate([self.starts, starts[known:]])
        pane = place[np.cumsum(is_first) - 1]
        partials = dict(zip(self._store.pieces, fragment.partials, strict=True))
        return Placed(partials, pane * len(self.groups) + self._rank[group], kinds)

    def _grow(self, before: int) -> None:
        """Make room for twice as many panes."""
        self._capacity, filled = 2 * len(self.starts), before * len(self.groups)
        for wanted, table in self._kept.items():
            larger = _lanes(wanted).empty(self._capacity * len(self.groups))
            larger[:, :filled] = table[:, :filled]
            self._kept[wanted] = larger


def tables_over(store: SharedStore) -> PaneTables:
    """The matrices of all panes of a store: those that are kept, up to date, or new ones."""
    news, kept, store.tables = store.fragments.news(), store.tables, None
    if kept is None or news is None or not (kept.is_mostly_held() and all(map(kept.take, news))):
        kept = PaneTables(store, store.fragments.everything())
    store.tables = kept
    return kept


def _lanes(wanted: Wanted) -> Lanes:
    monoid = wanted.piece.monoid
    assert isinstance(monoid, Lanes)
    return monoid


def _is_first(starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which partials are the first of their pane."""
    is_first = np.ones(len(starts), dtype=np.bool_)
    is_first[1:] = starts[1:] != starts[:-1]
    return is_first
