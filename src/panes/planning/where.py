"""WHERE: a condition of single rows, which knows nothing of answers yet."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from panes.errors import QueryError
from panes.expressions.projection import resolve
from panes.language.query import Query


def passing(query: Query, schema: pa.Schema, stream: str) -> exp.Expression | None:
    """The condition over the columns of the stream; None: all rows pass."""
    if query.where is None:
        return None
    named = {output.name.lower() for output in query.outputs}
    known = {name.lower() for name in schema.names}
    for column in query.where.find_all(exp.Column):
        if not column.table and column.name.lower() in named - known:
            asked = column.find_ancestor(exp.Predicate) or column
            raise QueryError(
                f"`{column.name}` is an answer of a window, and WHERE is asked of single rows",
                hint=f"HAVING {asked.sql('spark')}",
            )
    return resolve(query.where, schema, stream=stream)
