"""Spark SQL as it is read here: calls stay calls, by the names that are written.

sqlglot knows many functions by meanings of its own; here it knows none, so that each is looked up
in the table by its name. Spellings of Spark's that it does not read are added: `>>>`, a blank
between `X` and its digits, texts side by side, which are one text, and `LIKE ANY (...)`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

from panes.errors import QueryError
from panes.expressions.balance import folded, joined_by

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
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}  # array(1, 2)[0] is an element of an array
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


def straightened(tokens: Sequence[Token], sql: str) -> list[Token]:
    """Tokens in which texts side by side are one, as in Spark: `'it''s'` is `it's`."""
    found: list[Token] = []
    for token in tokens:
        last = found[-1] if found else None
        if token.token_type == TokenType.HEX_STRING and sql[token.start] == "0":
            raise _no_number(sql[token.start : token.end + 1])
        if token.token_type == _type(last) == TokenType.STRING:
            assert last is not None
            quote = sql[token.start]
            is_doubled = last.end + 1 == token.start and sql[last.end] == quote
            text = last.text + (quote if is_doubled else "") + token.text
            found[-1] = Token(TokenType.STRING, text, token.line, token.col, last.start, token.end)
        else:
            found.append(token)
    return found


def _no_number(written: str) -> QueryError:
    """Why hexadecimal digits are refused; those of a bigint with what to write instead."""
    if len(written) > len("0x") + 16:
        return QueryError(f"Spark does not read `{written[:18]}...` as a number",
                          hint="write it in decimal digits")  # fmt: skip
    return QueryError(f"Spark does not read `{written}` as a number",
                      hint=f"write {int(written[2:] or '0', 16)}")  # fmt: skip


def _type(token: Token | None) -> TokenType | None:
    return None if token is None else token.token_type


def likes_apart(tree: exp.Expr) -> exp.Expr:
    """`s LIKE ANY (a, b)` as `(s LIKE a OR s LIKE b)`, and ALL with AND."""
    for node in list(tree.find_all(exp.Like, exp.ILike)):
        patterns = _patterns(node.expression)
        if patterns is None:
            continue
        each: list[exp.Expr] = [type(node)(this=node.this.copy(), expression=pattern.copy(),
                           negate=node.args.get("negate")) for pattern in patterns]  # fmt: skip
        join = exp.And if isinstance(node.expression, exp.All) else exp.Or
        node.replace(exp.Paren(this=folded(each, joined_by(join))))
    return tree


def _patterns(node: exp.Expr) -> list[exp.Expr] | None:
    """The patterns behind ANY, SOME or ALL; None: there is one pattern, and no such word."""
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in ("any", "some"):
        return list(node.expressions) or None
    if isinstance(node, exp.All | exp.Any):
        inner = node.this
        return list(inner.expressions) if isinstance(inner, exp.Tuple) else [inner.unnest()]
    return None


def parse_select(sql: str) -> exp.Expr:
    """A statement of Spark SQL, as a tree of calls and operators."""
    text = _BLANK.sub(lambda m: m[1] or m[2], sql)
    try:
        tokens = straightened(Scalar().tokenize(text), text)
        trees = Scalar().parser().parse(tokens, text)
    except SqlglotError as error:
        first = str(error).splitlines()[0]
        raise QueryError(f"`{sql}` cannot be read: {first}", hint="write it as Spark SQL") from None
    if len(trees) != 1 or trees[0] is None:
        raise QueryError(f"`{sql}` is not one statement", hint="write it as Spark SQL")
    return likes_apart(trees[0])
