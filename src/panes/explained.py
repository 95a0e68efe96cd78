"""A query explained, whatever it is over: what is read of it, and where its streams come from."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence

from panes.aggregates.custom import UserAggregate
from panes.errors import QueryError
from panes.frames import is_spark, require_streams, to_table
from panes.html import Explained
from panes.language.join_query import JoinQuery
from panes.language.query_graph import QueryGraph, read_graph
from panes.nodes.inner import derived_schemas, joined_schemas
from panes.planning.choose_store import choose_store
from panes.planning.explain import explain as explain_plan
from panes.planning.explain import explain_unbound
from panes.planning.explain_join import explain_join
from panes.planning.join_query_plan import plan_join_query
from panes.planning.plan import plan
from panes.planning.terms import StreamOptions
from panes.process.running_query import OpenGraph, OpenQuery

_Streams = Mapping[str, object]
_Own = Sequence[UserAggregate]


def explained(
    text: str, streams: _Streams, aggregates: _Own, *, store: str | None, run: bool, details: bool
) -> str:
    """The text of `panes.explain`."""
    graph = read_graph(text, aggregates)
    query = graph.asked
    if not graph.is_single or isinstance(query, JoinQuery):
        if not streams:
            what = "a join" if graph.is_single else "a query with queries inside"
            raise QueryError(
                f"what {what} does follows from the columns of its streams",
                hint=f"give them: panes.explain(text, {graph.streams[0]}=...)",
            )
        if not graph.is_single:
            return _explained_graph(graph, streams, aggregates, details)
        assert isinstance(query, JoinQuery)
        return _explained_join(query, streams, aggregates, details)
    if not streams:
        return Explained(explain_unbound(query, details=details))
    if any(is_spark(frame) for frame in streams.values()):
        bound = importlib.import_module("panes.spark.bind").bind(text, streams, aggregates)
        return Explained(explain_plan(bound.plan, details=details))
    if run:
        asked = OpenQuery(
            text, StreamOptions(bounded=True, max_ahead=None, store=store), aggregates=aggregates
        )
        require_streams(asked.query.streams, streams)
        asked.push(**streams)
        asked.finish()
        return asked.explain(details=details)
    schemas = {name: to_table(frame, name).schema for name, frame in streams.items()}
    bound = plan(query, derived_schemas(query, schemas), aggregates)
    return Explained(explain_plan(bound, choose_store(bound, store), details=details))


def _explained_graph(graph: QueryGraph, streams: _Streams, own: _Own, details: bool) -> str:
    require_streams(graph.streams, streams)
    on_spark = ""
    if any(is_spark(frame) for frame in streams.values()):
        on_spark = importlib.import_module("panes.spark.explain").nodes_of(graph, streams)
        columns = importlib.import_module("panes.spark.bind").arrow_schema
        streams = {name: columns(frame).empty_table() for name, frame in streams.items()}
    schemas = {name: to_table(frame, name).schema for name, frame in streams.items()}
    asked = OpenGraph(graph, StreamOptions(bounded=True), aggregates=own, schemas=schemas)
    asked.push(**{name: schema.empty_table() for name, schema in schemas.items()})
    return Explained(asked.explain(details=details) + on_spark)


def _explained_join(query: JoinQuery, streams: _Streams, own: _Own, details: bool) -> str:
    if any(is_spark(frame) for frame in streams.values()):
        explained = importlib.import_module("panes.spark.explain").explain_join_on_spark
        text: str = explained(query, streams, own, details=details)
        return Explained(text)
    schemas = {name: to_table(frame, name).schema for name, frame in streams.items()}
    bound = plan_join_query(query, joined_schemas(query.join, schemas), own)
    bound.join.require_types()
    return Explained(explain_join(bound, details=details))
