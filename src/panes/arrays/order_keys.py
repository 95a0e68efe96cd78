"""Any fixed-width orderable value as a 64-bit integer that sorts the same way.

Floats sort as in Spark SQL: NaN is equal to itself and greater than everything, and -0.0 is 0.0.
Text, binary and decimals have no such key; those columns are compared as Python objects.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numba.extending import register_jitable
from numpy.typing import NDArray

from panes.arrays.columns import without_nulls
from panes.arrays.compiled import compiled
from panes.errors import ColumnTypeError

_SIGN = np.int64(-(1 << 63))


def has_key(data_type: pa.DataType) -> bool:
    """True if values of this type have an order key."""
    return bool(
        pa.types.is_integer(data_type)
        or pa.types.is_floating(data_type)
        or pa.types.is_boolean(data_type)
        or (pa.types.is_temporal(data_type) and not pa.types.is_interval(data_type))
    )


def fills_range(data_type: pa.DataType) -> bool:
    """True if a real value may have the smallest or the greatest key."""
    return not (
        pa.types.is_floating(data_type)
        or pa.types.is_boolean(data_type)
        or data_type.bit_width < 64
    )


def require_orderable(data_type: pa.DataType, *, what: str) -> None:
    """Refuse types whose values have no order (lists, structs, maps)."""
    unordered = pa.types.is_nested(data_type) or pa.types.is_interval(data_type)
    if unordered or pa.types.is_null(data_type):
        raise ColumnTypeError(f"{what} needs values that can be ordered, got {data_type}")


def encode(array: pa.Array) -> NDArray[np.int64]:
    """Order keys of a column; NULLs get an arbitrary one."""
    data_type = array.type
    if pa.types.is_floating(data_type):
        wide = array if pa.types.is_float64(data_type) else array.cast(pa.float64())
        values = without_nulls(wide, 0.0)
        keys = np.empty(len(values), dtype=np.int64)
        _float_keys(values, keys)
        return keys
    if pa.types.is_uint64(data_type):
        return without_nulls(array, 0).astype(np.uint64).view(np.int64) ^ _SIGN
    if pa.types.is_boolean(data_type):
        return without_nulls(array, False).astype(np.int64)
    if not pa.types.is_integer(data_type):
        array = array.view(pa.int32() if data_type.bit_width == 32 else pa.int64())
    return without_nulls(array, 0).astype(np.int64, copy=False)


def decode(keys: NDArray[np.int64], is_null: NDArray[np.bool_], data_type: pa.DataType) -> pa.Array:
    """The column whose order keys these are."""
    mask = is_null if is_null.any() else None
    if pa.types.is_floating(data_type):
        values = np.empty(len(keys), dtype=np.float64)
        _float_values(np.ascontiguousarray(keys), values)
        wide = pa.array(values, mask=mask)
        return wide if pa.types.is_float64(data_type) else wide.cast(data_type)
    if pa.types.is_uint64(data_type):
        return pa.array((keys ^ _SIGN).view(np.uint64), mask=mask)
    if pa.types.is_boolean(data_type):
        return pa.array(keys == 1, mask=mask)
    if pa.types.is_integer(data_type):
        if mask is not None:
            keys = np.where(is_null, 0, keys)
        return pa.array(keys, mask=mask).cast(data_type)
    width = pa.int32() if data_type.bit_width == 32 else pa.int64()
    if mask is not None:
        keys = np.where(is_null, 0, keys)
    return pa.array(keys.astype(width.to_pandas_dtype()), mask=mask).view(data_type)


@compiled
def _float_values(keys, values):  # type: ignore[no-untyped-def]
    bits = values.view(np.int64)
    greatest = np.int64((1 << 63) - 1)
    for i in range(keys.shape[0]):
        bits[i] = keys[i] ^ ((keys[i] >> 63) & greatest)


@compiled
def _float_keys(values, keys):  # type: ignore[no-untyped-def]
    bits = values.view(np.int64)
    for i in range(values.shape[0]):
        keys[i] = float_key(values[i], bits[i])


@register_jitable
def float_key(value, bits):  # type: ignore[no-untyped-def]
    """The order key of one float, which is also given as its bits."""
    if value != value:
        return np.int64(0x7FF8000000000000)
    if value == 0.0:
        return np.int64(0)
    return bits ^ ((bits >> 63) & np.int64((1 << 63) - 1))
