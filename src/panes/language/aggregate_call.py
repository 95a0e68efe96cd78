"""One aggregate call, read from its tree: its columns, its constants and what stands behind it.

What Spark has two spellings for becomes one: ``first(x, true)`` is ``first(x) IGNORE NULLS``,
``count_if(c)`` is ``count(*) FILTER (WHERE c)``, and what stands in ``WITHIN GROUP (ORDER BY ...)``
becomes a column and a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from panes.aggregates.calls import WEIGHTED, Parameter
from panes.aggregates.catalog import columns_of, is_aggregate, is_ordered
from panes.aggregates.custom import UserAggregate
from panes.language.places import error_in
from panes.language.query import AggregateCall

_BY_TIME = ("first", "last", "first_value", "last_value", "any_value")


def read_call(tree: exp.Expression, user: Sequence[UserAggregate]) -> AggregateCall | None:
    """The aggregate call that a tree is, seen through what may stand behind it; or None."""
    seen = _Behind.of(tree)
    node = seen.node
    if not isinstance(node, exp.Anonymous) or not is_aggregate(node.name, user):
        return None
    name = node.name.lower()
    distinct, arguments = _arguments(node)
    skip_nulls = seen.skip_nulls
    if name in _BY_TIME and len(arguments) == 2:
        if not isinstance(arguments[1], exp.Boolean):
            raise error_in(
                node, f"{name}(x, ignore_nulls) needs true or false, got {sql_of(arguments[1])}"
            )
        skip_nulls = bool(arguments[1].this)
        arguments = arguments[:1]
    if name == "count_if":
        return _count_if(node, arguments, seen.where, distinct=distinct, sql=sql_of(tree))
    order = None if seen.order is None else _ordered(node, seen.order)
    if order is None and is_ordered(name) == "always":
        raise error_in(
            node,
            f"{name} needs the order of its values",
            f"{name}(0.5) WITHIN GROUP (ORDER BY x)",
        )
    columns, constants = _split(node, arguments, order)
    return AggregateCall(
        name, tuple(columns), constants, seen.where, distinct, skip_nulls, sql_of(tree)
    )


@dataclass(slots=True)
class _Behind:
    """A call without what stands behind it, and that: FILTER, IGNORE NULLS, WITHIN GROUP."""

    node: exp.Expr
    where: exp.Expression | None = None
    skip_nulls: bool = False
    order: exp.Expression | None = None

    @classmethod
    def of(cls, tree: exp.Expression) -> _Behind:
        seen = cls(tree)
        while True:
            node = seen.node
            if isinstance(node, exp.Filter):
                seen.where = node.expression.this
            elif isinstance(node, exp.IgnoreNulls):
                seen.skip_nulls = True
            elif isinstance(node, exp.WithinGroup):
                seen.order = node.expression
            elif not isinstance(node, exp.RespectNulls):
                return seen
            seen.node = node.this


def _arguments(node: exp.Anonymous) -> tuple[bool, list[exp.Expression]]:
    arguments = list(node.expressions)
    if arguments and isinstance(arguments[0], exp.Distinct):
        inside = list(arguments[0].expressions)
        if any(isinstance(a, exp.Star) for a in inside):
            raise error_in(node, f"{node.name}(DISTINCT *) has no meaning", "name the columns")
        return True, inside + arguments[1:]
    if len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        if node.name.lower() != "count":
            raise error_in(node, f"{node.name}(*) has no meaning", f"{node.name}(column)")
        return False, []
    return False, arguments


def _count_if(
    node: exp.Anonymous,
    arguments: list[exp.Expression],
    where: exp.Expression | None,
    *,
    distinct: bool,
    sql: str,
) -> AggregateCall:
    if len(arguments) != 1:
        raise error_in(node, f"count_if takes one condition, got {len(arguments)} arguments")
    if distinct:
        raise error_in(node, "count_if(DISTINCT ...) has no meaning")
    condition = arguments[0].copy()
    if where is not None:
        condition = exp.And(this=exp.paren(condition), expression=exp.paren(where.copy()))
    return AggregateCall("count", (), (), condition, False, False, sql)


def _ordered(node: exp.Anonymous, order: exp.Expression) -> tuple[exp.Expression, bool]:
    """The expression that ``WITHIN GROUP (ORDER BY ...)`` orders by, and True if it falls."""
    by = order.expressions if isinstance(order, exp.Order) else []
    if is_ordered(node.name) == "never":
        raise error_in(node, f"{node.name} takes no WITHIN GROUP (ORDER BY ...)")
    if len(by) != 1 or not isinstance(by[0], exp.Ordered):
        raise error_in(node, f"{node.name} is ordered by one expression")
    falls = bool(by[0].args.get("desc"))
    if bool(by[0].args.get("nulls_first")) == falls:
        raise error_in(node, "NULL comes first in rising order, and last in falling order")
    return by[0].this, falls


def _split(
    node: exp.Anonymous,
    arguments: list[exp.Expression],
    order: tuple[exp.Expression, bool] | None,
) -> tuple[list[exp.Expression], tuple[Parameter, ...]]:
    """A call's columns, and the constants behind them."""
    name = node.name.lower()
    if name in ("percentile_cont", "percentile_disc") and order is not None:
        if len(arguments) != 1:
            raise error_in(node, f"{name} takes one fraction, got {len(arguments)} arguments")
        return [order[0]], (_constant(node, arguments[0]), order[1])
    if name == "mode":
        return _mode(node, arguments, order)
    if is_ordered(name) == "maybe" and not arguments:
        raise error_in(node, f"{name} takes a value, and what stands between", f"{name}(x, ', ')")
    cut = columns_of(name, len(arguments))
    columns = arguments[:cut]
    constants = tuple(_constant(node, a) for a in arguments[cut:])
    if order is not None:
        by, falls = order
        columns += [] if by == columns[0] else [by]
        constants = (*(*constants, None)[:1], falls)
    return columns, constants


