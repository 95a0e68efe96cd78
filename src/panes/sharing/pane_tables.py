"""What the panes of a store say of each piece, under each filter: tables, panes by keys.

Tables are made once, when a round of answers first needs them, and used again by later rounds.
Partials that are added to the store are combined into every table, wherever they lie, so rows that
come late are no exception. What would move panes or keys (a key that is new, a pane between two
others, half of the panes gone, fragments that were changed in any other way) starts anew.

Where tables would take too much memory to stay, those of a round are made for it alone: of
*stretches*, panes that none of its windows begins or ends between, which are far fewer.

Invariant: tables that stay are what they would be if they were made now, of all that is stored
and of panes that were evicted, which no window reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Piece
from panes.aggregates.lanes import combine_cells
from panes.aggregates.monoid import Columns, Lanes
from panes.arrays.spread import spread
from panes.arrays.workers import workers
from panes.sharing.classed_panes import ClassedPanes
from panes.stores.fragment import Fragment

Filter = int | None
"""A filter by its number; None: all rows."""

# Below one filled pair in so many, going through the panes of each query visits less.
_SPARSE = 16
_FEW_CELLS = 65_536
_MOST_STORED = 1 << 24


@dataclass(frozen=True, slots=True)
class Located:
    """Partials, and for each of them its pane, its key's rank, and its class."""

    partials: Mapping[Piece, Columns]
    panes: NDArray[np.int32]
    ranks: NDArray[np.int32]
    classes: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Classed:
    """The indexes of partials class by class: those of class `c` begin at ``begins[c]``."""

    order: NDArray[np.int64]
    begins: NDArray[np.int64]


@dataclass(slots=True)
class Tables:
    """The tables of one piece: lanes by filters by cells. Each filter has its index."""

    indexes: dict[Filter, int]
    stack: Columns

    @classmethod
    def empty(cls, filters: Sequence[Filter], monoid: Lanes, cells: int) -> Tables:
        """Tables of so many cells, with nothing in them."""
        stack = monoid.empty(len(filters) * cells).reshape(-1, len(filters), cells)
        return cls({f: i for i, f in enumerate(filters)}, stack)

    def grown(self, monoid: Lanes, cells: int, filled: int) -> Tables:
        """The same with more cells; so many are filled."""
        larger = Tables.empty(list(self.indexes), monoid, cells)
        larger.stack[:, :, :filled] = self.stack[:, :, :filled]
        return larger

    def joined(self, other: Tables) -> Tables:
        """These and those of other filters."""
        behind = {f: len(self.indexes) + i for f, i in other.indexes.items()}
        return Tables(self.indexes | behind, np.concatenate([self.stack, other.stack], axis=1))


