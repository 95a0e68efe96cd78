"""What a register on Spark refuses: of its streams, and of queries that share no panes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame

from panes.aggregates.custom import UserAggregate
from panes.errors import OptionError, QueryError, UnknownStreamError
from panes.language.join_query import JoinQuery
from panes.language.join_text import is_join, read_join
from panes.language.parse import parse
from panes.language.query import Query
from panes.language.query_graph import read_graph
from panes.nodes.status import status_columns
from panes.planning.terms import (
    StreamOptions,
    check_options,
    require_clock,
    require_lateness,
)
from panes.shards.shared_joins import SharedQuery
from panes.spark.bind import BoundQuery, bind
from panes.spark.join.bind import BoundJoin, bind_join
from panes.spark.join.stream import lies_on, terms_of
from panes.spark.refusals import require_not_of_process
from panes.spark.stream.query import require_hosted


def require_possible(streams: Mapping[str, DataFrame], run: StreamOptions) -> None:
    """Refuse streams and options that no register on Spark has."""
    for name, frame in streams.items():
        if not frame.isStreaming:
            raise QueryError(
                f"a register on Spark runs over streaming DataFrames, and `{name}` is bounded",
                hint="spark.readStream, and reg.start(..., bounded=True) to read it to its end",
            )
    if run.late == "revise":
        raise OptionError(
            "a register answers every window once, so late must be 'open' or 'drop'",
            hint="panes.sql(..., late='revise') for a query of its own",
        )
    require_not_of_process(run)


def require_single(text: str, aggregates: tuple[UserAggregate, ...]) -> None:
    """Refuse queries inside a query, whose states would stand one behind the other."""
    graph = read_graph(text, aggregates)
    if graph.names:
        raise QueryError(
            "a register on Spark takes no queries inside a query",
            hint="panes.sql answers it as a streaming query of its own, and panes.register in one "
            "process takes it",
        )
    _require_plain_streams(graph.asked)


def bind_alone(
    text: str,
    streams: Mapping[str, DataFrame],
    run: StreamOptions,
    aggregates: tuple[UserAggregate, ...],
) -> BoundQuery | BoundJoin:
    """A query bound to the streams that it reads, unless a register cannot answer it."""
    if is_join(text):
        return _bind_join(text, streams, run, aggregates)
    query = parse(text, aggregates)
    streams = _read_by(query, streams)
    _require_plain_streams(query)
    if query.window is None:
        raise QueryError(
            "a register answers windows, and this query has none",
            hint=f"FROM {query.streams[0]} [RANGE 10 minutes WATTR ts]",
        )
    bound = bind(query, streams, aggregates)
    plan = bound.plan
    require_lateness(run.lateness, plan.placing.kind)
    require_clock(run)
    require_hosted(plan)
    status_columns(plan, check_options(plan.query, run))
    return bound


def _bind_join(
    text: str,
    streams: Mapping[str, DataFrame],
    run: StreamOptions,
    aggregates: tuple[UserAggregate, ...],
) -> BoundJoin:
    if len(streams) == 1:
        [stream] = streams
        raise QueryError(
            f"a register of `{stream}` alone answers no joins, which need states of their own",
            hint='panes.register(("l", "r"), {"l": left, "r": right}) answers joins',
        )
    query = read_join(text, aggregates)
    streams = _read_by(query, streams)
    bound = bind_join(query, streams, aggregates, is_shared=True)
    closes = (run.lateness, run.punctuation, run.heartbeat)
    terms_of(bound, run if any(c is not None for c in closes) else replace(run, bounded=True))
    plan, found = bound.plan, bound.plan.aggregation
    _require_plain_streams(plan.query)
    if plan.query.emits_early:
        raise QueryError(
            "a register answers windows over a join once, so EMIT EARLY is not for it",
            hint="panes.sql answers a query of its own early",
        )
    if found is not None:
        lies_on(plan, found)
        windows = SharedQuery.of("", plan, bound.user).windows
        assert windows is not None
        require_hosted(windows)
    return bound


def _require_plain_streams(query: Query | JoinQuery) -> None:
    sources = query.join.sources if isinstance(query, JoinQuery) else (query,)
    if any(inner is not None for source in sources for inner in source.inner):
        raise QueryError(
            "a register on Spark takes streams as they are, no SELECT inside FROM",
            hint="select from the DataFrame before it is registered",
        )


def _read_by(query: Query | JoinQuery, streams: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """The streams that a query reads, also by the names of their later places."""
    again = dict(query.again)
    found = {}
    for name in query.streams:
        stream = again.get(name, name)
        if stream not in streams:
            if len(streams) > 1:
                raise UnknownStreamError(stream, streams=tuple(streams))
            [only] = streams
            raise QueryError(
                f"the query reads `{stream}`, and the register answers queries over `{only}`",
                hint=f"FROM {only} [RANGE ...]",
            )
        found[name] = streams[stream]
    return found
