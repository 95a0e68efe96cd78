"""Structs and lists as bytes that sort as Spark orders them, and back.

A nested value is stored as the bytes of its parts, one after the other, so that comparing bytes
compares values: field by field, element by element, a shorter list before a longer one that begins
alike, NULL before everything, NaN after every number. `decode` undoes `encode`.

| part | bytes |
|---|---|
| NULL; a value | 0; 1 and the value |
| number, boolean, date, time | 8: its order key, from the most significant byte |
| decimal | 16: its unscaled value |
| text, binary | its bytes, 0 as 0 255; 0 0 behind them |
| list | 1 and the element, for each; then 0 |
| struct | its fields |
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from panes.arrays import order_keys
from panes.errors import ColumnTypeError

_SIGN, _WIDE = 1 << 63, 1 << 127
_NULL, _VALUE = b"\0", b"\1"


def is_nested(data_type: pa.DataType) -> bool:
    """True if values of this type are stored as bytes: structs and lists of what has an order."""
    return bool(pa.types.is_struct(data_type) or _is_list(data_type))


def stored_type(data_type: pa.DataType) -> pa.DataType:
    """The type that values are stored in: their own, or binary for nested ones."""
    return pa.binary() if is_nested(data_type) else data_type


def stored(array: pa.Array) -> pa.Array:
    """Values as they are stored."""
    return encode(array) if is_nested(array.type) else array


def restored(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Stored values as values of their own type."""
    return decode(array, data_type) if is_nested(data_type) else array


def require_orderable(data_type: pa.DataType, *, what: str) -> None:
    """Refuse types whose values have no order: maps, intervals of months, and what holds them."""
    if pa.types.is_struct(data_type):
        for field in data_type:
            require_orderable(field.type, what=what)
    elif _is_list(data_type):
        require_orderable(data_type.value_type, what=what)
    else:
        order_keys.require_orderable(data_type, what=what)


def encode(array: pa.Array) -> pa.Array:
    """Nested values as bytes; NULL stays NULL.

    >>> small, great = encode(pa.array([{"a": -1, "b": "x"}, {"a": 1, "b": None}])).to_pylist()
    >>> small < great
    True
    """
    keys = _keys(array)
    return pa.array([None if k == _NULL else k for k in keys], pa.binary())


def decode(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """The nested values whose bytes these are.

    >>> values = pa.array([[1, None], [], None])
    >>> decode(encode(values), values.type).equals(values)
    True
    """
    values = [None if k is None else _value(k, 0, data_type)[0] for k in array.to_pylist()]
    return pa.array(values, data_type)


def _is_list(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_list(data_type) or pa.types.is_large_list(data_type))


def _keys(array: pa.Array) -> list[bytes]:
    """The bytes of every value, NULLs among them."""
    bodies = _bodies(array)
    valid = array.is_valid().to_pylist()
    return [_VALUE + body if ok else _NULL for ok, body in zip(valid, bodies, strict=True)]


def _bodies(array: pa.Array) -> list[bytes]:
    data_type = array.type
    if pa.types.is_struct(data_type):
        fields = [_keys(array.field(i)) for i in range(data_type.num_fields)]
        return [b"".join(parts) for parts in zip(*fields, strict=True)] or [b""] * len(array)
    if _is_list(data_type):
        parts = [_VALUE + k for k in _keys(array.values)]
        offsets = array.offsets.to_pylist()
        return [b"".join(parts[a:b]) + _NULL for a, b in pairwise(offsets)]
    if pa.types.is_null(data_type):
        return [b""] * len(array)
    if order_keys.has_key(data_type):
        keys = order_keys.encode(array).view(np.uint64) ^ np.uint64(_SIGN)
        raw = keys.astype(">u8").tobytes()
        return [raw[i : i + 8] for i in range(0, len(raw), 8)]
    if pa.types.is_decimal(data_type):
        return [_decimal(v) for v in array.to_pylist()]
    return [_text(v) for v in array.to_pylist()]


def _decimal(value: Any) -> bytes:
    if value is None:
        return b""
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits)))
    return ((-number if sign else number) + _WIDE).to_bytes(16, "big")


def _text(value: str | bytes | None) -> bytes:
    if value is None:
        return b""
    raw = value.encode() if isinstance(value, str) else value
    return raw.replace(b"\0", b"\0\xff") + b"\0\0"


def _value(raw: bytes, at: int, data_type: pa.DataType) -> tuple[Any, int]:
    """The value that begins at a place, and the place behind it."""
    if raw[at] == 0:
        return None, at + 1
    at += 1
    if pa.types.is_struct(data_type):
        fields: dict[str, Any] = {}
        for field in data_type:
            fields[field.name], at = _value(raw, at, field.type)
        return fields, at
    if _is_list(data_type):
        items = []
        while raw[at]:
            item, at = _value(raw, at + 1, data_type.value_type)
            items.append(item)
        return items, at + 1
    if order_keys.has_key(data_type):
        key = int.from_bytes(raw[at : at + 8], "big") - _SIGN
        found = order_keys.decode(np.array([key]), np.array([False]), data_type)
        return found[0], at + 8
    if pa.types.is_decimal(data_type):
        unscaled = int.from_bytes(raw[at : at + 16], "big") - _WIDE
        whole = pa.scalar(unscaled, pa.decimal128(38, 0)).as_py()
        return whole.scaleb(-data_type.scale), at + 16
    return _text_at(raw, at, data_type)


def _text_at(raw: bytes, at: int, data_type: pa.DataType) -> tuple[Any, int]:
    end = at
    while raw[end : end + 2] != b"\0\0":
        end += 2 if raw[end] == 0 else 1
    value = raw[at:end].replace(b"\0\xff", b"\0")
    is_text = pa.types.is_string(data_type) or pa.types.is_large_string(data_type)
    if not is_text and not (pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type)):
        raise ColumnTypeError(f"values of type {data_type} cannot be stored inside others")
    return (value.decode() if is_text else value), end + 2
