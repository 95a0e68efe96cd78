"""The streaming DataFrame of a register over joins, and what is done with its batches.

Every stream is read once, with a column for each use that a join makes of it. What travels between
shards, and from them to the sink, are packages. So the sources and the states of Spark's plan are
the same whatever the queries are, and other queries may go on from its checkpoint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.errors import QueryError
from panes.language.query import WINDOW_COLUMNS
from panes.path_part import path_part
from panes.planning.terms import CheckedOptions, StreamOptions, require_streamable
from panes.shards.combiner import Combiner
from panes.shards.join_filler import SideFiller
from panes.shards.join_keys import shard_keys
from panes.shards.names import AT, PROMISE, SOURCE
from panes.shards.shared_join_shard import SharedJoinShard, SharedOutcome
from panes.shards.shared_joins import EVERY_JOIN, SentJoins, SharedJoin, SharedQuery, addressed
from panes.shards.windows_above_shard import AboveOutcome, WindowsAboveShard
from panes.sharing.failures import noted, require_none
from panes.spark.column_names import PACKAGE, SHARD, STATUS
from panes.spark.host import Beside, Hosted, host, named_batch, shard_numbers
from panes.spark.internals import dumps, spark_type
from panes.spark.join.bind import BoundJoin
from panes.spark.join.stream import lies_on, terms_of
from panes.spark.observe import DEFAULT, JOIN, observed, status_of
from panes.spark.query import send
from panes.spark.register.lowered import PACKED, Unpack
from panes.spark.register.tap import MOST_ROWS, Tap
from panes.spark.stream.query import projected_columns
from panes.stores import codec

if TYPE_CHECKING:
    import pandas as pd

JoinSink: TypeAlias = "str | Path | Callable[[str, DataFrame, int], None]"
"""A folder, or a function of a query's name, its answers and the batch's number."""
QUERY, ROWS, _USE = "query", "rows", "use"
_UP = T.StructType().add(SHARD, "integer").add(PACKAGE, "binary").add(STATUS, "string")
_OUT = T.StructType().add(QUERY, "string").add(ROWS, "long").add(PACKAGE, "binary")
_OUT = _OUT.add(STATUS, "string")


def require_shared(bound: BoundJoin, run: StreamOptions) -> None:
    """Refuse what a register over joins of streams cannot answer, when it is added."""
    terms_of(bound, _to_its_end(run))
    plan, found = bound.plan, bound.plan.aggregation
    if any(inner is not None for source in plan.query.join.sources for inner in source.inner):
        raise QueryError(
            "a register over joins on Spark takes streams as they are, no SELECT inside FROM",
            hint="select from the DataFrame before it is registered",
        )
    if plan.query.emits_early:
        raise QueryError(
            "a register answers every window once, so EMIT EARLY is not for it",
            hint="panes.sql answers a query of its own early",
        )
    if found is None:
        return
    lies_on(plan, found)
    windows = SharedQuery.of("", plan, bound.user).windows
    assert windows is not None
    require_streamable(windows)
    if windows.window.origin_first:
        raise QueryError(
            "ORIGIN FIRST over a stream on Spark: where panes begin would be known only later",
            hint="give the origin itself: ORIGIN '2026-01-01'",
        )


def joined_together(
    bound: Mapping[str, BoundJoin],
    joins: Sequence[SharedJoin],
    streams: Mapping[str, DataFrame],
    run: StreamOptions,
) -> DataFrame:
    """The packages of all answers, by query, as a streaming DataFrame."""
    session = next(iter(streams.values())).sparkSession
    shards = shard_numbers(session, run.shards, is_keyed=True)
    count, sent = len(shards), SentJoins.of(joins, dumps)
    joined = [bound[shared.queries[0].name] for shared in joins]
    terms = max((terms_of(of, run)[1] for of in joined), key=lambda one: one.lateness or 0)
    uses: dict[str, list[_Use]] = {name: [] for name in streams}
    for shared, of in zip(joins, joined, strict=True):
        for stream, use in _uses(shared, of, terms):
            uses[stream].append(use)
    sides = [
        Beside([_read_once(streams[name], mine)], _Together(tuple(mine), count, terms))
        for name, mine in uses.items()
    ]
    hosted = Hosted(
        combiner=sides[0].combiner,
        shard=lambda state: SharedJoinShard(sent.joins(), terms, state, shards=count, above=count),
        emit=_emit_up,
        output=_UP,
    )
    up = host(sides[0].projected, hosted, shards, terms, bounded=run.bounded, beside=sides[1:])
    told = observed(up, f"{run.name or DEFAULT}{JOIN}", STATUS)
    above = Hosted(
        combiner=_Forward,
        shard=lambda state: WindowsAboveShard(
            sent.joins(),
            CheckedOptions(max_ahead=None, max_answers=run.max_answers),
            state,
            shards=count,
        ),
        emit=_emit_out,
        output=_OUT,
    )
    packages = told.where(F.col(STATUS).isNull()).select(SHARD, PACKAGE)
    given = host(
        [packages], above, shards, CheckedOptions(max_answers=run.max_answers), bounded=False
    )
    return observed(given, run.name or DEFAULT, STATUS)


def _to_its_end(run: StreamOptions) -> StreamOptions:
    """The same, of streams that end; whether they do is said when they start."""
    closes = (run.lateness, run.punctuation, run.heartbeat)
    return run if any(c is not None for c in closes) else replace(run, bounded=True)


@dataclass(frozen=True, slots=True)
class _Use:
    """What one side of a join reads of a stream, what a task does with that, and for whom."""

    key: str
    names: tuple[str, ...]
    filler: SideFiller
    columns: Mapping[str, Column]

    def __reduce__(self) -> tuple[type[_Use], tuple[object, ...]]:
        """Without its columns: tasks are given their values."""
        return _Use, (self.key, self.names, self.filler, {})


def _uses(shared: SharedJoin, of: BoundJoin, terms: CheckedOptions) -> Iterator[tuple[str, _Use]]:
    """What the sides of a join read, stream by stream."""
    keys, source = shard_keys(shared.join), 0
    names = tuple(query.name for query in shared.queries)
    for number, (side, plan) in enumerate(zip(of.sides, shared.join.sources, strict=True)):
        filler = SideFiller(plan, number, keys[number])
        for place, stream in enumerate(plan.source.streams):
            columns = projected_columns(side, place, terms, source=source)
            yield stream, _Use(shared.key, names, filler, columns)
            source += 1


def _read_once(stream: DataFrame, uses: Sequence[_Use]) -> DataFrame:
    """A stream with a column for each use of it."""
    structs = [
        F.struct(*(c.alias(name) for name, c in use.columns.items())).alias(f"{_USE}{i}")
        for i, use in enumerate(uses)
    ]
    nothing = [F.lit(None).cast("int").alias(SOURCE), F.lit(None).cast("long").alias(AT)]
    return stream.select(*structs, *nothing)


@dataclass(frozen=True, slots=True)
class _Together:
    """What a task does with the rows of a stream, for all joins that read it."""

    uses: tuple[_Use, ...]
    shards: int
    terms: CheckedOptions

    def __call__(self) -> _Combiners:
        return _Combiners(
            [
                Combiner(
                    SideFiller(use.filler.side, use.filler.number, use.filler.keys),
                    self.shards,
                    notes_positions=False,
                    max_step=self.terms.step_on(use.filler.side.plan.placing.kind),
                )
                for use in self.uses
            ],
            self.uses,
            Combiner(_NoRows(), self.shards),
        )


@dataclass(frozen=True, slots=True)
class _Combiners:
    """A combiner for each use of a stream, and one for what is said of all sources."""

    of_uses: list[Combiner]
    uses: tuple[_Use, ...]
    of_all: Combiner

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in some of the task's rows."""
        is_row = pc.is_null(batch.column(SOURCE))
        rows = batch.filter(is_row)
        failing: dict[str, Exception] = {}
        for i, (use, combiner) in enumerate(zip(self.uses, self.of_uses, strict=True)):
            with noted(failing, use.names):
                combiner.add(pa.RecordBatch.from_struct_array(rows.column(f"{_USE}{i}")))
        require_none(failing)
        said = [name for name in (SOURCE, AT, PROMISE) if name in batch.schema.names]
        self.of_all.add(batch.filter(pc.invert(is_row)).select(said))

    def packages(self, *, always: bool = False) -> Iterator[tuple[int, bytes]]:
        """What each shard is sent."""
        for use, combiner in zip(self.uses, self.of_uses, strict=True):
            for shard, package in combiner.packages():
                yield shard, addressed(use.key, package)
        for shard, package in self.of_all.packages(always=always):
            yield shard, addressed(EVERY_JOIN, package)


