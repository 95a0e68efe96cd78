"""Questions about some values of a GROUP BY, looked up among the panes of all of them.

``WHERE item = 7 GROUP BY item`` keeps or drops whole groups, so it is the same question as
``GROUP BY item HAVING item = 7``. Panes with that GROUP BY hold every value with its partials: they
are a set-valued index of the window (paper, 4), which answers for any of its values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from sqlglot import exp

from panes.axis import FOREVER
from panes.language.query import KEY, Query
from panes.planning.plan import Plan
from panes.sharing.needs import needed_by
from panes.sharing.shared_store import SharedStore

Stores: TypeAlias = Mapping[tuple[exp.Expression, ...], SharedStore]


def planned_question(query: Query, plan_of: Callable[[Query], Plan], stores: Stores) -> Plan:
    """The plan of a question: as it stands, or as a look-up if what that needs is stored longer."""
    planned, looked_up = plan_of(query), as_look_up(query)
    if looked_up is None:
        return planned
    other = plan_of(looked_up)
    return other if stored_since(other, stores) < stored_since(planned, stores) else planned


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
        if isinstance(key.expression, exp.Column) and not key.expression.table
    }
    columns = list(query.where.find_all(exp.Column))
    if not columns or any(c.table or c.name.lower() not in number for c in columns):
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


def stored_since(planned: Plan, stores: Stores) -> float:
    """From which position on panes hold all that a plan needs; infinity if they do not."""
    store = stores.get(planned.rows.expressions[: len(planned.query.keys)])
    if store is None:
        return math.inf
    needs = needed_by(store.needs.describe(planned))
    since = max(store.needs.known_from(need) for need in needs)
    return math.inf if since == FOREVER else since
