"""Spark SQL as it is read here: calls stay calls, by the names that are written.

sqlglot knows many functions by meanings of its own; here it knows none, so that each is looked up
in the table by its name. Two spellings of Spark's that it does not read are added: `>>>`, and a
blank between `X` and its digits.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from panes.errors import QueryError

_KEPT = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "POSITION", "OVERLAY")
_BLANK = re.compile(r"""('(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|`[^`]*`)|\b([xX])\s+(?=')""")


class UnsignedShift(exp.Expression, exp.Binary, exp.Func):
    """`a >>> b`: bits to the right, with zeros from the left; written again, it is a call."""

    _sql_names: ClassVar[list[str]] = ["SHIFTRIGHTUNSIGNED"]


class CallParser(Spark.parser_class):  # type: ignore[valid-type,misc]
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parser
        for name, parser in Spark.parser_class.FUNCTION_PARSERS.items()
        if name in _KEPT
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parser
        for name, parser in Spark.parser_class.NO_PAREN_FUNCTION_PARSERS.items()
        if name != "TRANSFORM"
    }
    COLUMN_OPERATORS: ClassVar[dict[Any, Any]] = {
        kind: parser
        for kind, parser in Spark.parser_class.COLUMN_OPERATORS.items()
        if kind != TokenType.HASH_ARROW
    }
    BITWISE: ClassVar[dict[Any, Any]] = {
        **Spark.parser_class.BITWISE,
        TokenType.HASH_ARROW: UnsignedShift,
    }


class Scalar(Spark):
    """Spark's dialect without sqlglot's own functions."""

    Parser = CallParser

    class Tokenizer(Spark.Tokenizer):
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **Spark.Tokenizer.KEYWORDS,
            ">>>": TokenType.HASH_ARROW,
        }


def parse_select(sql: str) -> exp.Expr:
    """A statement of Spark SQL, as a tree of calls and operators."""
    try:
        return parse_one(_BLANK.sub(lambda m: m[1] or m[2], sql), dialect=Scalar)
    except SqlglotError as error:
        first = str(error).splitlines()[0]
        raise QueryError(f"`{sql}` cannot be read: {first}", hint="write it as Spark SQL") from None
