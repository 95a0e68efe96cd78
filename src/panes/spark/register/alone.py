"""What a register on Spark refuses: of its streams, and of queries that share no panes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame

from panes.aggregates.custom import UserAggregate
from panes.errors import OptionError, QueryError, UnknownStreamError
from panes.language.join_query import JoinQuery
from panes.language.query import Inner, Query
from panes.language.query_graph import QueryGraph
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


def bound_windows(
    query: Query,
    frames: Mapping[str, DataFrame],
    run: StreamOptions,
    aggregates: tuple[UserAggregate, ...],
) -> BoundQuery:
    """Windows bound to what they read, unless a register cannot answer them."""
    if query.window is None:
        raise QueryError(
            "a register answers windows, and this query has none",
            hint=f"FROM {query.streams[0]} [RANGE 10 minutes WATTR ts]",
        )
    bound = bind(query, frames, aggregates)
    plan = bound.plan
    require_lateness(run.lateness, plan.placing.kind)
    require_clock(run)
    require_hosted(plan)
    status_columns(plan, check_options(plan.query, run))
    return bound


def bound_join(
    query: JoinQuery,
    frames: Mapping[str, DataFrame],
    run: StreamOptions,
    aggregates: tuple[UserAggregate, ...],
) -> BoundJoin:
    """A query over a join bound to what it reads, unless a register cannot answer it."""
    bound = bind_join(query, frames, aggregates, is_shared=True)
    closes = (run.lateness, run.punctuation, run.heartbeat)
    terms_of(bound, run if any(c is not None for c in closes) else replace(run, bounded=True))
    plan, found = bound.plan, bound.plan.aggregation
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


def selects_of(query: Query | JoinQuery) -> dict[str, Inner | None]:
    """What stands inside FROM at each place, where there is any SELECT."""
    sources = query.join.sources if isinstance(query, JoinQuery) else (query,)
    found: dict[str, Inner | None] = {}
    for source in sources:
        if any(source.inner):
            found |= zip(source.streams, source.inner, strict=True)
    return found


def frames_read(graph: QueryGraph, streams: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """The streams that a query reads; one that is none of a register's is refused."""
    for stream in graph.streams:
        if stream not in streams:
            if len(streams) > 1:
                raise UnknownStreamError(stream, streams=tuple(streams))
            [only] = streams
            raise QueryError(
                f"the query reads `{stream}`, and the register answers queries over `{only}`",
                hint=f"FROM {only} [RANGE ...]",
            )
    return {name: streams[name] for name in graph.streams}
