"""What the queries of a store need of it, each thing from some position on.

A query needs pieces, multisets and filters, and the expressions that they and its keys are of,
computed of all rows that it lets through (`panes.sharing.shape.Computed`). A filter is named by
the number of its column. Each has an identity, by which a state is recognised
(`panes.aggregates.identity`).

Invariant: `since` has exactly what the shapes need, and says from where on it is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from sqlglot import exp

from panes.aggregates.aggregate import Argument, Bounded, Holistic, Piece
from panes.aggregates.calls import Call
from panes.aggregates.catalog import build
from panes.aggregates.custom import UserAggregate
from panes.aggregates.identity import identity
from panes.axis import FOREVER
from panes.expressions.projection import can_fail
from panes.planning.plan import Plan
from panes.sharing.columns import SharedRows
from panes.sharing.completeness import after
from panes.sharing.shape import Computed, Need, Shape, Wanted
from panes.stores.contents import ValueSet
from panes.stores.fill import ALL_ROWS

Stored: TypeAlias = Piece | ValueSet | int | Computed
"""Something that is stored for queries: a piece, a multiset, a filter by its column; or what says
of which rows the values were there that pieces, multisets and keys are of."""

_FILTER_VERSION = _COMPUTED_VERSION = 1


class Needs:
    """The shapes of a store, and what they need since when."""

    def __init__(self, rows: SharedRows, aggregates: Sequence[UserAggregate]) -> None:
        self.rows, self._aggregates = rows, tuple(aggregates)
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
        self._store(_in_order(shape.computed), newest)
        self.shapes.append(shape)
        for one in shape.computed:
            self.rows.use(one.column, one.where)
        return shape

    def _store(self, wanted: Sequence[Stored], newest: int) -> None:
        for one in wanted:
            if one not in self.since:
                self.since[one] = min(self.known_from(one), after(newest))
                self.pieces += _pieces_among([one])

    def known_from(self, wanted: Stored) -> int:
        """From where on something is stored; `FOREVER` if it is not."""
        return min(self.since.get(one, FOREVER) for one in implying(wanted))

    def remove(self, shape: Shape) -> None:
        """A shape has no queries left: forget what only it needed."""
        self.shapes.remove(shape)
        live = {s.alike for s in self.shapes}
        self._alike = {likeness: n for likeness, n in self._alike.items() if n in live}
        needed: set[Stored] = {ALL_ROWS}.union(*(needed_by(s) for s in self.shapes))
        self.since = {n: at for n, at in self.since.items() if n in needed}
        self.pieces = _pieces_among(self.since)
        for one in shape.computed:
            self.rows.use_no_longer(one.column, one.where)
        self.rows.keep(self.filters | {c for s in self.shapes for c in s.columns})

    def arrange(self, pieces: Sequence[str]) -> None:
        """Have pieces in this order of their identities, which are just those that are needed."""
        place = {identity: number for number, identity in enumerate(pieces)}
        self.pieces.sort(key=lambda piece: place[piece.identity])
        others = {n: at for n, at in self.since.items() if n not in self.pieces}
        self.since = {**others, **{piece: self.since[piece] for piece in self.pieces}}

    @property
    def values(self) -> list[ValueSet]:
        """The multisets that are needed."""
        return [n for n in self.since if isinstance(n, ValueSet)]

    @property
    def filters(self) -> set[int]:
        """The filters that are needed."""
        return {n for n in self.since if isinstance(n, int)}


def implying(wanted: Stored) -> tuple[Stored, ...]:
    """What it takes to have something: itself, or what is computed of every row."""
    if isinstance(wanted, Computed) and wanted.where is not None:
        return wanted, Computed(wanted.column, None)
    return (wanted,)


def _pieces_among(stored: Iterable[Stored]) -> list[Piece]:
    return [one for one in stored if not isinstance(one, ValueSet | int | Computed)]


def _in_order(computed: Iterable[Computed]) -> list[Computed]:
    return sorted(computed, key=lambda one: (one.column, -1 if one.where is None else one.where))


def shape_of(plan: Plan, rows: SharedRows, aggregates: Sequence[UserAggregate]) -> Shape:
    """What a query needs, by the numbers that its columns have, or are given, among `rows`."""
    trees, types = plan.rows.expressions, plan.row_types
    given = sorted({c for some, _ in plan.call_columns for c in some})
    columns = {c: rows.number(trees[c], types[c]) for c in given}
    where = None if plan.rows.where is None else rows.number_filter(plan.rows.where)
    calls = range(len(plan.query.calls))
    needs = tuple(_need(plan, i, columns, rows, aggregates) for i in calls)
    read = [(key, where) for key in range(len(plan.query.keys))]
    read += [(column, need.where) for need in needs for column in need.columns]
    computed = frozenset(Computed(*one) for one in read if can_fail(rows.expressions[one[0]]))
    return Shape(plan, where, needs, frozenset(columns.values()), computed)


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
    """All that a shape needs."""
    return {*read_by(shape), *shape.computed}


def read_by(shape: Shape) -> set[Stored]:
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
    if isinstance(stored, Computed):
        where = "" if stored.where is None else f" where {stored.where} {rows.text(stored.where)}"
        text = f"{stored.column} {rows.text(stored.column)}{where}"
        return identity("computed", _COMPUTED_VERSION, text)
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
