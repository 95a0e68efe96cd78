"""A query over streaming DataFrames: combine before the shuffle, one pane store per shard.

    rows --select--> position, keys, arguments --mapInArrow: combine--> a package per shard
         --shuffle by shard--> transformWithState: pane store --> answers, late rows, status
         --mapInArrow: unpack--> typed rows --select--> what was asked

Progress travels as rows: every task tells every shard how far its rows reach, in the same
micro-batch. So a window closes in the batch that proves it complete, one batch before Spark's own
watermark would. Packages and state are bytes of `panes.stores.codec`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import reduce
from io import StringIO

import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from panes.engine.admit import promise_column
from panes.engine.answers import require_flushable, told_of
from panes.engine.combine import (
    AT,
    EVERY_SOURCE,
    KEPT,
    PROMISE,
    ROW,
    SOURCE,
    TOO_FAR_AHEAD,
    Combiner,
    column_name,
)
from panes.engine.plan_filler import PlanFiller
from panes.engine.shard import Outcome, Shard
from panes.engine.stream import require_streamable
from panes.engine.terms import Run, Terms
from panes.errors import OptionError, QueryError
from panes.planning.plan import Plan
from panes.spark.answers import (
    END,
    answer_columns,
    handed_over,
    handed_over_schema,
    selected,
    with_edges,
)
from panes.spark.bind import UTC, BoundQuery, arrow_schema, sql, ticks
from panes.spark.partitions import one_per_partition
from panes.spark.session import STATE_STORE
from panes.stores import codec

# Spark hands these to the store as named tuples, whose names cannot begin with an underscore.
SHARD, PACKAGE, WHEN = "shard", "package", "sent_at"
STATUS, APART = "__status", "__apart"
ANSWERS = "answers"
KIND, REASON, WHOLE = "kind", "reason", "row"
LATE, REJECTED = "late", "rejected"

WATERMARK = "spark.watermarkDelayMs"
"""Where Spark notes, in a column's metadata, the milliseconds that a watermark waits."""

# Given as types: Spark would ask its JVM to parse them as text, once per task and batch.
_NAME, _DATA = T.StructType().add("name", "string"), T.StructType().add("data", "binary")
_STATUS_FIELDS = ("answers", "late", "rejected", "partials", "bytes", "progress")
_EMITTED_AT_ONCE = 1 << 16
Batches = Iterator[pa.RecordBatch]


def answer(bound: BoundQuery, terms: Terms, run: Run) -> DataFrame:
    """The answers, as a streaming DataFrame in append mode."""
    tagged = _tagged(bound, terms, run, rows=False)
    return selected(bound, tagged.where(F.col(END).isNotNull()), told_of(bound.plan, terms))


def answer_and_apart(bound: BoundQuery, terms: Terms, run: Run) -> DataFrame:
    """Answers and the rows set apart, late or rejected, in one streaming DataFrame.

    Column ``answer`` is a struct of what was selected, NULL in rows that are none. Column
    ``apart`` is a struct of ``kind``, ``reason`` and ``row``, NULL in answers.
    """
    edged = with_edges(bound, _tagged(bound, terms, run, rows=True))
    is_answer, is_apart = F.col(END).isNotNull(), F.col(APART).isNotNull()
    having = bound.plan.query.having
    passes = is_answer if having is None else is_answer & sql(having)
    kept = edged.where(passes | is_apart)
    answer = F.when(is_answer, F.struct(*answer_columns(bound.plan, told_of(bound.plan, terms))))
    return kept.select(answer.alias("answer"), F.col(APART).alias("apart"))