def _mode(
    node: exp.Anonymous,
    arguments: list[exp.Expression],
    order: tuple[exp.Expression, bool] | None,
) -> tuple[list[exp.Expression], tuple[Parameter, ...]]:
    """``mode(x)``, ``mode(x, true)`` and ``mode() WITHIN GROUP (ORDER BY x)``."""
    if order is not None:
        if arguments:
            raise error_in(node, "mode() WITHIN GROUP (ORDER BY x) has nothing in its parentheses")
        return [order[0]], (order[1],)
    if len(arguments) == 2 and _constant(node, arguments[1]) is not True:
        raise error_in(
            node,
            "mode(x, false) may be any of several values, and the same rows give the same answer "
            "here",
            "mode(x) gives the smallest of them",
        )
    return arguments[:1], tuple(_constant(node, a) for a in arguments[2:])


def _constant(node: exp.Anonymous, tree: exp.Expression) -> Parameter:
    """The value of a constant: a number, a text, true or false, NULL, or an array of numbers."""
    inner = tree.this if isinstance(tree, exp.Cast | exp.Paren) else tree
    if isinstance(inner, exp.Null):
        return None
    if isinstance(inner, exp.Boolean):
        return bool(inner.this)
    if isinstance(inner, exp.Literal) and inner.is_string and inner is tree:
        return str(inner.this)
    is_array = isinstance(inner, exp.Array) or (
        isinstance(inner, exp.Anonymous) and inner.name.lower() == "array"
    )
    if is_array:
        return tuple(_number(node, item) for item in inner.expressions)
    return _number(node, tree)


def _number(node: exp.Anonymous, tree: exp.Expression) -> float:
    inner = tree
    while isinstance(inner, exp.Cast | exp.Paren):
        inner = inner.this
    try:
        value = float(sql_of(inner))
    except ValueError:
        raise error_in(
            node,
            f"the constants of {node.name} must be numbers, got {sql_of(tree)}",
            WEIGHTED if node.name.lower() == "percentile" else None,
        ) from None
    return int(value) if value.is_integer() and "." not in sql_of(inner) else value


def sql_of(tree: exp.Expr) -> str:
    """An expression as it was written."""
    text: str = tree.sql(dialect="spark", normalize_functions=False)
    return text
