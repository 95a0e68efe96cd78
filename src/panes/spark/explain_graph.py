"""How a query with queries inside runs over streams on Spark, as text: its nodes with a state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import DataFrame

from panes.language.join_query import JoinQuery
from panes.language.query import Query
from panes.language.query_graph import Part, QueryGraph
from panes.planning.describe import line


def nodes_of(graph: QueryGraph, streams: Mapping[str, DataFrame]) -> str:
    """A line for each node, inner ones first; nothing for bounded DataFrames, which have none."""
    if not any(frame.isStreaming for frame in streams.values()):
        return ""
    lines = [line("spark", "one streaming query; each of these is a shuffle and a state:")]
    lines += [line("", said) for part in graph.parts for said in _said(graph, part)]
    return "\n".join(lines) + "\n"


def _said(graph: QueryGraph, part: Part) -> Iterator[str]:
    query, again = part.query, graph.again
    for name in _different(query):
        yield f"the different rows of {again.get(name, name)}"
    read = " and ".join(dict.fromkeys(again.get(name, name) for name in query.streams))
    what = f"a join of {read}" if isinstance(query, JoinQuery) else f"windows over {read}"
    places = [again.get(name, name) for p in graph.parts for name in p.query.streams]
    times = places.count(part.name)
    often = f"; {times} times, once for each place that reads it" if times > 1 else ""
    yield f"{part.name or 'asked'}: {what}{often}"


def _different(query: Query | JoinQuery) -> Iterator[str]:
    """The streams of which FROM takes each row once."""
    for source in query.join.sources if isinstance(query, JoinQuery) else (query,):
        for name, inner in zip(source.streams, source.inner, strict=False):
            if inner is not None and inner.distinct:
                yield name
