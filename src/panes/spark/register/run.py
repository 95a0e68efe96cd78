"""The streaming query of a register: started, replaced when the queries change, stopped.

A register runs from `begin` to `end`. Meanwhile one streaming query follows another on the same
checkpoint, and for the seconds between two of them there is none. A thread waits for the end of
each: one that has failed is followed by another one, if the query at fault could be set aside.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event, RLock, Thread

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from panes.errors import OptionError, StateError
from panes.spark.checkpoint import require_sources, require_whole
from panes.spark.internals import plan_text
from panes.spark.observe import DEFAULT, JOIN
from panes.spark.query import Sink
from panes.spark.register.deliver import Deliver, RegisterSink
from panes.spark.register.planned_parts import PlannedParts
from panes.spark.register.registered_queries import RegisteredQueries
from panes.spark.register.stream import emitted
from panes.spark.register.tap import Tap
from panes.spark.register.watched_queries import LOG
from panes.spark.stream.node import row_type
from panes.spark.uncommitted import forget_uncommitted

_PATIENCE = 30.0
_GLANCE = 0.05
_COUNTED = ("answers", "late", "rejected")

OnBatch = Callable[[DataFrame, int], None]


@dataclass(frozen=True, slots=True)
class Start:
    """How the streaming query is started, each time the same."""

    checkpoint: str
    sink: RegisterSink
    late: Sink | None
    rejected: Sink | None
    bounded: bool
    trigger: Mapping[str, str]
    shards: tuple[int, ...]
    tap: Tap | None = None


def require_trigger(trigger: object) -> None:
    """Refuse a trigger that is not given in Spark's own words."""
    if not isinstance(trigger, Mapping | None):
        raise OptionError(
            f"trigger takes the words of Spark's own, got {trigger!r}",
            hint='trigger={"processingTime": "10 seconds"}; for availableNow, bounded=True',
        )


@dataclass(frozen=True, slots=True)
class Planned:
    """A streaming query that Spark can plan, with what it sends to its tasks; it can be started."""

    session: SparkSession
    checkpoint: str
    writer: DataStreamWriter

    @classmethod
    def of(cls, given: DataFrame, checkpoint: str) -> Planned:
        """What a register gives, once Spark has planned all of it."""
        plan_text(given)
        require_sources(checkpoint, given)
        writer = given.writeStream.option("checkpointLocation", checkpoint).outputMode("append")
        return cls(given.sparkSession, checkpoint, writer)

    def start(self) -> StreamingQuery:
        """Start it where the one before has ended."""
        forget_uncommitted(self.session, self.checkpoint)
        return self.writer.start()


def planned_query(
    registered: RegisteredQueries,
    start: Start,
    instead: Callable[[Deliver], OnBatch] | None = None,
) -> Planned:
    """One streaming query for all queries of a register; nothing has changed before it starts.

    With `instead`, the batches hold nothing but rows, what that makes of the delivery is done with
    them, and the streaming query ends once nothing is left to read.
    """
    count, rows = len(start.shards), start.late is not None or start.rejected is not None
    parts = (
        PlannedParts.of(registered, count, bounded=start.bounded, rows=rows)
        if instead is None
        else PlannedParts.of_rows(registered, count)
    )
    given = emitted(
        parts,
        registered.streams,
        replace(registered.run, bounded=start.bounded),
        start.shards,
        name=registered.run.name or DEFAULT,
        failed=len(registered.failed),
        levels=registered.levels or registered.needed_levels,
    )
    deliver = Deliver(
        columns=tuple(parts.columns.all),
        rows={name: row_type([frame]) for name, frame in registered.streams.items()},
        sink=start.sink,
        own=registered.sinks,
        deadlines=registered.deadlines,
        late=start.late,
        rejected=start.rejected,
        tap=start.tap,
    )
    planned = Planned.of(given, start.checkpoint)
    writer = planned.writer
    if start.bounded or instead is not None:
        writer = writer.trigger(availableNow=True)
    elif start.trigger:
        writer = writer.trigger(**start.trigger)
    return replace(
        planned, writer=writer.foreachBatch(deliver if instead is None else instead(deliver))
    )


def stop_between_batches(query: StreamingQuery) -> None:
    """Stop a streaming query when it has finished its batch, if that is soon."""
    until = time.monotonic() + _PATIENCE
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < until:
        time.sleep(_GLANCE)
    query.stop()


