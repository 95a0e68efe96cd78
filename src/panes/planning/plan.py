"""A query bound to schemas: everything decided before the first row.

Planning asks the cut which panes are needed, the catalog what each aggregate is, and DuckDB what
type each expression has. Pieces that several aggregates need are kept once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from panes.aggregates.aggregate import Aggregate, Argument, Bounded, Holistic, Piece
from panes.aggregates.calls import Call
from panes.aggregates.catalog import build
from panes.aggregates.custom import UserAggregate
from panes.axis import ARRIVAL, Axis, axis_over
from panes.errors import ColumnTypeError, MissingStreamError, QueryError
from panes.expressions.projection import Projection, find_column, resolve
from panes.html import text_html
from panes.language.query import (
    AGGREGATE,
    DEFINING,
    KEY,
    AggregateCall,
    Key,
    Query,
    Window,
)
from panes.language.set_query import SIDE
from panes.planning.answer_columns import (
    AnswerColumn,
    aggregate_names,
    answer_columns,
    lowered_names,
)
from panes.planning.condition import is_plain
from panes.planning.union_types import cast_each, cast_sets
from panes.planning.utc_days import tell_of_days
from panes.planning.where import passing
from panes.stores.contents import Contents, ValueSet
from panes.windows.spec import PanedSpec, PartitionedRows, PerRow, paned

TypesOf: TypeAlias = Callable[[Projection], Sequence[pa.DataType]]


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan for rows, from the first to the answer.

    `rows` projects a batch to grouping columns, then arguments, then the columns a per-row window
    needs of its defining row; `answers` projects lowered aggregates to what was selected.
    `call_columns[i]` says where the arguments and the FILTER of call i stand among the rows'.
    `piece_of[i]` are the indexes, into `pieces`, of aggregate i's; for a holistic aggregate it is
    the index of its multiset. `order` is the column that orders the rows of a ROWS window.
    """

    query: Query
    window: Window
    axis: Axis
    rows: Projection
    row_types: tuple[pa.DataType, ...]
    aggregates: tuple[Aggregate, ...]
    pieces: tuple[Piece, ...]
    piece_of: tuple[tuple[int, ...], ...]
    value_sets: tuple[ValueSet, ...]
    call_columns: tuple[tuple[tuple[int, ...], int | None], ...]
    defining_columns: tuple[int, ...]
    partition_columns: tuple[int, ...]
    answers: Projection
    order: Axis | None = None

    def _repr_html_(self) -> str:
        from panes.planning.explain import explain  # which reads plans

        return text_html(explain(self))

    @property
    def placing(self) -> Axis:
        """The axis that rows are placed by, or the column that orders the rows it counts."""
        return self.axis if self.order is None else self.order

    @property
    def column_names(self) -> frozenset[str]:
        """The columns of the stream that the plan reads, as it spells them."""
        trees = (
            *self.rows.expressions,
            *([self.rows.where] if self.rows.where is not None else []),
        )
        used = {column.name for tree in trees for column in tree.find_all(exp.Column)}
        return frozenset(used | ({self.axis.column} if self.axis.column is not None else set()))

    @property
    def key_types(self) -> tuple[pa.DataType, ...]:
        """The types of the grouping columns."""
        return self.row_types[: len(self.query.keys)]

    @property
    def spec(self) -> PanedSpec:
        """The windows over positions, whatever gives rows theirs."""
        return paned(self.window.spec)

    @property
    def counts_rows(self) -> bool:
        """True if rows are counted by a pipeline, before WHERE."""
        return isinstance(self.window.spec, PartitionedRows | PerRow) or self.order is not None

    @property
    def counts_arrivals(self) -> bool:
        """True if rows lie where they came: the axis is their number in the stream."""
        return self.placing.kind == "rows"

    @property
    def group_columns(self) -> tuple[int, ...]:
        """The columns of rows that make a group: the keys, or what partitions per-row windows."""
        if isinstance(self.window.spec, PerRow):
            return self.partition_columns
        return tuple(range(len(self.query.keys)))

    @property
    def argument_columns(self) -> tuple[int, ...]:
        """The columns of rows that aggregates read: arguments and FILTERs."""
        read = {c for columns, where in self.call_columns for c in (*columns, where)}
        return tuple(sorted(c for c in read if c is not None))

    @property
    def contents(self) -> Contents:
        """The contents of a store for this plan."""
        return Contents(
            pieces=self.pieces,
            value_sets=self.value_sets,
            row_types=self.row_types,
            group_columns=self.group_columns,
            argument_columns=self.argument_columns,
        )

    @property
    def shard_columns(self) -> tuple[int, ...]:
        """Rows that agree in these columns belong together, wherever they are worked on."""
        return self.partition_columns if self.counts_rows else self.group_columns

    def partition(self, table: pa.Table) -> list[pa.Array]:
        """The partitioning columns of all rows, those that WHERE leaves out too."""
        expressions = tuple(self.rows.expressions[c] for c in self.partition_columns)
        return Projection(expressions, None)(table)[1] if expressions else []

    def schema(self) -> pa.Schema:
        """The columns of the answers, with their types."""
        lowered = self.lowered_schema()
        _, computed = self.answers(lowered.empty_table())
        outputs = iter(computed)
        return pa.schema(
            (c.name, next(outputs).type if c.lowered is None else lowered.field(c.lowered).type)
            for c in self.answer_columns
        )

    @property
    def names_windows(self) -> bool:
        """True if answers name their window and key; that of a per-row window is about its row."""
        return not isinstance(self.window.spec, PerRow)

    @property
    def answer_columns(self) -> tuple[AnswerColumn, ...]:
        """The columns of the answers, in their order."""
        return answer_columns(self.query, names_windows=self.names_windows)

    def lowered_schema(self) -> pa.Schema:
        """The columns `answers` reads: windows, keys and aggregates under their numbers.

        For a per-row window, aggregates and the columns of the row that defines it.
        """
        aggregates = [a.type for a in self.aggregates]
        if self.names_windows:
            names = lowered_names(len(self.key_types), len(aggregates))
            types = [self.axis.type, self.axis.type, *self.key_types, *aggregates]
        else:
            names = aggregate_names(len(aggregates))
            names += [f"{DEFINING}{i}" for i in range(len(self.defining_columns))]
            types = [*aggregates, *(self.row_types[c] for c in self.defining_columns)]
        return pa.schema(zip(names, types, strict=True))


