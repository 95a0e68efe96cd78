"""A query of any kind, opened on streams in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.errors import OptionError, UnknownStreamError
from panes.language.join_query import JoinQuery
from panes.language.query_graph import read_graph
from panes.planning.terms import StreamOptions
from panes.process.keeper import keep, said_of
from panes.process.running_query import OpenGraph, OpenJoin, OpenQuery, RunningQuery


def opened(
    text: str,
    run: StreamOptions,
    aggregates: Sequence[UserAggregate] = (),
    schema: pa.Schema | Mapping[str, pa.Schema] | None = None,
    *,
    state: str | Path | None = None,
    checkpoint_every: int = 1,
) -> RunningQuery:
    """Open a query: over one stream or a union, over a join, or over answers of others inside.

    With a `state`, it is kept in that folder, and goes on where the folder ends.
    """
    graph = read_graph(text, aggregates)
    kind = OpenJoin if isinstance(graph.asked, JoinQuery) else OpenQuery
    query = (kind if graph.is_single else OpenGraph)(
        graph, run, aggregates=aggregates, schemas=_by_stream(schema, graph.streams)
    )
    said = said_of(type(query).__name__, {"query": text}, run, aggregates)
    keep(query, state, checkpoint_every, said)
    return query


def _by_stream(
    schema: pa.Schema | Mapping[str, pa.Schema] | None, streams: Sequence[str]
) -> dict[str, pa.Schema]:
    """What is said of the columns of each stream."""
    said = {streams[0]: schema} if isinstance(schema, pa.Schema) else dict(schema or {})
    if isinstance(schema, pa.Schema) and len(streams) > 1:
        raise OptionError(
            f"the query reads {len(streams)} streams, and schema is for one",
            hint=f"say whose it is: schema={{{streams[0]!r}: ...}}",
        )
    for name, one in said.items():
        if name not in streams:
            raise UnknownStreamError(name, streams=streams)
        if not isinstance(one, pa.Schema):
            raise OptionError(f"schema is a pyarrow Schema, got {type(one).__name__}")
    return said
