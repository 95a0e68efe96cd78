"""The streaming query of a register: started, replaced when the queries change, stopped.

A register runs from `begin` to `end`. Meanwhile one streaming query follows another on the same
checkpoint, and for the seconds between two of them there is none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import RLock

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from panes.spark.checkpoint import require_sources, require_whole
from panes.spark.query import Sink
from panes.spark.register.deliver import Deliver, RegisterSink
from panes.spark.register.registered_queries import RegisteredQueries
from panes.spark.register.stream import answer_columns, emitted

_PATIENCE = 30.0
_GLANCE = 0.05
_LEAST = 0.001  # Spark waits for whole milliseconds, and not for none


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


def start_query(registered: RegisteredQueries, start: Start, version: int) -> StreamingQuery:
    """One streaming query for all queries of a register, of which this is the version."""
    queries, frame = registered.queries, registered.frame
    plans = answer_columns(queries)
    assert queries.axis is not None
    given = emitted(
        frame,
        queries,
        registered.terms(bounded=start.bounded),
        start.shards,
        bounded=start.bounded,
        rows=start.late is not None or start.rejected is not None,
        name=registered.run.name,
        number=version,
    )
    require_sources(start.checkpoint, given)
    deliver = Deliver(
        plans=tuple(plans),
        axis_type=frame.schema[queries.axis.column or ""].dataType,
        row=frame.schema,
        sink=start.sink,
        own=registered.sinks,
        deadlines=registered.deadlines,
        late=start.late,
        rejected=start.rejected,
    )
    writer = given.writeStream.option("checkpointLocation", start.checkpoint).outputMode("append")
    if start.bounded:
        writer = writer.trigger(availableNow=True)
    elif start.trigger:
        writer = writer.trigger(**start.trigger)
    return writer.foreachBatch(deliver).start()


class RegisterRun:
    """What runs now. `at_end` is called when it ends, by itself or because it is told to."""

    def __init__(self, lock: RLock, at_end: Callable[[], None]) -> None:
        self._lock, self._at_end = lock, at_end
        self._failure: Exception | None = None
        self.start: Start | None = None
        self.query: StreamingQuery | None = None

    def begin(self, start: Start) -> None:
        """From now on a streaming query runs, or is about to."""
        self.start, self._failure = start, None

    def end(self) -> None:
        """No streaming query will follow."""
        self.start = None
        self._at_end()

    def require_healthy(self) -> None:
        """Raise what made the streaming query fail, if it did."""
        if self.query is not None and (failure := self.query.exception()) is not None:
            raise failure

    def require_whole(self) -> None:
        """After a failure: if the checkpoint is damaged, that is what is said."""
        active = SparkSession.getActiveSession()
        if active is not None and self.start is not None:
            require_whole(active, self.start.checkpoint)

    def replace(self, registered: RegisteredQueries, version: int) -> None:
        """Stop the streaming query, and start the next one if there is anything to run."""
        assert self.start is not None
        self.halt()
        try:
            if registered:
                self.query = start_query(registered, self.start, version)
        except Exception as failure:
            self._failure = failure
            self.end()
            raise

    def halt(self) -> None:
        """Stop the streaming query between two batches, if one ends soon."""
        query, self.query = self.query, None
        if query is None:
            return
        until = time.monotonic() + _PATIENCE
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < until:
            time.sleep(_GLANCE)
        query.stop()

    def await_end(self, timeout: float | None) -> bool:
        """Wait for the end, for so many seconds at most; says whether it has come."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _PATIENCE if until is None else until - time.monotonic()
            if left < _LEAST:
                return False
            query = self.query
            if query is None:
                if self._failure is not None:
                    raise self._failure
                if self.start is None:
                    return True
                time.sleep(min(left, _GLANCE))
                continue
            try:
                query.awaitTermination(min(left, _PATIENCE))  # type: ignore[arg-type]
            except Exception:
                self.require_whole()
                raise
            finally:
                self._note_end(query)

    def _note_end(self, query: StreamingQuery) -> None:
        """If the streaming query has ended by itself, the register has."""
        with self._lock:
            if self.query is query and not query.isActive:
                self.query = None
                self.end()