class RegisterRun:
    """What runs now. `at_end` is called when it ends, by itself or because it is told to.

    `recover` is told of a failure, and says whether the register has gone on. `counted` is what
    streaming queries that have ended have observed.
    """

    def __init__(
        self,
        lock: RLock,
        at_end: Callable[[], None],
        recover: Callable[[BaseException], bool],
    ) -> None:
        self._lock, self._at_end, self._recover = lock, at_end, recover
        self._ended, self.has_begun = Event(), False
        self.failure: Exception | None = None
        self.start: Start | None = None
        self.query: StreamingQuery | None = None
        self.counted: Counter[str] = Counter()

    def begin(self, start: Start) -> None:
        """From now on a streaming query runs, or is about to."""
        self.start, self.failure, self.has_begun = start, None, True
        self._ended.clear()

    @property
    def has_ended(self) -> bool:
        """Whether it has run, and no streaming query will follow."""
        return self._ended.is_set()

    def end(self) -> None:
        """No streaming query will follow."""
        self.start = None
        self._at_end()
        self._ended.set()

    def require_healthy(self) -> None:
        """Raise what made the streaming query fail, if it did and nobody could be set aside."""
        if self.query is not None:
            self.settle(self.query)
        if self.failure is not None:
            raise self.failure

    def replace(
        self, following: Planned | None, before: Callable[[], Planned | None] | None = None
    ) -> None:
        """Stop the streaming query, and start the one that follows it, if there is one.

        If it cannot be started, the one is started that was there `before`.
        """
        assert self.start is not None
        self.halt()
        try:
            self._started(following)
        except Exception as failure:
            if before is None or not self._goes_on(before):
                self.failure = failure
                self.end()
            raise

    def _goes_on(self, before: Callable[[], Planned | None]) -> bool:
        """Whether what was there before could be started again."""
        try:
            self._started(before())
        except Exception as error:
            LOG.warning("the register cannot go on with the queries it had: %s", error)
            return False
        return True

    def _started(self, planned: Planned | None) -> None:
        """Start a streaming query, and wait for its end meanwhile."""
        if planned is not None:
            self.query = planned.start()
            waiting = (self.query,)
            Thread(target=self._wait_for, args=waiting, name="panes-register", daemon=True).start()

    def halt(self) -> None:
        """Stop the streaming query between two batches, if one ends soon."""
        query, self.query = self.query, None
        if query is None:
            return
        stop_between_batches(query)
        self._count(query)

    def await_end(self, timeout: float | None, meanwhile: Callable[[], None]) -> bool:
        """Wait for the end, for so many seconds at most; says whether it has come.

        `meanwhile` is called again and again.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _PATIENCE if until is None else until - time.monotonic()
            has_ended = self._ended.wait(max(0.0, min(left, _GLANCE)))
            meanwhile()
            if has_ended and self.failure is not None:
                raise self.failure
            if has_ended or left <= 0:
                return has_ended

    def process_all_available(self) -> None:
        """Wait until everything that is there now has been taken in and answered."""
        while True:
            with self._lock:
                query = self.query
            try:
                if query is not None:
                    query.processAllAvailable()
                return
            except Exception:
                assert query is not None
                self.settle(query)
                with self._lock:
                    if isinstance(self.failure, StateError):
                        raise self.failure from None
                    if self.failure is not None or self.query is query:
                        raise

    def settle(self, query: StreamingQuery) -> None:
        """If a streaming query has ended by itself, the register has, or it goes on without some.

        Whoever sees it first does this, and the others find it done.
        """
        with self._lock:
            if self.query is not query:
                return
            try:
                if query.isActive:
                    return
                failure: Exception | None = query.exception()
                self._count(query)
            except Exception as lost:  # the session has gone, and nothing can be started
                self.query, self.failure = None, lost
                self.end()
                return
            self.query = None
            try:
                if failure is not None and self._recover(failure):
                    return
            except Exception as also:
                also.__context__ = failure
                failure = also
            self.failure = None if failure is None else self._damage() or failure
            self.end()

    def _damage(self) -> StateError | None:
        """What is damaged in the checkpoint of a streaming query that has ended, if anything is."""
        session = SparkSession.getActiveSession()
        if session is None or self.start is None:
            return None
        try:
            require_whole(session, self.start.checkpoint)
        except StateError as damage:
            return damage
        return None

    def _wait_for(self, query: StreamingQuery) -> None:
        """Settle a streaming query once it has ended."""
        with suppress(Exception):  # the streaming query itself knows what it failed of
            query.awaitTermination()
        self.settle(query)

    def _count(self, query: StreamingQuery) -> None:
        for progress in query.recentProgress:
            for name, observed in progress["observedMetrics"].items():
                known = getattr(observed, "__fields__", ())  # through Connect there are no names
                told = ("late", "rejected") if name.endswith(JOIN) else _COUNTED
                counts = [n for n in told if n in known]
                self.counted.update({name: observed[name] for name in counts})
