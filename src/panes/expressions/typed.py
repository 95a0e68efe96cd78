"""An expression while it is translated: DuckDB's text for it, and its type as Spark has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from panes.errors import QueryError
from panes.expressions import types as t

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
        """Spark's name of the type."""
        return t.spark_name(self.type)


_SHORT = 160
_EXACT = 15


def refuse(message: str, hint: str | None = None) -> QueryError:
    """What has no proven translation is refused, with the way out."""
    return QueryError(message, hint=hint or "ask it on Spark, where every function of Spark's runs")


def bound(text: str, body: Callable[[str], str]) -> str:
    """`body` over a text, which is worked out once, however often `body` uses it."""
    if len(text) <= _SHORT:
        return body(text)
    return over(text, body)


def over(text: str, body: Callable[[str], str]) -> str:
    """`body` over a value that is worked out before it, so that no TRY of it hides its errors.

    Its name is no column's (`v0`, ...), no parameter's (`p0`, ...) and none inside of `body`.
    """
    name = f"w{body('').count('lambda ')}"
    return f"list_transform([{text}], lambda {name}: {body(name)})[1]"


def unless_null(text: str, body: Callable[[str], str]) -> str:
    """`body` over a value where it is not NULL: Spark does not work out what stands behind one."""
    return bound(text, lambda x: f"CASE WHEN {x} IS NOT NULL THEN {body(x)} END")


def raises(text: str) -> bool:
    """True if DuckDB's text has an error of ours in it: a cast or a division, say."""
    return "error(" in text


def failure(what: str) -> str:
    """An error at run time, as Spark's ANSI mode has it."""
    return f"error({t.text_literal(what)})"


def widened(value: Typed, to: pa.DataType) -> Typed:
    """A value in a type that holds it, as arithmetic and comparisons bring it there."""
    if value.type == to:
        return value
    if value.type == t.DATE and to == t.TIMESTAMP:
        return Typed(f"CAST(CAST({value.text} AS TIMESTAMP) AS TIMESTAMPTZ)", to)
    text = value.text
    if t.is_float(to) and t.is_decimal(value.type) and value.type.precision > _EXACT:
        text = f"CAST({text} AS VARCHAR)"  # the double that is nearest, whatever the digits
    return Typed(f"CAST({text} AS {t.duckdb_name(to)})", to, value.constant, value.is_constant)


def each_once(arguments: Sequence[Typed], body: Callable[[list[Typed]], str]) -> str:
    """`body` over arguments that are each worked out once, constants as they are written."""
    found: list[Typed] = []

    def inner(at: int) -> str:
        if at == len(arguments):
            return body(found)
        argument = arguments[at]

        def known(name: str) -> str:
            found[at:] = [replace(argument, text=name)]
            return inner(at + 1)

        return known(argument.text) if argument.is_constant else bound(argument.text, known)

    return inner(0)


def tried(arguments: Sequence[Typed], body: Callable[[Sequence[str]], str]) -> str:
    """`body` over arguments, or NULL where `body` fails; an argument that fails stays an error."""
    texts: list[str] = []

    def inner(at: int) -> str:
        if at == len(arguments):
            return f"TRY({body(texts)})"
        argument = arguments[at]
        if argument.is_constant:
            texts[at:] = [argument.text]
            return inner(at + 1)

        def with_name(name: str) -> str:
            texts[at:] = [name]
            return inner(at + 1)

        return over(argument.text, with_name)

    return inner(0)
