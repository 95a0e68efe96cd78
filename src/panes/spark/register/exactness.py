"""From where a query of a register on Spark is exact, as the last batch left its state."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.axis import BEGINNING
from panes.planning.terms import CheckedOptions
from panes.shards.exactness import (
    alone_exact_from,
    join_exact_from,
    label,
    what_was_missed,
)
from panes.shards.many_states import LEDGER
from panes.shards.missed_queries import MissedQueries
from panes.shards.parts_shard import PARTS
from panes.shards.register_parts import ALL_STATE, AloneQuery
from panes.shards.register_state import begin_after
from panes.shards.shared_joins import shared_joins
from panes.shards.state import ABOUT
from panes.spark.join.bind import BoundJoin
from panes.spark.register.ask import as_of_now, read_state
from panes.spark.register.registered_queries import RegisteredQueries


def exact_from(
    registered: RegisteredQueries, name: str, session: SparkSession, checkpoint: str | None
) -> object | None:
    """Where the first answered window of a query starts; None: at the stream's beginning."""
    asked = registered.alone.get(name)
    if asked is None:
        return _of_shared(registered, name, session, checkpoint)
    if checkpoint is None:
        return None
    missed = _missed(registered, session, checkpoint)
    if missed is None:
        return None
    if not isinstance(asked.bound, BoundJoin):
        part = AloneQuery(asked.key, name, asked.bound.plan, CheckedOptions())
        return alone_exact_from(part, missed)
    plans, keys = {name: asked.bound.plan}, {name: asked.key}
    [shared] = shared_joins(plans, registered.aggregates, keys)
    return join_exact_from(shared, shared.queries[0], missed)


def _of_shared(
    registered: RegisteredQueries, name: str, session: SparkSession, checkpoint: str | None
) -> object | None:
    [(stream, queries)] = [(s, q) for s, q in registered.windows.items() if name in q.asked]
    if checkpoint is not None:
        key = registered.windows_key(stream)
        state = read_state(session, checkpoint, key)
        queries = as_of_now(state, queries)
        axis = queries.axis
        if key != ALL_STATE and axis is not None and queries.newest == BEGINNING:
            missed = _missed(registered, session, checkpoint)
            if missed is not None:
                [after] = missed.upto(key, [[(stream, axis.column)]])
                begin_after(queries, after)
    at, axis = queries.exact_from[name], queries.axis
    return None if at is None or axis is None else label(axis, at)


def _missed(
    registered: RegisteredQueries, session: SparkSession, checkpoint: str
) -> MissedQueries | None:
    """What parts have missed, as any shard remembers it: all remember the same."""
    state = read_state(session, checkpoint)
    if state is None:
        return None
    keys = {stream: registered.windows_key(stream) for stream in registered.windows}
    names = [LEDGER, *(f"{key}/{ABOUT}" for key in keys.values()), ABOUT]
    wanted = F.col("name").isin(names) | F.col("name").startswith(f"{PARTS}/")
    found: dict[int, dict[str, bytes]] = {}
    for row in state.where(wanted).collect():
        found.setdefault(row.shard, {})[row.name] = bytes(row.data)
    blobs = max(found.values(), key=len, default={})
    return what_was_missed(_columns(registered, keys), blobs)


def _columns(registered: RegisteredQueries, keys: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The stream and the column of all windows that share panes, by their key."""
    axes = {stream: queries.axis for stream, queries in registered.windows.items()}
    return {keys[s]: (s, axis.column or "") for s, axis in axes.items() if axis is not None}
