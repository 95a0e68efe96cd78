"""A register over joins on Spark: many queries over joins of streaming DataFrames.

    rows of each stream --combine--> shuffle by key --> every join once: joined rows of all queries
         --> partials, answers --shuffle by group--> windows above, of all queries --> sinks

All of it is one streaming query. Queries with the same join share it. A changed set of queries
restarts the streaming query on the same checkpoint: Spark's plan stays as it is, only what shards
are told of queries changes. Which queries there are is said by the program, each time it starts. A
query that cannot be answered is set aside in the same way, and the batch is read again without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from panes.aggregates.custom import UserAggregate
from panes.errors import OptionError, QueryError, UnknownStreamError
from panes.html import facts_line
from panes.language.join_query import JoinQuery
from panes.language.join_text import is_join, read_join
from panes.path_part import require_path_part
from panes.planning.explain_join import explain_join
from panes.planning.terms import StreamOptions
from panes.process.added import Added
from panes.shards.shared_joins import shared_joins
from panes.sharing.failures import reasons_in
from panes.sharing.join_view import JoinedQuery, JoinsView
from panes.spark.bind import require_alike
from panes.spark.internals import runs_here
from panes.spark.join.bind import BoundJoin, bind_join
from panes.spark.join.register_stream import (
    DeliverJoined,
    JoinSink,
    joined_together,
    require_shared,
)
from panes.spark.observe import DEFAULT
from panes.spark.register.run import Planned
from panes.spark.register.running import RunningRegister
from panes.spark.register.tap import Tap
from panes.spark.uncommitted import can_run_again


@dataclass(frozen=True, slots=True)
class _Start:
    """How the streaming query is started, each time the same."""

    checkpoint: str
    sink: JoinSink
    bounded: bool
    trigger: Mapping[str, str]


class SparkJoinRegister(RunningRegister[_Start]):
    """Queries over joins of some streaming DataFrames, run together. See `panes.register`."""

    def __init__(
        self,
        streams: Mapping[str, DataFrame],
        run: StreamOptions,
        aggregates: Sequence[UserAggregate] = (),
    ) -> None:
        super().__init__()
        require_alike(streams)
        for name, frame in streams.items():
            if not frame.isStreaming:
                raise QueryError(
                    f"a register on Spark runs over streaming DataFrames, and `{name}` is bounded",
                    hint="spark.readStream, and reg.start(..., bounded=True) to read it to its end",
                )
        if run.late == "revise":
            raise OptionError("late='revise' is for windows over one stream; a pair is given once")
        self.streams = dict(streams)
        self._terms, self._aggregates = run, tuple(aggregates)
        self._bound: dict[str, BoundJoin] = {}
        self._failed: dict[str, tuple[BoundJoin, str]] = {}
        self.tap = Tap()

    # Queries

    def add(self, name: str, text: str) -> Added:
        """Answer one more query from now on: rows that are joined, and windows that are whole.

        Windows that may miss rows, because these came before, are not answered. A register that
        runs is restarted on its checkpoint, which takes seconds.
        """
        with self._lock:
            if name in self._bound:
                raise QueryError(f"there is a query `{name}` already", hint="remove it first")
            if not is_join(text):
                raise QueryError("a register of several streams takes queries over joins of them")
            query = read_join(text, self._aggregates)
            self._require_known(query)
            bound = bind_join(query, self.streams, self._aggregates, is_shared=True)
            require_shared(bound, self._terms)
            require_path_part(name)
            self._change({**self._bound, name: bound})
            self._failed.pop(name, None)
        return Added(self, name)

    def remove(self, name: str) -> None:
        """Answer a query no longer, and forget a join that only it needed."""
        with self._lock:
            self._require(name)
            self._change({n: bound for n, bound in self._bound.items() if n != name})

    def queries(self) -> dict[str, str]:
        """The texts of all queries, by name, in the order in which they came."""
        with self._lock:
            return {name: bound.plan.query.text for name, bound in self._bound.items()}

    @property
    def failed(self) -> dict[str, str]:
        """The queries that were set aside because they could not be answered, and why."""
        with self._lock:
            return {name: reason for name, (_, reason) in self._failed.items()}

    def put_back(self, name: str) -> Added:
        """Answer a query again that was set aside, as one that is new."""
        with self._lock:
            if name not in self._failed:
                raise QueryError(f"no query `{name}` was set aside")
            return self.add(name, self._failed[name][0].plan.query.text)

    def exact_from(self, name: str) -> object | None:
        """None: shards find out, in the next batch, which windows of a query are whole."""
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

    def view(self) -> JoinsView:
        """Which queries there are and which join each shares, as plain data."""
        with self._lock:
            joins: dict[object, int] = {}
            queries = tuple(
                JoinedQuery(name, b.plan.query.text, b.plan,
                            joins.setdefault(b.plan.join.identity, len(joins)))
                for name, b in self._bound.items()
            )  # fmt: skip
            failed = {n: (b.plan.query.text, why) for n, (b, why) in self._failed.items()}
            return JoinsView(tuple(self.streams), queries, failed)

    @property
    def metrics_name(self) -> str:
        """The name of its metrics in Spark's progress reports."""
        return self._terms.name or DEFAULT

    def __repr__(self) -> str:
        counts = f"queries={len(self._bound)}", f"failed={len(self._failed)}"
        streams = ", ".join(self.streams)
        return facts_line("SparkJoinRegister", f"of {streams}", self._how(), *counts)

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
        with self._lock:
            if self._run.start is not None:
                raise QueryError("the register runs already", hint="stop it first")
            if not self._bound:
                raise QueryError(
                    "the register has no query yet", hint='add one first: reg.add("near", "...")'
                )
            start = _Start(str(checkpoint), sink, bounded=bounded, trigger=dict(trigger or {}))
            planned = self._planned(self._bound, start)
            self.tap.begin(start.checkpoint)
            self._run.begin(start)
            self._run.replace(planned)
        return self

    # Within

    def _change(self, bound: dict[str, BoundJoin]) -> None:
        """Other queries from now on; if they cannot be started, those before go on."""
        if self._run.start is not None:
            self._run.require_healthy()
        start, before = self._run.start, self._bound
        if start is None:
            self._bound = bound
            return
        if not bound:
            raise QueryError("a register that runs needs a query", hint="stop it: reg.stop()")

        def as_before() -> Planned:
            self._bound = before
            return self._planned(before, start)

        planned, self._bound = self._planned(bound, start), bound
        self._run.replace(planned, as_before)

    def _recover(self, failure: BaseException) -> bool:
        """A batch has failed: set aside the queries at fault, if any, and go on with the others."""
        start, reasons = self._run.start, reasons_in(str(failure))
        assert start is not None
        others = {name: bound for name, bound in self._bound.items() if name not in reasons}
        session = next(iter(self.streams.values())).sparkSession
        if not reasons or not others or not can_run_again(session, start.checkpoint):
            return False
        for name, reason in reasons.items():
            self._failed[name] = (self._bound[name], reason)
            self._tell(name, reason)
        self._bound = others
        self._run.replace(self._planned(others, start))
        return True

    def _planned(self, bound: Mapping[str, BoundJoin], start: _Start) -> Planned:
        """What would run with some queries."""
        run = replace(self._terms, bounded=start.bounded)
        joins = shared_joins({n: b.plan for n, b in bound.items()}, self._aggregates)
        given = joined_together(bound, joins, self.streams, run)
        schemas = {query.name: query.schema() for shared in joins for query in shared.queries}
        planned = Planned.of(given, start.checkpoint)
        writer = planned.writer
        if start.bounded:
            writer = writer.trigger(availableNow=True)
        elif start.trigger:
            writer = writer.trigger(**start.trigger)
        here = runs_here(next(iter(self.streams.values())))
        deliver = DeliverJoined(schemas, start.sink, self.tap if here else None)
        return replace(planned, writer=writer.foreachBatch(deliver))

    def _require_known(self, query: JoinQuery) -> None:
        for stream in query.streams:
            if stream not in self.streams:
                raise UnknownStreamError(stream, streams=tuple(self.streams))

    def _require(self, name: str) -> None:
        if name not in self._bound:
            known = ", ".join(self._bound) or "none"
            raise QueryError(f"there is no query `{name}`", hint=f"queries: {known}")
