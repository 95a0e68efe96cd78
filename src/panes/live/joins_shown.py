"""The queries of a register over joins as a page shows them, whoever hosts it.

Where a register over one stream shares panes, this one shares joins: they stand in their place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from panes.axis import Axis, format_duration
from panes.live.register_shown import MOST_QUERIES, MOST_TEXT, so_many
from panes.live.snapshot import AxisShown, QueryShown, RegisterShown
from panes.planning.join_query_plan import JoinQueryPlan
from panes.sharing.join_view import JoinedQuery, JoinsView
from panes.windows.spec import Sliding


def joins_shown(
    view: JoinsView,
    ordered: Sequence[JoinedQuery],
    given: Mapping[str, int],
    costs: Mapping[str, int],
    find: str = "",
    *,
    cost: str,
    can_edit: bool = False,
) -> RegisterShown:
    """Queries in an order, how many answers each was `given`, and what `cost` says it took."""
    wanted = find.lower()
    found = [q for q in ordered if wanted in q.name.lower() or wanted in q.text.lower()]
    queries = [
        QueryShown(
            name=q.name,
            text=_short(q.text),
            window=_window_words(q.plan),
            store="" if q.plan is None else q.plan.join.name,
            shape=-1 if q.join is None else q.join,
            answers=given.get(q.name, 0),
            cost=costs.get(q.name, 0),
        )
        for q in found[:MOST_QUERIES]
    ]
    failed = [
        QueryShown(name, _short(text), "", "", -1, 0, 0, failed=reason)
        for name, (text, reason) in list(view.failed.items())[:MOST_QUERIES]
    ]
    joins = {q.join: q.plan.join.name for q in view.queries if q.plan is not None}
    return RegisterShown(
        cost=cost,
        shares=so_many(len(joins), "join"),
        of_joins=True,
        queries=[*failed, *queries],
        total=len(view.queries) + len(view.failed),
        found=len(found),
        stores=list(joins.values())[:MOST_QUERIES],
        shapes=len(joins),
        can_edit=can_edit,
    )


def joins_axis(view: JoinsView) -> AxisShown:
    """What the positions of the joined streams mean: those of the first that is known."""
    plan = next((q.plan for q in view.queries if q.plan is not None), None)
    return AxisShown() if plan is None else AxisShown(plan.join.axis.kind, plan.join.axis.column)


def joins_text(view: JoinsView) -> str:
    """What the page says below its title."""
    return f"{so_many(len(view.queries), 'query', 'queries')} over joins of " + ", ".join(
        view.streams
    )


def _window_words(plan: JoinQueryPlan | None) -> str:
    """What the answers of a query are of."""
    if plan is None:
        return "waits for its streams"
    found = plan.aggregation
    if found is None:
        return "joined rows"
    if found.fold is not None or found.by == "positions":
        return "a group as soon as it is complete"
    spec = plan.join.windows if found.by == "window" else getattr(found.query.window, "spec", None)
    if not isinstance(spec, Sliding):
        return "windows over joined rows"
    size, slide = (_length(plan.join.axis, ticks) for ticks in (spec.size, spec.slide))
    return size if size == slide else f"{size} every {slide}"


def _length(axis: Axis, ticks: int) -> str:
    return format_duration(ticks) if axis.kind == "time" else f"{ticks:,}"


def _short(text: str) -> str:
    return " ".join(text.split())[:MOST_TEXT]
