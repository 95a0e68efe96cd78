"""Whatever holds rows in this process, as an Arrow table: pyarrow, pandas, Polars, DuckDB.

A frame is known by the interface it offers and not by its library, so none of them is imported.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from panes.errors import InputError, MissingStreamError, QueryError, UnknownStreamError
from panes.language.query import Query
from panes.planning.scalar import find_column


def to_table(frame: object, stream: str) -> pa.Table:
    """An Arrow table of a frame's rows, in a plain layout."""
    table = _arrow(frame, stream)
    return pa.table([_plain(c) for c in table.columns], names=_names(table, stream))


def is_spark(frame: object) -> bool:
    """Whether a frame is a Spark DataFrame, of a classic or a Connect session."""
    kind = type(frame)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")


def require_streams(query: Query, streams: Mapping[str, object]) -> None:
    """A bounded query is given exactly the streams it reads."""
    for name in query.streams:
        if name not in streams:
            raise MissingStreamError(name, given=streams)
    for name in streams:
        if name not in query.streams:
            raise UnknownStreamError(name, streams=query.streams)


def in_row_order(query: Query, streams: Mapping[str, object]) -> Mapping[str, object]:
    """Bounded streams, sorted where a ROWS window names the column that orders them.

    Rows whose place is NULL have none and are left out.
    """
    window = query.window
    if window is None or window.measure != "rows" or window.column is None:
        return streams
    if len(query.streams) > 1:
        raise QueryError("a ROWS window over a union cannot be ordered by a column")
    return {
        name: sorted_rows(to_table(f, name), window.column, name) for name, f in streams.items()
    }


def sorted_rows(table: pa.Table, column: str, stream: str) -> pa.Table:
    """The rows that have a place in a column, in its order."""
    exact = find_column(column, table.schema, stream=stream)
    placed = table.filter(pc.is_valid(table.column(exact)))
    return placed.sort_by([(exact, "ascending")])


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
    raise InputError(
        f"stream `{stream}` is a {type(frame).__name__}, which holds no rows that can be read",
        hint="pass a pyarrow Table, a pandas or Polars DataFrame, or anything with "
        "__arrow_c_stream__",
    )


def _names(table: pa.Table, stream: str) -> list[str]:
    names: list[str] = table.column_names
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise InputError(f"stream `{stream}` has two columns named `{twice[0]}`")
    return names


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column in a plain layout: dictionaries decoded, views made strings."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if column.type == pa.string_view():
        return column.cast(pa.large_string())
    if column.type == pa.binary_view():
        return column.cast(pa.large_binary())
    return column
