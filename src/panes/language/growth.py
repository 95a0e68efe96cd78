"""Growing values are refused when the text is read; the lists are in `panes.expressions.sizes`.

Functions whose result is as long as an argument says: the length is written in the query.

``repeat(s, 1000000000)`` is a gigabyte for every row. A length that comes from a column could be as
much, and nobody would know before the row comes. So lengths are constants, and small ones.

A regular expression is written in the query, and is none for which Java's time explodes.

A function that is called for each element multiplies what it makes. What `aggregate` starts with is
a number or a moment, so that it cannot grow with each element.
"""

from __future__ import annotations

import re
from math import prod

from sqlglot import exp

from panes.axis import written_whole
from panes.expressions.lambdas import FUNCTIONS
from panes.expressions.sizes import LOOKING, MAKING, MOST_MADE, MOST_STEPS, PATTERNS
from panes.language.backtracking import degree
from panes.language.places import error_in

MOST_LENGTH = 100_000
_LENGTHS = {"repeat": 1, "lpad": 1, "rpad": 1, "space": 0, "array_repeat": 1}
"""The argument of a function that says how long its result is."""
_SERIES = "sequence"
_FOLDS = ("aggregate", "reduce")
_OF_ONE_SIZE = frozenset({
    *exp.DataType.NUMERIC_TYPES, *exp.DataType.TEMPORAL_TYPES, exp.DataType.Type.BOOLEAN,
})  # fmt: skip
_FORMATS = ("printf", "format_string")


def require_short(tree: exp.Expression) -> None:
    """Refuse an expression whose result may be very long.

    >>> from panes.expressions.dialect import parse_select
    >>> require_short(parse_select("SELECT repeat(repeat(s, 1000), 1000)").expressions[0])
    Traceback (most recent call last):
    panes.errors.QueryError: line 1, column 8: the result of `REPEAT(REPEAT(s, 1000), 1000)` may \
be 1,000,000 times as long as what it is made of; 100,000 is the most
    """
    for node in tree.walk():
        _require_start(node)
        _require_pattern(node)
        _require_few_steps(node)
        if _length(node) is None:
            continue
        times = _times(node)
        if times > MOST_LENGTH:
            raise error_in(
                node,
                f"the result of `{node.sql(dialect='spark')}` may be {times:,} times as long as "
                f"what it is made of; {MOST_LENGTH:,} is the most",
            )


def _times(tree: exp.Expr) -> int:
    """The times by which an expression may be longer than its columns, by the lengths in it."""
    lengths = [length for part in tree.walk() if (length := _length(part)) is not None]
    return prod(max(1, length) for length in lengths)


def _require_few_steps(node: exp.Expr) -> None:
    """Refuse a call whose arguments multiply to too much by the lengths that are written."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    pair = MAKING.get(name) or LOOKING.get(name)
    if pair is None or max(pair) >= len(node.expressions):
        return
    steps = prod(_times(node.expressions[at]) for at in pair)
    most = MOST_MADE if name in MAKING else MOST_STEPS
    if steps > most:
        raise error_in(
            node, f"`{node.sql(dialect='spark')}` may take {steps:,} steps; {most:,} is the most"
        )


def _length(node: exp.Expr) -> int | None:
    """The length of a function's result; None if nothing in the query says so."""
    if not isinstance(node, exp.Anonymous):
        return None
    name = node.name.lower()
    if name == _SERIES:
        low, high = (_number(node, _argument(node, at)) for at in (0, 1))
        return abs(high - low) + 1
    if name in _FORMATS:
        return _format_width(node)
    if takes_function(node):
        return 1
    return _number(node, _argument(node, _LENGTHS[name])) if name in _LENGTHS else None


def takes_function(node: exp.Expr | None) -> bool:
    """True if a call takes a function of elements."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in FUNCTIONS


def _require_start(node: exp.Expr) -> None:
    """Refuse to aggregate elements to what could grow with each of them."""
    if not isinstance(node, exp.Anonymous) or node.name.lower() not in _FOLDS:
        return
    start = _argument(node, 1)
    while isinstance(start, exp.Neg | exp.Paren):
        start = start.this
    is_literal = isinstance(start, exp.Literal) and not start.is_string
    is_cast = isinstance(start, exp.Cast) and start.to.this in _OF_ONE_SIZE
    if not (is_literal or is_cast or isinstance(start, exp.Boolean)):
        raise error_in(
            node,
            f"`{node.sql(dialect='spark')}` must start with a number, a date or a timestamp "
            "that is written in the query, since anything else could grow with each element",
            f"{node.name}(prices, 0D, (total, price) -> total + price)",
        )


def searched(node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """The text and the regular expression of a search; None: it is none."""
    if isinstance(node, exp.RegexpLike):
        return node.this, node.expression
    if not isinstance(node, exp.Anonymous):
        return None
    pattern = _argument(node, PATTERNS.get(node.name.lower(), len(node.expressions)))
    return None if pattern is None else (node.expressions[0], pattern)


def _require_pattern(node: exp.Expr) -> None:
    """Refuse a regular expression that is not known, or whose search may take for ever."""
    found = searched(node)
    if found is None:
        return
    pattern = found[1].unnest()
    if isinstance(pattern, exp.Null):
        return
    if not (isinstance(pattern, exp.RawString) or pattern.is_string):
        said = f"`{node.sql(dialect='spark')}`: the pattern must be written in the query"
        raise error_in(node, said, "a text is looked for with contains(s, t)")
    if degree(pattern.name) is None:
        raise error_in(
            node,
            f"a search for '{pattern.name}' may take for ever: within a repetition the same text "
            "can be read in two ways",
            "repeat what cannot also be what follows: ([^,]+,)+ and not (.+,)+",
        )


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
