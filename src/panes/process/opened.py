"""A query of any kind, opened on streams in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.errors import OptionError, UnknownStreamError
from panes.language.join_query import JoinQuery
from panes.language.query_graph import read_graph
from panes.planning.terms import StreamOptions
from panes.process.keeper import keep, said_of
from panes.process.open_graph import OpenGraph
from panes.process.open_join import OpenJoin
from panes.process.open_query import OpenQuery

Opened: TypeAlias = OpenQuery | OpenJoin | OpenGraph
"""A query of any kind while it runs in this process."""


class RunningQuery(Protocol):
    """A query on streams, whatever it is over: rows go in, final answers come out.

    It is an `OpenQuery`, an `OpenJoin` or an `OpenGraph`, which can do more.
    """

    def push(self, /, **batches: Any) -> pa.Table:
        """Take in a batch of each of some streams; gives the answers that are final now."""
        ...

    def punctuate(self, /, **promised: Any) -> pa.Table:
        """Promise that no later row of a stream lies before an instant; gives what that closes."""
        ...

    def beat(self) -> pa.Table:
        """Let the clock say how far the streams are, as `heartbeat` allows."""
        ...

    def early(self) -> pa.Table:
        """Windows that are still open, as they are now."""
        ...

    def finish(self) -> pa.Table:
        """The streams have ended: gives all answers that are left."""
        ...

    def take_late(self) -> pa.Table:
        """Late rows, which are forgotten then."""
        ...

    @property
    def position(self) -> Any:
        """A value of the caller's own: that of the last call that is in the state folder."""
        ...

    @position.setter
    def position(self, value: Any) -> None: ...

    @property
    def pushes(self) -> int:
        """How many pushes are in, those before a restart included."""
        ...

    @property
    def last_answers(self) -> list[Any]:
        """What the calls returned that were written last, one entry for each."""
        ...

    def close(self) -> None:
        """Write what is not written yet, and let another process have the state folder."""
        ...

    def explain(self, *, details: bool = False) -> str:
        """The plan, as text; see `panes.explain`."""
        ...

    @property
    def late(self) -> pa.Table:
        """Late rows, with the reason."""
        ...

    @property
    def rejected(self) -> pa.Table:
        """Rows that have no place on the axis, with the reason."""
        ...

    @property
    def progress(self) -> Any:
        """Up to where the streams are complete: a position, or one for each side or query."""
        ...

    @property
    def state(self) -> Mapping[str, int]:
        """How much is stored."""
        ...

    @property
    def is_finished(self) -> bool:
        """Whether the streams have ended."""
        ...


def opened(
    text: str,
    run: StreamOptions,
    aggregates: Sequence[UserAggregate] = (),
    schema: pa.Schema | Mapping[str, pa.Schema] | None = None,
    *,
    state: str | Path | None = None,
    checkpoint_every: int = 1,
) -> Opened:
    """Open a query: over one stream or a union, over a join, or over answers of others inside.

    With a `state`, it is kept in that folder, and goes on where the folder ends.
    """
    graph = read_graph(text, aggregates)
    asked, schemas = graph.asked, _by_stream(schema, graph.streams)
    query: Opened
    if not graph.is_single:
        query = OpenGraph(graph, run, aggregates=aggregates, schemas=schemas)
    elif isinstance(asked, JoinQuery):
        query = OpenJoin(asked, run, aggregates=aggregates, schemas=schemas)
    else:
        query = OpenQuery(asked, run, aggregates=aggregates, schemas=schemas)
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
