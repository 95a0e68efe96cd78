"""Constants as they are written: their types are the smallest that Spark gives them."""

from __future__ import annotations

import re
from decimal import Decimal
from math import isinf

import pyarrow as pa
from sqlglot import exp

from panes.expressions import types as t
from panes.expressions.typed import Typed, refuse

_MOST_INT, _MOST_BIGINT = 2**31, 2**63
_LONGEST = 80


def literal(node: exp.Literal) -> Typed:
    """Text or a number."""
    text = node.name
    if node.is_string:
        return Typed(t.text_literal(text), t.STRING, text, is_constant=True)
    if len(text) > _LONGEST:
        raise refuse(f"`{text[:_LONGEST]}...` has more digits than a number has")
    if "e" in text.lower():
        value = float(text)
        if isinf(value):
            raise refuse(f"`{text}` is more than a double holds")
        return Typed(f"CAST({text} AS DOUBLE)", t.DOUBLE, value, is_constant=True)
    return _decimal(text) if "." in text else integer(int(text))


def raw(node: exp.RawString) -> Typed:
    """Text in which a backslash is a backslash: `r'...'`."""
    return Typed(t.text_literal(node.name), t.STRING, node.name, is_constant=True)


def integer(value: int) -> Typed:
    """A whole number in the smallest of int, bigint and decimal that holds it."""
    if -_MOST_INT <= value < _MOST_INT:
        return Typed(f"CAST({value} AS INTEGER)", t.INT, value, is_constant=True)
    if -_MOST_BIGINT <= value < _MOST_BIGINT:
        return Typed(f"CAST({value} AS BIGINT)", t.BIGINT, value, is_constant=True)
    return _decimal(str(value))


def _decimal(text: str) -> Typed:
    number = Decimal(text)
    _, digits, exponent = number.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits), scale)
    if precision > 38:
        raise refuse(f"`{text}` has more than 38 digits")
    kind = pa.decimal128(max(precision, 1), scale)
    written = f"CAST('{number:f}' AS {t.duckdb_name(kind)})"
    return Typed(written, kind, float(number), is_constant=True)


def boolean(node: exp.Boolean) -> Typed:
    """`true` or `false`."""
    return Typed("true" if node.this else "false", t.BOOLEAN, bool(node.this), is_constant=True)


def null(_: exp.Null) -> Typed:
    """NULL, which is of any type."""
    return Typed("NULL", t.VOID, None, is_constant=True)


def hexadecimal(node: exp.HexString) -> Typed:
    """Bytes: `X'1F'`."""
    if not re.fullmatch("[0-9a-fA-F]*", node.name):
        raise refuse(f"X'{node.name}' is not written in hexadecimal digits")
    digits = node.name if len(node.name) % 2 == 0 else "0" + node.name
    return Typed(f"unhex('{digits}')", t.BINARY, is_constant=True)