def _tagged(bound: BoundQuery, terms: Terms, run: Run, *, rows: bool) -> DataFrame:
    """Everything the store emits: answers before the SELECT, rows set apart, and status."""
    plan = bound.plan
    _require_progress(terms, run)
    require_streamable(plan)
    if terms.flush is not None:
        require_flushable(plan)
    if plan.window.origin_first:
        raise QueryError(
            "ORIGIN FIRST over a stream on Spark: where panes begin would be known only later",
            hint="give the origin itself: ORIGIN '2026-01-01'",
        )
    session = bound.frames[0].sparkSession
    _require_state_store(session.conf.get("spark.sql.streaming.stateStore.providerClass"))
    partitions = int(session.conf.get("spark.sql.shuffle.partitions") or "2")
    shards = _shards(plan, run, partitions)
    several = len(bound.frames) > 1 or terms.heartbeat is not None or run.bounded
    projected = [
        _project(bound, number, terms, several=several, rows=rows)
        for number in range(len(bound.frames))
    ]
    if terms.heartbeat is not None:
        projected.append(_heartbeat(session, terms.heartbeat.slack))
    if run.bounded:
        projected.append(_one_row_per_run(session))
    united = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), projected)
    combine = Combine(
        plan,
        shards,
        keep_rows=terms.drops_late,
        tell_empty=run.bounded and not any(map(_shuffles, bound.frames)),
    )
    sent = united.mapInArrow(combine, f"{SHARD} int, {PACKAGE} binary, {WHEN} timestamp")
    if run.bounded:
        sent = sent.withWatermark(WHEN, "0 seconds")
    row = projected[0].schema[ROW].dataType if rows else None
    emitted = _emitted_schema(plan, row, told_of(plan, terms))
    emit = Emit(to_arrow_schema(emitted, timezone=UTC), packed=not _survives_pandas(emitted))
    stored = sent.groupBy(SHARD).transformWithStateInPandas(
        statefulProcessor=Store(plan, terms, len(shards), emit, bounded=run.bounded),
        outputStructType=f"{PACKAGE} binary" if emit.packed else emitted,
        outputMode="append",
        timeMode="eventtime" if run.bounded else "none",
    )
    typed = stored.mapInArrow(emit.unpack, emitted) if emit.packed else stored
    kinds = ", ".join(f"{name} long" for name in _STATUS_FIELDS)
    status = F.from_json(STATUS, kinds)
    summed = [name for name in _STATUS_FIELDS if name != "progress"]
    return typed.observe(
        run.name,
        *(F.coalesce(F.sum(status[name]), F.lit(0)).alias(name) for name in summed),
        F.min(status["progress"]).alias("progress"),
    )


def with_watermark(bound: BoundQuery, run: Run) -> Run:
    """How late rows may be, from the streams' own ``withWatermark`` if nothing else says it."""
    column = bound.plan.axis.column or ""
    delays = [f.schema[column].metadata.get(WATERMARK) for f in bound.frames]
    if run.bounded and any(delay is not None for delay in delays):
        raise OptionError(
            f"`{column}` has a watermark, and Spark takes only one: the end would not be noticed",
            hint='leave out withWatermark and say lateness="10 seconds"',
        )
    found = [delay * 1_000 for delay in delays if delay is not None]
    if run.lateness is not None or run.punctuation is not None or len(found) < len(delays):
        return run
    return replace(run, lateness=max(found))


def _require_progress(terms: Terms, run: Run) -> None:
    closes = (terms.lateness, terms.punctuation, terms.heartbeat)
    if all(c is None for c in closes) and not run.bounded:
        raise OptionError(
            "nothing says how the stream progresses, so no window would ever close",
            hint='give lateness="10 seconds", punctuation=, heartbeat=, or bounded=True for an '
            "availableNow run; a watermark of the stream will do too",
        )


def _require_state_store(provider: str | None) -> None:
    if provider != STATE_STORE:
        raise OptionError(
            "streams need Spark's RocksDB state store, and the session has another one",
            hint=f'spark.conf.set("spark.sql.streaming.stateStore.providerClass", "{STATE_STORE}"),'
            " or build the session with panes.spark.session()",
        )


def _shards(plan: Plan, run: Run, partitions: int) -> tuple[int, ...]:
    """The numbers that stand for shards in the shuffle."""
    count = partitions if run.shards is None else run.shards
    if count < 1:
        raise OptionError(f"shards must be at least 1, got {count}")
    return one_per_partition(count if plan.shard_columns else 1)


