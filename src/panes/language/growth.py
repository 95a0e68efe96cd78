"""Functions whose result is as long as an argument says: the length is written in the query.

``repeat(s, 1000000000)`` is a gigabyte for every row. A length that comes from a column could be as
much, and nobody would know before the row comes. So lengths are constants, and small ones.
"""

from __future__ import annotations

import re
from math import prod

from sqlglot import exp

from panes.axis import written_whole
from panes.language.places import error_in

MOST_LENGTH = 100_000
_LENGTHS: dict[type[exp.Expr], str] = {
    exp.Repeat: "times",
    exp.Pad: "expression",
    exp.Space: "this",
}
_CALLS = {"array_repeat": 1}
_FORMATS = ("printf", "format_string")


def require_short(tree: exp.Expression) -> None:
    """Refuse an expression whose result may be very long.

    >>> import sqlglot
    >>> require_short(sqlglot.parse_one("repeat(repeat(s, 1000), 1000)", dialect="spark"))
    Traceback (most recent call last):
    panes.errors.QueryError: line 1, column 1: the result of `REPEAT(REPEAT(s, 1000), 1000)` may \
be 1,000,000 times as long as what it is made of; 100,000 is the most
    """
    for node in tree.walk():
        if _length(node) is None:
            continue
        lengths = [length for part in node.walk() if (length := _length(part)) is not None]
        most = prod(max(1, length) for length in lengths)
        if most > MOST_LENGTH:
            raise error_in(
                node,
                f"the result of `{node.sql(dialect='spark')}` may be {most:,} times as long as "
                f"what it is made of; {MOST_LENGTH:,} is the most",
            )


def _length(node: exp.Expr) -> int | None:
    """How long the result of a function is; None if nothing in the query says so."""
    if isinstance(node, exp.GenerateSeries):
        low, high = _number(node, node.args["start"]), _number(node, node.args["end"])
        return abs(high - low) + 1
    if isinstance(node, exp.Format) or _name(node) in _FORMATS:
        return _format_width(node)
    if _name(node) in _CALLS:
        arguments = node.expressions
        index = _CALLS[_name(node)]
        return _number(node, arguments[index] if len(arguments) > index else None)
    argument = _LENGTHS.get(type(node))
    return None if argument is None else _number(node, node.args.get(argument))


def _number(node: exp.Expr, length: object) -> int:
    sign = 1
    while isinstance(length, exp.Neg | exp.Paren):
        sign = -sign if isinstance(length, exp.Neg) else sign
        length = length.this
    if isinstance(length, exp.Literal) and not length.is_string:
        number = written_whole(length.name)
        if number is not None:
            return sign * number
    raise error_in(
        node,
        f"`{node.sql(dialect='spark')}`: how long the result is must be a whole number, written "
        "in the query",
    )


def _format_width(node: exp.Expr) -> int:
    """The sum of all widths in a format."""
    text = node.this if isinstance(node, exp.Format) else next(iter(node.expressions), None)
    if not (isinstance(text, exp.Literal) and text.is_string):
        said = f"`{node.sql(dialect='spark')}`: the format must be written in the query"
        raise error_in(node, said)
    return 1 + sum(int(width) for width in re.findall(r"\d+", text.name))


def _name(node: exp.Expr) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else ""
