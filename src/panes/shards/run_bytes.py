"""A run of rows as bytes: positions, counted from the first one, and columns.

Columns have no names here, only their places: whoever stores the run knows what they are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.join.sorted_rows import SortedRows
from panes.stores import codec
from panes.stores.parcel import narrowed, widened

_ROWS = "rows"
_CODE, _AT, _MARK, _COLUMN = "code", "at", "m", "c_"


def packed(rows: SortedRows) -> bytes:
    """Rows as bytes, in their order."""
    columns = {_CODE: narrowed(rows.code), _AT: narrowed(rows.at - rows.at.min())}
    first = pa.array([int(rows.at.min())])
    if rows.marks is not None:
        columns |= mark_columns(rows.marks)
    places = pa.array(rows.row)
    for i, column in enumerate(rows.columns):
        columns[f"{_COLUMN}{i}"] = column.take(places)
    return codec.pack({_ROWS: pa.table(columns), _AT: pa.table({_AT: first})})


def unpacked(data: bytes) -> SortedRows:
    """The rows of a run, of its bytes."""
    tables = codec.unpack(data)
    table, first = tables[_ROWS], tables[_AT].column(_AT)[0].as_py()
    arrays = {name: table.column(name).combine_chunks() for name in table.column_names}
    marks = [n for n in arrays if n.startswith(_MARK)]
    return SortedRows(
        widened(arrays[_CODE]),
        first + widened(arrays[_AT]),
        np.arange(len(table)),
        tuple(array for name, array in arrays.items() if name.startswith(_COLUMN)),
        marks_of(table.select(marks)) if marks else None,
    )


def mark_columns(marks: NDArray[np.int64]) -> dict[str, pa.Array]:
    """What rows have been joined with, as columns."""
    return {f"{_MARK}{i}": narrowed(marks[:, i]) for i in range(marks.shape[1])}


def marks_of(table: pa.Table) -> NDArray[np.int64]:
    """What `mark_columns` was given."""
    return np.stack([widened(c.combine_chunks()) for c in table.columns], axis=1)
