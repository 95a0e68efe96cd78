"""Questions about some values of a GROUP BY, looked up among the panes of all of them.

``WHERE item = 7 GROUP BY item`` keeps or drops whole groups, so it is the same question as
``GROUP BY item HAVING item = 7``. Panes with that GROUP BY hold every value with its partials: they
are a set-valued index of the window (paper, 4), which answers for any of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from sqlglot import exp

from panes.language.query import KEY, Query
from panes.planning.plan import Plan
from panes.register.needs import needed_by
from panes.register.shared_store import SharedStore

Stores: TypeAlias = Mapping[tuple[exp.Expression, ...], SharedStore]


def planned_question(query: Query, plan_of: Callable[[Query], Plan], stores: Stores) -> Plan:
    """The plan of a question: as it stands, or as a look-up if only that finds something stored."""
    planned = plan_of(query)
    if _is_stored(planned, stores):
        return planned
    looked_up = as_look_up(query)
    if looked_up is None:
        return planned
    other = plan_of(looked_up)
    return other if _is_stored(other, stores) else planned


def as_look_up(query: Query) -> Query | None:
    """The same question without WHERE, if that is about nothing but the GROUP BY.

    >>> from panes.language.parse import parse
    >>> text = "SELECT k, sum(x) FROM s [TUMBLING 5 WATTR at] WHERE k > 7 GROUP BY k"
    >>> asked = as_look_up(parse(text))
    >>> asked.where is None, asked.having.sql()
    (True, '__k0 > 7')
    """
    if query.where is None or not query.keys:
        return None
    number = {
        key.expression.name.lower(): number
        for number, key in enumerate(query.keys)
        if isinstance(key.expression, exp.Column)
    }
    if any(column.name.lower() not in number for column in query.where.find_all(exp.Column)):
        return None
    if not query.where.find(exp.Column):
        return None

    def by_key(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Column):
            return node
        return exp.column(f"{KEY}{number[node.name.lower()]}")

    condition: exp.Expression = query.where.copy().transform(by_key)
    if query.having is not None:
        both = (exp.Paren(this=tree) for tree in (condition, query.having.copy()))
        condition = exp.And(this=next(both), expression=next(both))
    return replace(query, where=None, having=condition)


def _is_stored(planned: Plan, stores: Stores) -> bool:
    """Whether panes hold all that a plan needs, from some position on."""
    store = stores.get(planned.rows.expressions[: len(planned.query.keys)])
    if store is None:
        return False
    return needed_by(store.needs.describe(planned)) <= store.needs.since.keys()
