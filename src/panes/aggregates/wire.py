"""Partials as Arrow columns, to be sent, stored and read back. No pickle.

Numbers are themselves, sketches are their own portable bytes, and a tuple of objects is a column
per component in that component's type. `from_arrow` undoes `to_arrow` exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import BytesPiece, Piece
from panes.aggregates.custom import CustomPiece
from panes.aggregates.extremes import ObjectPick
from panes.aggregates.monoid import Columns
from panes.arrays import nested_keys
from panes.errors import QueryError


def types(piece: Piece) -> list[pa.DataType]:
    """The type of each column a piece's partials are written to."""
    if isinstance(piece, BytesPiece):
        return [pa.binary()]
    if isinstance(piece, ObjectPick):
        return [
            pa.int64()
            if c.is_keyed or c.argument is None
            else nested_keys.stored_type(c.argument.type)
            for c in piece.components
        ]
    if isinstance(piece, CustomPiece) and piece.monoid.dtype == object:
        raise QueryError(
            f"partial results of {piece.aggregate.name} are Python objects, which cannot be sent",
            hint="give it numbers for `empty`, so that they are numbers",
        )
    number = pa.int64() if piece.monoid.dtype == np.int64 else pa.float64()
    return [number] * len(piece.monoid.names)


def to_arrow(piece: Piece, partial: Columns) -> list[pa.Array]:
    """The columns of a piece's partials."""
    if isinstance(piece, BytesPiece):
        data = [None if s is None else piece.to_bytes(s) for s in partial[0]]
        return [pa.array(data, pa.binary())]
    lane_types = types(piece)
    return [pa.array(lane, kind) for lane, kind in zip(partial, lane_types, strict=True)]


def from_arrow(piece: Piece, arrays: Sequence[pa.Array]) -> Columns:
    """The partials that `to_arrow` wrote."""
    result = piece.monoid.empty(len(arrays[0]))
    for lane, array in enumerate(arrays):
        if piece.monoid.dtype != object:
            result[lane] = array.to_numpy(zero_copy_only=False)
            continue
        for i, value in enumerate(array.to_pylist()):
            if isinstance(piece, BytesPiece) and value is not None:
                value = piece.from_bytes(value)
            result[lane, i] = value
    return result
