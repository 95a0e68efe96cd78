"""An expression while it is translated: DuckDB's text for it, and its type as Spark has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from panes.errors import QueryError
from panes.scalar import types as t

Constant = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Typed:
    """DuckDB's text and Spark's type of an expression; `constant`, if it is written as one.

    `is_constant` tells a NULL that is written from an expression.
    """

    text: str
    type: pa.DataType
    constant: Constant = None
    is_constant: bool = False

    @property
    def name(self) -> str:
        """What Spark calls the type."""
        return t.spark_name(self.type)


Cast = Literal["implicit", "explicit", "try"]


def refuse(message: str, hint: str | None = None) -> QueryError:
    """What has no proven translation is refused, with the way out."""
    return QueryError(message, hint=hint or "ask it on Spark, where every function of Spark's runs")


def widened(value: Typed, to: pa.DataType) -> Typed:
    """A value in a type that holds it, as arithmetic and comparisons bring it there."""
    if value.type == to:
        return value
    if value.type == t.DATE and to == t.TIMESTAMP:
        return Typed(f"CAST(CAST({value.text} AS TIMESTAMP) AS TIMESTAMPTZ)", to)
    return Typed(f"CAST({value.text} AS {t.duckdb_name(to)})", to, value.constant,
                 value.is_constant)  # fmt: skip


def cast(value: Typed, to: pa.DataType, *, is_try: bool = False) -> Typed:
    """A value cast as Spark's ANSI mode does: exactly, or with an error (`is_try`: NULL)."""
    kind = value.type
    if kind == to or kind == t.VOID:
        return Typed(f"CAST({value.text} AS {t.duckdb_name(to)})", to)
    text = _cast(value.text, kind, to)
    if text is None:
        raise refuse(f"a cast from {t.spark_name(kind)} to {t.spark_name(to)} is not translated")
    if is_try:
        text = f"TRY({text})"
    return Typed(text, to)


def _cast(x: str, kind: pa.DataType, to: pa.DataType) -> str | None:
    name = t.duckdb_name(to)
    if t.is_integer(kind) and (t.is_number(to) or to == t.STRING):
        return f"CAST({x} AS {name})"
    if kind == t.BOOLEAN and (t.is_integer(to) or to == t.STRING):
        return f"CAST({x} AS {name})"
    if t.is_integer(kind) and to == t.BOOLEAN:
        return f"({x} <> 0)"
    if t.is_decimal(kind):
        if t.is_float(to) or t.is_decimal(to) or to == t.STRING:
            return f"CAST({x} AS {name})"
        if t.is_integer(to):  # Spark cuts what is behind the point
            return f"CAST(trunc({x}) AS {name})"
    if t.is_float(kind):
        if t.is_float(to):
            return f"CAST({x} AS {name})"
        if t.is_integer(to):
            return f"CAST(trunc({x}) AS {name})"
    if kind == t.STRING:
        return _from_text(f"trim({x}, E' \\t\\n\\r\\x0b\\x0c')", to)
    if kind == t.DATE and to == t.TIMESTAMP_NTZ:
        return f"CAST({x} AS TIMESTAMP)"
    if kind == t.DATE and to == t.TIMESTAMP:
        return f"CAST(CAST({x} AS TIMESTAMP) AS TIMESTAMPTZ)"
    if kind == t.DATE and to == t.STRING:
        return f"CAST({x} AS VARCHAR)"
    if kind in (t.TIMESTAMP, t.TIMESTAMP_NTZ) and to in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return f"CAST({x} AS {name})"
    if kind == t.BINARY and to == t.STRING:
        return f"decode({x})"
    return None


_WHOLE = r"'[+-]?[0-9]+'"
_FRACTION = r"'[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?'"


def _from_text(x: str, to: pa.DataType) -> str | None:
    name = t.duckdb_name(to)
    error = f"error('cannot cast ''' || {x} || ''' to {t.spark_name(to)}')"
    if t.is_integer(to):
        return f"CASE WHEN regexp_full_match({x}, {_WHOLE}) THEN CAST({x} AS {name}) " \
               f"WHEN {x} IS NOT NULL THEN {error} END"  # fmt: skip
    if t.is_float(to) or t.is_decimal(to):
        return f"CASE WHEN regexp_full_match({x}, {_FRACTION}) THEN CAST({x} AS {name}) " \
               f"WHEN {x} IS NOT NULL THEN {error} END"  # fmt: skip
    if to == t.DATE:
        return f"CASE WHEN regexp_full_match({x}, '[0-9]{{4}}-[0-9]{{1,2}}-[0-9]{{1,2}}') " \
               f"THEN CAST({x} AS DATE) WHEN {x} IS NOT NULL THEN {error} END"  # fmt: skip
    if to in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return f"CASE WHEN regexp_full_match({x}, {_MOMENT}) THEN CAST(CAST({x} AS TIMESTAMP) AS " \
               f"{name}) WHEN {x} IS NOT NULL THEN {error} END"  # fmt: skip
    if to == t.BOOLEAN:
        return f"CASE WHEN lower({x}) IN ('t', 'true', 'y', 'yes', '1') THEN true " \
               f"WHEN lower({x}) IN ('f', 'false', 'n', 'no', '0') THEN false " \
               f"WHEN {x} IS NOT NULL THEN {error} END"  # fmt: skip
    if to == t.BINARY:
        return f"encode({x})"
    return None


_MOMENT = (
    r"'[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"([ T][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]{1,6})?)?'"
)
