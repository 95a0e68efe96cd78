"""Which way a question to a register on Spark goes: to its panes, or to the rows it keeps."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from panes.errors import QueryError
from panes.language.parse import parse
from panes.language.query import Query
from panes.language.row_question import RowQuestion, read_row_question
from panes.planning.plan import Plan
from panes.spark.bind import bind_query
from panes.spark.register.ask import ask
from panes.spark.register.ask_rows import ask_rows, require_answerable
from panes.spark.register.registered_queries import RegisteredQueries
from panes.spark.register.run import Start

Started = Callable[[], Start]
"""How the register was started; refused if it was not."""


def ask_register(registered: RegisteredQueries, started: Started, text: str) -> DataFrame:
    """An answer now, from what the last batch left in the checkpoint."""
    stream = registered.only_stream
    rows = read_row_question(text, registered.aggregates)
    if rows is not None:
        return _ask_rows(registered, started, rows)
    query = parse(text, registered.aggregates, once=True)
    if query.streams != (stream,) or query.window is None:
        raise QueryError(f"only windows over `{stream}` can be asked for")
    frame, start = registered.streams[stream], started()

    def plan_of(asked: Query) -> Plan:
        return bind_query(asked, (frame,), registered.aggregates).plan

    terms, queries = registered.terms(stream, bounded=start.bounded), registered.windows[stream]
    return ask(frame, start.checkpoint, queries, terms, query, plan_of)


def _ask_rows(registered: RegisteredQueries, started: Started, asked: RowQuestion) -> DataFrame:
    """Rows of the live window, from those that shards keep."""
    stream = registered.only_stream
    if asked.stream.lower() != stream.lower():
        raise QueryError(f"only rows of `{stream}` can be asked for")
    frame = registered.streams[stream]
    require_answerable(frame, asked)
    start = started()
    return ask_rows(frame, start.checkpoint, start.shards, registered.windows[stream], asked)
