"""SELECTs around a stream, inside FROM: rows filtered, projected, told apart.

Several around each other are read as the one SELECT that means the same: what an outer one says of
a column is said of the expression that the inner one gives that name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import cast

from sqlglot import exp
from sqlglot.tokens import Token

from panes.aggregates.catalog import CATALOG
from panes.errors import QueryError
from panes.language.depth import require_shallow
from panes.language.elsewhere import OVER, WINDOW_INSIDE
from panes.language.expressions import require_known
from panes.language.grammar import parse_select
from panes.language.places import error_in
from panes.language.query import Inner, Output
from panes.language.select import unqualified
from panes.language.tokens import error_at

MOST_NODES = 20_000
"""Operators, calls and names of the SELECT that several mean together."""


def read_inner(selects: Sequence[list[Token]], text: str, streams: Sequence[str]) -> Inner | None:
    """The SELECTs around a stream as one, the innermost first; None for the stream as it is.

    What stands before a dot is the name of one of the `streams` there, or else a struct.
    """
    inner = [_read(tokens, text, streams) for tokens in selects]
    for below, tokens, above in zip(inner, selects[1:], inner[1:], strict=False):
        if below.distinct and above.columns is not None and not above.distinct:
            raise error_at(
                tokens[0],
                "a SELECT around a SELECT DISTINCT keeps its columns",
                "SELECT * FROM (SELECT DISTINCT ...) WHERE ..., or SELECT DISTINCT around both",
            )
    return reduce(_around, inner) if inner else None


def is_distinct(tokens: Sequence[Token]) -> bool:
    """Whether a SELECT drops duplicates."""
    return len(tokens) > 1 and tokens[1].text.upper() == "DISTINCT"


def _read(tokens: list[Token], text: str, streams: Sequence[str]) -> Inner:
    select = parse_select(tokens, text)
    called = [table.alias for table in select.find_all(exp.Table)]
    select = cast(
        exp.Select, unqualified(select, frozenset(n.lower() for n in (*streams, *called)))
    )
    allowed = {"kind", "hint", "distinct", "expressions", "from", "from_", "where", "limit"}
    asked = {name for name, value in select.args.items() if value and name not in allowed}
    is_whole = len(select.expressions) == 1 and isinstance(select.expressions[0], exp.Star)
    asked |= {"EXCEPT"} if is_whole and any(select.expressions[0].args.values()) else set()
    distinct = select.args.get("distinct")
    asked |= {"ON"} if distinct is not None and distinct.args.get("on") else set()
    aggregates = any(
        isinstance(node, exp.AggFunc | exp.Window | exp.UDTF)
        or (isinstance(node, exp.Anonymous) and str(node.this).lower() in CATALOG)
        for expression in select.expressions
        for node in expression.walk()
    )
    if asked or aggregates or select.args.get("limit"):
        over = any(select.find_all(exp.Window))
        raise QueryError(
            "a SELECT inside FROM filters rows, projects them and drops duplicates, no more",
            hint=OVER if over else WINDOW_INSIDE if aggregates or "group" in asked else None,
        )
    require_known(select)
    where = select.args.get("where")
    columns = None if is_whole else tuple(map(_named, select.expressions))
    names = [o.name.lower() for o in columns or ()]
    for name in names:
        if names.count(name) > 1:
            raise QueryError(f"two columns inside FROM are named `{name}`")
    return Inner(columns, None if where is None else where.this, bool(distinct))


def _named(expression: exp.Expression) -> Output:
    name = expression.alias_or_name
    if isinstance(expression, exp.Star) or expression.find(exp.Star):
        raise QueryError(
            "inside FROM, * stands alone",
            hint="name the columns, or filter with SELECT * ... WHERE",
        )
    if not name:
        written = expression.sql(dialect="spark")
        raise QueryError(f"`{written}` inside FROM needs a name", hint=f"{written} AS name")
    return Output(name, expression.this if isinstance(expression, exp.Alias) else expression)


def _around(below: Inner, above: Inner) -> Inner:
    """The SELECT that means what one says around another."""
    made = None if below.columns is None else {o.name.lower(): o.expression for o in below.columns}
    columns, where = below.columns, below.where
    if above.columns is not None:
        columns = tuple(Output(o.name, _of_below(o.expression, made)) for o in above.columns)
    if above.where is not None:
        where = _of_below(above.where, made)
        if below.where is not None:  # what is above is asked of the rows that pass below
            passing = exp.If(this=below.where.copy(), true=where)
            where = exp.Case(ifs=[passing], default=exp.false())
    for tree in (*(o.expression for o in columns or ()), *([] if where is None else [where])):
        require_known(tree)
        require_shallow(tree)
    return Inner(columns, where, below.distinct or above.distinct)


def _of_below(tree: exp.Expression, made: Mapping[str, exp.Expression] | None) -> exp.Expression:
    """An expression of the columns that are selected below, as one of the columns of the stream."""
    if made is None:
        return tree
    sizes = {name: sum(1 for _ in one.walk()) for name, one in made.items()}
    if sum(sizes.get(_holder(node), 0) for node in tree.find_all(exp.Column)) > MOST_NODES:
        raise QueryError(
            "the SELECTs in each other inside FROM are too long as one",
            hint="work out a part before it comes to the stream",
        )
    free = {_holder(node) for one in made.values() for node in one.find_all(exp.Column)}
    for function in tree.find_all(exp.Lambda):
        for parameter in function.expressions:
            if parameter.name.lower() in free:
                raise error_in(
                    tree,
                    f"`{parameter.name}` is a column of the SELECT inside as well",
                    f"call the parameter of the function of elements {parameter.name}_1",
                )

    def put(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Column):
            return node
        found = made.get(_holder(node))
        if found is None:
            raise error_in(
                node, f"no column `{node.parts[0].name}` in the SELECT inside FROM",
                f"columns: {', '.join(made)}",
            )  # fmt: skip
        found = found.copy() if isinstance(found, exp.Column) else exp.Paren(this=found.copy())
        for field in node.parts[1:]:
            found = exp.Dot(this=found, expression=field.copy())
        return found

    return tree.copy().transform(put)


def _holder(column: exp.Column) -> str:
    """The column of a row that is read: of ``p.k``, the struct."""
    return str(column.parts[0].name.lower())
