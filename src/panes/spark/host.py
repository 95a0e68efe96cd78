"""How Spark hosts shards: combine before the shuffle, one store per shard, progress as rows.

    rows --mapInArrow: combine--> a package per shard --shuffle by shard-->
         transformWithState: one shard's state --> what the shard gives

Progress travels as rows: every task tells every shard how far its rows reach, in the same
micro-batch. So a window closes in the batch that proves it complete, one batch before Spark's own
watermark would. Packages and state are bytes of `panes.stores.codec`.

A bounded stream has ended when a batch brings a shard nothing: Spark runs one batch without data
at the end. So in every batch with data some task has to say that there is data. Where the tasks
over a frame are not those of its sources (after a join, a shuffle, a filter of files), tasks over
the sources themselves say it, which read them a second time, without their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import reduce
from typing import Protocol

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.axis import Axis
from panes.errors import OptionError, QueryError
from panes.language.query import Query
from panes.planning.terms import (
    CheckedOptions,
    StreamOptions,
    check_options,
    require_clock,
    require_lateness,
)
from panes.shards.names import AT, EVERY_SOURCE, PROMISE, SOURCE
from panes.spark.batches import Batches
from panes.spark.bind import is_inside
from panes.spark.column_names import PACKAGE, SHARD, WHEN
from panes.spark.internals import UTC, batch_number, streaming_plan, tag_of, watermark_delay
from panes.spark.partitions import one_per_partition, partitions_of
from panes.spark.refusals import require_not_of_process
from panes.spark.session import STATE_STORE
from panes.spark.state_host import Emits, MakesShard, StateHost, Waits

REPLACED = "panes.replaced"
"""Said in the metadata of the column that tells early and revised answers from final ones."""

_SENT = f"{SHARD} int, {PACKAGE} binary, {WHEN} timestamp"
_TICK = 1_000_000
_NEVER = "spark_partition_id() < 0"
"""A filter that no row passes, and that neither Spark nor a source can apply beforehand."""


class Combines(Protocol):
    """What a task does with its rows: it makes packages of them, each for a shard."""

    def add(self, batch: pa.RecordBatch, /) -> None: ...
    def packages(self, *, always: bool = False) -> Iterator[tuple[int, bytes]]: ...


@dataclass(frozen=True, slots=True)
class TaskRows:
    """Streams that have been projected to what a `combiner` of each task reads."""

    projected: Sequence[DataFrame]
    combiner: Callable[[], Combines]


@dataclass(frozen=True, slots=True)
class Hosted:
    """What a shard does with its state.

    What it gives leaves Spark's store by `emit`, as rows of `output`. Where the terms say
    `by_watermark`, the shard is a `WatermarkedShard`.
    """

    shard: MakesShard
    emit: Emits
    output: T.StructType


class Trial(Protocol):
    """What tries a stream by killing it (`panes.crash`): it stands around the shards."""

    def hosted(self, hosted: Hosted, /) -> Hosted: ...
    def given(self, frame: DataFrame, /) -> DataFrame: ...


_TRIAL: ContextVar[Trial | None] = ContextVar("trial", default=None)


@contextmanager
def tried_by(trial: Trial) -> Iterator[None]:
    """Streams that are made in the block are on trial."""
    before = _TRIAL.set(trial)
    try:
        yield
    finally:
        _TRIAL.reset(before)


def host(
    read: Sequence[TaskRows],
    hosted: Hosted,
    shards: tuple[int, ...],
    terms: CheckedOptions,
    *,
    bounded: bool,
    elsewhere: Sequence[DataFrame] = (),
    beating: Sequence[int] = (EVERY_SOURCE,),
) -> DataFrame:
    """What all shards give, of the streams that are read.

    A bounded stream has not ended while streams that are read `elsewhere` in the query have data. A
    heartbeat is one of the sources that are `beating`.
    """
    first, *beside = read
    session, trial = first.projected[0].sparkSession, _TRIAL.get()
    if trial is not None:
        hosted = trial.hosted(hosted)
    _require_state_store(session.conf.get("spark.sql.streaming.stateStore.providerClass"))
    united = list(first.projected)
    if terms.heartbeat is not None:
        united.append(_heartbeat(session, terms.heartbeat.slack, beating))
    if bounded:
        united.append(_one_row_per_run(session))
    frames = [frame for rows in read for frame in rows.projected]
    plans = [streaming_plan(frame) for frame in frames] if bounded else []
    tasks_tell = bounded and all(plan.per_row for plan in plans)
    combine = Combine(first.combiner, shards, tell_empty=tasks_tell)
    sent = _united(united).mapInArrow(combine, _SENT)
    for rows in beside:
        others_combine = replace(combine, combiner=rows.combiner)
        sent = sent.union(_united(rows.projected).mapInArrow(others_combine, _SENT))
    telling = [] if tasks_tell else plans
    telling += [streaming_plan(frame) for frame in elsewhere] if bounded else []
    sources = [source for plan in telling for source in plan.sources]
    if sources:
        no_rows = _united([source.where(_NEVER).select(*_no_row()) for source in sources])
        sent = sent.union(no_rows.mapInArrow(replace(combine, tell_empty=True), _SENT))
    if bounded:
        sent = sent.withWatermark(WHEN, "0 seconds")
    waits: Waits | None = "watermark" if terms.by_watermark else "end" if bounded else None
    given = sent.groupBy(SHARD).transformWithStateInPandas(
        statefulProcessor=StateHost(hosted.shard, hosted.emit, terms.max_answers, waits),
        outputStructType=hosted.output,
        outputMode="append",
        timeMode="none" if waits is None else "eventtime",
    )
    return given if trial is None else trial.given(given)


def shard_numbers(session: SparkSession, asked: int | None, *, is_keyed: bool) -> tuple[int, ...]:
    """The numbers that stand for shards in the shuffle; without keys there is one shard."""
    count = partitions_of(session) if asked is None else asked
    if count < 1:
        raise OptionError(f"shards must be at least 1, got {count}")
    return one_per_partition(count if is_keyed else 1)


def stream_terms(
    query: Query, frames: Sequence[DataFrame], axis: Axis, run: StreamOptions
) -> tuple[StreamOptions, CheckedOptions]:
    """How a query runs over streams, and what these promise; refused if nothing says it."""
    require_not_of_process(run)
    require_lateness(run.lateness, axis.kind)
    run = with_watermark([(frame, axis.column or "") for frame in frames], run)
    terms = check_options(query, run)
    require_clock(run)
    require_progress(terms, query.streams, bounded=run.bounded)
    return run, terms


def with_watermark(placed: Iterable[tuple[DataFrame, str]], run: StreamOptions) -> StreamOptions:
    """How late rows may be, from the streams' own ``withWatermark`` if nothing else says it.

    Each stream is placed by a column. What is read of a node has the promises of that.
    """
    own = [(frame, column) for frame, column in placed if not is_inside(frame)]
    delays = [watermark_delay(frame.schema[column]) for frame, column in own]
    is_told = run.bounded or (run.lateness, run.punctuation, run.heartbeat) != (None, None, None)
    for (frame, column), delay in zip(own, delays, strict=True):
        marked = [f.name for f in frame.schema if watermark_delay(f) is not None]
        if delay is None and marked and not is_told:
            raise OptionError(
                f"the watermark is on `{marked[0]}`, and the window lies on `{column}`",
                hint=f'df.withWatermark("{column}", "10 seconds"), or WATTR {marked[0]}',
            )
        if run.by_watermark and delay is None:
            raise OptionError(
                f"late='spark' closes windows by the watermark of `{column}`, which has none",
                hint=f'df.withWatermark("{column}", "10 seconds")',
            )
        if run.bounded and delay is not None:
            raise OptionError(
                f"`{column}` has a watermark, and Spark takes only one: the end would not be "
                "noticed",
                hint='leave out withWatermark and say lateness="10 seconds"',
            )
    found = [delay for delay in delays if delay is not None]
    if run.lateness is not None or run.punctuation is not None or len(found) < len(delays):
        return run
    return replace(run, lateness=timedelta(milliseconds=max(found))) if found else run


def require_progress(
    terms: CheckedOptions,
    streams: Sequence[str],
    *,
    bounded: bool,
    otherwise: str = "no window would ever close",
) -> None:
    """Refuse a stream of which nothing says how far it is."""
    told = (name in terms.inside or terms.of(name).makes_progress for name in streams)
    if not (bounded or all(told)):
        which = "stream progresses" if len(streams) == 1 else "streams progress"
        raise OptionError(
            f"nothing says how the {which}, so {otherwise}",
            hint='df.withWatermark("ts", "10 seconds"); panes.sql and panes.register also take '
            'lateness="10 seconds", punctuation= and heartbeat=; and for an availableNow run there '
            "is bounded=True, of panes.sql and reg.start",
        )


def require_final(name: str, frame: DataFrame, *, bounded: bool) -> None:
    """Refuse a stream of answers that are taken back later, or whose end would not be noticed.

    Other answers are a stream like any other: they come in the order of their windows, and the ones
    of a batch reach a query over them in the same batch.
    """
    replaced = any(field.metadata.get(REPLACED) for field in frame.schema.fields)
    if not (bounded or replaced) or not streaming_plan(frame).has_answers:
        return
    if replaced:
        raise QueryError(
            f"stream `{name}` has answers that are given early or revised later, and each would "
            "count every time",
            hint="leave out EMIT EARLY and late='revise' in the query that gives them",
        )
    raise QueryError(
        f"bounded=True over `{name}`, which has the answers of another query: Spark notices the "
        "end of a stream once, and not above it",
        hint="write these answers to a folder, and read it as a stream of its own: "
        f"answers.writeStream.format('parquet'), then {name}=spark.readStream.parquet(...); "
        "without bounded=True it works, and windows are answered that are complete",
    )


def _require_state_store(provider: str | None) -> None:
    if provider != STATE_STORE:
        raise OptionError(
            "streams need Spark's RocksDB state store, and the session has another one",
            hint=f'spark.conf.set("spark.sql.streaming.stateStore.providerClass", "{STATE_STORE}"),'
            " or build the session with panes.spark.session()",
        )


def _heartbeat(session: SparkSession, slack: int, sources: Sequence[int]) -> DataFrame:
    """Rows that promise, by the clock, that nothing older than `slack` is still to come of some."""
    rate = session.readStream.format("rate")
    beats = rate.option("rowsPerSecond", 1).option("numPartitions", 1).load()
    promised = F.unix_micros("timestamp") - F.lit(slack)
    of = F.explode(F.array(*map(F.lit, sources))).alias(SOURCE)
    return beats.select(of, _nowhere(), promised.alias(PROMISE))


def _one_row_per_run(session: SparkSession) -> DataFrame:
    """A row in the first batch of every ``availableNow`` run, so that there is one.

    Spark runs the batch without data, which tells the end, only after a batch with data in the
    same run. A run that starts where the last one was killed may have no other.
    """
    rate = session.readStream.format("rate-micro-batch")
    return rate.option("rowsPerBatch", 1).option("numPartitions", 1).load().select(*_no_row())


def _united(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames)


def _no_row() -> list[Column]:
    return [F.lit(EVERY_SOURCE).alias(SOURCE), _nowhere()]


def _nowhere() -> Column:
    return F.lit(None).cast("long").alias(AT)


@dataclass(frozen=True, slots=True)
class Combine:
    """What every task does with its rows before the shuffle.

    With `tell_empty`, a task without rows says so, since a batch in which nothing is said is
    taken for the end of the stream.
    """

    combiner: Callable[[], Combines]
    shards: tuple[int, ...]
    tell_empty: bool

    def __call__(self, batches: Batches) -> Batches:
        combiner = self.combiner()
        for batch in batches:
            combiner.add(batch)
        when = pa.array([batch_number() * _TICK], pa.timestamp("us", UTC))
        for shard, package in combiner.packages(always=self.tell_empty):
            number, data = pa.array([self.shards[shard]], pa.int32()), pa.array([package])
            yield pa.record_batch([number, data, when], names=[SHARD, PACKAGE, WHEN])


@contextmanager
def named_batch(batch: DataFrame, batch_id: int) -> Iterator[DataFrame]:
    """A batch in ``foreachBatch``, stored while several sinks read it.

    Through Spark Connect its tasks run outside of the micro-batch, so a tag tells them its number.
    """
    session, tag = batch.sparkSession, tag_of(batch_id)
    session.addTag(tag)
    stored = batch.persist()
    try:
        yield stored
    finally:
        stored.unpersist()
        session.removeTag(tag)
