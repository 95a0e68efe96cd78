"""A register on Spark: many queries over one streaming DataFrame, in one streaming query.

A changed set of queries restarts the streaming query on the same checkpoint: Spark's plan and the
variables of its state stay as they are, only the queries that tasks and shards are given change.
That is a pause of seconds; nothing is read again, nothing is lost. The queries themselves are kept
in the checkpoint too (`panes.spark.register.manifest_file`), written before Spark starts with them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import RLock

import numpy as np
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql.streaming.query import StreamingQuery

from panes.aggregates.custom import UserAggregate
from panes.axis import SECOND, Duration, parse_duration
from panes.engine.register import Added
from panes.errors import OptionError, PanesError, QueryError
from panes.language.parse import parse
from panes.language.query import Query
from panes.planning.plan import Plan
from panes.planning.terms import Run, Terms, agree, require_lateness
from panes.register.explain import explain_stores
from panes.register.manifest import Kept, KeptQuery, kept_stores, taken_up
from panes.register.queries import Asked, Queries
from panes.shards.query_shard import ABOUT
from panes.shards.register_shard import Definition
from panes.shards.register_state import take_up
from panes.spark.bind import bind_query, comparable
from panes.spark.host import require_progress, shard_numbers, with_watermark
from panes.spark.internals import dumps, has_commit
from panes.spark.query import Sink
from panes.spark.register import manifest_file as register_file
from panes.spark.register.ask import ask, read_state
from panes.spark.register.deliver import Deliver, RegisterSink
from panes.spark.register.stream import emitted, kinds_of
from panes.spark.register.watched_queries import LOG, Watched, Watcher, wanted
from panes.stores import codec

_PATIENCE = 30.0
_GLANCE = 0.05
_LEAST = 0.001  # Spark waits for whole milliseconds, and not for none


@dataclass(frozen=True, slots=True)
class _Start:
    """How the streaming query is started, each time the same."""

    checkpoint: str
    sink: RegisterSink
    late: Sink | None
    rejected: Sink | None
    bounded: bool
    trigger: Mapping[str, str]


class SparkRegister:
    """Queries over one streaming DataFrame, run together. See `panes.register`."""

    def __init__(
        self, stream: str, frame: DataFrame, run: Run, aggregates: Sequence[UserAggregate] = ()
    ) -> None:
        _require_possible(frame, run)
        self.stream, self._frame, self._run = stream, frame, run
        self._aggregates = tuple(aggregates)
        self._session, self._comparable = frame.sparkSession, comparable(frame)
        self._queries = Queries(stream, aggregates)
        self._own: dict[str, Sink] = {}
        self._watched: set[str] = set()
        self._removed: dict[str, str] = {}
        self._version = 0
        self._shards: tuple[int, ...] = ()
        self._started: _Start | None = None
        self._watcher: Watcher | None = None
        self._failure: Exception | None = None
        self._lock = RLock()
        self.query: StreamingQuery | None = None
        self.refused: dict[str, str] = {}

    # Queries

    def add(
        self, name: str, text: str, *, deadline: Duration | None = None, sink: Sink | None = None
    ) -> Added:
        """Answer one more query from now on; says from where its answers are exact.

        A register that runs is restarted on its checkpoint, which takes seconds. `sink` is where
        the answers of this query go: a folder, or a function of a DataFrame and its batch's
        number; without it they go where the register's answers go.
        """
        with self._lock:
            self._add(name, text, deadline, sink)
            self._removed.pop(name, None)
            self._changed()
        return Added(self, name)

    def remove(self, name: str) -> None:
        """Answer a query no longer, and forget what only it needed."""
        self.change(remove=[name])

    def change(self, *, add: Mapping[str, str] = {}, remove: Iterable[str] = ()) -> None:
        """Remove some queries and add others, with one restart for all of them, or nothing."""
        with self._lock:
            gone = list(remove)
            self._require_possible_change(gone, add)
            for name in gone:
                self._remove(name)
            for name, text in add.items():
                self._add(name, text, None, None)
                self._removed.pop(name, None)
            self._changed()

    def _require_possible_change(self, gone: Sequence[str], add: Mapping[str, str]) -> None:
        """Before anything changes: all that goes is there, and all that comes can run."""
        known = self._queries.asked
        missing = [name for name in gone if name not in known]
        taken = [name for name in add if name in known and name not in gone]
        if missing:
            told = ", ".join(sorted(known)) or "none"
            raise QueryError(f"no query `{missing[0]}` is registered", hint=f"queries: {told}")
        if taken:
            hint = "remove it first, or rename one"
            raise QueryError(f"a query `{taken[0]}` is already registered", hint=hint)
        if self._started is None:
            return
        trial = Queries(self.stream, self._aggregates)
        trial.axis = self._queries.axis
        for name, text in add.items():
            self._bind(trial, trial.read(name, text))

    def queries(self) -> dict[str, str]:
        """The texts of all queries, by name, in the order in which they came."""
        return {name: asked.text for name, asked in self._queries.asked.items()}

    def explain(self) -> str:
        """What is shared with whom, how panes are cut, and what that saves."""
        return explain_stores(self.stream, list(self._queries.stores.values()))

    def exact_from(self, name: str) -> object | None:
        """Where the first answered window of a query starts; None: at the stream's beginning."""
        if name not in self._queries.asked:
            raise QueryError(f"no query `{name}` is registered")
        with self._lock:
            queries = self._queries if self._started is None else self._as_of_now()
        at, axis = queries.exact_from[name], queries.axis
        if at is None or axis is None:
            return None
        return axis.label(np.array([at]))[0].as_py()

    def ask(self, text: str) -> DataFrame:
        """An answer now, from what the last batch left in the checkpoint.

        ``[RANGE 10 minutes WATTR ts]`` ends with the pane of the newest row. It is exact where it
        begins with a pane, and refused elsewhere.
        """
        if self._started is None:
            raise QueryError("the register has not been started, so nothing is stored")
        query = parse(text, self._aggregates, once=True)
        if query.streams != (self.stream,) or query.window is None:
            raise QueryError(f"only windows over `{self.stream}` can be asked for")
        bound = bind_query(query, (self._frame,), self._aggregates).plan
        with self._lock:
            self._queries.require_same_axis("asked", bound)
            checkpoint, queries = self._started.checkpoint, self._queries
            terms = self._terms(self._started)
            return ask(self._frame, checkpoint, queries, self._as_of_now(), terms, bound)

    def _add(self, name: str, text: str, deadline: Duration | None, sink: Sink | None) -> None:
        asked = self._queries.read(name, text, deadline)
        self._bind(self._queries, asked)
        if sink is not None:
            self._own[name] = sink

    def _bind(self, queries: Queries, asked: Asked) -> None:
        agree(asked.query, self._run)

        def plan_of(query: Query) -> Plan:
            bound = bind_query(query, (self._frame,), self._aggregates).plan
            require_lateness(self._run.lateness, bound.axis.kind)
            return bound

        queries.bind(asked, self._comparable, plan_of)
        queries.asked[asked.name] = asked

    def _remove(self, name: str) -> None:
        text = self.queries().get(name)
        self._queries.remove(name)
        self._own.pop(name, None)
        self._watched.discard(name)
        if self._started is not None and text is not None:
            self._removed[name] = text

    # The stream

    def start(
        self,
        *,
        checkpoint: str,
        sink: RegisterSink,
        late: Sink | None = None,
        rejected: Sink | None = None,
        bounded: bool = False,
        trigger: Mapping[str, str] | None = None,
        watch: Watched | None = None,
        watch_every: Duration = "10 seconds",
    ) -> SparkRegister:
        """Run all queries in one streaming query; a checkpoint with a register is taken up again.

        Then those queries run that ran last, and those added before `start` that the checkpoint
        has never had, or has under another text. One that was removed while the register ran stays
        removed.

        Parameters
        ----------
        checkpoint
            A folder for Spark's checkpoint, and the register's.
        sink
            A folder, which gets ``query=NAME/batch=N``; or a function, called with the name of a
            query, a DataFrame of its answers and the batch's number. `panes.spark.Together` takes
            the answers of all queries at once.
        late, rejected
            Sinks for rows that came late or have no place, with the reason.
        bounded
            Read what is there, answer every window, and end (``availableNow``).
        trigger
            As of Spark's ``trigger``: ``{"processingTime": "10 seconds"}``.
        watch, watch_every
            A folder with a ``.sql`` file for each query, or a function that gives a DataFrame of
            ``name`` and ``sql``: what is there runs, what is gone does not.
        """
        with self._lock:
            if self._started is not None:
                raise QueryError("the register runs already", hint="stop it first")
            self._take_up(checkpoint)
            seen = None if watch is None else wanted(self._session, watch)
            self._failure = None
            self._started = _Start(
                str(checkpoint), sink, late, rejected, bounded, dict(trigger or {})
            )
            if seen is not None:
                self._follow(seen)
            if not self._queries.asked and watch is None:
                self._started = None
                raise QueryError(
                    "the register has no query yet", hint='add one first: reg.add("hot", "...")'
                )
            if self._queries.asked:
                try:
                    self._terms(self._started)
                except PanesError:
                    self._started = None
                    raise
            self._changed()
            if watch is not None and seen is not None:
                every = parse_duration(watch_every, option="watch_every") / SECOND
                place = watch
                self._watcher = Watcher(
                    lambda: wanted(self._session, place), self._watched_changed, every
                )
                self._watcher.start(seen)
        return self

    def stop(self) -> None:
        """End the streaming query; `start` on the same checkpoint goes on."""
        with self._lock:
            self._end()
            self._halt()

    def await_end(self, timeout: float | None = None) -> bool:
        """Wait until the register ends, for so many seconds at most; says whether it has.

        If it fails, its exception is raised here.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _PATIENCE if until is None else until - time.monotonic()
            if left < _LEAST:
                return False
            query = self.query
            if query is None:
                if self._failure is not None:
                    raise self._failure
                if self._started is None:
                    return True
                time.sleep(min(left, _GLANCE))
                continue
            try:
                query.awaitTermination(min(left, _PATIENCE))  # type: ignore[arg-type]
            finally:
                self._note_end(query)

    def _note_end(self, query: StreamingQuery) -> None:
        """If the streaming query has ended by itself, the register has."""
        with self._lock:
            if self.query is query and not query.isActive:
                self.query = None
                self._end()

    def _end(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()
        self._watcher, self._started = None, None

    def process_all_available(self) -> None:
        """Wait until everything that is there now has been taken in and answered."""
        with self._lock:
            query = self.query
        if query is not None:
            query.processAllAvailable()

    def look(self) -> None:
        """Look at the watched place now, and not only when it is time to."""
        if self._watcher is not None:
            self._watcher.look()

    def _changed(self) -> None:
        """Queries have come or gone: write them down, and run with them."""
        if self._started is None:
            return
        if self.query is not None and (failure := self.query.exception()) is not None:
            raise failure
        self._version += 1
        register_file.write(self._session, self._started.checkpoint, self._kept())
        self._halt()
        try:
            if self._queries.asked:
                self.query = self._run_query(self._started)
        except Exception as failure:
            self._failure = failure
            self._end()
            raise

    def _run_query(self, start: _Start) -> StreamingQuery:
        terms = self._terms(start)
        kinds = kinds_of(self._queries)
        axis = self._queries.axis
        assert axis is not None
        given = emitted(
            self._frame,
            self._queries,
            terms,
            self._shards,
            bounded=start.bounded,
            rows=start.late is not None or start.rejected is not None,
            name=self._run.name,
        )
        asked = self._queries.asked.values()
        deliver = Deliver(
            kinds=tuple(kinds),
            axis_type=self._frame.schema[axis.column or ""].dataType,
            row=self._frame.schema,
            sink=start.sink,
            own={name: sink for name, sink in self._own.items() if name in self._queries.asked},
            deadlines={a.name: a.deadline for a in asked if a.deadline is not None},
            late=start.late,
            rejected=start.rejected,
        )
        writer = given.writeStream.option("checkpointLocation", start.checkpoint).outputMode(
            "append"
        )
        if start.bounded:
            writer = writer.trigger(availableNow=True)
        elif start.trigger:
            writer = writer.trigger(**start.trigger)
        return writer.foreachBatch(deliver).start()

    def _terms(self, start: _Start) -> Terms:
        """What the stream promises, for all queries alike."""
        axis = self._queries.axis
        assert axis is not None
        run = replace(self._run, bounded=start.bounded)
        run = with_watermark([self._frame], axis.column or "", run)
        terms = agree(next(iter(self._queries.asked.values())).query, run)
        require_progress(terms, bounded=start.bounded)
        return terms

    def _halt(self) -> None:
        """Stop the streaming query between two batches, if one ends soon."""
        query, self.query = self.query, None
        if query is None:
            return
        until = time.monotonic() + _PATIENCE
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < until:
            time.sleep(_GLANCE)
        query.stop()

    # What is kept

    def _take_up(self, checkpoint: str) -> None:
        """The queries of a checkpoint, and those of this register that it has never had."""
        kept = register_file.read(self._session, str(checkpoint))
        if kept is None:
            self._shards = shard_numbers(self._session, self._run.shards, is_keyed=True)
            return
        if kept.stream != self.stream:
            raise OptionError(
                f"the checkpoint is that of a register of `{kept.stream}`, not of `{self.stream}`"
            )
        if self._run.shards not in (None, kept.shards):
            raise OptionError(
                f"the register's state has {kept.shards} shards, and not {self._run.shards}",
                hint="leave out shards=, or start with a new checkpoint",
            )
        declared, own = self._queries.asked, self._own
        self._own = {q.name: q.sink for q in kept.queries if q.sink is not None}
        self._watched = {q.name for q in kept.queries if q.watched}
        queries = Queries(self.stream, self._aggregates)
        same = [
            q for q in kept.queries if q.name not in declared or declared[q.name].text == q.text
        ]
        again = [
            replace(q, deadline=declared[q.name].deadline) if q.name in declared else q
            for q in same
        ]
        taken_up(kept, queries, again, lambda asked: self._bind(queries, asked))
        for name, new in declared.items():
            if name not in queries.asked and kept.removed.get(name) != new.text:
                self._bind(queries, replace(new, serial=queries.numbers.next()))
        self._own |= {name: sink for name, sink in own.items() if name in queries.asked}
        self._queries, self._version = queries, kept.version
        self._removed = {n: t for n, t in kept.removed.items() if n not in queries.asked}
        self._shards = shard_numbers(self._session, kept.shards, is_keyed=True)

    def _kept(self) -> Kept:
        asked, own = self._queries.asked, self._own
        return Kept(
            stream=self.stream,
            shards=len(self._shards),
            last=self._queries.numbers.last,
            queries=[
                KeptQuery(
                    name=name,
                    text=one.text,
                    serial=one.serial,
                    deadline=one.deadline,
                    sink=None if name not in own or callable(own[name]) else str(own[name]),
                    watched=name in self._watched,
                )
                for name, one in asked.items()
            ],
            stores=kept_stores(self._queries),
            removed=self._removed,
            version=self._version,
        )

    def _as_of_now(self) -> Queries:
        """The queries as the next batch will find them, by what the last one left."""
        queries = Definition.of(self._queries, dumps).queries()
        about = None if self._started is None else self._about(self._started.checkpoint)
        if about is not None:
            take_up(queries, codec.unpack(about))
        return queries

    def _about(self, checkpoint: str) -> bytes | None:
        """What one shard remembers; all of them agree. None before the first batch."""
        if not has_commit(self._session, checkpoint):
            return None
        state = read_state(self._frame, checkpoint)
        rows = state.where(F.col("name") == ABOUT).select("data").limit(1).collect()
        return bytes(rows[0].data) if rows else None

    # The watched place

    def _watched_changed(self, texts: Mapping[str, str]) -> None:
        with self._lock:
            if self._started is not None:
                before = self.queries()
                self._follow(texts)
                if self.queries() != before:
                    self._changed()

    def _follow(self, texts: Mapping[str, str]) -> None:
        """Run what the watched place says; what cannot run is refused, the rest goes on."""
        self.refused = {}
        current = self.queries()
        for name in sorted(self._watched):
            if texts.get(name) != current.get(name):
                self._remove(name)
                self._removed.pop(name, None)
        for name, text in texts.items():
            if name in self._watched:
                continue
            try:
                self._add(name, text, None, None)
            except (PanesError, AnalysisException) as error:
                self.refused[name] = str(error)
                LOG.warning("the watched query `%s` is refused: %s", name, error)
                continue
            self._watched.add(name)


def _require_possible(frame: DataFrame, run: Run) -> None:
    if not frame.isStreaming:
        raise QueryError(
            "a register on Spark runs over a streaming DataFrame, and this one is bounded",
            hint="spark.readStream, and reg.start(..., bounded=True) to read it to its end",
        )
    if run.late == "revise":
        raise OptionError(
            "a register answers every window once, so late must be 'open' or 'drop'",
            hint="panes.sql(..., late='revise') for a query of its own",
        )
    if run.rows_late is not None:
        raise QueryError("rows_late is not available on Spark, where rows have no order of arrival")
