"""Expressions as Spark is asked them: no text is read by the clock, and nothing multiplies.

What one process measures before it calls a function (`panes.expressions.measured`), Spark measures
as well. Its regular expressions and its LIKE try one way after the other, so they get text that is
short enough for them.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from panes.expressions.measured import too_much
from panes.expressions.sizes import LOOKING, MAKING, MOST_MADE, MOST_STEPS, SHORT
from panes.language.backtracking import degree, degree_of_like
from panes.language.expressions import to_sql
from panes.language.growth import searched
from panes.spark.clock import without_clock

_MOST_TRIES = 10**9


def spark_sql(tree: exp.Expression) -> str:
    """An expression in Spark's words."""
    bounded = exp.Paren(this=without_clock(tree))
    for node in [*bounded.walk()][::-1]:
        _shorten(node)
        if isinstance(node, exp.Anonymous):
            _measure(node)
    return to_sql(bounded.this, "spark")


def _shorten(node: exp.Expr) -> None:
    """Let a search with backtracking have a text that is not too long for its pattern."""
    found, power = searched(node), None
    if found is not None:
        text, pattern = found
        power = None if isinstance(pattern, exp.Null) else degree(pattern.unnest().name)
    elif isinstance(node, exp.Like | exp.ILike):
        text, pattern = node.this, node.expression.unnest()
        power = degree_of_like(pattern.name) if pattern.is_string else 3
    if power is None or power < 2 or isinstance(text, exp.Literal):
        return
    most = int(_MOST_TRIES ** (1 / power) + 0.5)
    said = (
        f"a search in a text of more than {most:,} characters may take very long with the pattern"
    )
    given = pattern.name if isinstance(pattern, exp.Literal | exp.RawString) else "of a column"

    def body(values: list[exp.Expr]) -> exp.Expr:
        is_long = exp.GT(this=_called("length", values[0]), expression=exp.Literal.number(most))
        return exp.Case().when(is_long, _error(f"{said} {given}")).else_(values[0].copy())

    text.replace(_once([text.copy()], body))


def _measure(node: exp.Anonymous) -> None:
    """Measure the arguments of a function that multiplies them."""
    name = str(node.this).lower()
    pair = MAKING.get(name) or LOOKING.get(name)
    arguments = node.expressions
    if pair is None or max(pair) >= len(arguments) or _is_harmless(name, arguments):
        return
    most = MOST_MADE if name in MAKING else MOST_STEPS
    is_of_arrays = name.startswith("array") or (name == "concat_ws")

    def body(values: list[exp.Expr]) -> exp.Expr:
        lengths = [
            _called("size" if is_of_arrays and not _is_text(name, at) else "length", values[at])
            for at in pair
        ]
        steps = exp.Mul(this=exp.cast(lengths[0], "bigint"), expression=lengths[1])
        is_much = exp.GT(this=steps, expression=exp.Literal.number(most))
        call = exp.Anonymous(this=node.this, expressions=[v.copy() for v in values])
        return exp.Case().when(is_much, _error(too_much(name, most))).else_(call)

    node.replace(_once([a.copy() for a in arguments], body))


def _is_text(name: str, at: int) -> bool:
    return (name, at) in (("array_join", 1), ("concat_ws", 0))


def _is_harmless(name: str, arguments: list[exp.Expr]) -> bool:
    """Whether a constant is so short that nothing multiplies."""
    if name == "concat_ws":
        return isinstance(arguments[0], exp.Literal) and len(arguments[0].name) <= SHORT
    written = [a.name if a.is_string else None for a in arguments]
    if name == "replace":
        old, *new = written[1:]
        return old is not None and all(n is not None and len(n) <= len(old) for n in new)
    if name == "regexp_replace":
        return written[2] is not None and len(written[2]) <= 1
    most = 1 if name in MAKING else SHORT
    return any(text is not None and len(text) <= most for text in written)


def _once(values: list[exp.Expr], body: Callable[[list[exp.Expr]], exp.Expr]) -> exp.Expr:
    """`body` over values that are worked out once; constants stay as they are written."""
    names: list[exp.Expr] = []
    fields: list[exp.Expr] = []
    for at, value in enumerate(values):
        if isinstance(value, exp.Literal | exp.RawString | exp.Null):
            names.append(value)
        else:
            names.append(exp.column(f"a{at}", table="v"))
            fields += [exp.Literal.string(f"a{at}"), value]
    if not fields:
        return body(names)
    held = exp.Anonymous(this="array", expressions=[_called("named_struct", *fields)])
    each = exp.Lambda(this=body(names), expressions=[exp.to_identifier("v")])
    found = exp.Anonymous(this="transform", expressions=[held, each])
    return exp.Bracket(this=found, expressions=[exp.Literal.number(0)])


def _called(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[a.copy() for a in arguments])


def _error(said: str) -> exp.Anonymous:
    return exp.Anonymous(this="raise_error", expressions=[exp.Literal.string(said)])
