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
_LENGTHS = {"repeat": 1, "lpad": 1, "rpad": 1, "space": 0, "array_repeat": 1}
"""Which argument of a function says how long its result is."""
_SERIES = "sequence"
_FORMATS = ("printf", "format_string")


def require_short(tree: exp.Expression) -> None:
    """Refuse an expression whose result may be very long.

    >>> from panes.scalar.dialect import parse_select
    >>> require_short(parse_select("SELECT repeat(repeat(s, 1000), 1000)").expressions[0])
    Traceback (most recent call last):
    panes.errors.QueryError: line 1, column 8: the result of `REPEAT(REPEAT(s, 1000), 1000)` may \
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
    if not isinstance(node, exp.Anonymous):
        return None
    name = node.name.lower()
    if name == _SERIES:
        low, high = (_number(node, _argument(node, at)) for at in (0, 1))
        return abs(high - low) + 1
    if name in _FORMATS:
        return _format_width(node)
    return _number(node, _argument(node, _LENGTHS[name])) if name in _LENGTHS else None


def _argument(node: exp.Anonymous, at: int) -> exp.Expr | None:
    return node.expressions[at] if at < len(node.expressions) else None


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


def _format_width(node: exp.Anonymous) -> int:
    """The sum of all widths in a format."""
    text = _argument(node, 0)
    if not (isinstance(text, exp.Literal) and text.is_string):
        said = f"`{node.sql(dialect='spark')}`: the format must be written in the query"
        raise error_in(node, said)
    return 1 + sum(int(width) for width in re.findall(r"\d+", text.name))
