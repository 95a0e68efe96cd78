"""Arrow tables on their way into Spark: with the columns of a schema, and batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import pyarrow as pa

Batches: TypeAlias = Iterator[pa.RecordBatch]
"""What a task of ``mapInArrow`` reads, and what it gives."""
_AT_ONCE = 1 << 16


def in_batches(table: pa.Table) -> Batches:
    """A table's rows, some at a time."""
    yield from table.combine_chunks().to_batches(max_chunksize=_AT_ONCE)


def as_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table's rows with these columns in these types; NULL where it does not have one."""
    columns = [
        table.column(f.name).cast(f.type)
        if f.name in table.column_names
        else pa.nulls(len(table), f.type)
        for f in schema
    ]
    return pa.table(columns, schema=schema)
