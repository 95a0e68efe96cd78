"""The rule of expressions, for every place where query text holds one.

Query text is not trusted. A tree is taken only if every node is of a known kind, every function is
one of `functions.SCALARS` or an aggregate, and every word that would reach another engine as it
was written is a plain one. Literals and names may hold anything: `to_sql` quotes them.

The rule is asked once, right after parsing, so that nothing is evaluated that it refuses: neither
by DuckDB nor by Spark, neither by a query nor by `explain`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, ClassVar

from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from panes.aggregates.catalog import CATALOG, is_aggregate
from panes.aggregates.custom import UserAggregate
from panes.aggregates.refused import REFUSED as REFUSED_AGGREGATES
from panes.errors import QueryError
from panes.expressions.dialect import UnsignedShift
from panes.language.elsewhere import OVER, SUBQUERY
from panes.language.functions import CLOCK, CLOCKS_BY_DEFAULT, HINTS, REFUSED, SCALARS
from panes.language.growth import require_short, takes_function
from panes.language.places import error_in

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")
_HEX = re.compile(r"[0-9A-Fa-f]*\Z")

_SELECT = (
    exp.Select, exp.From, exp.Table, exp.TableAlias, exp.Where, exp.Group, exp.Having, exp.Alias,
    exp.Star, exp.Distinct, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup,
    exp.Order, exp.Ordered,
)  # fmt: skip
_OPERATORS = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ,
    exp.NullSafeNEQ, exp.Between, exp.In, exp.Is, exp.Like, exp.ILike, exp.RegexpLike,
    exp.Escape, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg,
    exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift,
    exp.BitwiseRightShift, UnsignedShift, exp.DPipe, exp.Paren,
)  # fmt: skip
_PARTS = (
    exp.Column, exp.Identifier, exp.Literal, exp.RawString, exp.Boolean, exp.Null, exp.HexString,
    exp.Dot, exp.Bracket, exp.Case, exp.If, exp.Cast, exp.TryCast, exp.Collate, exp.DataType,
    exp.DataTypeParam, exp.ColumnDef, exp.Interval, exp.IntervalSpan, exp.Var, exp.Extract,
    exp.Substring, exp.StrPosition, exp.Trim, exp.Overlay, exp.Tuple, exp.Anonymous, exp.Lambda,
)  # fmt: skip
_KNOWN = frozenset((*_SELECT, *_OPERATORS, *_PARTS))


def require_known(tree: exp.Expression, user: Sequence[UserAggregate] = ()) -> None:
    """Refuse a tree with anything in it that is not known to be harmless."""
    for inner in tree.find_all(exp.Query):
        if id(inner) != id(tree):
            raise error_in(
                inner, "an expression is without subqueries: SELECT stands in FROM alone", SUBQUERY
            )
    for node in tree.walk():
        _require_known(node, user)
    require_short(tree)


def to_sql(tree: exp.Expression, dialect: str) -> str:
    """An expression in another engine's words: every name quoted, no comment carried over."""
    if dialect == "spark":
        tree = _zipped_by_names(tree)
    text: str = tree.sql(dialect=dialect, identify=True, comments=False)
    return text


def _zipped_by_names(tree: exp.Expression) -> exp.Expression:
    """An expression whose zipped arrays may have names of their own: Spark has no word for it."""
    zipped = [n for n in tree.find_all(exp.Anonymous)
              if n.name.lower() == "arrays_zip" and n.find(exp.Alias)]  # fmt: skip
    if not zipped:
        return tree

    def renamed(node: exp.Expression) -> exp.Expression:
        if not any(node == one for one in zipped):
            return node
        numbered, fields = [], []
        for i, part in enumerate(node.expressions):
            numbered.append(exp.Anonymous(this="coalesce", expressions=[part.unalias()]))
            value = exp.column(str(i), table="zipped", quoted=True)
            fields += [exp.Literal.string(part.alias or str(i)), value]
        struct = exp.Anonymous(this="named_struct", expressions=fields)
        arrays = exp.Anonymous(this="arrays_zip", expressions=numbered)
        each = exp.Lambda(this=struct, expressions=[exp.to_identifier("zipped")])
        return exp.Anonymous(this="transform", expressions=[arrays, each])

    return tree.copy().transform(renamed)


def stable(text: str, *, as_written: bool = False) -> str:
    """An expression as states know it, by whichever of a function's names it was written.

    Text is given and taken in Spark SQL. States are recognised by it for ever, so it is sqlglot's
    spelling of names: ``nvl(x, 0)`` and ``ifnull(x, 0)`` are ``COALESCE(x, 0)``.

    >>> stable("NVL(x, 0)")
    'COALESCE(x, 0)'
    """
    try:
        tree = parse_one(text, dialect=_Stable)
    except (SqlglotError, IndexError, TypeError, AttributeError):
        return text  # with arguments of its own, that sqlglot does not know
    spelled: str = tree.sql("spark", normalize_functions=False if as_written else "upper")
    return spelled


