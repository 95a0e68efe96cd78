"""The queries of a register as a page shows them, whoever hosts it.

Of many queries the first few are shown, or those that hold a text somebody looks for; the same of
the groups of the sliding graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from panes.axis import format_duration
from panes.live.snapshot import AxisShown, GroupShown, QueryShown, RegisterShown
from panes.sharing.join_view import JoinedQuery
from panes.sharing.view import RegisteredQuery, RegisterView
from panes.windows.spec import Sliding

MOST_QUERIES = 60
MOST_GROUPS = 60
MOST_TEXT = 400


COST = "partials that its answers were made of"


def cost_of(query: RegisteredQuery, given: Mapping[str, int]) -> int:
    """What the answers of a query took: so many partials."""
    return given.get(query.name, 0) * query.pieces


def register_shown(
    view: RegisterView,
    ordered: Sequence[RegisteredQuery],
    given: Mapping[str, int],
    find: str = "",
    *,
    can_edit: bool = False,
    cost: str = COST,
) -> RegisterShown:
    """Queries in an order, and how many answers each of them was `given`.

    `cost` says what the cost of a query is.
    """
    found = [q for q in ordered if _holds(q, find)] if find else ordered
    queries = [
        QueryShown(
            name=q.name,
            text=" ".join(q.text.split())[:MOST_TEXT],
            window=_window_words(view, q.spec),
            store="" if q.store is None else view.stores[q.store],
            shape=-1 if q.shape is None else q.shape,
            answers=given.get(q.name, 0),
            cost=cost_of(q, given),
        )
        for q in found[:MOST_QUERIES]
    ]
    failed = [
        QueryShown(name, text[:MOST_TEXT], "", "", -1, 0, 0, failed=reason)
        for name, (text, reason) in list(view.failed.items())[:MOST_QUERIES]
    ]
    shapes = len({q.shape for q in view.queries if q.shape is not None})
    return RegisterShown(
        cost=cost,
        shares=f"{so_many(shapes, 'shape')} over {so_many(len(view.stores), 'store')} of panes",
        queries=[*failed, *queries],
        total=len(view.queries) + len(view.failed),
        found=len(found),
        stores=view.stores,
        shapes=shapes,
        groups=_groups(view),
        groups_total=len(view.groups),
        can_edit=can_edit,
    )


def keys_of(queries: Sequence[RegisteredQuery | JoinedQuery]) -> dict[str, int]:
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


def _window_words(view: RegisterView, spec: Sliding | None) -> str:
    if spec is None:
        return ""
    size, slide = _length(view, spec.size), _length(view, spec.slide)
    return size if size == slide else f"{size} every {slide}"


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
