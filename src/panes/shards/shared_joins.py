"""The queries of a register over joins, as shards know them: which join each one shares.

Two queries share a join if they join the same sides by the same keys, band or windows and
conditions. Queries that differ in nothing but their names share all that is stored for them, too.
Every join and every such set of queries has a `key`: a few letters that name its part of a state,
and what is sent to it. A query with another text has another key, and begins anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.nodes.promised_answers import column_read
from panes.nodes.promised_columns import placed_by
from panes.planning.join_plan import JoinPlan, SourcePlan
from panes.planning.join_query_plan import AT, PAIRS, JoinQueryPlan
from panes.planning.plan import Plan, plan

Source: TypeAlias = "tuple[str, str | None]"
"""A stream, or the key of a part, and the column that orders its rows."""
_LETTERS = 16
EVERY_PART = " " * _LETTERS
"""The key of packages that say something of the sources of all parts."""


@dataclass(frozen=True, slots=True)
class SharedQuery:
    """One query over a join, and the plan of its windows above, if it has any.

    `twins` are the names of all queries that are the same; `name` is that of the first one. One
    that is `inner` is read by other parts, and `twins` are the queries that need it.
    """

    name: str
    plan: JoinQueryPlan
    windows: Plan | None
    key: str
    twins: tuple[str, ...] = ()
    inner: bool = False

    @classmethod
    def of(
        cls,
        name: str,
        asked: JoinQueryPlan,
        user: Sequence[UserAggregate] = (),
        key: str | None = None,
    ) -> SharedQuery:
        """A query by its name; its windows are planned over the rows of its join."""
        key = key or part_key(name, asked.query.text)
        if asked.aggregation is None:
            return cls(name, asked, None, key)
        found, axis = asked.aggregation, asked.join.axis.type
        numbers = found.by in ("window", "positions")
        position = [] if found.by in ("left", "right") else [(AT, pa.int64() if numbers else axis)]
        schema = pa.schema([*asked.join.schema(), *position])
        return cls(name, asked, plan(found.query, {PAIRS: schema}, user), key)

    @property
    def missed_key(self) -> str:
        """The key of packages that say what the query has missed."""
        return part_key("missed", self.key)

    def schema(self) -> pa.Schema:
        """The columns of the answers."""
        if self.windows is None:
            return self.plan.schema()
        schema = self.windows.schema()
        assert self.plan.aggregation is not None
        by = self.plan.aggregation.by
        if by == "positions":
            return pa.schema(list(schema)[2:])
        if by != "window":
            return schema
        edges = [pa.field(f.name, self.plan.join.axis.type) for f in list(schema)[:2]]
        return pa.schema([*edges, *list(schema)[2:]])


@dataclass(frozen=True, slots=True)
class SharedJoin:
    """A join, and the queries that share it; `parts` are those that it reads, by its names."""

    join: JoinPlan
    queries: tuple[SharedQuery, ...]
    key: str
    level: int = 1
    parts: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All queries that need it."""
        return tuple(dict.fromkeys(name for query in self.queries for name in query.twins))

    @property
    def sources(self) -> list[Source]:
        """What all sides read, in the order of its sources."""
        return [self.source(side, s) for side in self.join.sources for s in side.source.streams]

    def source(self, side: SourcePlan, name: str) -> Source:
        """What a side reads by a name, and the column that orders it there."""
        query = side.plan.query
        if name in self.parts:
            return self.parts[name], column_read(query, name)
        inner = query.inner[query.streams.index(name)]
        return dict(query.again).get(name, name), placed_by(inner, side.axis.column)


def shared_joins(
    queries: Mapping[str, JoinQueryPlan],
    user: Sequence[UserAggregate] = (),
    keys: Mapping[str, str] = {},
) -> tuple[SharedJoin, ...]:
    """The joins of some queries over streams, in the order in which they first occur.

    `keys` are those that queries have already; queries with one key are the same.
    """
    found = (SharedQuery.of(n, asked, user, keys.get(n)) for n, asked in queries.items())
    return sharing_joins((replace(one, twins=(one.name,)), 1, {}) for one in found)


def sharing_joins(
    queries: Iterable[tuple[SharedQuery, int, Mapping[str, str]]],
) -> tuple[SharedJoin, ...]:
    """The joins of some queries, each with the level and the parts that it reads."""
    by_join: dict[str, dict[str, SharedQuery]] = {}
    places: dict[str, tuple[int, Mapping[str, str]]] = {}
    for one, level, parts in queries:
        said = [str(one.plan.join.identity), *(f"{name}={parts[name]}" for name in sorted(parts))]
        key = part_key(*said)
        places[key] = level, parts
        same = by_join.setdefault(key, {})
        before = same.get(one.key)
        same[one.key] = one if before is None else replace(before, twins=before.twins + one.twins)
    return tuple(
        SharedJoin(sharing[0].plan.join, tuple(sharing), key, *places[key])
        for key, same in by_join.items()
        for sharing in [list(same.values())]
    )


def addressed(key: str, data: bytes) -> bytes:
    """A package for a join or a query."""
    return key.encode() + data


def address(package: bytes) -> tuple[str, bytes]:
    """For whom a package is, and what is in it."""
    return package[:_LETTERS].decode(), package[_LETTERS:]


def by_part(packages: Iterable[bytes]) -> dict[str, list[bytes]]:
    """What is in packages, by whom they are for."""
    found: dict[str, list[bytes]] = {}
    for package in packages:
        key, data = address(package)
        found.setdefault(key, []).append(data)
    return found


def part_key(*words: str) -> str:
    """The key of a part of a register, by what it is."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:_LETTERS]
