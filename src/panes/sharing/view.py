"""The queries of a register as plain data, for whoever shows them: who shares what with whom.

Queries over one stream share stores of panes; where a register is of several, queries share joins,
which stand in their place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from panes.axis import Axis
from panes.planning.join_query_plan import JoinQueryPlan
from panes.progress.sliding_graph import Link, SlidingGroup
from panes.sharing.queries import Queries
from panes.windows.cut import Cut
from panes.windows.spec import Sliding


@dataclass(frozen=True, slots=True)
class RegisteredQuery:
    """One query: `store` and `shape` are numbers that queries share, None before the first batch.

    Queries that share nothing have neither. `spec` are windows over panes, `joined` is the plan of
    a query over a join, whose number is both its store and its shape.

    `pieces` is how many partials one of its answers is lowered from; `keys` how many columns its
    answers are grouped by.
    """

    name: str
    text: str
    spec: Sliding | None = None
    store: int | None = None
    shape: int | None = None
    pieces: int = 1
    keys: int = 0
    joined: JoinQueryPlan | None = None


@dataclass(frozen=True, slots=True)
class RegisterView:
    """All queries, the stores by what they group by, and the sliding graph.

    Where it is `of_joins`, stores are joins by their names, and there is no graph. `version` is the
    same as long as no query comes or goes or gets its store.
    """

    version: tuple[int, ...]
    streams: tuple[str, ...]
    axis: Axis | None
    queries: tuple[RegisteredQuery, ...]
    stores: tuple[str, ...]
    failed: Mapping[str, tuple[str, str]]
    groups: tuple[SlidingGroup, ...] = ()
    links: tuple[Link, ...] = ()
    cut: Cut | None = None
    of_joins: bool = False


def version_of(queries: Queries) -> tuple[int, ...]:
    """Changes when a query comes, goes, fails, or gets its store."""
    counts = (len(queries.asked), len(queries.homes), len(queries.failed))
    return (queries.numbers.last, *counts)


def view_of(queries: Queries) -> RegisterView:
    """What a register looks like now."""
    stores = {id(store): number for number, store in enumerate(queries.stores.values())}
    shapes = {id(shape): number for number, shape in enumerate(queries.shapes)}
    found = []
    for name, asked in queries.asked.items():
        home = queries.homes.get(name)
        found.append(
            RegisteredQuery(
                name,
                asked.text,
                asked.spec,
                None if home is None else stores[id(home[0])],
                None if home is None else shapes[id(home[1])],
                len(asked.query.calls) if home is None else max(1, len(home[1].wanted)),
                len(asked.query.keys),
            )
        )
    graph = queries.schedule.graph if queries.homes else None
    first = next(iter(queries.stores.values()), None)
    return RegisterView(
        version=version_of(queries),
        streams=(queries.stream,),
        axis=queries.axis,
        queries=tuple(found),
        stores=tuple(
            ", ".join(_plain(tree) for tree in store.keys) for store in queries.stores.values()
        ),
        groups=() if graph is None else tuple(graph.group(family) for family in graph.tree()),
        links=() if graph is None else tuple(graph.links()),
        failed={name: (f.text, f.reason) for name, f in queries.failed.items()},
        cut=None if first is None else first.chosen_cut().cut,
    )


def view_of_one(
    queries: Queries,
    texts: Mapping[str, str],
    failed: Mapping[str, tuple[str, str]],
    version: tuple[int, ...],
) -> RegisterView:
    """The same of a register that may have queries beside these; `texts` are those of all."""
    view = view_of(queries)
    shared = {query.name: query for query in view.queries}
    every = (shared.get(name) or RegisteredQuery(name, text) for name, text in texts.items())
    return replace(view, version=version, queries=tuple(every), failed=failed)


def view_of_joins(
    streams: Sequence[str],
    texts: Mapping[str, str],
    joined: Mapping[str, tuple[int, JoinQueryPlan]],
    failed: Mapping[str, tuple[str, str]],
    version: tuple[int, ...],
) -> RegisterView:
    """A register of several streams; those over joins with the number of the join, and the plan."""
    stores = {number: plan.join.name for number, plan in joined.values()}
    found = []
    for name, text in texts.items():
        number, plan = joined.get(name, (None, None))
        above = None if plan is None else plan.aggregation
        keys = 0 if above is None else len(above.query.shown_keys)
        found.append(RegisteredQuery(name, text, None, number, number, 1, keys, plan))
    return RegisterView(
        version=version,
        streams=tuple(streams),
        axis=next((query.joined.join.axis for query in found if query.joined is not None), None),
        queries=tuple(found),
        stores=tuple(stores[number] for number in sorted(stores)),
        failed=failed,
        of_joins=True,
    )


def _plain(tree: exp.Expression) -> str:
    """What is grouped by, as one would say it: a column by its name."""
    return tree.name if isinstance(tree, exp.Column) else tree.sql(dialect="spark")
