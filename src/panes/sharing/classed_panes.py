"""Panes by key and class of filters: the partials that all queries of a store share.

Rows are classed by the filters that hold of them (*shared data fragments*): a fragment's group
is a key and a class of filters, its partials are those of the pieces without any filter. What a
filter lets through is the combination of the classes in which it holds, done on panes and not on
rows::

    rows ─► key, class ─► panes x (key, class) ─┬─ classes of filter f ─► panes of f ─► windows of f
            lifted once per piece               └─ all classes         ─► panes of all

Invariant: the group of a partial is ``key * width + class``, and `width` is at least the number of
classes. Partials stand in the order of `pieces`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Piece, Rows
from panes.arrays.compiled import compiled
from panes.arrays.key_numbers import KeyNumbers
from panes.arrays.slots import distinct
from panes.arrays.workers import workers
from panes.axis import BEGINNING, FOREVER
from panes.stores.contents import ValueSet
from panes.stores.fill import fill
from panes.stores.filter_classes import Classes, Words
from panes.stores.filter_regions import ClassedRows
from panes.stores.fragment import Fragment, joined, merged
from panes.stores.fragments import Fragments
from panes.stores.multisets import ValueStore
from panes.windows.cut import Cut
from panes.windows.spec import Sliding

if TYPE_CHECKING:
    from panes.sharing.pane_tables import PaneTables

_ANY_WINDOW = Sliding(size=1, slide=1)
_WIDE = 1 << 31
_NO_COLUMN = pa.nulls(0)


@dataclass(frozen=True, slots=True)
class Filled:
    """A batch of rows as partials, and as counted values of each multiset."""

    partials: Fragment
    counted: dict[ValueSet, Fragment]


class ClassedPanes:
    """Partials per pane, key and class of filters, and multisets per pane and key.

    `tables` are what rounds of answers have made of the partials; they can be made anew. If
    `touched` is a list, the starts of panes that change are noted there for a host.
    """

    # What is not written of an object; `pieces` and `values` are named by their identities.
    RECOMPUTED = frozenset({"_key_types", "_value_types", "pieces", "touched", "tables", "values"})

    def __init__(self, key_types: Sequence[pa.DataType]) -> None:
        self._key_types = list(key_types)
        self._value_types: dict[ValueSet, list[pa.DataType]] = {}
        self.pieces: list[Piece] = []
        self.touched: list[NDArray[np.int64]] | None = None
        self.clear()

    def clear(self) -> None:
        """Forget panes, keys and classes; what is stored of rows to come stays."""
        self.groups = KeyNumbers(self._key_types)
        self._classes, self.width = Classes(), 1
        self._fragments = Fragments([p.monoid for p in self.pieces])
        self.values = {v: _value_store(v, types) for v, types in self._value_types.items()}
        self.tables: PaneTables | None = None

    def __getstate__(self) -> dict[str, object]:
        """What another process needs to hold panes of its own: everything but the panes."""
        names = ("_key_types", "_value_types", "pieces", "touched")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, given: dict[str, object]) -> None:
        vars(self).update(given)
        self.clear()

    def __len__(self) -> int:
        """How many partials are stored."""
        return len(self.fragments) + sum(len(v.store) for v in self.values.values())

    @property
    def nbytes(self) -> int:
        """Bytes the partials take."""
        return self.fragments.nbytes + sum(v.store.nbytes for v in self.values.values())

    @property
    def key_bytes(self) -> int:
        """Bytes the key values take, and the sets of filters that classes are."""
        keys = self.groups.nbytes + sum(v.key_bytes for v in self.values.values())
        return keys + self._classes.nbytes

    @property
    def table_bytes(self) -> int:
        """Bytes of the tables that rounds of answers have made."""
        return 0 if self.tables is None else self.tables.nbytes

    @property
    def classes(self) -> list[int]:
        """The filters of each class, as a number with bit `f` for the filter in column `f`."""
        return self._classes.sets()

    # What is stored of every row

    def add_pieces(self, new: Sequence[Piece]) -> None:
        """Store these pieces too; panes that are there know nothing of them, which is neutral."""
        self.pieces += new

    @property
    def fragments(self) -> Fragments:
        """The partials of all pieces; those that came since it was last asked for are given room.

        So thousands of queries that are added one by one visit what is stored once.
        """
        known = self._fragments
        new = self.pieces[len(known.monoids) :]
        if new:
            self._fragments = Fragments([*known.monoids, *(p.monoid for p in new)])
            self._fragments.fragments = tuple(
                replace(f, partials=(*f.partials, *(p.monoid.empty(len(f)) for p in new)))
                for f in known.fragments
            )
        return self._fragments

    def begin_with(self, pieces: Sequence[Piece]) -> None:
        """Store nothing yet, and these pieces in this order."""
        self.pieces = list(pieces)
        self.clear()

    def add_values(self, values: ValueSet, types: Sequence[pa.DataType]) -> None:
        """Store a multiset too, whose columns have these types."""
        if values not in self.values:
            self._value_types[values] = list(types)
            self.values[values] = _value_store(values, types)

    def keep_only(
        self, pieces: Collection[Piece], values: Collection[ValueSet], filters: set[int]
    ) -> None:
        """Forget all other pieces, multisets and filters."""
        indexes = [i for i, p in enumerate(self.pieces) if p in pieces]
        stored = self.fragments.fragments
        self.pieces = [self.pieces[i] for i in indexes]
        self._fragments = Fragments([p.monoid for p in self.pieces])
        self._fragments.fragments = tuple(
            replace(f, partials=tuple(f.partials[i] for i in indexes)) for f in stored
        )
        self._value_types = {v: t for v, t in self._value_types.items() if v in values}
        self.values = {v: s for v, s in self.values.items() if v in values}
        self._forget_filters(filters)

    def _forget_filters(self, needed: set[int]) -> None:
        """Classes that differ only in filters which are gone become one."""
        known, before = self._classes.only(needed), self.width
        if np.array_equal(known, self._classes.words()):
            return
        stored = self.fragments.everything()
        self.fragments.fragments = ()
        self._classes, self.width = Classes(), 1
        renamed = self.number(known)
        group, number = np.divmod(stored.groups, before)
        coded = replace(stored, groups=group * self.width + renamed[number])
        self.fragments.fragments = (merged([coded], self.fragments.monoids),)

    # Rows come

    def fill(
        self,
        at: NDArray[np.int64],
        read: Mapping[int, pa.Array],
        classed: ClassedRows,
        *,
        columns: int,
        cut: Cut,
    ) -> Filled:
        """Rows as partials, from so many columns by number; nothing is stored yet."""
        every = [read.get(n, _NO_COLUMN) for n in range(columns)]
        groups = self.groups.encode(every[: len(self._key_types)], len(at))
        codes = self._coded(groups, classed)
        rows = Rows(at, tuple(every))
        filled = fill(
            rows,
            codes,
            len(self.groups) * self.width,
            cut=cut,
            pieces=self.pieces,
            executor=workers(),
        )
        counted = {
            v: store.fill(rows, groups, at, cut, workers()) for v, store in self.values.items()
        }
        return Filled(filled, counted)

    def _coded(self, groups: NDArray[np.int32], classed: ClassedRows) -> NDArray[np.signedinteger]:
        """The key and the class of each row as one number."""
        number = self.number(classed.sets)[classed.index]
        coded: NDArray[np.signedinteger] = np.empty(len(groups), dtype=np.int32)
        if len(self.groups) * self.width >= _WIDE:
            coded = np.empty(len(groups), dtype=np.int64)
        _join(groups, self.width, number, classed.codes, coded)
        return coded

    def add(self, filled: Filled) -> None:
        """Take in what `fill` made of rows."""
        self.fragments.add(filled.partials)
        for values, fragment in filled.counted.items():
            self.values[values].store.add(fragment)

    def touch(self, *starts: NDArray[np.int64]) -> None:
        """Panes that begin there change; a host that keeps them wants to know."""
        if self.touched is not None:
            self.touched += starts

    # Classes

    def number(self, sets: Words) -> NDArray[np.int64]:
        """The numbers of classes; new ones get the next, and room for as many again."""
        numbers = self._classes.number(sets)
        if len(self._classes) > self.width:
            self._widen(max(len(self._classes), 2 * self.width if len(self.fragments) else 0))
        return numbers

    def _widen(self, width: int) -> None:
        """Make room for so many classes."""
        self.fragments.fragments = tuple(
            replace(f, groups=f.groups // self.width * width + f.groups % self.width)
            for f in self.fragments.fragments
        )
        self.width = width

    def holding(self, where: int | None) -> NDArray[np.bool_]:
        """The classes, by number, in which a filter holds."""
        if where is None:
            return np.ones(len(self._classes), dtype=np.bool_)
        return self._classes.holding(where)

    # Panes go

    def evict_before(self, low: int) -> None:
        """Forget panes that begin before a position, and keys nothing is stored of."""
        dropped = self.fragments.evict_before(low)
        for values in self.values.values():
            values.store.evict_before(low)
        if dropped:
            self._forget_keys()

    def fold(self, older: Cut, edge: int) -> None:
        """Panes that begin before an edge become the coarser panes of another cut."""
        stored = self.fragments.everything()
        old = stored.between(BEGINNING, edge)
        coarse = older.pane_start(old.starts)
        if np.array_equal(coarse, old.starts):
            return
        self.touch(old.starts, coarse)
        folded = merged([replace(old, starts=coarse)], self.fragments.monoids)
        self.fragments.fragments = (joined(folded, stored.between(edge, FOREVER)),)

    def _forget_keys(self) -> None:
        for values in self.values.values():
            values.forget_keys()
        live = distinct(self.fragments.live_groups() // self.width)
        if not self.groups.mostly_dead(len(live)):
            return
        renamed = self.groups.keep(live)
        self.fragments.fragments = tuple(
            replace(f, groups=renamed[f.groups // self.width] * self.width + f.groups % self.width)
            for f in self.fragments.fragments
        )
        for values in self.values.values():
            values.rename_groups(renamed)


def _value_store(values: ValueSet, types: Sequence[pa.DataType]) -> ValueStore:
    return ValueStore(values, types, _ANY_WINDOW, workers())


@compiled
def _join(groups, width, number, local, coded):  # type: ignore[no-untyped-def]
    for i in range(groups.shape[0]):
        coded[i] = groups[i] * width + number[local[i]]
