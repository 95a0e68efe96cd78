"""Whatever holds rows in this process, as an Arrow table: pyarrow, pandas, Polars, DuckDB, dicts.

A frame is known by the interface it offers and not by its library, so none of them is imported. All
batches of a stream have the columns of the first: `panes.batches_alike` sees to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.batches_alike import alike
from panes.errors import (
    InputError,
    MissingStreamError,
    UnknownStreamError,
)


def to_table(frame: object, stream: str, known: pa.Schema | None = None) -> pa.Table:
    """An Arrow table of a frame's rows, in a plain layout, with the columns that are `known`."""
    table = _plain_table(frame, stream)
    if known is not None:
        return alike(table, known, stream)
    if not table.num_columns:
        raise InputError(
            f"stream `{stream}` has neither rows nor columns",
            hint="pass a table that has its columns, or say them: panes.open(..., schema=...)",
        )
    return table


def _plain_table(frame: object, stream: str) -> pa.Table:
    try:
        table = _arrow(frame, stream)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as failure:
        first = str(failure).splitlines()[0]
        raise InputError(f"stream `{stream}` cannot be read as columns: {first}") from None
    names = _names(table, stream)
    _require_text(table, stream)
    columns = [_plain(c, n) for c, n in zip(table.columns, names, strict=True)]
    plain = pa.table(columns, names=names)
    _require_readable(plain.schema, stream)
    return plain


def empty_tables(schemas: Mapping[str, pa.Schema]) -> dict[str, pa.Table]:
    """Tables of such columns, in a plain layout, without rows."""
    columns = {
        name: {field.name: _empty(field, name) for field in schema}
        for name, schema in schemas.items()
    }
    return {name: to_table(pa.table(found), name) for name, found in columns.items()}


