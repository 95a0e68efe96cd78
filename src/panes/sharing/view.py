"""The queries of a register as plain data, for whoever shows them: who shares what with whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from panes.axis import Axis
from panes.progress.sliding_graph import Link, SlidingGroup
from panes.sharing.queries import Queries
from panes.windows.cut import Cut
from panes.windows.spec import Sliding


@dataclass(frozen=True, slots=True)
class RegisteredQuery:
    """One query: `store` and `shape` are numbers that queries share, None before the first batch.

    Queries that share no panes have neither, and no `spec`.

    `pieces` is how many partials one of its answers is lowered from; `keys` how many columns its
    answers are grouped by.
    """

    name: str
    text: str
    spec: Sliding | None
    store: int | None
    shape: int | None
    pieces: int
    keys: int


@dataclass(frozen=True, slots=True)
class RegisterView:
    """All queries, the stores by what they group by, and the sliding graph.

    `version` is the same as long as no query comes or goes or gets its store.
    """

    version: tuple[int, ...]
    stream: str
    axis: Axis | None
    queries: tuple[RegisteredQuery, ...]
    stores: tuple[str, ...]
    groups: tuple[SlidingGroup, ...]
    links: tuple[Link, ...]
    failed: Mapping[str, tuple[str, str]]
    cut: Cut | None


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
        stream=queries.stream,
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
    queries: Queries, texts: Mapping[str, str], failed: Mapping[str, tuple[str, str]]
) -> RegisterView:
    """The same of a register that has other queries beside these; `texts` are those of all."""
    view = view_of(queries)
    beside = (
        RegisteredQuery(name, text, None, None, None, 1, 0)
        for name, text in texts.items()
        if name not in queries.asked
    )
    return replace(view, queries=(*view.queries, *beside), failed=failed)


def _plain(tree: exp.Expression) -> str:
    """What is grouped by, as one would say it: a column by its name."""
    return tree.name if isinstance(tree, exp.Column) else tree.sql(dialect="spark")
