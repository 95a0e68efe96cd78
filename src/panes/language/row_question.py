"""A question for rows: which rows of a window pass a filter, in which order, and how many of them.

``SELECT * FROM bids [RANGE 1 hour WATTR ts] WHERE item = 7 ORDER BY price LIMIT 10`` has no
aggregate and no group. It is asked once, of the live window; no standing query has such answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from sqlglot import exp

from panes.aggregates.catalog import is_aggregate
from panes.aggregates.custom import UserAggregate
from panes.axis import LIMIT, written_whole
from panes.errors import QueryError
from panes.language.expressions import require_known
from panes.language.grammar import parse_select
from panes.language.join_text import is_join
from panes.language.parse import take_out
from panes.language.places import error_in
from panes.language.query import WINDOW_COLUMNS, Output, Window
from panes.language.select import name_of, unqualified
from panes.language.set_query import sets_to_groups
from panes.language.tokens import tokenize
from panes.windows.spec import Sliding

_UNDERSTOOD = {"expressions", "from", "from_", "where", "order", "limit", "kind", "hint"}


@dataclass(frozen=True, slots=True)
class Ordering:
    """One expression of ORDER BY."""

    expression: exp.Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class RowQuestion:
    """A question for the rows of a window; `columns` is None for ``*``, `limit` for all."""

    stream: str
    window: Window
    size: int
    columns: tuple[Output, ...] | None
    where: exp.Expression | None
    order: tuple[Ordering, ...]
    limit: int | None


def read_row_question(text: str, aggregates: Sequence[UserAggregate] = ()) -> RowQuestion | None:
    """A question for rows; None if the text asks for something else.

    >>> asked = read_row_question("SELECT * FROM bids [RANGE 60 WATTR at] WHERE item = 7 LIMIT 3")
    >>> asked.stream, asked.size, asked.limit
    ('bids', 60, 3)
    """
    tokens = tokenize(text)
    if is_join(text) or sets_to_groups(tokens) is not tokens:
        return None
    plain, sources, window, early = take_out(tokens, once=True)
    select = parse_select(plain, text)
    if select.args.get("group") or select.args.get("having") or _aggregates(select, aggregates):
        return None
    if window is None or early is not None or not isinstance(window.spec, Sliding):
        return None
    if len(sources.streams) != 1 or sources.inner[0] or window.partition:
        raise QueryError("rows are asked of one stream, by its name")
    _refuse_the_rest(select)
    where, order = select.args.get("where"), select.args.get("order")
    for tree in (*select.expressions, where, *(o.this for o in (order or exp.Order()).expressions)):
        if tree is not None:
            require_known(tree, aggregates)
    names = frozenset(n.lower() for n in (*sources.streams, *sources.aliases))
    select = cast(exp.Select, unqualified(select, names))
    where, order = select.args.get("where"), select.args.get("order")
    return RowQuestion(
        stream=sources.streams[0],
        window=window,
        size=window.spec.size,
        columns=_columns(select),
        where=None if where is None else where.this,
        order=() if order is None else tuple(_ordering(o, select) for o in order.expressions),
        limit=_limit(select),
    )


def _aggregates(select: exp.Select, user: Sequence[UserAggregate]) -> bool:
    own = {a.name.lower() for a in user}
    return any(
        isinstance(node, exp.Anonymous) and (is_aggregate(node.name) or node.name.lower() in own)
        for node in select.walk()
    )


def _refuse_the_rest(select: exp.Select) -> None:
    for name, value in select.args.items():
        if value and name not in _UNDERSTOOD:
            node = value[0] if isinstance(value, list) else value
            raise error_in(node, f"{name.rstrip('_').upper()} is not understood here")


def _columns(select: exp.Select) -> tuple[Output, ...] | None:
    if not select.expressions:
        raise QueryError("nothing is selected", hint="SELECT * FROM bids [RANGE 1 hour WATTR ts]")
    first = select.expressions[0]
    if (
        len(select.expressions) == 1
        and isinstance(first, exp.Star)
        and not any(first.args.values())
    ):
        return None
    outputs = tuple(Output(name_of(item), item.unalias()) for item in select.expressions)
    names = [o.name.lower() for o in outputs]
    for item, output in zip(select.expressions, outputs, strict=True):
        if item.find(exp.Star) is not None:
            raise error_in(item, "* stands alone", "name the columns, or write SELECT *")
        if names.count(output.name.lower()) > 1 or output.name.lower() in WINDOW_COLUMNS:
            raise error_in(item, f"there is another column named `{output.name}` in the answer")
    return outputs


def _ordering(ordered: exp.Expression, select: exp.Select) -> Ordering:
    named = {i.alias.lower(): i.unalias() for i in select.expressions if isinstance(i, exp.Alias)}
    tree = ordered.this
    if isinstance(tree, exp.Literal):
        raise error_in(tree, "ORDER BY takes columns and expressions here, no numbers of columns")
    if isinstance(tree, exp.Column) and not tree.table:
        tree = named.get(tree.name.lower(), tree)
    descending = bool(ordered.args.get("desc"))
    nulls_first = ordered.args.get("nulls_first")
    return Ordering(tree, descending, (not descending) if nulls_first is None else nulls_first)


def _limit(select: exp.Select) -> int | None:
    limit = select.args.get("limit")
    if limit is None:
        return None
    value = limit.expression
    is_number = isinstance(value, exp.Literal) and not value.is_string
    number = written_whole(value.name) if is_number else None
    if number is None:
        raise error_in(limit, "LIMIT takes a whole number of rows")
    return min(number, LIMIT)
