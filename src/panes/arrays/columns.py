"""Columns of Arrow tables as arrays, in one piece and without NULLs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def column_of(table: pa.Table, name: str) -> pa.Array:
    """A column as one array; it is copied only if it lies in several pieces."""
    chunks = table.column(name)
    return chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()


def without_nulls(array: pa.Array, filler: object) -> NDArray[Any]:
    """A column as NumPy, with NULLs replaced; no copy where there are none."""
    filled = pc.fill_null(array, pa.scalar(filler, array.type)) if array.null_count else array
    values: NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return values
