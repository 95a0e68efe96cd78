"""The queries of a register as a page shows them, whoever hosts it.

Of many queries the first few are shown, or those that hold a text somebody looks for; the same of
the groups of the sliding graph. Where a register over one stream shares panes, one over several
shares joins: they stand in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from panes.axis import format_duration
from panes.live.snapshot import AxisShown, GroupShown, QueryShown, RegisterShown
from panes.planning.join_query_plan import JoinQueryPlan
from panes.sharing.view import RegisteredQuery, RegisterView
from panes.windows.spec import Sliding

MOST_QUERIES = 60
MOST_GROUPS = 60
MOST_TEXT = 400


CostOf: TypeAlias = Callable[[RegisteredQuery], int]


def in_partials(given: Mapping[str, int]) -> CostOf:
    """The cost of a query in the partials that the answers it was `given` were made of."""
    return lambda query: given.get(query.name, 0) * query.pieces


def as_counted(counts: Mapping[str, int]) -> CostOf:
    """The cost of a query as it was counted by its name."""
    return lambda query: counts.get(query.name, 0)


def by_cost(view: RegisterView, cost_of: CostOf) -> list[RegisteredQuery]:
    """All queries, the costliest first."""
    return sorted(view.queries, key=lambda query: (-cost_of(query), query.name))


def register_shown(
    view: RegisterView,
    ordered: Sequence[RegisteredQuery],
    given: Mapping[str, int],
    cost_of: CostOf,
    find: str = "",
    *,
    cost: str,
    can_edit: bool = False,
) -> RegisterShown:
    """Queries in an order, how many answers each was `given`, and what `cost` says it took."""
    found = [q for q in ordered if _holds(q, find)] if find else ordered
    queries = [
        QueryShown(
            name=q.name,
            text=_short(q.text),
            window=_window_words(view, q),
            store="" if q.store is None else view.stores[q.store],
            shape=-1 if q.shape is None else q.shape,
            answers=given.get(q.name, 0),
            cost=cost_of(q),
        )
        for q in found[:MOST_QUERIES]
    ]
    failed = [
        QueryShown(name, _short(text), "", "", -1, 0, 0, failed=reason)
        for name, (text, reason) in list(view.failed.items())[:MOST_QUERIES]
    ]
    shapes = len({q.shape for q in view.queries if q.shape is not None})
    panes = f"{so_many(shapes, 'shape')} over {so_many(len(view.stores), 'store')} of panes"
    return RegisterShown(
        cost=cost,
        shares=so_many(shapes, "join") if view.of_joins else panes,
        of_joins=view.of_joins,
        queries=[*failed, *queries],
        total=len(view.queries) + len(view.failed),
        found=len(found),
        stores=view.stores[:MOST_QUERIES],
        shapes=shapes,
        groups=_groups(view),
        groups_total=len(view.groups),
        can_edit=can_edit,
    )


def register_text(view: RegisterView) -> str:
    """What the page says below its title."""
    over = ", ".join(view.streams)
    joins = "joins of " if view.of_joins else ""
    return f"{so_many(len(view.queries), 'query', 'queries')} over {joins}{over}"


def keys_of(queries: Sequence[RegisteredQuery]) -> dict[str, int]:
    """How many columns the answers of each query are grouped by."""
    return {query.name: query.keys for query in queries}


def so_many(count: int, what: str, whats: str = "") -> str:
    """A number and what it counts.

    >>> so_many(1, "store"), so_many(1_200, "store"), so_many(2, "query", "queries")
    ('1 store', '1,200 stores', '2 queries')
    """
    return f"{count:,} {what if count == 1 else whats or f'{what}s'}"


def specs_of(queries: Sequence[RegisteredQuery]) -> dict[str, Sliding]:
    """The windows of queries, by the name of the first that has them."""
    named: dict[Sliding, str] = {}
    for query in queries:
        if query.spec is not None:
            named.setdefault(query.spec, query.name)
    return {name: spec for spec, name in named.items()}


def _holds(query: RegisteredQuery, find: str) -> bool:
    wanted = find.lower()
    return wanted in query.name.lower() or wanted in query.text.lower()


def axis_shown(view: RegisterView) -> AxisShown:
    """What the positions of a register mean."""
    return AxisShown() if view.axis is None else AxisShown(view.axis.kind, view.axis.column)


def _length(view: RegisterView, ticks: int) -> str:
    is_time = view.axis is None or view.axis.kind == "time"
    return format_duration(ticks) if is_time else f"{ticks:,}"


def _window_words(view: RegisterView, query: RegisteredQuery) -> str:
    """What the answers of a query are of."""
    if view.of_joins:
        return _joined_words(view, query.joined)
    return "" if query.spec is None else _sliding_words(view, query.spec)


def _sliding_words(view: RegisterView, spec: Sliding) -> str:
    size, slide = _length(view, spec.size), _length(view, spec.slide)
    return size if size == slide else f"{size} every {slide}"


def _joined_words(view: RegisterView, plan: JoinQueryPlan | None) -> str:
    if plan is None:
        return "waits for its streams"
    found = plan.aggregation
    if found is None:
        return "joined rows"
    if found.fold is not None or found.by == "positions":
        return "a group as soon as it is complete"
    spec = plan.join.windows if found.by == "window" else getattr(found.query.window, "spec", None)
    return _sliding_words(view, spec) if isinstance(spec, Sliding) else "windows over joined rows"


def _short(text: str) -> str:
    return " ".join(text.split())[:MOST_TEXT]


def _groups(view: RegisterView) -> Sequence[GroupShown]:
    """The sliding graph, a parent always before its children, as far as it can be drawn."""
    groups = view.groups[:MOST_GROUPS]
    number = {group.family: i for i, group in enumerate(groups)}
    parents: dict[int, list[int]] = {i: [] for i in range(len(groups))}
    for link in view.links:
        if link.child in number and link.parent in number:
            parents[number[link.child]].append(number[link.parent])
    return [
        GroupShown(
            label=_length(view, group.family.slide)
            + (f" from {_length(view, group.family.phase)}" if group.family.phase else ""),
            queries=len(group.queries),
            names=group.queries[:5],
            parents=parents[i],
        )
        for i, group in enumerate(groups)
    ]