class PaneTables:
    """The panes of a fragment of a store, as tables: pane by pane, each with all keys in order.

    `starts` are where the panes begin, `groups` the keys. Tables that are `is_spoilt` hold what a
    step had combined into them that was undone.
    """

    def __init__(self, panes: ClassedPanes, stored: Fragment) -> None:
        self._panes, self._partials = panes, len(stored)
        self._stored: Fragment | None = stored
        self.starts = stored.starts[_is_first(stored.starts)]
        self.groups = panes.groups.order(np.flatnonzero(np.bincount(stored.groups // panes.width)))
        self._rank = np.full(int(self.groups.max(initial=-1)) + 1, -1, dtype=np.int32)
        self._rank[self.groups] = np.arange(len(self.groups))
        self._capacity = len(self.starts)
        self._tables: dict[Piece, Tables] = {}
        self._whole: Located | None = None
        self._by_class: Classed | None = None
        self._keys: list[pa.Array] = []
        self._windows = 0  # that there are keys for
        self.is_spoilt = False
        first: dict[int, Piece] = {}
        pairs = zip(panes.pieces, stored.partials, strict=True)
        self._same = {piece: first.setdefault(id(own), piece) for piece, own in pairs}

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """There for speed alone: whoever gets a copy makes them anew."""
        return type(None), ()

    def remembered(self) -> Callable[[], None]:
        """What a step has combined into tables stays there: once it is undone, they are spoilt."""

        def undo() -> None:
            self.is_spoilt = True

        return undo

    @property
    def nbytes(self) -> int:
        """Bytes of all tables, and of what says where panes and keys stand in them."""
        beside = self.starts.nbytes + self.groups.nbytes + self._rank.nbytes
        tables = sum(made.stack.nbytes for made in self._tables.values())
        return beside + tables + sum(c.nbytes for c in self._keys)

    @property
    def size(self) -> int:
        """How many pairs of a pane and a key there could be."""
        return len(self.starts) * len(self.groups)

    @property
    def is_dense(self) -> bool:
        """Whether a table is no waste."""
        return self.size <= _SPARSE * self._partials + _FEW_CELLS

    def is_sparse_under(self, where: Filter) -> bool:
        """Whether a filter lets through so few partials that a table of them is a waste."""
        if where is None or self.size <= _FEW_CELLS:
            return False
        partials = int(np.diff(self._classed().begins) @ self._panes.holding(where))
        return self.size > _SPARSE * partials + _FEW_CELLS

    def passing(self, where: Filter) -> NDArray[np.int64]:
        """The indexes of the partials that a filter lets through, ascending.

        A filter that few of them pass looks at no others.
        """
        holding, classed = self._panes.holding(where), self._classed()
        if where is None or 4 * int(np.diff(classed.begins) @ holding) > len(classed.order):
            return np.flatnonzero(holding[self.whole().classes])
        parts = [
            classed.order[classed.begins[c] : classed.begins[c + 1]]
            for c in np.flatnonzero(holding).tolist()
        ]
        return np.sort(np.concatenate([np.empty(0, dtype=np.int64), *parts]))

    def _classed(self) -> Classed:
        """All partials class by class."""
        if self._by_class is None:
            classes, count = self.whole().classes, len(self._panes.holding(None))
            order = np.argsort(classes, kind="stable")
            begins = np.searchsorted(classes[order], np.arange(count + 1))
            self._by_class = Classed(order, begins)
        return self._by_class

    def is_mostly_stored(self) -> bool:
        """Whether half of the panes, or more, are still stored."""
        span = self._panes.fragments.span()
        return span is not None and span[0] <= self.starts[len(self.starts) // 2]

    def keys(self, windows: int) -> list[pa.Array]:
        """The key columns of so many windows or more, each with all keys."""
        if self._windows < windows:
            taken = pa.array(np.tile(np.arange(len(self.groups)), windows))
            self._keys = [c.take(taken) for c in self._panes.groups.columns(self.groups)]
            self._windows = windows
        return self._keys

    def same_as(self, piece: Piece) -> Piece:
        """The first of the pieces that say the same of all rows, as counts do without NULLs."""
        return self._same[piece]

    def make(self, wanted: Mapping[Piece, Iterable[Filter]]) -> bool:
        """Make tables of pieces under filters, all in one pass; says if there was room for them.

        Where there was none, `stretched` may be asked by several threads from now on.
        """
        new = {piece: self._new(piece, filters) for piece, filters in wanted.items()}
        new = {piece: filters for piece, filters in new.items() if filters}
        if not new:
            return True
        whole = self.whole()
        room = self._capacity * len(self.groups)
        cells = sum(len(_lanes(p).names) * len(filters) * room for p, filters in new.items())
        if cells + sum(tables.stack.size for tables in self._tables.values()) > _MOST_STORED:
            return False
        rows = np.arange(len(self.starts))

        def make(piece: Piece) -> Tables:
            made = Tables.empty(new[piece], _lanes(piece), room)
            self._combine(piece, made, whole, rows)
            return made

        for piece, made in zip(
            new, spread(workers(), make, new, rows=len(whole.panes)), strict=True
        ):
            before = self._tables.get(piece)
            self._tables[piece] = made if before is None else before.joined(made)
        return True

    def _new(self, piece: Piece, filters: Iterable[Filter]) -> list[Filter]:
        made = self._tables.get(piece)
        return [f for f in dict.fromkeys(filters) if made is None or f not in made.indexes]

    def tables(self, piece: Piece) -> Tables:
        """A piece under all filters that were made, for every pane and key; room is behind them."""
        return self._tables[piece]

    def stretched(
        self, piece: Piece, filters: Iterable[Filter], stretch: NDArray[np.int64]
    ) -> Tables:
        """A piece under some filters for stretches of panes: the number of each pane's, or -1."""
        cells = (int(stretch.max(initial=-1)) + 1) * len(self.groups)
        made = Tables.empty(list(dict.fromkeys(filters)), _lanes(piece), cells)
        self._combine(piece, made, self.whole(), stretch)
        return made

    def whole(self) -> Located:
        """All partials, located."""
        if self._whole is None:
            stored = self._panes.fragments.everything() if self._stored is None else self._stored
            self._whole = self._located(stored)
            assert self._whole is not None
        return self._whole

    def forget_whole(self) -> None:
        """Forget everything but the tables."""
        self._whole = self._stored = self._by_class = None

    def _combine(
        self, piece: Piece, into: Tables, located: Located, rows: NDArray[np.int64]
    ) -> None:
        """Combine partials into tables; `rows` says in which row of them each pane is."""
        holding = np.array([self._panes.holding(f) for f in into.indexes])
        classes, which = np.nonzero(holding.T)
        begins = np.searchsorted(classes, np.arange(holding.shape[1] + 1))
        lanes, _, cells = into.stack.shape
        combine = combine_cells(int(_lanes(piece).op), lanes)
        combine(
            into.stack.reshape(lanes, -1),
            cells,
            located.partials[piece],
            rows,
            located.panes,
            located.ranks,
            len(self.groups),
            located.classes,
            begins,
            which,
        )

    def take(self, fragment: Fragment) -> bool:
        """Take in what was added to the store; says whether there was room for all of it."""
        before = len(self.starts)
        located = self._located(fragment)
        if located is None:
            return False
        self._partials += len(fragment)
        self.forget_whole()
        if len(self.starts) > self._capacity:
            self._grow(before)
        items, rows = self._tables.items(), np.arange(len(self.starts))
        spread(workers(), lambda i: self._combine(*i, located, rows), items, rows=len(fragment))
        return True

    def _located(self, fragment: Fragment) -> Located | None:
        """Where partials belong; new panes are put behind the others. None if there is no room."""
        is_first = _is_first(fragment.starts)
        starts = fragment.starts[is_first]
        known = int(np.searchsorted(starts, self.starts[-1], side="right"))
        index = np.searchsorted(self.starts, starts)
        group, classes = np.divmod(fragment.groups, self._panes.width)
        is_known = group.max(initial=0) < len(self._rank) and (self._rank[group] >= 0).all()
        if not is_known or (self.starts[index[:known]] != starts[:known]).any():
            return None
        partials = dict(zip(self._panes.pieces, fragment.partials, strict=True))
        if any(partials[piece] is not partials[same] for piece, same in self._same.items()):
            return None
        if classes.max(initial=-1) >= len(self._panes.holding(None)):
            raise AssertionError("partials of a class that has no number")  # or loops run astray
        index[known:] = len(self.starts) + np.arange(len(starts) - known)
        self.starts = np.concatenate([self.starts, starts[known:]])
        panes = index.astype(np.int32)[np.cumsum(is_first) - 1]
        return Located(partials, panes, self._rank[group], classes.astype(np.int32))

    def _grow(self, before: int) -> None:
        """Make room for twice as many panes."""
        self._capacity, filled = 2 * len(self.starts), before * len(self.groups)
        self._tables = {
            piece: tables.grown(_lanes(piece), self._capacity * len(self.groups), filled)
            for piece, tables in self._tables.items()
        }


def tables_over(panes: ClassedPanes) -> PaneTables:
    """The tables of all panes: those that there are, brought up to date, or new ones."""
    news, tables, panes.tables = panes.fragments.news(), panes.tables, None
    if tables is not None and (tables.is_spoilt or not tables.is_mostly_stored()):
        tables = None
    if tables is None or news is None or not all(map(tables.take, news)):
        tables = PaneTables(panes, panes.fragments.everything())
    panes.tables = tables
    return tables


def _lanes(piece: Piece) -> Lanes:
    monoid = piece.monoid
    assert isinstance(monoid, Lanes)
    return monoid


def _is_first(starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which partials are the first of their pane."""
    is_first = np.ones(len(starts), dtype=np.bool_)
    is_first[1:] = starts[1:] != starts[:-1]
    return is_first