def plan(
    query: Query,
    schemas: Mapping[str, pa.Schema],
    aggregates: Sequence[UserAggregate] = (),
    *,
    types_of: TypesOf | None = None,
) -> Plan:
    """Bind a query to the schemas of its streams.

    `types_of` tells the types of expressions where a host other than DuckDB evaluates them.
    """
    window = _require_window(query)
    schema, stream = _common_schema(query, schemas)
    axis = _axis(window, schema, stream)
    arguments = _Arguments(schema, stream, len(query.keys))
    keys = tuple(resolve(k.expression, schema, stream=stream) for k in query.keys)
    query = replace(query, keys=tuple(map(_renamed, query.keys, keys)))
    calls = tuple(arguments.of(c) for c in query.calls)
    defining = tuple(arguments.place(d) for d in query.defining)
    partition = tuple(arguments.place(exp.column(p, quoted=True)) for p in window.partition)
    where = passing(query, schema, stream)
    always = {*range(len(keys)), *defining, *partition}
    rows = Projection((*keys, *arguments.expressions), where, guards=_guards(calls, always))
    types = _types(rows, schema) if types_of is None else types_of(rows)
    grouped = [(f"GROUP BY `{key.name}`", types[at]) for at, key in enumerate(query.keys)]
    grouped += [(f"PA `{p}`", types[at]) for p, at in zip(window.partition, partition, strict=True)]
    for asked, data_type in grouped:
        if pa.types.is_nested(data_type) or pa.types.is_interval(data_type):
            raise ColumnTypeError(f"{asked} cannot group values of type {data_type}")
    built = tuple(
        _built(call, _typed(call, columns, where_column, types), aggregates)
        for call, (columns, where_column) in zip(query.calls, calls, strict=True)
    )
    pieces, value_sets, piece_of = _shared(built)
    tell_of_days(window.spec, axis)
    return Plan(
        query=query,
        window=window,
        axis=axis,
        rows=rows,
        row_types=tuple(types),
        aggregates=built,
        pieces=pieces,
        piece_of=piece_of,
        value_sets=value_sets,
        call_columns=calls,
        defining_columns=defining,
        partition_columns=partition,
        order=axis_over(axis.column, schema.field(axis.column).type, stream=stream)
        if axis.kind == "rows" and axis.column is not None
        else None,
        answers=Projection(
            tuple(o.expression for o in query.outputs),
            query.having,
            _labels(query),
        ),
    )


