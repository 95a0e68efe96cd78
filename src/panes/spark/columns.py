"""Spark's Columns, taken apart: is this an aggregate, and of what?

The one place that looks inside a Column, which has no public structure. It reads the same
things from a classic session's Column and from a Connect session's: alias, function call, name,
literal SQL, and everything else as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql.utils import get_active_spark_context

from panes.errors import QueryError


@dataclass(frozen=True, slots=True)
class Alias:
    """A Column under another name."""

    child: Column
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function of Columns. `star` stands for the ``*`` of ``count(*)``."""

    name: str
    arguments: tuple[Column, ...]
    distinct: bool
    star: bool


@dataclass(frozen=True, slots=True)
class Name:
    """A column of the frame, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Text:
    """A Column given as SQL text, as ``F.expr`` makes it."""

    sql: str


Part = Alias | Call | Name | Text | None


def take_apart(column: Column) -> Part:
    """What a Column is at its root; None if it is none of these."""
    if hasattr(column, "_jc"):
        return _classic(column)
    if hasattr(column, "_expr"):
        return _connect(column)
    raise QueryError(f"a {type(column).__name__} is no Column of a known kind of Spark session")


def _classic(column: Any) -> Part:
    node = column._jc.node()
    kind = node.getClass().getSimpleName()

    def wrap(child: Any) -> Column:
        jvm: Any = get_active_spark_context()._jvm
        made: Column = type(column)(jvm.org.apache.spark.sql.Column(child))
        return made

    if kind == "Alias":
        return Alias(wrap(node.child()), node.name().apply(0))
    if kind == "SqlExpression":
        return Text(node.expression())
    if kind == "UnresolvedAttribute":
        return Name(".".join(node.nameParts().apply(i) for i in range(node.nameParts().size())))
    if kind != "UnresolvedFunction":
        return None
    arguments = [node.arguments().apply(i) for i in range(node.arguments().size())]
    star = [a.getClass().getSimpleName() == "UnresolvedStar" for a in arguments]
    plain = tuple(wrap(a) for a, is_star in zip(arguments, star, strict=True) if not is_star)
    return Call(node.functionName(), plain, node.isDistinct(), any(star))


def _connect(column: Any) -> Part:
    tree = column._expr
    kind = type(tree).__name__
    if kind == "ColumnAlias":
        return Alias(type(column)(tree._child), tree._alias[0])
    if kind == "SQLExpression":
        return Text(tree._expr)
    if kind == "ColumnReference":
        return Name(tree._unparsed_identifier)
    if kind != "UnresolvedFunction":
        return None
    star = [type(a).__name__ == "UnresolvedStar" for a in tree._args]
    plain = tuple(
        type(column)(a) for a, is_star in zip(tree._args, star, strict=True) if not is_star
    )
    return Call(tree._name, plain, tree._is_distinct, any(star))