def _project(
    bound: BoundQuery, number: int, terms: Terms, *, several: bool, rows: bool
) -> DataFrame:
    """What the combiner needs of a stream: no row is left out, since each one makes progress."""
    plan, frame = bound.plan, bound.frames[number]
    at = ticks(frame, plan.axis.column or "")
    if plan.placing.kind == "time" and terms.lateness is not None and terms.max_ahead is not None:
        latest = F.unix_micros(F.current_timestamp()) + F.lit(terms.max_ahead)
        at = F.when(at > latest, F.lit(TOO_FAR_AHEAD)).otherwise(at)
    columns = {AT: at}
    if several:
        columns[SOURCE] = F.lit(number)
    if terms.punctuation is not None:
        schema = arrow_schema(frame)
        stream = plan.query.streams[number]
        columns[PROMISE] = ticks(frame, promise_column(plan, schema, terms.punctuation, stream))
    if rows:
        columns[ROW] = _whole_row(bound.frames, number)
    expressions = [sql(e) for e in plan.rows.expressions]
    if plan.rows.where is not None:
        kept = F.coalesce(sql(plan.rows.where), F.lit(False))
        columns[KEPT] = kept
        counted = plan.partition_columns if plan.counts_rows else ()
        expressions = [
            e if i in counted else F.when(kept, e)  # no other row is to be evaluated
            for i, e in enumerate(expressions)
        ]
    columns |= {column_name(i): e for i, e in enumerate(expressions)}
    return frame.select(*(c.alias(name) for name, c in columns.items()))


def _whole_row(frames: Sequence[DataFrame], number: int) -> Column:
    """A row with the columns of all streams; text where their types differ."""
    kinds: dict[str, T.DataType] = {}
    for frame in frames:
        for f in frame.schema.fields:
            same = kinds.get(f.name, f.dataType) == f.dataType
            kinds[f.name] = f.dataType if same else T.StringType()
    own = set(frames[number].columns)
    return F.struct(
        *(
            (F.col(f"`{n}`") if n in own else F.lit(None)).cast(kind).alias(n)
            for n, kind in kinds.items()
        )
    )


def _heartbeat(session: SparkSession, slack: int) -> DataFrame:
    """Rows that promise, by the clock, that nothing older than `slack` is still to come."""
    rate = session.readStream.format("rate")
    beats = rate.option("rowsPerSecond", 1).option("numPartitions", 1).load()
    promised = F.unix_micros("timestamp") - F.lit(slack)
    return beats.select(*_no_row(), promised.alias(PROMISE))


def _one_row_per_run(session: SparkSession) -> DataFrame:
    """A row in the first batch of every ``availableNow`` run, so that there is one.

    Spark runs the batch without data, which tells the end, only after a batch with data in the
    same run. A run that starts where the last one was killed may have no other.
    """
    rate = session.readStream.format("rate-micro-batch")
    return rate.option("rowsPerBatch", 1).option("numPartitions", 1).load().select(*_no_row())


def _no_row() -> list[Column]:
    return [F.lit(EVERY_SOURCE).alias(SOURCE), F.lit(None).cast("long").alias(AT)]


def _shuffles(frame: DataFrame) -> bool:
    """Whether a stream is shuffled before it comes here, as by a join with a large table.

    Then tasks run even in the batch without data, and have no rows there either.
    """
    with redirect_stdout(StringIO()) as said:
        frame.explain()
    return re.search(r"\b(Exchange|Coalesce)\b", said.getvalue()) is not None


@dataclass(frozen=True, slots=True)
class Combine:
    """What every task does with its rows before the shuffle.

    With `tell_empty`, a task without rows says so, since a batch in which nothing is said is
    taken for the end of the stream.
    """

    plan: Plan
    shards: tuple[int, ...]
    keep_rows: bool
    tell_empty: bool

    def __call__(self, batches: Batches) -> Batches:
        combiner = Combiner(PlanFiller(self.plan, self.keep_rows), len(self.shards))
        for batch in batches:
            combiner.add(batch)
        when = pa.array([_batch_number() * _TICK], pa.timestamp("us", UTC))
        for shard, package in combiner.packages(always=self.tell_empty):
            number, data = pa.array([self.shards[shard]], pa.int32()), pa.array([package])
            yield pa.record_batch([number, data, when], names=[SHARD, PACKAGE, WHEN])


_TICK = 1_000_000


def _batch_number() -> int:
    """The micro-batch of this task, from 1: a clock that no machine's clock can turn back."""
    context = TaskContext.get()
    number = None if context is None else context.getLocalProperty("streaming.sql.batchId")
    if number is None:
        raise QueryError("the query runs outside of a micro-batch")
    return int(number) + 1


