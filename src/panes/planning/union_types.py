"""Two streams of one query that have a column in two types: what to write so that they have one."""

from __future__ import annotations

import pyarrow as pa

Pair = tuple[pa.DataType, pa.DataType]


def cast_sets(column: str, stream: str) -> str:
    """The hint for INTERSECT and EXCEPT."""
    return (
        "the values of both sets need one type; cast those of one side: "
        f"SELECT CAST({column} AS ...) AS {column} FROM {stream}"
    )


def cast_each(column: str, streams: tuple[str, str], types: Pair) -> str:
    """The hint for a union, with a type that holds the values of both."""
    each = (
        f"SELECT CAST({column} AS {_of_both(types)}) AS {column}, ... FROM {stream}"
        for stream in streams
    )
    return f"cast it in each stream: FROM ({' UNION ALL '.join(each)}) [...]"


def _of_both(types: Pair) -> str:
    if any(pa.types.is_timestamp(kind) for kind in types):
        return "TIMESTAMP"
    if all(pa.types.is_integer(kind) for kind in types):
        return "BIGINT"
    return "STRING" if any(map(_is_text, types)) else "DOUBLE"


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
