"""One pane store for all queries with the same GROUP BY.

Rows are told apart by the filters that hold of them (*shared data fragments*): a fragment's group
is a key and a class of filters, its partials are those of the pieces without any filter. What a
filter lets through is the combination of the classes in which it holds, done on panes and not on
rows::

    rows ─► key, class ─► panes x (key, class) ─┬─ classes of filter f ─► panes of f ─► windows of f
            lifted once per piece               └─ all classes         ─► panes of all

Whatever a query needs (a piece, a filter, the edges of its windows) is complete from some position
on, and what it needs is only read from there on: nothing before is invented. `complete_from` tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from panes.aggregates.aggregate import Argument, Bounded, Holistic, Piece, Rows
from panes.aggregates.catalog import Call, build
from panes.aggregates.custom import UserAggregate
from panes.arrays.compiled import compiled
from panes.arrays.key_numbers import KeyNumbers
from panes.arrays.workers import workers
from panes.axis import BEGINNING
from panes.fill.fill import ALL_ROWS, fill
from panes.fill.filter_classes import Classes, Words
from panes.fill.filter_regions import ToldApart
from panes.fill.fragment import Fragment, joined, merged
from panes.planning.plan import Plan
from panes.planning.shared_cut import SharedCut, choose_cut
from panes.register.columns import Numbering, SharedRows
from panes.register.shape import Need, Shape, Wanted
from panes.stores.contents import ValueSet
from panes.stores.fragments import Fragments
from panes.stores.multisets import ValueStore
from panes.windows.cut import Cut
from panes.windows.many import Rulers
from panes.windows.spec import Sliding

if TYPE_CHECKING:
    from panes.register.pane_tables import PaneTables

_ANY = Sliding(size=1, slide=1)
_WIDE = 1 << 31
_NOTHING = pa.array([], pa.null())


@dataclass(frozen=True, slots=True)
class Filled:
    """A batch of rows as partials, and as counted values of each multiset."""

    partials: Fragment
    counted: dict[ValueSet, Fragment]


class SharedStore:
    """The panes of one grouping, for all queries that have it."""

    def __init__(
        self,
        plan: Plan,
        schema: pa.Schema,
        aggregates: Sequence[UserAggregate] = (),
        numbering: Numbering | None = None,
    ) -> None:
        count = len(plan.query.keys)
        self._aggregates = tuple(aggregates)
        self.serial, self.title = 0, ""
        self.keys = plan.rows.expressions[:count]
        self.rows = SharedRows(schema, self.keys, plan.key_types, numbering)
        self.shapes: list[Shape] = []
        self._alike: dict[object, int] = {}
        self.since: dict[Piece | ValueSet | int, int] = {}
        self.values: dict[ValueSet, ValueStore] = {}
        self.shared_cut: SharedCut | None = None
        self._is_cut = False
        self.cuts_before: dict[Cut, int] = {}
        self.evicted_before = BEGINNING
        self.touched: list[NDArray[np.int64]] | None = None
        self.clear()

    def touch(self, *starts: NDArray[np.int64]) -> None:
        """Panes that begin there change; a host that keeps them wants to know."""
        if self.touched is not None:
            self.touched += starts

    def clear(self) -> None:
        """Forget panes, keys and classes; queries and what they need stay."""
        self.groups = KeyNumbers([self.rows.types[i] for i in range(len(self.keys))])
        self._classes, self.width = Classes(), 1
        self.fragments = Fragments([p.monoid for p in self.pieces])
        self.tables: PaneTables | None = None
        for values in self.values:
            self.values[values] = self._value_store(values)

    def __getstate__(self) -> dict[str, object]:
        """What another process needs to hold panes of its own: everything but the panes."""
        stored = {"groups", "fragments", "values", "tables", "_classes"}
        told = {name: value for name, value in vars(self).items() if name not in stored}
        return told | {"values": dict.fromkeys(self.values)}

    def __setstate__(self, told: dict[str, object]) -> None:
        vars(self).update(told)
        self.clear()

    def _value_store(self, values: ValueSet) -> ValueStore:
        kinds = [self.rows.types[c] for c in values.columns]
        return ValueStore(values, kinds, _ANY, workers())

    def __len__(self) -> int:
        """How many partials are stored."""
        return len(self.fragments) + sum(len(v.store) for v in self.values.values())

    @property
    def nbytes(self) -> int:
        """Bytes the partials take."""
        return self.fragments.nbytes + sum(v.store.nbytes for v in self.values.values())

    @property
    def pieces(self) -> list[Piece]:
        """The pieces that are kept, in the order of the fragments' partials."""
        return [p for p in self.since if not isinstance(p, ValueSet | int)]

    @property
    def classes(self) -> list[int]:
        """The filters of each class, as a number with bit `f` for the filter in column `f`."""
        return self._classes.sets()

    # Queries come and go

    def shape_of(self, plan: Plan, newest: int) -> Shape:
        """What a query needs, from now on kept; rows up to `newest` have come without it."""
        trees, types = plan.rows.expressions, plan.row_types
        read = sorted({c for given, _ in plan.call_columns for c in given})
        columns = {c: self.rows.place(trees[c], types[c]) for c in read}
        where = None if plan.rows.where is None else self._filter(plan.rows.where, newest)
        calls = range(len(plan.query.calls))
        needs = tuple(self._need(plan, i, columns, newest) for i in calls)
        shape = Shape(plan, where, needs, frozenset(columns.values()))
        shape.alike = self._alike.setdefault(shape.likeness(), len(self._alike))
        self._hold({ALL_ROWS, *(w.piece for w in shape.pieces)}, newest)
        for values in shape.value_sets:
            if values not in self.values:
                self.values[values] = self._value_store(values)
                self.since[values] = after(newest)
        self.shapes.append(shape)
        self._guard()
        return shape

    def _guard(self) -> None:
        """An expression is evaluated only on rows that some query would evaluate it on."""
        users: dict[int, set[int | None]] = {}
        for shape in self.shapes:
            for key in range(len(self.keys)):
                users.setdefault(key, set()).add(shape.where)
            for need in shape.needs:
                for column in need.columns:
                    users.setdefault(column, set()).add(need.where)
        self.rows.guard(
            {c: {f for f in some if f is not None} for c, some in users.items() if None not in some}
        )

    def _need(self, plan: Plan, index: int, columns: dict[int, int], newest: int) -> Need:
        call, (given, where) = plan.query.calls[index], plan.call_columns[index]
        trees = [] if plan.rows.where is None else [plan.rows.where]
        trees += [] if where is None else [plan.rows.expressions[where]]
        number = self._filter(_all_of(trees), newest) if trees else None
        arguments = tuple(Argument(columns[c], plan.row_types[c]) for c in given)
        typed = Call(call.name, arguments, call.parameters, None, call.distinct, call.skip_nulls)
        aggregate = build(typed, self._aggregates)
        read = tuple(a.column for a in arguments)
        if isinstance(aggregate, Bounded):
            pieces = tuple(Wanted(p, number) for p in aggregate.pieces)
            return Need(typed, aggregate, pieces, None, read, number)
        return Need(typed, aggregate, (), _value_set(aggregate, number), read, number)

    def _filter(self, tree: exp.Expression, newest: int) -> int:
        number = self.rows.place_filter(tree)
        self.since.setdefault(number, after(newest))
        return number

    def _hold(self, pieces: set[Piece], newest: int) -> None:
        """Keep these pieces too; panes that are there know nothing of them, which is neutral."""
        new = [p for p in sorted(pieces, key=repr) if p not in self.since]
        if not new:
            return
        self.since.update({p: after(newest) for p in new})
        stored = self.fragments.fragments
        self.fragments = Fragments([p.monoid for p in self.pieces])
        self.fragments.fragments = [
            replace(f, partials=(*f.partials, *(p.monoid.empty(len(f)) for p in new)))
            for f in stored
        ]

    def complete_from(self, shape: Shape, spec: Sliding, newest: int) -> int:
        """From where on everything is there that windows of a shape and a spec need.

        `BEGINNING` if it was there from the beginning of the stream.
        """
        since = [self.since[n] for n in self.needed_by(shape)]
        since += [at for cut, at in self.cuts_before.items() if not cut.serves(spec)]
        if self.shared_cut is not None and not self.shared_cut.cut.serves(spec):
            since.append(after(newest))
        return max(self.evicted_before, *since)

    def needed_by(self, shape: Shape) -> set[Piece | ValueSet | int]:
        """The pieces, multisets and filters that a shape reads."""
        pieces = {ALL_ROWS, *(w.piece for w in shape.pieces)}
        return {*filters_of(shape), *pieces, *shape.value_sets}

    def cuts_at(self, position: int) -> list[Cut]:
        """Every cut that a pane at or after a position may come from."""
        return [self.cut, *(cut for cut, at in self.cuts_before.items() if at > position)]

    def change_cut(self, newest: int) -> None:
        """Queries have come or gone: before the next row, panes are cut anew."""
        self._is_cut = False
        if self.shared_cut is not None and newest != BEGINNING:
            self.note_cut(self.shared_cut.cut, after(newest))

    def note_cut(self, cut: Cut, before: int) -> None:
        """Panes that begin before a position may be those of a cut."""
        self.cuts_before[cut] = max(self.cuts_before.get(cut, BEGINNING), before)

    def trim(self, shape: Shape) -> None:
        """A shape has no queries left: forget what only it needed."""
        self.shapes.remove(shape)
        pieces = {w.piece for s in self.shapes for w in s.pieces} | {ALL_ROWS}
        values = {v for s in self.shapes for v in s.value_sets}
        filters = {f for s in self.shapes for f in filters_of(s)}
        places = [i for i, p in enumerate(self.pieces) if p in pieces]
        stored = self.fragments.fragments
        self.since = {
            n: at for n, at in self.since.items() if n in pieces or n in values or n in filters
        }
        self.fragments = Fragments([p.monoid for p in self.pieces])
        self.fragments.fragments = [
            replace(f, partials=tuple(f.partials[i] for i in places)) for f in stored
        ]
        self.values = {v: s for v, s in self.values.items() if v in values}
        self.rows.keep(filters | _columns_of(self.shapes))
        self._guard()
        self._forget_filters(filters)

    def _forget_filters(self, kept: set[int]) -> None:
        """Classes that differ only in filters which are gone become one."""
        known, before = self._classes.only(kept), self.width
        if np.array_equal(known, self._classes.words()):
            return
        stored = self.fragments.everything()
        self.fragments.fragments = []
        self._classes, self.width = Classes(), 1
        renamed = self.number(known)
        group, number = np.divmod(stored.groups, before)
        coded = replace(stored, groups=group * self.width + renamed[number])
        self.fragments.fragments = [merged([coded], self.fragments.monoids)]

    # Rows come

    @property
    def cut(self) -> Cut:
        """Where panes begin now."""
        if self.shared_cut is None or not self._is_cut:
            self.shared_cut = choose_cut(Rulers.joined([s.rulers for s in self.shapes]))
            self._is_cut = True
        return self.shared_cut.cut

    def fill(self, at: NDArray[np.int64], table: pa.Table) -> Filled:
        """Rows as partials: positions, and the columns of the stream; nothing is kept yet."""
        columns = self.rows.read(table, self._asked_of_rows())
        return self._filled(at, columns, self.rows.tell_apart(table, columns, len(at), workers()))

    def fill_read(
        self, at: NDArray[np.int64], read: Mapping[int, pa.Array], compared: pa.Table
    ) -> Filled:
        """As `fill`, from columns that have been read, and from those that filters compare."""
        asked = [n for n in self.rows.compared_columns() if n in self._asked_of_rows()]
        columns = {**read, **self.rows.holding(compared, asked)}
        told = self.rows.tell_apart(compared, columns, len(at), workers())
        return self._filled(at, columns, told)

    def fill_columns(self, at: NDArray[np.int64], read: Mapping[int, pa.Array]) -> Filled:
        """As `fill`, from columns that have been read, all filters among them."""
        return self._filled(at, read, self.rows.told_apart(read, len(at), workers()))

    def _asked_of_rows(self) -> set[int | None]:
        """Filters that must be known of every row, not only of every kind of rows."""
        return {v.selection.where for v in self.values}

    def _filled(
        self, at: NDArray[np.int64], read: Mapping[int, pa.Array], told: ToldApart
    ) -> Filled:
        columns = [read.get(n, _NOTHING) for n in range(self.rows.end)]
        groups = self.groups.encode(columns[: len(self.keys)], len(at))
        codes = self._coded(groups, told)
        rows = Rows(at, tuple(columns))
        filled = fill(
            rows,
            codes,
            len(self.groups) * self.width,
            cut=self.cut,
            pieces=self.pieces,
            executor=workers(),
        )
        counted = {
            v: store.fill(rows, groups, at, self.cut, workers()) for v, store in self.values.items()
        }
        return Filled(filled, counted)

    def add(self, filled: Filled) -> None:
        """Take in what `fill` made of rows."""
        self.fragments.add(filled.partials)
        for values, fragment in filled.counted.items():
            self.values[values].store.add(fragment)

    def _coded(self, groups: NDArray[np.int32], told: ToldApart) -> NDArray[np.signedinteger]:
        """The key and the class of each row as one number."""
        number = self.number(told.sets)[told.place]
        coded: NDArray[np.signedinteger] = np.empty(len(groups), dtype=np.int32)
        if len(self.groups) * self.width >= _WIDE:
            coded = np.empty(len(groups), dtype=np.int64)
        _join(groups, self.width, number, told.codes, coded)
        return coded

    def number(self, sets: Words) -> NDArray[np.int64]:
        """The numbers of classes; new ones get the next, and room for as many again."""
        numbers = self._classes.number(sets)
        if len(self._classes) > self.width:
            self._widen(max(len(self._classes), 2 * self.width if len(self.fragments) else 0))
        return numbers

    def _widen(self, width: int) -> None:
        """Make room for so many classes."""
        self.fragments.fragments = [
            replace(f, groups=f.groups // self.width * width + f.groups % self.width)
            for f in self.fragments.fragments
        ]
        self.width = width

    def holding(self, where: int | None) -> NDArray[np.bool_]:
        """The classes, by number, in which a filter holds."""
        if where is None:
            return np.ones(len(self._classes), dtype=np.bool_)
        return self._classes.holding(where)

    # Panes go

    def needed_from(self) -> int:
        """The oldest position that a window yet to be answered holds; `BEGINNING` if unknown."""
        return min(shape.needed_from() for shape in self.shapes)

    def evict(self, newest: int) -> None:
        """Forget panes that no window of any query needs any more, and keys nothing is stored of.

        Progress may be ahead of the newest row; after that row nothing is missing.
        """
        low = self.needed_from()
        if low <= self.evicted_before:
            return
        self.evicted_before = min(low, after(newest))
        self.cuts_before = {cut: at for cut, at in self.cuts_before.items() if at > low}
        dropped = self.fragments.evict_before(low)
        for values in self.values.values():
            values.store.evict_before(low)
        if dropped:
            self._forget_keys()

    def fold(self, progress: int, newest: int) -> None:
        """Panes that only long windows still need become the coarser panes of those.

        Not before panes have been cut for the queries that are there now: a new one may still need
        what the others no longer do.
        """
        older = None if self.shared_cut is None else self.shared_cut.older
        if older is None or not self._is_cut:
            return
        edge = int(older.cut.pane_start(np.array([progress - older.reach]))[0])
        self.note_cut(older.cut, min(edge, after(newest)))
        stored = self.fragments.everything()
        old = stored.between(BEGINNING, edge)
        coarse = older.cut.pane_start(old.starts)
        if np.array_equal(coarse, old.starts):
            return
        self.touch(old.starts, coarse)
        folded = merged([replace(old, starts=coarse)], self.fragments.monoids)
        self.fragments.fragments = [joined(folded, stored.between(edge, -BEGINNING))]

    def _forget_keys(self) -> None:
        for values in self.values.values():
            values.forget_keys()
        live = np.unique(self.fragments.live_groups() // self.width)
        if not self.groups.mostly_dead(len(live)):
            return
        renamed = self.groups.keep(live)
        self.fragments.fragments = [
            replace(f, groups=renamed[f.groups // self.width] * self.width + f.groups % self.width)
            for f in self.fragments.fragments
        ]
        for values in self.values.values():
            values.rename_groups(renamed)


@compiled
def _join(groups, width, number, local, coded):  # type: ignore[no-untyped-def]
    for i in range(groups.shape[0]):
        coded[i] = groups[i] * width + number[local[i]]


def filters_of(shape: Shape) -> set[int]:
    """The filters that a shape's queries have, by their columns."""
    named = {shape.where, *(w.where for w in shape.pieces)}
    named |= {v.selection.where for v in shape.value_sets}
    return {n for n in named if n is not None}


def _columns_of(shapes: Sequence[Shape]) -> set[int]:
    return {c for s in shapes for c in s.columns}


def _all_of(conditions: Sequence[exp.Expression]) -> exp.Expression:
    first, *rest = conditions
    for other in rest:
        first = exp.And(this=exp.paren(first.copy()), expression=exp.paren(other.copy()))
    return first


def _value_set(aggregate: Holistic, where: int | None) -> ValueSet:
    selection = replace(aggregate.selection, where=where)
    return ValueSet(tuple(a.column for a in aggregate.arguments), selection)


def after(newest: int) -> int:
    """The first position that no row has had; `BEGINNING` if there was no row."""
    return BEGINNING if newest == BEGINNING else newest + 1
