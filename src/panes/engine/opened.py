"""A query of any kind, opened on streams in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.engine.open_graph import OpenGraph
from panes.engine.open_join import OpenJoin
from panes.engine.open_query import OpenQuery
from panes.errors import OptionError, UnknownStreamError
from panes.language.join_query import JoinQuery
from panes.language.query_graph import read_graph
from panes.planning.terms import Run

Opened: TypeAlias = OpenQuery | OpenJoin | OpenGraph
"""A query of any kind while it runs in this process."""


def opened(
    text: str,
    run: Run,
    aggregates: Sequence[UserAggregate] = (),
    schema: pa.Schema | Mapping[str, pa.Schema] | None = None,
) -> Opened:
    """Open a query: over one stream or a union, over a join, or over answers of others inside."""
    graph = read_graph(text, aggregates)
    query, schemas = graph.asked, _by_stream(schema, graph.streams)
    if not graph.is_single:
        return OpenGraph(graph, run, aggregates=aggregates, schemas=schemas)
    if isinstance(query, JoinQuery):
        return OpenJoin(query, run, aggregates=aggregates, schemas=schemas)
    return OpenQuery(query, run, aggregates=aggregates, schemas=schemas)


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