def _labels(query: Query) -> dict[str, str]:
    """What the query writes for the columns that its SELECT and HAVING are computed from."""
    written = {f"{AGGREGATE}{i}": call.sql for i, call in enumerate(query.calls)}
    trees = {f"{KEY}{i}": key.expression for i, key in enumerate(query.keys)}
    trees |= {f"{DEFINING}{i}": column for i, column in enumerate(query.defining)}
    return written | {name: tree.sql(dialect="spark") for name, tree in trees.items()}


def _types(rows: Projection, schema: pa.Schema) -> list[pa.DataType]:
    """The types of expressions; a WHERE that Arrow alone can tell is right as it stands."""
    if rows.where is not None and is_plain(rows.where, schema):
        rows = Projection(rows.expressions, None, guards=rows.guards)
    return rows.types(schema)


def _require_window(query: Query) -> Window:
    if query.window is None:
        raise QueryError(
            "the query has no window, so it would never end",
            hint=f"say which: FROM {query.streams[0]} [RANGE 10 minutes SLIDE 1 minute WATTR ts]",
        )
    return query.window


def _common_schema(query: Query, schemas: Mapping[str, pa.Schema]) -> tuple[pa.Schema, str]:
    """The one schema all streams of a union have, as far as the query looks at it."""
    for name in query.streams:
        if name not in schemas:
            raise MissingStreamError(name, given=schemas)
    first = query.streams[0]
    for name in query.streams[1:]:
        for column in _columns_used(query):
            mine = schemas[first].field(find_column(column, schemas[first], stream=first))
            other = schemas[name].field(find_column(column, schemas[name], stream=name))
            if mine.type != other.type:
                raise ColumnTypeError(
                    f"`{column}` is {mine.type} in stream `{first}` and {other.type} in `{name}`",
                    hint=cast_sets(column, query.streams[-1])
                    if SIDE in schemas[first].names
                    else cast_each(column, (first, name), (mine.type, other.type)),
                )
    return schemas[first], first


def _renamed(key: Key, resolved: exp.Expression) -> Key:
    """A key under its column's own name, where ``item-id`` turned out to be one."""
    if isinstance(resolved, exp.Column) and isinstance(key.expression, exp.Sub):
        written = key.expression.sql(dialect="spark", normalize_functions=False)
        return Key(resolved.name if key.name == written else key.name, key.expression)
    return key


def _columns_used(query: Query) -> set[str]:
    trees = [k.expression for k in query.keys] + [a for c in query.calls for a in c.arguments]
    trees += [c.where for c in query.calls if c.where is not None]
    trees += [] if query.where is None else [query.where]
    used = {c.parts[0].name for tree in trees for c in tree.find_all(exp.Column)}
    if query.window is not None and query.window.column is not None:
        used.add(query.window.column)
    return used


