"""What a SELECT inside FROM means: select, then project, then drop duplicates."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from panes.axis import Axis, axis_over
from panes.errors import MissingStreamError, QueryError
from panes.language.join_query import Join
from panes.language.query import Inner, Query
from panes.operators.distinct import Distinct
from panes.operators.operator import Chain, Operator
from panes.operators.select import Project, Select, require_order
from panes.planning.scalar import find_column, resolve
from panes.planning.using import side_schema


def chain_of(
    query: Query,
    stream: str,
    schema: pa.Schema,
    *,
    remembers: int | None = 0,
    carries_promises: bool = True,
) -> Chain:
    """The operators between a stream and its windows.

    `remembers` is how far behind progress a row can still count somewhere; None: always.
    """
    inner = dict(zip(query.streams, query.inner, strict=False)).get(stream)
    if inner is None:
        return Chain()
    position = None if query.window is None else query.window.column
    operators: list[Operator] = []
    if inner.where is not None:
        operators.append(Select(resolve(inner.where, schema, stream=stream)))
    axis, derived, moves = _axis_before(inner, position, schema, stream), schema, None
    if inner.columns is not None:
        project = _projection(inner, position, schema, stream)
        if carries_promises:
            require_order(project)
        operators.append(project)
        moves = project.moved
        derived = project.push(schema.empty_table()).schema
    if inner.distinct:
        if position is None:
            raise QueryError("SELECT DISTINCT inside FROM needs a window over one of its columns")
        column = find_column(position, derived, stream=stream)
        after = axis_over(column, derived.field(column).type, stream=stream)
        operators.append(Distinct(after, remembers))
    return Chain(tuple(operators), axis, moves)


def require_order_kept(query: Query, stream: str, schema: pa.Schema, *, is_stream: bool) -> None:
    """The same refusal, for hosts that project by themselves."""
    inner = query.inner[query.streams.index(stream)]
    if is_stream and inner is not None and inner.columns is not None:
        position = None if query.window is None else query.window.column
        require_order(_projection(inner, position, schema, stream))


def _projection(inner: Inner, position: str | None, schema: pa.Schema, stream: str) -> Project:
    columns = _outputs(inner, schema, stream)
    names = {name.lower(): name for name, _ in columns}
    axis = _axis_before(inner, position, schema, stream)
    return Project(columns, axis, names.get((position or "").lower(), ""))


def derived_schemas(query: Query, schemas: Mapping[str, pa.Schema]) -> dict[str, pa.Schema]:
    """The columns of each stream after what FROM makes of it."""
    return {
        name: chain_of(query, name, schema, carries_promises=False)
        .push(schema.empty_table())
        .schema
        for name, schema in schemas.items()
    }


def joined_schemas(join: Join, schemas: Mapping[str, pa.Schema]) -> tuple[pa.Schema, ...]:
    """The columns of the sides of a join, from left to right, after what FROM makes of streams.

    A side is known by its place: one stream may stand on several, each time as something else.
    """
    made = schemas_made(join, schemas)
    return tuple(side_schema(*side) for side in zip(join.sources, made, strict=True))


def schemas_made(join: Join, schemas: Mapping[str, pa.Schema]) -> list[list[pa.Schema]]:
    """For each side of a join, what FROM makes of the columns of each of its streams."""
    return [
        [
            _without_position(inner, stream, schemas)
            for stream, inner in zip(source.streams, source.inner, strict=True)
        ]
        for source in join.sources
    ]


def _without_position(
    inner: Inner | None, stream: str, schemas: Mapping[str, pa.Schema]
) -> pa.Schema:
    """The columns of a stream after what FROM makes of it, whatever gives its positions."""
    if stream not in schemas:
        raise MissingStreamError(stream, given=schemas)
    schema = schemas[stream]
    if inner is None or inner.columns is None:
        return schema
    project = Project(_outputs(inner, schema, stream), None, "")
    return Chain([project]).push(schema.empty_table()).schema


def _outputs(
    inner: Inner, schema: pa.Schema, stream: str
) -> tuple[tuple[str, exp.Expression], ...]:
    outputs = inner.columns or ()
    return tuple((o.name, resolve(o.expression, schema, stream=stream)) for o in outputs)


def _axis_before(inner: Inner, position: str | None, schema: pa.Schema, stream: str) -> Axis | None:
    """Where rows lie before anything is made of them; None if no column says so."""
    if position is None:
        return None
    source: str | None = position
    for name, tree in _outputs(inner, schema, stream):
        if name.lower() == position.lower():
            column = tree.find(exp.Column)
            source = None if column is None else column.name
    if source is None:
        return None
    column_name = find_column(source, schema, stream=stream)
    return axis_over(column_name, schema.field(column_name).type, stream=stream)
