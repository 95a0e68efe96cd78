"""Small tables with a column for every name that the texts use, and with values at the edges."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa

_AXIS = pa.timestamp("us", "UTC")
_ROWS = 12
_TEXTS = ("p", "q", None, "", "é", "a'b")
_FLOATS = (0.0, -0.0, 1.5, None, math.nan, math.inf, -2.25, 1e300)
_INTEGERS = (0, 1, None, -1, 9, (1 << 62), -(1 << 63))

_INTEGER = ("at", "i", "id", "seq", "n", "len", "length", "speed", "size", "auction", "bidder", "y")
_TIME = ("ts", "t", "time", "timestamp", "moment", "when")
_TEXT = ("k", "s", "item", "key", "name", "srcIP", "destIP", "proto", "segment", "city", "kind")
_FLOAT = ("x", "price", "value", "v", "weight", "amount", "high")


def _taking_turns(values: tuple[object, ...], step: int) -> list[object]:
    return [values[(step + row * (1 + step % 3)) % len(values)] for row in range(_ROWS)]


def _table() -> pa.Table:
    columns: dict[str, pa.Array] = {}
    positions = [7 * row - 20 + (row % 3) * 9 for row in range(_ROWS)]
    for step, name in enumerate(_INTEGER):
        values = positions if step in (0, 2, 3) else _taking_turns(_INTEGERS, step)
        columns[name] = pa.array(values, pa.int64())
    for step, name in enumerate(_TIME):
        values = [(1_760_000_000 + 40 * p + step) * 1_000_000 for p in positions]
        columns[name] = pa.array(values, pa.int64()).view(_AXIS)
    for step, name in enumerate(_TEXT):
        columns[name] = pa.array(_taking_turns(_TEXTS, step), pa.string())
    for step, name in enumerate(_FLOAT):
        columns[name] = pa.array(_taking_turns(_FLOATS, step), pa.float64())
    columns["b"] = pa.array(_taking_turns((True, False, None), 1), pa.bool_())
    columns["d"] = pa.array([Decimal(row) / 100 for row in range(_ROWS)], pa.decimal128(10, 2))
    columns["day"] = pa.array([20_000 + row for row in range(_ROWS)], pa.int32()).view(pa.date32())
    columns["raw"] = pa.array([b"\xff", b"", None] * (_ROWS // 3), pa.binary())
    columns["tags"] = pa.array([["a"], [], None] * (_ROWS // 3), pa.list_(pa.string()))
    return pa.table(columns)


TABLE = _table()
"""What every stream of a text is taken to be."""
COLUMNS = tuple(TABLE.column_names)
