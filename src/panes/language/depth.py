"""The depth to which a query may be nested, found by walking along it.

Reading, planning and evaluating go down an expression level by level, here and in every engine, so
what is too deep is refused before anything does. Brackets are counted before the text is read,
levels of a tree before it is used. A chain of AND or OR is only as deep as the logarithm of its
length (`panes.expressions.balance`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from panes.errors import QueryError
from panes.language.places import error_in

MOST_OPEN = 32
"""Brackets, CASEs, NOTs and signs around one value."""
MOST_DEEP = 200
"""Operators and calls around one value."""

_BRACKETS = {"(": ")", "[": "]", "{": "}", "CASE": "END"}
_OF_TYPES, _SIGNS, _NOTS = ("ARRAY", "MAP", "STRUCT"), ("-", "+", "~"), ("NOT", "!")
_BESIDE = frozenset(
    ["AND", "OR", ",", "WHEN", "THEN", "ELSE", "FROM", "WHERE", "GROUP BY", "HAVING"]
)
"""Words behind which the NOTs before them have ended."""
_IN_PATTERN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()]", re.DOTALL)
_WITH_PATTERN = frozenset({
    "rlike", "regexp", "regexp_like", "regexp_extract", "regexp_extract_all", "regexp_count",
    "regexp_substr", "regexp_instr", "regexp_replace", "split",
})  # fmt: skip


class _Open(NamedTuple):
    """An open bracket or word: what closes it, and the depth around it and within."""

    closed_by: str
    around: int
    within: int


def require_few_open(tokens: Iterable[Token]) -> None:
    """Refuse a text with too many brackets in brackets, CASEs in CASEs, NOTs or signs in a row."""
    opened = [_Open("", 0, 0)]
    deep = signs = 0
    before = ""
    for token in tokens:
        word = word_of(token)
        if word in _BRACKETS or (word == "<" and before in _OF_TYPES):
            opened.append(_Open(_BRACKETS.get(word, ">"), deep, deep + signs + 1))
            deep = opened[-1].within
        elif word in _BESIDE:
            deep = opened[-1].within
        elif word in _NOTS:
            deep += signs + 1
        for closing in word if set(word) == {">"} else (word,):
            deep = _closed(opened, closing, deep)
        signs = signs + 1 if word in _SIGNS else 0
        before = word
        if deep + signs > MOST_OPEN:
            raise QueryError(
                f"the query is nested too deeply: {MOST_OPEN} brackets, CASEs, NOTs and signs "
                "around one value are the most",
                hint="AND and OR need no brackets among their like: a OR b OR c",
                line=token.line,
                column=max(token.col - (token.end - token.start), 1),
            )


def _closed(opened: list[_Open], closing: str, deep: int) -> int:
    """The depth after a word that closes the last thing it can close, if there is one."""
    at = next((i for i in range(len(opened) - 1, 0, -1) if opened[i].closed_by == closing), None)
    if at is None:
        return deep
    deep = opened[at].around
    del opened[at:]
    return deep


def word_of(token: Token) -> str:
    """A token's text in upper case; empty for quoted names and strings."""
    is_quoted = token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
    return "" if is_quoted else token.text.upper()


def require_shallow(tree: exp.Expr) -> None:
    """Refuse a tree with too many levels, or a pattern with too many brackets in brackets."""
    level: list[exp.Expr] = [tree]
    for _ in range(MOST_DEEP):
        for node in level:
            _require_shallow_pattern(node)
        level = [child for node in level for child in node.iter_expressions()]
        if not level:
            return
    raise error_in(
        level[0],
        f"an expression is nested too deeply: {MOST_DEEP} operators and calls around one value "
        "are the most",
        "AND and OR may be as many as you like; of others, work out a part in a SELECT inside "
        "FROM, or before it comes to the stream",
    )


def _require_shallow_pattern(node: exp.Expr) -> None:
    pattern = _pattern_of(node)
    if not isinstance(pattern, exp.Literal | exp.RawString):
        return
    deep = 0
    for match in _IN_PATTERN.finditer(pattern.name):
        deep += (match[0] == "(") - (match[0] == ")")
        if deep > MOST_OPEN:
            raise error_in(
                pattern, f"a pattern is nested too deeply: {MOST_OPEN} brackets in each other are "
                "the most",
            )  # fmt: skip


def _pattern_of(node: exp.Expr) -> exp.Expr | None:
    """The pattern that a call or an operator matches by."""
    if isinstance(node, exp.RegexpLike):
        return node.expression
    is_call = isinstance(node, exp.Anonymous) and node.name.lower() in _WITH_PATTERN
    return node.expressions[1] if is_call and len(node.expressions) > 1 else None