class _Stable(Spark):
    """Spark's dialect as sqlglot has it, but for the names of our aggregates."""

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            name: build for name, build in Spark.Parser.FUNCTIONS.items()
            if name.lower() not in CATALOG
        } | {
            name.upper(): (lambda args, name=name: exp.Anonymous(this=name, expressions=args))
            for name in CATALOG
        }  # fmt: skip
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser for name, parser in Spark.Parser.FUNCTION_PARSERS.items()
            if name.lower() not in CATALOG
        }  # fmt: skip


def quoted(name: str) -> str:
    """A name as query text, whatever is in it.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def _require_known(node: exp.Expr, user: Sequence[UserAggregate]) -> None:
    if isinstance(node, exp.Window):
        raise error_in(node, "OVER (...) has no place in a window query", OVER)
    if isinstance(node, exp.Lambda):
        _require_alone(node)
    if isinstance(node, exp.Anonymous):
        _require_function(node, user)
    elif type(node) not in _KNOWN:
        _refuse(node)
    if isinstance(node, exp.DataType) and node.this == exp.DataType.Type.USERDEFINED:
        raise error_in(node, "a type is named that Spark does not have")
    for word in _words_as_written(node):
        if not _WORD.match(word):
            raise error_in(node, f"cannot understand `{word}` here")


def _require_function(node: exp.Anonymous, user: Sequence[UserAggregate]) -> None:
    name = str(node.this)
    known = name.lower()
    if known in REFUSED and not is_aggregate(known, user):
        raise _refused(node, known, REFUSED[known])
    if known in CLOCKS_BY_DEFAULT and not node.expressions:
        raise _refused(node, f"{known}()", CLOCK)
    if known in SCALARS or is_aggregate(known, user):
        return
    if known in REFUSED_AGGREGATES:
        raise error_in(
            node, f"`{known}` cannot be used in a window query: it {REFUSED_AGGREGATES[known]}"
        )
    if known in _aggregates_elsewhere():
        raise error_in(
            node,
            f"no aggregate `{known}` is known",
            "docs/reference/aggregates.md lists all; panes.CustomAggregate makes new ones",
        )
    raise error_in(
        node,
        f"no function `{name}` is known",
        "functions are Spark's, by name; a UDF is applied before, by df.withColumn(...); your own "
        "aggregates are given beside the query: aggregates=[...]",
    )


def _require_alone(function: exp.Lambda) -> None:
    """A function of elements is an argument of one that takes it, and has none inside."""
    if not takes_function(function.parent):
        raise error_in(function, "a function has no place here", "filter(prices, x -> x > 10)")
    for parameter in function.expressions:
        if not _WORD.fullmatch(parameter.name):
            raise error_in(function, f"`{parameter.name}` cannot be a parameter's name")
    if any(isinstance(n, exp.Lambda) for n in function.walk() if n is not function):
        raise error_in(
            function, "a function inside of a function would be called for all pairs of elements"
        )


def _refuse(node: exp.Expr) -> None:
    if isinstance(node, exp.Func):
        name = node.sql_name().lower()
        reason = REFUSED.get(name)
        if reason is not None:
            raise _refused(node, name, reason)
        raise error_in(node, f"no function `{name}` is known", "functions are Spark's, by name")
    raise error_in(node, f"cannot understand {_described(node)} in a query")


def _refused(node: exp.Expr, name: str, reason: str) -> QueryError:
    return error_in(node, f"`{name}` cannot be used in a query: it {reason}", HINTS.get(reason))


def _described(node: exp.Expr) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).lower()
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def _words_as_written(node: exp.Expr) -> Iterator[str]:
    """The strings of a node that another engine would be given unquoted."""
    if isinstance(node, exp.Identifier | exp.RawString):
        return
    if isinstance(node, exp.Literal):
        if not node.is_string and not _NUMBER.match(node.name):
            yield node.name
        return
    if isinstance(node, exp.HexString):
        if not _HEX.match(node.name):
            yield node.name
        return
    for value in node.args.values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str):
                yield item


@cache
def _aggregates_elsewhere() -> frozenset[str]:
    """Names that mean an aggregate in Spark and none of ours."""
    found = {
        name.lower()
        for name, build in Spark.Parser.FUNCTIONS.items()
        if isinstance(kind := getattr(build, "__self__", None), type)
        and issubclass(kind, exp.AggFunc)
    }
    return frozenset(found - CATALOG.keys())