def _axis(window: Window, schema: pa.Schema, stream: str) -> Axis:
    if window.column is None:
        return ARRIVAL
    column = find_column(window.column, schema, stream=stream)
    axis = axis_over(column, schema.field(column).type, stream=stream)
    if window.measure == "rows":
        return Axis("rows", column, pa.int64())
    if axis.kind == window.measure:
        return axis
    if axis.kind == "time":
        raise QueryError(
            f"`{column}` is a timestamp, so RANGE and SLIDE need a unit",
            hint=f"for example [RANGE 10 minutes SLIDE 1 minute WATTR {column}]",
        )
    raise QueryError(
        f"`{column}` is an integer, so RANGE and SLIDE are plain numbers",
        hint=f"for example [RANGE 1000 SLIDE 10 WATTR {column}]; milliseconds since 1970 are time: "
        f"FROM (SELECT timestamp_millis({column}) AS ts, ... FROM {stream})",
    )


class _Arguments:
    """The distinct argument expressions of all aggregates, in the order they are first needed."""

    def __init__(self, schema: pa.Schema, stream: str, offset: int) -> None:
        self.expressions: list[exp.Expression] = []
        self._schema, self._stream, self._offset = schema, stream, offset

    def of(self, call: AggregateCall) -> tuple[tuple[int, ...], int | None]:
        """Where a call's arguments and its FILTER stand among the projected columns."""
        columns = tuple(self.place(a) for a in call.arguments)
        return columns, None if call.where is None else self.place(call.where)

    def place(self, tree: exp.Expression) -> int:
        """Where an expression stands among the projected columns."""
        resolved = resolve(tree, self._schema, stream=self._stream)
        if resolved not in self.expressions:
            self.expressions.append(resolved)
        return self._offset + self.expressions.index(resolved)


def _guards(
    calls: Sequence[tuple[tuple[int, ...], int | None]], always: set[int]
) -> dict[int, tuple[int, ...]]:
    """The FILTERs under which an argument is needed, for those that are under one only."""
    users: dict[int, set[int | None]] = {}
    for columns, where in calls:
        for column in columns:
            users.setdefault(column, set()).add(where)
        if where is not None:
            always = always | {where}
    return {
        column: tuple(sorted(f for f in filters if f is not None))
        for column, filters in users.items()
        if None not in filters and column not in always
    }


def _built(asked: AggregateCall, call: Call, aggregates: Sequence[UserAggregate]) -> Aggregate:
    try:
        return build(call, aggregates)
    except ColumnTypeError as refused:
        raise refused.of(f"`{asked.sql}`") from None


def _typed(
    call: AggregateCall,
    columns: tuple[int, ...],
    where: int | None,
    types: Sequence[pa.DataType],
) -> Call:
    arguments = tuple(Argument(c, types[c]) for c in columns)
    if where is not None and not pa.types.is_boolean(types[where]):
        raise ColumnTypeError(f"FILTER of {call.sql} must be a condition, got {types[where]}")
    return Call(call.name, arguments, call.parameters, where, call.distinct, call.skip_nulls)


def _shared(
    aggregates: Sequence[Aggregate],
) -> tuple[tuple[Piece, ...], tuple[ValueSet, ...], tuple[tuple[int, ...], ...]]:
    """Every piece and multiset once, and which of them each aggregate needs."""
    pieces: list[Piece] = []
    value_sets: list[ValueSet] = []
    needed: list[tuple[int, ...]] = []
    for aggregate in aggregates:
        if isinstance(aggregate, Bounded):
            needed.append(tuple(_index(pieces, p) for p in aggregate.pieces))
        else:
            needed.append((_index(value_sets, _value_set(aggregate)),))
    return tuple(pieces), tuple(value_sets), tuple(needed)


def _value_set(aggregate: Holistic) -> ValueSet:
    columns = tuple(a.column for a in aggregate.arguments)
    return ValueSet(columns, aggregate.selection, aggregate.ordered)


def _index(known: list, item: object) -> int:  # type: ignore[type-arg]
    if item not in known:
        known.append(item)
    return known.index(item)
