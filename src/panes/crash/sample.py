"""A user's query and some of their rows, as jobs that can be killed.

The rows are cut into batches in the order of their files. They come so late in these batches as
they do, and the stream is given just that lateness, so windows close on the way and no row is late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.crash.jobs import Change, Job, QueryJob, RegisterJob, Streams, mirrored
from panes.crash.place import cut
from panes.errors import PanesError, QueryError
from panes.language.join_query import JoinQuery
from panes.language.query import Query
from panes.language.query_graph import read_graph
from panes.sharing.shareable import require_shareable

BATCHES = 4
_FIRST, _SECOND = "as_given", "added_later"


@dataclass(frozen=True, slots=True)
class SampleJobs:
    """Jobs over the same rows: the query alone, and in a register whose queries change.

    `register` is None for a query that no register takes, and then `refused` says why.
    """

    streams: Streams
    query: Job
    register: Job | None
    refused: str


def sample(text: str, tables: Mapping[str, pa.Table]) -> SampleJobs:
    """The jobs of a query over tables."""
    streams = {name: cut(table, BATCHES) for name, table in tables.items()}
    options = stream_options(text, streams)
    register, refused = None, ""
    [*names] = streams
    change = Change(BATCHES // 2, add={_SECOND: text})
    kept = {name: value for name, value in options.items() if name != "bounded"}
    if len(names) > 1:
        refused = "a register reads one stream"
    elif "lateness" not in kept:
        refused = "the order of these rows says nothing of progress"
    else:
        try:
            _require_register(text, names[0])
            register = RegisterJob(names[0], {_FIRST: text}, kept, change)
        except PanesError as error:
            refused = str(error).splitlines()[0]
    return SampleJobs(streams, QueryJob(text, options), register, refused)


def _require_register(text: str, stream: str) -> None:
    """Refuse what a register on Spark does not take, or not while it runs."""
    graph = read_graph(text)
    if not graph.is_single or not isinstance(graph.asked, Query):
        raise QueryError("only windows over a stream come to a register while it runs")
    require_shareable(_SECOND, graph.asked, stream)


def stream_options(text: str, streams: Streams) -> dict[str, Any]:
    """How a query runs over the batches of a sample, to their end."""
    return {"bounded": True, "max_ahead": None, **_lateness(text, streams)}


def _lateness(text: str, streams: Streams) -> dict[str, object]:
    """The least lateness with which no row is late; nothing where no lateness does it."""
    query = read_graph(text).asked
    if isinstance(query, JoinQuery):  # its sides may lie on columns of different names
        return {}
    window = query.window
    column = None if window is None else window.column
    most: list[int] = []
    for tables in streams.values():
        if column is None or column not in tables[0].column_names:
            return {}
        most.append(_disorder([t.column(column) for t in tables]))
    kind = next(iter(streams.values()))[0].schema.field(column).type
    ticks = max(most)
    lateness = timedelta(microseconds=ticks) if pa.types.is_timestamp(kind) else ticks
    tried = {"lateness": lateness, "max_ahead": None}
    _, apart = mirrored(text, {**tried, "bounded": True}, streams)
    return {"lateness": lateness} if not len(apart["late"]) else {}


def _disorder(columns: Sequence[pa.ChunkedArray]) -> int:
    """How far a position lies behind the greatest one before it, at most."""
    at = pa.chunked_array([c for column in columns for c in column.drop_null().chunks])
    if pa.types.is_timestamp(at.type):
        at = at.cast(pa.timestamp("us", at.type.tz), safe=False)
    ticks = pc.cast(at, pa.int64()).to_numpy()
    return int((np.maximum.accumulate(ticks) - ticks).max()) if len(ticks) else 0
