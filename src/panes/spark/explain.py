"""How a query runs on Spark, as text: what Spark is asked to do, beside the plan as everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import DataFrame

from panes.aggregates.custom import UserAggregate
from panes.axis import format_duration
from panes.language.join_query import JoinQuery
from panes.language.query import Query
from panes.language.query_graph import Part, QueryGraph
from panes.planning.describe import line
from panes.planning.explain_join import explain_join
from panes.planning.join_plan import JoinPlan
from panes.shards.join_keys import shard_keys
from panes.spark.join.bind import bind_join
from panes.windows.partners import Band


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


def explain_join_on_spark(
    query: JoinQuery,
    streams: Mapping[str, DataFrame],
    user: Sequence[UserAggregate],
    *,
    details: bool = False,
) -> str:
    """The plan of a query over a join of DataFrames, a line for each decision."""
    bound = bind_join(query, streams, user)
    lines = (_stream_lines if bound.is_streaming else _batch_lines)(bound.plan.join)
    return explain_join(bound.plan, details=details) + "\n".join(lines) + "\n"


def _batch_lines(join: JoinPlan) -> Iterator[str]:
    """What bounded DataFrames are joined by."""
    if isinstance(join.left, JoinPlan):
        yield from _batch_lines(join.left)
    is_key = "part of the key" if join.key_types else "the key"
    if not isinstance(join.partners, Band):
        yield line("spark", f"both sides once for each window, whose number is {is_key}")
        return
    if join.partners.is_open:
        yield line("spark", "the band is open to one side: all rows of a key meet")
        return
    width = max(join.partners.width, 1)
    length = format_duration(width) if join.axis.kind == "time" else str(width)
    part = f"buckets of {length} are {is_key}"
    if join.as_of:
        how = "all candidates" if join.rest is not None else "both sides in one order"
        yield line("spark", f"{part}; the last row of {join.right.name} among {how}")
        return
    repeated = {"right": join.left.name, "full": "either side"}.get(join.how, join.right.name)
    yield line("spark", f"{part}; rows of {repeated} are in the two that they can reach")


def _stream_lines(join: JoinPlan) -> Iterator[str]:
    """Where the rows of streams meet."""
    keys = shard_keys(join)
    if not keys[0]:
        why = "the joins have no key in common" if len(keys) > 2 else "the join has no keys"
        yield line("spark", f"all rows go to one shard: {why}")
        return
    sides = [[tree.name or tree.sql(dialect="spark") for tree in k.keys.expressions] for k in keys]
    equal = ", ".join(" = ".join(same) for same in zip(*sides, strict=True))
    yield line("spark", f"rows go to the shard of their key, {equal}")