class _NoRows:
    """Makes nothing of rows: there are none."""

    column = None

    def see(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None: ...
    def take(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None: ...

    def parts(self, shards: int) -> dict[int, dict[str, pa.Table]]:  # noqa: ARG002
        return {}


@dataclass(slots=True)
class _Forward:
    """Sends packages to the shards that they are for, as they are."""

    _sent: list[tuple[int, bytes]] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in some packages."""
        self._sent += zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)

    def packages(self, *, always: bool = False) -> Iterator[tuple[int, bytes]]:  # noqa: ARG002
        """What each shard is sent."""
        yield from self._sent


def _emit_up(outcome: SharedOutcome) -> Iterator[pd.DataFrame]:
    status = status_of(
        outcome, answers=outcome.answers, late=outcome.late, rejected=outcome.rejected
    )
    rows = [(shard, package, None) for shard, package in outcome.packages]
    yield _frame([*rows, (None, None, status)], _UP)


def _emit_out(outcome: AboveOutcome) -> Iterator[pd.DataFrame]:
    answers = sum(map(len, outcome.answers.values()))
    status = status_of(outcome, answers=answers, late=outcome.late, rejected=outcome.rejected)
    rows = [
        (name, len(table), codec.pack({PACKED: table}), None)
        for name, table in outcome.answers.items()
    ]
    yield _frame([*rows, (None, None, None, status)], _OUT)


def _frame(rows: Sequence[tuple[object, ...]], schema: T.StructType) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame(list(rows), columns=schema.names)
    numbers = {SHARD: "Int32", ROWS: "Int64"}
    return frame.astype({name: kind for name, kind in numbers.items() if name in schema.names})


@dataclass(frozen=True, slots=True)
class DeliverJoined:
    """What is done with every batch: the answers of each query go to the sink."""

    schemas: Mapping[str, pa.Schema]
    sink: JoinSink
    tap: Tap | None = None

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        with named_batch(batch, batch_id) as stored:
            answered = stored.where(F.col(QUERY).isNotNull())
            given: Counter[str] = Counter()
            for name, rows in answered.select(QUERY, ROWS).collect():
                given[name] += rows
            for name in (n for n in self.schemas if n in given):
                self._send(name, self._answers(answered, name), batch_id)
            if self.tap is not None:
                self.tap.note(batch_id, given, lambda name: self._some(answered, name), lambda: ())

    def _answers(self, answered: DataFrame, name: str) -> DataFrame:
        schema = self.schemas[name]
        types = [T.StructField(f.name, spark_type(f.type)) for f in schema]
        packages = answered.where(F.col(QUERY) == name).select(PACKAGE)
        return packages.mapInArrow(Unpack(schema), T.StructType(types))

    def _send(self, name: str, frame: DataFrame, batch_id: int) -> None:
        if callable(self.sink):
            self.sink(name, frame, batch_id)
        else:
            send(frame, f"{self.sink}/query={path_part(name)}", batch_id)

    def _some(self, answered: DataFrame, name: str) -> pa.Table:
        """Some answers of a query, those of the newest windows where it has any."""
        frame, end = self._answers(answered, name), WINDOW_COLUMNS[1]
        if end not in frame.columns:
            return frame.limit(MOST_ROWS).toArrow()
        return frame.orderBy(F.col(end).desc()).limit(MOST_ROWS).toArrow().sort_by(end)
