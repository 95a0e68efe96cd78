"""A register on Spark as text and as plain data, for whoever shows it."""

from __future__ import annotations

from collections.abc import Iterator

from panes.planning.describe import describe, line
from panes.planning.explain_join import explain_join
from panes.sharing.explain import explain_keep, explain_stores
from panes.sharing.view import RegisterView, view_of_joins, view_of_one
from panes.spark.bind import BoundQuery
from panes.spark.join.bind import BoundJoin
from panes.spark.register.planned_parts import joins_of, parts_of
from panes.spark.register.registered_queries import RegisteredQueries


def view_of_registered(registered: RegisteredQueries) -> RegisterView:
    """Which queries there are and what they share: panes, or joins where there may be some."""
    failed = {name: (one.text, one.reason) for name, one in registered.failed.items()}
    texts, version = registered.texts(), registered.changes
    if len(registered.streams) == 1:
        [queries] = registered.windows.values()
        return view_of_one(queries, texts, failed, version)
    numbers: dict[object, int] = {}
    joined = {}
    for name in texts:
        bound = registered.alone[name].bound if name in registered.alone else None
        if isinstance(bound, BoundJoin):
            number = numbers.setdefault(bound.plan.join.identity, len(numbers))
            joined[name] = number, bound.plan
    return view_of_joins(tuple(registered.streams), texts, joined, failed, version)


def explain_registered(registered: RegisteredQueries, *, details: bool) -> str:
    """What queries share, stream by stream, those that share no panes, and joins."""
    return "\n".join(_parts(registered, details=details))


def _parts(registered: RegisteredQueries, *, details: bool) -> Iterator[str]:
    for stream, queries in registered.windows.items():
        kept = [] if queries.keep is None else [explain_keep(queries.keep, queries.axis)]
        if queries.stores or kept or len(registered.streams) == 1:
            yield explain_stores(stream, list(queries.stores.values()), kept, details=details)
    for part, names in parts_of(registered, BoundQuery):
        assert isinstance(part.bound, BoundQuery)
        plan = part.plan or part.bound.plan
        read = " + ".join(part.parts.get(name, name) for name in plan.query.streams)
        said = f"{describe(plan.window)}, over {read}, with a state of its own"
        title = f"{part.key}, which is read by {', '.join(names)}" if part.inner else names[0]
        yield line("part" if part.inner else "query", title) + "\n" + line("window", said) + "\n"
    for shared in joins_of(registered):
        names = tuple(name for query in shared.queries for name in query.twins)
        first = shared.queries[0].plan
        yield f"queries    {', '.join(dict.fromkeys(names))}\n" + explain_join(
            first, details=details
        )
