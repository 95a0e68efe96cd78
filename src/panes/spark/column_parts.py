"""What a Column is made of, which Spark documents nowhere (`panes.spark.internals` has the rest).

A drop-in for ``groupBy(...).agg(...)`` is given Columns, and has to know of which aggregate. A
classic session's and a Connect session's have the same parts under other names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from pyspark.sql import Column
from pyspark.sql.utils import get_active_spark_context

from panes.errors import QueryError
from panes.spark.internals import class_of, each


@dataclass(frozen=True, slots=True)
class Alias:
    """A Column under another name."""

    child: Column
    name: str


@dataclass(frozen=True, slots=True)
class ColumnCall:
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


@dataclass(frozen=True, slots=True)
class Cast:
    """A Column in another type, which is written as in SQL; NULL where it `tries` and fails."""

    child: Column
    type: str
    tries: bool


@dataclass(frozen=True, slots=True)
class WhenChoice:
    """What ``F.when(...).otherwise(...)`` makes: pairs of a condition and a value, and the rest."""

    branches: tuple[tuple[Column, Column], ...]
    otherwise: Column | None


@dataclass(frozen=True, slots=True)
class Item:
    """A field of a struct, an element of a list or a value of a map."""

    child: Column
    key: Column


Part = Alias | ColumnCall | Cast | WhenChoice | Item | Name | Text | None


def take_apart(column: Column) -> Part:
    """What a Column is at its root; None if it is none of these."""
    if hasattr(column, "_jc"):
        return _classic(column)
    if hasattr(column, "_expr"):
        return _connect(column)
    raise QueryError(f"a {type(column).__name__} is no Column of a known kind of Spark session")


def text_of(column: Column) -> str:
    """A constant Column as SQL text: what its representation shows between its quotes.

    Through Connect, that shows a text without quotes of its own.
    """
    value = None if hasattr(column, "_jc") else getattr(cast(Any, column)._expr, "_value", None)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    return repr(column).removeprefix("Column<'").removesuffix("'>")


def _classic(column: Any) -> Part:
    node = column._jc.node()
    name = class_of(node)

    def wrap(child: Any) -> Column:
        jvm: Any = get_active_spark_context()._jvm
        made: Column = type(column)(jvm.org.apache.spark.sql.Column(child))
        return made

    if name == "Alias":
        return Alias(wrap(node.child()), node.name().apply(0))
    if name == "SqlExpression":
        return Text(node.expression())
    if name == "UnresolvedAttribute":
        return Name(".".join(each(node.nameParts())))
    if name == "Cast":
        mode = node.evalMode()
        tries = mode.isDefined() and "try" in mode.get().toString().lower()
        return Cast(wrap(node.child()), node.dataType().sql(), tries)
    if name == "UnresolvedExtractValue":
        return Item(wrap(node.child()), wrap(node.extraction()))
    if name == "CaseWhenOtherwise":
        pairs = tuple((wrap(pair._1()), wrap(pair._2())) for pair in each(node.branches()))
        rest = node.otherwise()
        return WhenChoice(pairs, wrap(rest.get()) if rest.isDefined() else None)
    if name != "UnresolvedFunction":
        return None
    arguments = list(each(node.arguments()))
    star = [class_of(a) == "UnresolvedStar" for a in arguments]
    plain = tuple(wrap(a) for a, is_star in zip(arguments, star, strict=True) if not is_star)
    return ColumnCall(node.functionName(), plain, node.isDistinct(), any(star))


def _connect(column: Any) -> Part:
    tree = column._expr
    name = type(tree).__name__
    if name == "ColumnAlias":
        return Alias(type(column)(tree._child), tree._alias[0])
    if name == "SQLExpression":
        return Text(tree._expr)
    if name == "ColumnReference":
        return Name(tree._unparsed_identifier)
    if name == "CastExpression":
        given = tree._data_type
        data_type = given if isinstance(given, str) else given.simpleString()
        return Cast(type(column)(tree._expr), data_type, tree._eval_mode == "try")
    if name == "UnresolvedExtractValue":
        return Item(type(column)(tree._child), type(column)(tree._extraction))
    if name == "CaseWhen":
        pairs = tuple((type(column)(a), type(column)(b)) for a, b in tree._branches)
        rest = tree._else_value
        return WhenChoice(pairs, None if rest is None else type(column)(rest))
    if name != "UnresolvedFunction":
        return None
    star = [type(a).__name__ == "UnresolvedStar" for a in tree._args]
    plain = tuple(
        type(column)(a) for a, is_star in zip(tree._args, star, strict=True) if not is_star
    )
    return ColumnCall(tree._name, plain, tree._is_distinct, any(star))
