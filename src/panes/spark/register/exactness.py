"""From where a query of a register on Spark is exact, as the last batch left its state."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.axis import BEGINNING
from panes.errors import QueryError
from panes.shards.exactness import (
    alone_exact_from,
    join_exact_from,
    label,
    what_was_missed,
)
from panes.shards.many_states import LEDGER
from panes.shards.missed_queries import MissedQueries
from panes.shards.parts_shard import PARTS
from panes.shards.register_parts import ALL_STATE
from panes.shards.register_state import begin_after
from panes.shards.state import ABOUT
from panes.spark.join.bind import BoundJoin
from panes.spark.register.ask import as_of_now, read_state
from panes.spark.register.planned_parts import PlannedParts
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
    of_levels = _missed(registered, session, checkpoint)
    if not of_levels:
        return None
    part = asked.parts[-1]
    missed = next((one for one in of_levels if not one.is_new(part.key)), None)
    if missed is None and part.level > 1:
        raise QueryError(f"from where `{name}` is exact is known once it has had a batch")
    parts = PlannedParts.of(registered.copied(), 1, bounded=True, rows=False).parts
    if not isinstance(part.bound, BoundJoin):
        query = next(one for one in parts.alone if one.key == part.key)
        return alone_exact_from(query, missed or of_levels[-1])
    queries = {query.key: (shared, query) for shared in parts.joins for query in shared.queries}
    return join_exact_from(*queries[part.key], missed or of_levels[-1])


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
            for missed in _missed(registered, session, checkpoint)[-1:]:
                [after] = missed.upto(key, [[(stream, axis.column)]])
                begin_after(queries, after)
    at, axis = queries.exact_from[name], queries.axis
    return None if at is None or axis is None else label(axis, at)


def _missed(
    registered: RegisteredQueries, session: SparkSession, checkpoint: str
) -> list[MissedQueries]:
    """What parts have missed, as any shard remembers it: all of a level remember the same.

    The last one is that of the first level.
    """
    state = read_state(session, checkpoint)
    if state is None:
        return []
    keys = {stream: registered.windows_key(stream) for stream in registered.windows}
    names = [LEDGER, *(f"{key}/{ABOUT}" for key in keys.values()), ABOUT]
    wanted = F.col("name").isin(names) | F.col("name").startswith(f"{PARTS}/")
    found: dict[int, dict[int, dict[str, bytes]]] = {}
    for row in state.where(wanted).collect():
        shards = found.setdefault(row.level, {})
        shards.setdefault(row.shard, {})[row.name] = bytes(row.data)
    columns = _columns(registered, keys)
    return [
        what_was_missed(columns, max(found[level].values(), key=len)) for level in sorted(found)
    ]


def _columns(registered: RegisteredQueries, keys: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The stream and the column of all windows that share panes, by their key."""
    axes = {stream: queries.axis for stream, queries in registered.windows.items()}
    return {keys[s]: (s, axis.column or "") for s, axis in axes.items() if axis is not None}
