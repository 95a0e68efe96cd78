"""Values as pages and notebooks show them: numbers stay numbers, all else is text, none is long."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa

Cell: TypeAlias = "str | int | float | bool | None"

MOST_CHARACTERS = 200
_EXACT = 1 << 53
"""A browser's numbers are exact up to here; greater integers are shown as text."""


def cell(value: object) -> Cell:
    """One value.

    >>> cell(7), cell(float("nan")), cell(b"ab"), cell(None), cell(1 << 60)
    (7, 'nan', "b'ab'", None, '1152921504606846976')
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < _EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    return _short(str(value))


def cells(table: pa.Table) -> list[list[Cell]]:
    """The rows of a small table."""
    columns = [[cell(value) for value in column.to_pylist()] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def shown_key(values: Sequence[object]) -> str:
    """The values of a key, as one text."""
    return _short(" · ".join("NULL" if v is None else str(cell(v)) for v in values))


def _short(text: str) -> str:
    if len(text) > MOST_CHARACTERS:
        text = text[: MOST_CHARACTERS - 1] + "…"
    return text.encode("utf-8", "replace").decode("utf-8")