def is_spark(frame: object) -> bool:
    """Whether a frame is a Spark DataFrame, of a classic or a Connect session."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")
        for kind in type(frame).__mro__  # answers of a stream have a class of their own
    )


def together(
    frames: Mapping[str, object] | None, streams: Mapping[str, object]
) -> dict[str, object]:
    """Streams given in a mapping and those given by keyword, each once."""
    twice = sorted(set(frames or ()) & set(streams))
    if twice:
        raise InputError(f"stream `{twice[0]}` is given twice")
    return {**(frames or {}), **streams}


def require_streams(read: Sequence[str], streams: Mapping[str, object]) -> None:
    """A bounded query is given exactly the streams it reads."""
    for name in read:
        if name not in streams:
            raise MissingStreamError(name, given=streams)
    for name in streams:
        if name not in read:
            raise UnknownStreamError(name, streams=read)


def _arrow(frame: object, stream: str) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if type(frame).__module__.split(".")[0] == "pandas" and type(frame).__name__ == "DataFrame":
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    if hasattr(frame, "collect") and type(frame).__module__.split(".")[0] == "polars":
        return pa.table(frame.collect())
    if isinstance(frame, Mapping):
        return pa.table(dict(frame))
    if isinstance(frame, list | tuple) and all(isinstance(row, Mapping) for row in frame):
        names = dict.fromkeys(name for row in frame for name in row)
        return pa.table({name: pa.array([row.get(name) for row in frame]) for name in names})
    if isinstance(frame, str | PurePath):
        raise InputError(
            f"stream `{stream}` is {str(frame)!r}, and a file is read before it is asked",
            hint=f"{stream}=pyarrow.parquet.read_table(...), or spark.read.parquet(...); "
            f"on the command line: panes run query.sql --input {stream}=...",
        )
    raise InputError(
        f"stream `{stream}` is a {type(frame).__name__}, which holds no rows that can be read",
        hint="pass a Spark DataFrame, as .load() of a reader gives one and before any groupBy"
        if type(frame).__module__.startswith("pyspark.")
        else "pass a pyarrow Table, a pandas or Polars DataFrame, a list of dicts, or anything "
        "with __arrow_c_stream__",
    )


def _names(table: pa.Table, stream: str) -> list[str]:
    names: list[str] = table.column_names
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise InputError(f"stream `{stream}` has two columns named `{twice[0]}`")
    return names


def _require_text(table: pa.Table, stream: str) -> None:
    """Refuse text that is no UTF-8: engines that meet it later stop, or worse, go on."""
    for field, column in zip(table.schema, table.columns, strict=True):
        if _is_text(field.type):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as failure:
                first = str(failure).splitlines()[0]
                raise InputError(
                    f"`{field.name}` of stream `{stream}` is not valid text: {first}",
                    hint="read the column as binary, or decode it with the encoding it has",
                ) from None


def _require_readable(schema: pa.Schema, stream: str) -> None:
    for field in schema:
        _empty(field, stream)


def _empty(field: pa.Field, stream: str) -> pa.Array:
    """A column without rows; refused if Arrow has none of that type, such as a union."""
    if pa.types.is_run_end_encoded(field.type):
        return pa.array([], field.type.value_type)
    try:
        return pa.array([], field.type)
    except pa.ArrowNotImplementedError:
        raise InputError(
            f"`{field.name}` of stream `{stream}` is of type {field.type}, which cannot be read",
            hint="cast the column before, or leave it out",
        ) from None


def has_text(schema: pa.Schema) -> bool:
    """Whether any column is text, or has text inside."""
    return any(_is_text(field.type) for field in schema)


def _is_text(data_type: pa.DataType) -> bool:
    if pa.types.is_nested(data_type):
        return any(_is_text(data_type.field(i).type) for i in range(data_type.num_fields))
    if pa.types.is_dictionary(data_type):
        return _is_text(data_type.value_type)
    is_text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_of(data_type) for is_of in is_text)


def _plain(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """A column in a plain layout: no dictionaries, runs, views, half floats or nanoseconds."""
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        of_runs = pa.chunked_array(
            [c.values.take(_runs(c)) for c in column.chunks], kind.value_type
        )
        return _plain(of_runs, name)
    if pa.types.is_dictionary(kind):
        chunks = [_plain_array(c.dictionary).take(c.indices) for c in column.chunks]
        plain = chunks[0].type if chunks else _plain_array(pa.array([], kind.value_type)).type
        return pa.chunked_array(chunks, type=plain)
    if kind in _PLAIN:
        return column.cast(_PLAIN[kind])
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.chunked_array(
            [_to_microseconds(c, name) for c in column.chunks], type=pa.timestamp("us", kind.tz)
        )
    return column


def _runs(array: pa.Array) -> pa.Array:
    """For each row, which run of equal values it is in; the array may be a slice."""
    rows = np.arange(array.offset, array.offset + len(array))
    return pa.array(np.searchsorted(array.run_ends.to_numpy(), rows, side="right"))


_PLAIN = {
    pa.string_view(): pa.large_string(),
    pa.binary_view(): pa.large_binary(),
    pa.float16(): pa.float32(),
}


def _plain_array(array: pa.Array) -> pa.Array:
    return array.cast(_PLAIN[array.type]) if array.type in _PLAIN else array


def _to_microseconds(array: pa.Array, name: str) -> pa.Array:
    """Nanoseconds as microseconds, which is what Spark's timestamps have; refused if any are cut.

    Positions that were cut would put rows into windows that do not hold them.
    """
    missing = pc.is_null(array).to_numpy(zero_copy_only=False)
    ticks, rest = np.divmod(pc.fill_null(array.cast(pa.int64()), 0).to_numpy(), 1_000)
    if rest.any():
        raise InputError(
            f"`{name}` has times finer than a microsecond, as in row {int(rest.nonzero()[0][0])}",
            hint="round them as you mean it: "
            f'pyarrow.compute.floor_temporal(table["{name}"], unit="microsecond")',
        )
    return pa.array(ticks, mask=missing).view(pa.timestamp("us", array.type.tz))
