"""What a SELECT inside FROM means: select, then project, then drop duplicates."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from panes.axis import ARRIVAL, Axis, axis_over
from panes.language.query import Inner, Query
from panes.operators.distinct import Distinct
from panes.operators.operator import Chain, Operator
from panes.operators.select import Project, Select
from panes.planning.scalar import find_column, resolve


def chain_of(query: Query, stream: str, schema: pa.Schema) -> Chain:
    """The operators between a stream and its windows."""
    inner = dict(zip(query.streams, query.inner, strict=False)).get(stream)
    if inner is None:
        return Chain()
    operators: list[Operator] = []
    if inner.where is not None:
        operators.append(Select(resolve(inner.where, schema, stream=stream)))
    columns = outputs_of(inner, schema, stream)
    derived = schema
    position = None if query.window is None else query.window.column
    if columns is not None:
        axis, position = _axis(columns, position, schema, stream)
        project = Project(columns, axis, position or "")
        operators.append(project)
        derived = project.push(schema.empty_table()).schema
    if inner.distinct:
        column = find_column(position or "", derived, stream=stream)
        operators.append(Distinct(axis_over(column, derived.field(column).type, stream=stream)))
    return Chain(tuple(operators))


def derived_schemas(query: Query, schemas: Mapping[str, pa.Schema]) -> dict[str, pa.Schema]:
    """The columns of each stream after what FROM makes of it."""
    return {
        name: chain_of(query, name, schema).push(schema.empty_table()).schema
        for name, schema in schemas.items()
    }


def outputs_of(
    inner: Inner, schema: pa.Schema, stream: str
) -> tuple[tuple[str, exp.Expression], ...] | None:
    """Names and expressions of a projection, as the schema spells its columns; None for ``*``."""
    if inner.columns is None:
        return None
    return tuple((o.name, resolve(o.expression, schema, stream=stream)) for o in inner.columns)


def _axis(
    columns: tuple[tuple[str, exp.Expression], ...],
    position: str | None,
    schema: pa.Schema,
    stream: str,
) -> tuple[Axis, str | None]:
    """Where rows lie before they are projected, and which of the new columns says so after."""
    for name, tree in columns:
        source = tree.find(exp.Column)
        if position is not None and name.lower() == position.lower() and source is not None:
            kind = schema.field(source.name).type
            return axis_over(source.name, kind, stream=stream), name
    return ARRIVAL, position
