"""What the queries of a store need of it, each thing from some position on.

A query needs pieces, multisets and filters. A filter is named by the number of its column. Each
has an identity, by which a state is recognised (`panes.aggregates.identity`).

Invariant: `since` has exactly what the shapes need, and says from where on it is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from sqlglot import exp

from panes.aggregates.aggregate import Argument, Bounded, Holistic, Piece
from panes.aggregates.catalog import Call, build
from panes.aggregates.custom import UserAggregate
from panes.aggregates.identity import identity
from panes.fill.fill import ALL_ROWS
from panes.planning.plan import Plan
from panes.register.columns import SharedRows
from panes.register.completeness import after
from panes.register.shape import Need, Shape, Wanted
from panes.stores.contents import ValueSet

Stored: TypeAlias = Piece | ValueSet | int
"""Something that is stored for queries: a piece, a multiset, or a filter by its column."""

_FILTER_VERSION = 1


class Needs:
    """The shapes of a store, and what they need since when."""

    def __init__(self, rows: SharedRows, aggregates: Sequence[UserAggregate], keys: int) -> None:
        self.rows, self._aggregates, self._keys = rows, tuple(aggregates), keys
        self.shapes: list[Shape] = []
        self.since: dict[Stored, int] = {}
        self.pieces: list[Piece] = []  # that are needed, in the order in which they came
        self._alike: dict[object, int] = {}
        self._next_alike = 0

    def describe(self, plan: Plan) -> Shape:
        """What a query would need, by columns that are needed already or have the next numbers.

        Nothing is stored for it: this is for looking whether it could be answered.
        """
        return shape_of(plan, self.rows.copy(), self._aggregates)

    def add(self, plan: Plan, newest: int) -> Shape:
        """What a query needs, from now on stored; rows up to `newest` have come without it."""
        shape = shape_of(plan, self.rows, self._aggregates)
        shape.alike = self._alike.setdefault(shape.likeness(), self._next_alike)
        self._next_alike = max(self._next_alike, shape.alike + 1)
        self._store(sorted(filters_of(shape)), newest)
        self._store(sorted_pieces(shape), newest)
        self._store(shape.value_sets, newest)
        self.shapes.append(shape)
        for column, where in self._reads(shape):
            self.rows.use(column, where)
        return shape

    def _store(self, wanted: Sequence[Stored], newest: int) -> None:
        for one in wanted:
            if one not in self.since:
                self.since[one] = after(newest)
                self.pieces += _pieces_among([one])

    def remove(self, shape: Shape) -> None:
        """A shape has no queries left: forget what only it needed."""
        self.shapes.remove(shape)
        live = {s.alike for s in self.shapes}
        self._alike = {likeness: n for likeness, n in self._alike.items() if n in live}
        needed: set[Stored] = {ALL_ROWS}.union(*(needed_by(s) for s in self.shapes))
        self.since = {n: at for n, at in self.since.items() if n in needed}
        self.pieces = _pieces_among(self.since)
        for column, where in self._reads(shape):
            self.rows.use_no_longer(column, where)
        self.rows.keep(self.filters | {c for s in self.shapes for c in s.columns})

    @property
    def values(self) -> list[ValueSet]:
        """The multisets that are needed."""
        return [n for n in self.since if isinstance(n, ValueSet)]

    @property
    def filters(self) -> set[int]:
        """The filters that are needed."""
        return {n for n in self.since if isinstance(n, int)}

    def _reads(self, shape: Shape) -> Iterator[tuple[int, int | None]]:
        """The columns that a shape's queries evaluate, and the filter of the rows they do it on."""
        for key in range(self._keys):
            yield key, shape.where
        for need in shape.needs:
            for column in need.columns:
                yield column, need.where


def _pieces_among(stored: Iterable[Stored]) -> list[Piece]:
    return [one for one in stored if not isinstance(one, ValueSet | int)]


def shape_of(plan: Plan, rows: SharedRows, aggregates: Sequence[UserAggregate]) -> Shape:
    """What a query needs, by the numbers that its columns have, or are given, among `rows`."""
    trees, types = plan.rows.expressions, plan.row_types
    read = sorted({c for given, _ in plan.call_columns for c in given})
    columns = {c: rows.number(trees[c], types[c]) for c in read}
    where = None if plan.rows.where is None else rows.number_filter(plan.rows.where)
    calls = range(len(plan.query.calls))
    needs = tuple(_need(plan, i, columns, rows, aggregates) for i in calls)
    return Shape(plan, where, needs, frozenset(columns.values()))


def _need(
    plan: Plan,
    index: int,
    columns: dict[int, int],
    rows: SharedRows,
    aggregates: Sequence[UserAggregate],
) -> Need:
    call, (given, where) = plan.query.calls[index], plan.call_columns[index]
    trees = [] if plan.rows.where is None else [plan.rows.where]
    trees += [] if where is None else [plan.rows.expressions[where]]
    number = rows.number_filter(_all_of(trees)) if trees else None
    arguments = tuple(Argument(columns[c], plan.row_types[c]) for c in given)
    typed = Call(call.name, arguments, call.parameters, None, call.distinct, call.skip_nulls)
    aggregate = build(typed, aggregates)
    read = tuple(a.column for a in arguments)
    if isinstance(aggregate, Bounded):
        pieces = tuple(Wanted(p, number) for p in aggregate.pieces)
        return Need(typed, aggregate, pieces, None, read, number)
    return Need(typed, aggregate, (), _value_set(aggregate, number), read, number)


def needed_by(shape: Shape) -> set[Stored]:
    """The pieces, multisets and filters that a shape reads."""
    return {*filters_of(shape), *pieces_of(shape), *shape.value_sets}


def pieces_of(shape: Shape) -> set[Piece]:
    """The pieces that a shape reads, and the one that tells whether a window holds a row."""
    return {ALL_ROWS, *(w.piece for w in shape.pieces)}


def sorted_pieces(shape: Shape) -> list[Piece]:
    """The same, in an order that every process agrees on."""
    return sorted(pieces_of(shape), key=lambda p: p.identity)


def filters_of(shape: Shape) -> set[int]:
    """The filters that a shape's queries have, by their columns."""
    named = {shape.where, *(w.where for w in shape.pieces)}
    named |= {v.selection.where for v in shape.value_sets}
    return {n for n in named if n is not None}


def identity_of(stored: Stored, rows: SharedRows) -> str:
    """What names something stored in a state; columns are named by their numbers in `rows`."""
    if isinstance(stored, int):
        return identity("filter", _FILTER_VERSION, f"{stored} {rows.text(stored)}")
    if isinstance(stored, ValueSet):
        return stored.identity([rows.types[c] for c in stored.columns])
    return stored.identity


def _all_of(conditions: Sequence[exp.Expression]) -> exp.Expression:
    first, *rest = conditions
    for other in rest:
        first = exp.And(this=exp.paren(first.copy()), expression=exp.paren(other.copy()))
    return first


def _value_set(aggregate: Holistic, where: int | None) -> ValueSet:
    selection = replace(aggregate.selection, where=where)
    return ValueSet(tuple(a.column for a in aggregate.arguments), selection, aggregate.ordered)
