"""The queries of a register over joins, as shards know them: which join each one shares.

Two queries share a join if they join the same sides by the same keys, band or windows and
conditions. Queries that differ in nothing but their names share all that is stored for them, too.
Every join and every such set of queries has a `key`: a few letters that name its part of a state,
and what is sent to it. A query with another text has another key, and begins anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.planning.join_plan import JoinPlan
from panes.planning.join_query_plan import AT, PAIRS, JoinQueryPlan
from panes.planning.plan import Plan, plan

_LETTERS = 16
EVERY_PART = " " * _LETTERS
"""The key of packages that say something of the sources of all parts."""


@dataclass(frozen=True, slots=True)
class SharedQuery:
    """One query over a join, and the plan of its windows above, if it has any.

    `twins` are the names of all queries that are the same; `name` is that of the first one.
    """

    name: str
    plan: JoinQueryPlan
    windows: Plan | None
    key: str
    twins: tuple[str, ...] = ()

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
    """A join, and the queries that share it."""

    join: JoinPlan
    queries: tuple[SharedQuery, ...]
    key: str


def shared_joins(
    queries: Mapping[str, JoinQueryPlan],
    user: Sequence[UserAggregate] = (),
    keys: Mapping[str, str] = {},
) -> tuple[SharedJoin, ...]:
    """The joins of some queries, in the order in which they first occur.

    `keys` are those that queries have already; queries with one key are the same.
    """
    by_join: dict[object, dict[str, SharedQuery]] = {}
    for name, asked in queries.items():
        same = by_join.setdefault(asked.join.identity, {})
        one = SharedQuery.of(name, asked, user, keys.get(name))
        first = same.setdefault(one.key, one)
        same[one.key] = replace(first, twins=(*first.twins, name))
    return tuple(
        SharedJoin(sharing[0].plan.join, tuple(sharing), part_key(str(identity)))
        for identity, same in by_join.items()
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
