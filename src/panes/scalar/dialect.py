"""Spark SQL as it is read here: calls stay calls, by the names that are written.

sqlglot knows many functions by meanings of its own; here it knows none, so that each is looked up in
the table by its name. Two spellings of Spark's that it does not read are added: `>>>`, and a blank
between `X` and its digits.
"""

from __future__ import annotations

import re
from typing import ClassVar

from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import TokenType

_KEPT = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "POSITION", "OVERLAY")
_BLANK = re.compile(r"""('(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|`[^`]*`)|\b([xX])\s+(?=')""")


class UnsignedShift(exp.Expression, exp.Binary):
    """`a >>> b`: bits to the right, with zeros from the left."""


class Scalar(Spark):
    """Spark's dialect without sqlglot's own functions."""

    class Tokenizer(Spark.Tokenizer):
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **Spark.Tokenizer.KEYWORDS, ">>>": TokenType.HASH_ARROW}  # fmt: skip

    class Parser(Spark.Parser):
        FUNCTIONS: ClassVar = {}
        FUNCTION_PARSERS: ClassVar = {
            name: parser for name, parser in Spark.Parser.FUNCTION_PARSERS.items() if name in _KEPT
        }
        COLUMN_OPERATORS: ClassVar = {
            kind: parser
            for kind, parser in Spark.Parser.COLUMN_OPERATORS.items()
            if kind != TokenType.HASH_ARROW
        }
        BITWISE: ClassVar = {**Spark.Parser.BITWISE, TokenType.HASH_ARROW: UnsignedShift}  # fmt: skip


def parse_select(sql: str) -> exp.Expression:
    """A statement of Spark SQL, as a tree of calls and operators."""
    return parse_one(_BLANK.sub(lambda m: m[1] or m[2], sql), dialect=Scalar)
