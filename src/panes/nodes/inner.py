"""What a SELECT inside FROM means: select, then project, then drop duplicates."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from panes.axis import Axis, axis_over
from panes.errors import ColumnTypeError, MissingStreamError, QueryError
from panes.expressions.projection import find_column, resolve
from panes.language.join_query import Join
from panes.language.query import Inner, Query
from panes.nodes.distinct import Distinct
from panes.nodes.operator import Chain, Operator
from panes.nodes.select import Project, Select, require_order
from panes.planning.using import side_schema


def chain_of(
    query: Query,
    stream: str,
    schema: pa.Schema,
    *,
    remembers: int | None = 0,
    is_bounded: bool = False,
    needs_order: bool = False,
) -> Chain:
    """The operators between a stream and its windows.

    `remembers` is how far behind progress a row can still count somewhere; None: always. Nothing
    is promised of what `is_bounded`; with `needs_order`, something is promised of every row.
    """
    inner = dict(zip(query.streams, query.inner, strict=False)).get(stream)
    if inner is None:
        return Chain()
    position = None if query.window is None else query.window.column
    operators: list[Operator] = []
    if inner.where is not None:
        operators.append(Select(resolve(inner.where, schema, stream=stream)))
    if inner.columns is None:
        axis, derived, moves, places = _axis_of(position, schema, stream), schema, None, None
    else:
        project = _projection(inner, position, schema, stream)
        if needs_order:
            require_order(project)
        operators.append(project)
        axis, moves = project.axis, project.moved
        places = project.placed if axis is None and not is_bounded else None
        derived = project.push(schema.empty_table()).schema
    if inner.distinct:
        if position is None:
            raise QueryError("SELECT DISTINCT inside FROM needs a window over one of its columns")
        column = find_column(position, derived, stream=stream)
        after = axis_over(column, derived.field(column).type, stream=stream)
        operators.append(Distinct(after, remembers))
    return Chain(tuple(operators), axis, moves, places)


def _projection(inner: Inner, position: str | None, schema: pa.Schema, stream: str) -> Project:
    columns = _outputs(inner, schema, stream)
    names = {name.lower(): name for name, _ in columns}
    name = names.get((position or "").lower(), "")
    plain = Project(columns, None, name)
    tree = dict(columns).get(name)
    if tree is None:
        return plain
    axis = _axis_before(tree, schema, stream)
    kind = plain.push(schema.empty_table()).schema.field(name).type
    after = axis_over(name, kind, stream=stream)
    is_alike = axis is not None and axis.kind == after.kind
    return Project(columns, axis if is_alike else None, name, after)


def derived_schemas(query: Query, schemas: Mapping[str, pa.Schema]) -> dict[str, pa.Schema]:
    """The columns of each stream after what FROM makes of it."""
    return {
        name: chain_of(query, name, schema, is_bounded=True).push(schema.empty_table()).schema
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


def _axis_before(tree: exp.Expression, schema: pa.Schema, stream: str) -> Axis | None:
    """Where rows lie before anything is made of them; None if no column says so."""
    names = {column.name for column in tree.find_all(exp.Column)}
    return _axis_of(names.pop(), schema, stream, is_read=False) if len(names) == 1 else None


def _axis_of(
    position: str | None, schema: pa.Schema, stream: str, *, is_read: bool = True
) -> Axis | None:
    """The axis of a column; None: there is none. What `is_read` as one has to be one."""
    if position is None:
        return None
    column = find_column(position, schema, stream=stream)
    try:
        return axis_over(column, schema.field(column).type, stream=stream)
    except ColumnTypeError:
        if is_read:
            raise
        return None
