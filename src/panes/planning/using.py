"""The columns of all sides of a join, and what USING makes one column of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from panes.errors import ColumnTypeError, QueryError
from panes.language.join_query import Join, Source
from panes.planning.join_clauses import window_of_both
from panes.planning.joined_columns import JoinedColumns, column
from panes.planning.union_types import cast_each


def joined_columns(join: Join, sides: Sequence[pa.Schema]) -> JoinedColumns:
    """The columns of all sides of a join, under the names that a query knows them by."""
    names = tuple(source.names for source in join.sources)
    columns = JoinedColumns(names, tuple(sides), {}, window_of_both(join) is not None)
    return replace(columns, using=_using(join, columns))


def using_sides(
    join: Join, columns: JoinedColumns, name: str
) -> tuple[exp.Expression, exp.Expression]:
    """The columns that a name in USING means, left and right of a join.

    On the left it may itself be a column of USING, of a join below.
    """
    right = len(join.sources) - 1
    other = column(columns.column(right, name))
    below = _using(join.left, columns) if isinstance(join.left, Join) else {}
    if name.lower() in below:
        return below[name.lower()], other
    holders = [
        s for s in range(right)
        if name.lower() in (n.lower() for n in columns.schemas[s].names)
    ]  # fmt: skip
    if len(holders) > 1:
        sides = ", ".join(f"`{columns.column(s, name)}`" for s in holders)
        raise QueryError(
            f"USING (`{name}`) could be any of {sides}", hint="write ON, and say which"
        )
    return column(columns.column(holders[0] if holders else right - 1, name)), other


def using_columns(join: Join, columns: JoinedColumns) -> dict[str, set[str]]:
    """The columns of USING in the order of Spark's *, with the joined columns that each unites."""
    below = using_columns(join.left, columns) if isinstance(join.left, Join) else {}
    found: dict[str, set[str]] = {}
    for name in join.using:
        one, other = using_sides(join, columns, name)
        known = next((n for n in below if n.lower() == name.lower()), None)
        united = below.pop(known) if known else set()
        own = {c.name for side in (one, other) for c in side.find_all(exp.Column)}
        found[columns.column(len(join.sources) - 1, name).rpartition(".")[2]] = united | own
    return found | below


def _using(join: Join, columns: JoinedColumns) -> dict[str, exp.Expression]:
    """The value of a column of USING: of the side that always has it, or of either."""
    found = _using(join.left, columns) if isinstance(join.left, Join) else {}
    for name in join.using:
        one, other = using_sides(join, columns, name)
        either = exp.Anonymous(this="coalesce", expressions=[one.copy(), other.copy()])
        kinds = {"right": other, "full": either}
        found[name.lower()] = kinds.get(join.how, one)
    return found


def side_schema(source: Source, schemas: Sequence[pa.Schema]) -> pa.Schema:
    """The columns of a side: those of its first stream, which the others have too.

    `schemas` are those of its streams, in their order, after what FROM makes of each.
    """
    first = schemas[0]
    for name, schema in zip(source.streams[1:], schemas[1:], strict=True):
        for field in schema:
            if field.name in first.names and first.field(field.name).type != field.type:
                known = first.field(field.name).type
                raise ColumnTypeError(
                    f"`{field.name}` is {known} in stream `{source.streams[0]}` and {field.type} "
                    f"in `{name}`",
                    hint=cast_each(field.name, (source.streams[0], name), (known, field.type)),
                )
    return pa.schema([f for f in first if all(f.name in schema.names for schema in schemas)])
