"""A register over joins on Spark: many queries over joins of streaming DataFrames.

    rows of each stream --combine--> shuffle by key --> every join once: joined rows of all queries
         --> partials, answers --shuffle by group--> windows above, of all queries --> sinks

All of it is one streaming query. Queries with the same join share it. A changed set of queries
restarts the streaming query on the same checkpoint: Spark's plan stays as it is, only what shards
are told of queries changes. Which queries there are is said by the program, each time it starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from panes.aggregates.custom import UserAggregate
from panes.engine.added import Added
from panes.errors import OptionError, QueryError, UnknownStreamError
from panes.language.join_query import JoinQuery
from panes.language.join_text import is_join, read_join
from panes.planning.explain_join import explain_join
from panes.planning.terms import Run
from panes.shards.shared_joins import shared_joins
from panes.spark.checkpoint import require_sources
from panes.spark.join.bind import BoundJoin, bind_join
from panes.spark.join.register_stream import (
    DeliverJoined,
    JoinSink,
    joined_together,
    require_shared,
)
from panes.spark.register.run import stop_between_batches
from panes.spark.uncommitted import forget_uncommitted


@dataclass(frozen=True, slots=True)
class _Start:
    """How the streaming query is started, each time the same."""

    checkpoint: str
    sink: JoinSink
    bounded: bool
    trigger: Mapping[str, str]


class SparkJoinRegister:
    """Queries over joins of some streaming DataFrames, run together. See `panes.register`."""

    def __init__(
        self, streams: Mapping[str, DataFrame], run: Run, aggregates: Sequence[UserAggregate] = ()
    ) -> None:
        for name, frame in streams.items():
            if not frame.isStreaming:
                raise QueryError(
                    f"a register on Spark runs over streaming DataFrames, and `{name}` is bounded",
                    hint="spark.readStream, and reg.start(..., bounded=True) to read it to its end",
                )
        if run.late == "revise":
            raise OptionError("late='revise' is for windows over one stream; a pair is given once")
        self.streams = dict(streams)
        self._run, self._aggregates = run, tuple(aggregates)
        self._bound: dict[str, BoundJoin] = {}
        self._start: _Start | None = None
        self.query: StreamingQuery | None = None

    # Queries

    def add(self, name: str, text: str) -> Added:
        """Answer one more query from now on, of the rows that are stored and those to come.

        A register that runs is restarted on its checkpoint, which takes seconds.
        """
        if name in self._bound:
            raise QueryError(f"there is a query `{name}` already", hint="remove it first")
        if not is_join(text):
            raise QueryError("a register of several streams takes queries over joins of them")
        query = read_join(text, self._aggregates)
        self._require_known(query)
        bound = bind_join(query, self.streams, self._aggregates, is_shared=True)
        require_shared(bound, self._run)
        self._change({**self._bound, name: bound})
        return Added(self, name)

    def remove(self, name: str) -> None:
        """Answer a query no longer, and forget a join that only it needed."""
        self._require(name)
        self._change({n: bound for n, bound in self._bound.items() if n != name})

    def queries(self) -> dict[str, str]:
        """The texts of all queries, by name, in the order in which they came."""
        return {name: bound.plan.query.text for name, bound in self._bound.items()}

    def exact_from(self, name: str) -> object | None:
        """None: a query over a join is answered of all rows that are stored when it comes."""
        self._require(name)
        return None

    def explain(self, *, details: bool = False) -> str:
        """How each join is run, and which queries share it."""
        parts = []
        for shared in shared_joins({name: b.plan for name, b in self._bound.items()}):
            names = ", ".join(query.name for query in shared.queries)
            first = shared.queries[0].plan
            parts.append(f"queries    {names}\n" + explain_join(first, details=details))
        return "\n".join(parts)

    # The streams

    def start(
        self,
        *,
        checkpoint: str,
        sink: JoinSink,
        bounded: bool = False,
        trigger: Mapping[str, str] | None = None,
    ) -> SparkJoinRegister:
        """Run all queries in one streaming query, or go on where one on this checkpoint ended.

        Parameters
        ----------
        checkpoint
            A folder for Spark's checkpoint. Queries that it has met before go on; those with
            another text begin anew, and what is stored for those that are gone is dropped.
        sink
            A folder, which gets ``query=NAME/batch=N``; or a function, called with the name of a
            query, a DataFrame of its answers and the batch's number.
        bounded
            Read what is there, answer everything, and end (``availableNow``).
        trigger
            As of Spark's ``trigger``: ``{"processingTime": "10 seconds"}``.
        """
        if self._start is not None and self.query is not None and self.query.isActive:
            raise QueryError("the register runs already", hint="stop it first")
        if not self._bound:
            raise QueryError(
                "the register has no query yet", hint='add one first: reg.add("near", "...")'
            )
        self._start = _Start(str(checkpoint), sink, bounded=bounded, trigger=dict(trigger or {}))
        self.query = self._started(self._start)
        return self

    def stop(self) -> None:
        """End the streaming query; `start` on the same checkpoint goes on."""
        if self.query is not None:
            stop_between_batches(self.query)
        self._start = None

    def await_end(self, timeout: float | None = None) -> bool:
        """Wait until the register ends, for so many seconds at most; says whether it has.

        If it fails, its exception is raised here.
        """
        if self.query is None:
            return True
        if timeout is None:
            self.query.awaitTermination()
            return True
        return bool(self.query.awaitTermination(timeout))  # type: ignore[arg-type]

    def process_all_available(self) -> None:
        """Wait until everything that is there now has been taken in and answered."""
        if self.query is not None:
            self.query.processAllAvailable()

    # Within

    def _change(self, bound: dict[str, BoundJoin]) -> None:
        """Other queries from now on."""
        start = self._start
        if start is not None and self.query is not None and self.query.isActive:
            if not bound:
                raise QueryError("a register that runs needs a query", hint="stop it: reg.stop()")
            stop_between_batches(self.query)
            self._bound = bound
            self.query = self._started(start)
        self._bound = bound

    def _started(self, start: _Start) -> StreamingQuery:
        session = next(iter(self.streams.values())).sparkSession
        forget_uncommitted(session, start.checkpoint)
        run = replace(self._run, bounded=start.bounded)
        joins = shared_joins({n: b.plan for n, b in self._bound.items()}, self._aggregates)
        given = joined_together(self._bound, joins, self.streams, run)
        require_sources(start.checkpoint, given)
        schemas = {query.name: query.schema() for shared in joins for query in shared.queries}
        writer = given.writeStream.option("checkpointLocation", start.checkpoint)
        if start.bounded:
            writer = writer.trigger(availableNow=True)
        elif start.trigger:
            writer = writer.trigger(**start.trigger)
        return writer.foreachBatch(DeliverJoined(schemas, start.sink)).start()

    def _require_known(self, query: JoinQuery) -> None:
        for stream in query.streams:
            if stream not in self.streams:
                raise UnknownStreamError(stream, streams=tuple(self.streams))

    def _require(self, name: str) -> None:
        if name not in self._bound:
            known = ", ".join(self._bound) or "none"
            raise QueryError(f"there is no query `{name}`", hint=f"queries: {known}")
