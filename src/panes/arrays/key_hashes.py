"""A 64-bit hash of key values that never changes.

The same key has the same hash in every process and after every restart, so it is part of what a
checkpoint means. Keys that GROUP BY takes for equal hash alike: NULL is a value, all NaN are one,
-0.0 is 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.arrays import order_keys
from panes.arrays.compiled import compiled

_NULL = np.uint64(0x9E3779B97F4A7C15)


def key_hashes(keys: Sequence[pa.Array]) -> NDArray[np.uint64]:
    """The hash of each key; keys are given column by column, at least one.

    >>> key_hashes([pa.array([1, None])]).tolist() == key_hashes([pa.array([1, None])]).tolist()
    True
    """
    mixed = np.zeros(len(keys[0]), dtype=np.uint64)
    for column in keys:
        values = _hashes(column)
        if column.null_count:
            values = np.where(pc.is_null(column).to_numpy(zero_copy_only=False), _NULL, values)
        _mix(mixed, values)
    return mixed


def _hashes(column: pa.Array) -> NDArray[np.uint64]:
    data_type = column.type
    if pa.types.is_floating(data_type):
        return order_keys.encode(column).astype(np.int64).view(np.uint64)
    if (
        pa.types.is_integer(data_type)
        or pa.types.is_temporal(data_type)
        or pa.types.is_boolean(data_type)
    ):
        width = (
            pa.int32()
            if data_type.bit_width == 32 and pa.types.is_temporal(data_type)
            else pa.int64()
        )
        numbers = column.view(width) if pa.types.is_temporal(data_type) else column
        whole = pc.fill_null(numbers.cast(pa.int64(), safe=False), 0)
        return whole.to_numpy(zero_copy_only=False).view(np.uint64)
    text = column if _has_bytes(data_type) else column.cast(pa.string())
    data = pc.fill_null(text.cast(pa.large_binary()), b"")
    hashes = np.empty(len(data), dtype=np.uint64)
    _, offsets, body = data.buffers()
    if body is None or not body.size:
        body = pa.py_buffer(b"\0")
    ends = np.frombuffer(offsets, dtype=np.int64)[data.offset : data.offset + len(data) + 1]
    _hash_bytes(np.frombuffer(body, dtype=np.uint8), ends, hashes)
    return hashes


def _has_bytes(data_type: pa.DataType) -> bool:
    return any(
        is_type(data_type)
        for is_type in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
        )
    )


@compiled
def _mix(mixed, values):  # type: ignore[no-untyped-def]
    """Stir another column in (the finaliser of splitmix64)."""
    for i in range(mixed.shape[0]):
        z = mixed[i] * np.uint64(31) + values[i] + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed[i] = z ^ (z >> np.uint64(31))


@compiled
def _hash_bytes(data, ends, hashes):  # type: ignore[no-untyped-def]
    """FNV-1a of each value's bytes."""
    for i in range(hashes.shape[0]):
        h = np.uint64(0xCBF29CE484222325)
        for j in range(ends[i], ends[i + 1]):
            h = (h ^ np.uint64(data[j])) * np.uint64(0x100000001B3)
        hashes[i] = h