class Store(StatefulProcessor):
    """Hosts a `Shard` in Spark's state."""

    def __init__(self, plan: Plan, terms: Terms, shards: int, emit: Emit, *, bounded: bool) -> None:
        self._plan, self._terms, self._shards = plan, terms, shards
        self._emit, self._bounded = emit, bounded

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called once per task and batch."""
        self._handle = handle
        self._state = _Blobs(handle.getMapState("panes", _NAME, _DATA))
        self._fed: set[int] = set()

    # Spark passes these arguments by name.

    def handleInputRows(  # type: ignore[override]  # noqa: N802
        self,
        key: tuple[int],
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """One batch of one shard."""
        self._fed.add(key[0])
        packages = [package for frame in rows for package in frame[PACKAGE]]
        yield from self._emit(self._shard().take(packages))
        if self._bounded:
            self._handle.registerTimer(timerValues.getCurrentWatermarkInMs() + 1)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: tuple[int],
        timerValues: TimerValues,  # noqa: ARG002, N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """A timer fires in every batch; in one that brings no rows, the stream has ended."""
        if key[0] not in self._fed:
            yield from self._emit(self._shard().finish())

    def _shard(self) -> Shard:
        return Shard(self._plan, self._terms, self._state, shards=self._shards)

    def close(self) -> None:
        """Nothing is open."""


class _Blobs:
    """Spark's map state, as a shard wants it."""

    def __init__(self, state: MapState) -> None:
        self._map = state

    def get(self, name: str, /) -> bytes | None:
        found = self._map.getValue((name,))
        return None if found is None else bytes(found[0])

    def __setitem__(self, name: str, data: bytes, /) -> None:
        self._map.updateValue((name,), (data,))

    def __delitem__(self, name: str, /) -> None:
        self._map.removeKey((name,))


@dataclass(frozen=True, slots=True)
class Emit:
    """What leaves the store: rows that are an answer, a status, or were set apart.

    Spark takes pandas frames from a store. Columns backed by Arrow go through them unchanged but
    for timestamps and nested values; where there are any, the rows leave `packed`, as bytes.
    """

    schema: pa.Schema
    packed: bool

    def __call__(self, outcome: Outcome) -> Iterator[pd.DataFrame]:
        status = {name: len(getattr(outcome, name)) for name in (ANSWERS, LATE, REJECTED)}
        status |= {"partials": outcome.partials, "bytes": outcome.nbytes}
        status |= {"progress": outcome.progress}
        parts = [handed_over(outcome.answers), pa.table({STATUS: [json.dumps(status)]})]
        if APART in self.schema.names:
            parts += [_apart(getattr(outcome, kind), kind) for kind in (LATE, REJECTED)]
        rows = pa.concat_tables([self._filled(part) for part in parts if len(part)])
        if self.packed:
            yield pd.DataFrame({PACKAGE: [codec.pack({ANSWERS: rows})]})
            return
        for batch in rows.combine_chunks().to_batches(max_chunksize=_EMITTED_AT_ONCE):
            yield batch.to_pandas(types_mapper=pd.ArrowDtype)

    def unpack(self, batches: Batches) -> Batches:
        """Packed rows, as rows again."""
        for batch in batches:
            for package in batch.column(0):
                rows = codec.unpack(package.as_py())[ANSWERS]
                yield from rows.combine_chunks().to_batches(max_chunksize=_EMITTED_AT_ONCE)

    def _filled(self, table: pa.Table) -> pa.Table:
        """A table's rows, with NULL in the columns that it does not have."""
        columns = [
            table.column(f.name).cast(f.type)
            if f.name in table.column_names
            else pa.nulls(len(table), f.type)
            for f in self.schema
        ]
        return pa.table(columns, schema=self.schema)


def _apart(table: pa.Table, kind: str) -> pa.Table:
    if not len(table):
        return pa.table({APART: pa.nulls(0)})
    kinds = pa.array([kind] * len(table))
    columns = [kinds, *(table.column(n).combine_chunks() for n in (REASON, ROW))]
    return pa.table({APART: pa.StructArray.from_arrays(columns, names=[KIND, REASON, WHOLE])})


def _emitted_schema(plan: Plan, row: T.DataType | None, told: Sequence[str]) -> T.StructType:
    schema = handed_over_schema(plan, told).add(STATUS, "string")
    if row is not None:
        apart = T.StructType().add(KIND, "string").add(REASON, "string").add(WHOLE, row)
        schema = schema.add(APART, apart)
    return schema


def _survives_pandas(schema: T.StructType) -> bool:
    plain = (T.NumericType, T.StringType, T.BooleanType, T.BinaryType)
    return all(isinstance(f.dataType, plain) for f in schema.fields)
