"""The queries of a register over joins, as shards know them: which join each one shares.

Two queries share a join if they join the same sides by the same keys, band or windows and
conditions. Every join and every query has a `key`: a few letters that name its part of a state, and
what is sent to it. A query with another text has another key, and begins anew.
"""

from __future__ import annotations

import hashlib
import pickle
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.planning.join_plan import JoinPlan
from panes.planning.join_query_plan import AT, PAIRS, JoinQueryPlan
from panes.planning.plan import Plan, plan
from panes.shards.recall import Recall

_LETTERS = 16
EVERY_JOIN = " " * _LETTERS
"""The key of packages that say something of the sources of all joins."""


@dataclass(frozen=True, slots=True)
class SharedQuery:
    """One query over a join, and the plan of its windows above, if it has any."""

    name: str
    plan: JoinQueryPlan
    windows: Plan | None
    key: str

    @classmethod
    def of(cls, name: str, asked: JoinQueryPlan, user: Sequence[UserAggregate] = ()) -> SharedQuery:
        """A query by its name; its windows are planned over the rows of its join."""
        key = _key(name, asked.query.text)
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
        return _key("missed", self.key)

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
    queries: Mapping[str, JoinQueryPlan], user: Sequence[UserAggregate] = ()
) -> tuple[SharedJoin, ...]:
    """The joins of some queries, in the order in which they first occur."""
    by_join: dict[object, list[SharedQuery]] = {}
    for name, asked in queries.items():
        by_join.setdefault(asked.join.identity, []).append(SharedQuery.of(name, asked, user))
    return tuple(
        SharedJoin(sharing[0].plan.join, tuple(sharing), _key(str(identity)))
        for identity, sharing in by_join.items()
    )


@dataclass(frozen=True, slots=True)
class SentJoins:
    """Shared joins as other processes get them.

    They go with a job's functions, as these do, and are never stored: states are Arrow.
    Compressed: Spark sends what is larger than a megabyte in a way that its stateful processors
    cannot read.
    """

    data: bytes

    @classmethod
    def of(cls, joins: Iterable[SharedJoin], dumps: Callable[[object], bytes]) -> SentJoins:
        """Joins, to be sent as the host sends objects: a user's functions may be among them."""
        return cls(zlib.compress(dumps(tuple(joins))))

    def joins(self) -> tuple[SharedJoin, ...]:
        """The joins, which this process remembers."""
        found = RECALL.get(self.data)
        if found is None:
            found = pickle.loads(zlib.decompress(self.data))
            RECALL.put(self.data, found, len(self.data))
        return found


RECALL: Recall[tuple[SharedJoin, ...]] = Recall()
"""Joins that this process has been sent lately."""


def addressed(key: str, data: bytes) -> bytes:
    """A package for a join or a query."""
    return key.encode() + data


def address(package: bytes) -> tuple[str, bytes]:
    """For whom a package is, and what is in it."""
    return package[:_LETTERS].decode(), package[_LETTERS:]


def _key(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:_LETTERS]
