"""Batches of one stream that differ in what does not matter: brought to the columns of the first.

A batch may have its columns in another order, more columns than the first, whole numbers where
there were doubles, or nothing but NULLs in a column. What would change a value is refused, and so
is a column that is missing.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from panes.errors import InputError


def alike(table: pa.Table, known: pa.Schema, stream: str) -> pa.Table:
    """A batch with the columns that are known, in their order and types."""
    if table.schema.equals(known):
        return table
    missing = [name for name in known.names if name not in table.column_names]
    if missing and not table.num_columns:
        return known.empty_table()  # of a list without rows
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        raise InputError(
            f"a batch of stream `{stream}` has no column {names}, and the stream has",
            hint="give it NULLs where there is nothing",
        )
    columns = [_as_known(table.column(field.name), field, stream) for field in known]
    return pa.table(columns, schema=known)


def _as_known(column: pa.ChunkedArray, field: pa.Field, stream: str) -> pa.ChunkedArray:
    """A column in the type of the first batch, every value the same."""
    if column.type == field.type:
        return column
    given, wanted = column.type, field.type
    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column), wanted)])
    if pa.types.is_null(wanted):
        raise InputError(
            f"`{field.name}` of stream `{stream}` had nothing but NULLs in the first batch, and is "
            f"{given} now",
            hint=f'say what it is: panes.open(..., schema=pa.schema([("{field.name}", ...), ...]))',
        )
    if not any(is_of(given) and is_of(wanted) for is_of in _KINDS):
        raise InputError(
            f"`{field.name}` of stream `{stream}` is {wanted}, and {given} in this batch",
            hint=_cast(field, given),
        )
    try:
        found = column.cast(wanted)
        is_same = _is_same(column, found)
    except pa.ArrowInvalid:
        is_same = False
    if not is_same:
        raise InputError(
            f"`{field.name}` of stream `{stream}` is {wanted}, and {given} in this batch, "
            f"with values that {wanted} does not have",
            hint="say which type holds all values: panes.open(..., schema=...)",
        )
    return found


def _cast(field: pa.Field, given: pa.DataType) -> str:
    """What to write so that a column of a batch has the type of the first one."""
    column = f'rows["{field.name}"]'
    if _is_instant(field.type) and _is_wall_time(given):
        return f'a time has no zone here; of UTC: pyarrow.compute.assume_timezone({column}, "UTC")'
    if _is_wall_time(field.type) and _is_instant(given):
        return (
            f"a time had no zone before; of {given.tz}: pyarrow.compute.local_timestamp({column})"
        )
    return "cast it, or say what is meant: panes.open(..., schema=...)"


def _is_same(before: pa.ChunkedArray, after: pa.ChunkedArray) -> bool:
    """Whether no value has changed: Arrow itself checks all casts but those of floats."""
    if not pa.types.is_floating(before.type) or not pa.types.is_floating(after.type):
        return True
    back = after.cast(before.type)
    unequal = pc.and_(pc.not_equal(back, before), pc.invert(pc.is_nan(before)))
    return not pc.any(unequal).as_py()


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _is_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def _is_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz)


def _is_wall_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and not kind.tz)


_KINDS = (
    _is_number, _is_text, _is_bytes, _is_instant, _is_wall_time,
    pa.types.is_date, pa.types.is_duration, pa.types.is_nested,
)  # fmt: skip
