"""What a SELECT inside FROM makes of a table, the slow and obvious way."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from panes.expressions.projection import Projection, resolve
from panes.language.query import Inner
from panes.reference.folds import order


def derived(inner: Inner | None, stream: str, table: pa.Table) -> pa.Table:
    """A stream after what FROM makes of it."""
    if inner is None:
        return table
    if inner.where is not None:
        passing, _ = Projection((), resolve(inner.where, table.schema, stream=stream))(table)
        table = table.take(pa.array(passing))
    if inner.columns is not None:
        trees = (resolve(o.expression, table.schema, stream=stream) for o in inner.columns)
        _, columns = Projection(tuple(trees), None)(table)
        table = pa.table(columns, names=[o.name for o in inner.columns])
    if inner.distinct:
        first: dict[tuple[Any, ...], int] = {}
        for number, row in enumerate(table.to_pylist()):
            first.setdefault(tuple(map(order, row.values())), number)
        table = table.take(pa.array(first.values(), pa.int64()))
    return table
