"""A query over a stream in this process: push, punctuate, finish.

Decides which rows count (rejected and late ones are kept apart, with the reason), what is
promised, and therefore which windows are closed. The work is the `Pipeline`'s.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.custom import UserAggregate
from panes.axis import axis_over, parse_instant
from panes.engine.adaptive import Sources
from panes.engine.apart import late_reasons, no_place, set_apart, too_far_ahead, with_reason
from panes.engine.arrival import Arrival
from panes.engine.held import positions_held_in, windows_held_in
from panes.engine.key_promises import KeyPromises, read_key
from panes.engine.per_row import PerRowPipeline
from panes.engine.pipeline import Pipeline, projected
from panes.engine.ranked import RankedPipeline
from panes.engine.terms import Run, agree, require_lateness
from panes.errors import ColumnTypeError, InputError, OptionError, QueryError, UnknownStreamError
from panes.frames import to_table
from panes.language.parse import parse
from panes.planning.plan import Plan, plan
from panes.planning.scalar import find_column
from panes.planning.stores import StoreName, choose_store
from panes.progress.promise import EVERYTHING, NOTHING, Promise, meld
from panes.windows.extent import first_wid, last_wid, ruler
from panes.windows.spec import Landmark, PartitionedRows, PerRow, Sliding

Instant: TypeAlias = "str | int | dt.datetime"
AnyPipeline: TypeAlias = "Pipeline | RankedPipeline | PerRowPipeline"


class OpenQuery:
    """A running query: rows go in, final answers come out.

    Answers are given once, when nothing can change them any more. Row order and the split into
    batches change no answer, as long as no row comes later than was promised.
    """

    def __init__(
        self,
        text: str,
        run: Run = Run(),  # noqa: B008 - frozen
        *,
        aggregates: Sequence[UserAggregate] = (),
        now: Callable[[], int] = lambda: time.time_ns() // 1_000,
    ) -> None:
        self.query = parse(text, aggregates)
        self._aggregates = tuple(aggregates)
        self.terms = agree(self.query, run)
        self._promises = {name: Promise(self.terms.lateness) for name in self.query.streams}
        self._kept = {name: replace(p) for name, p in self._promises.items()}
        self._key_promises, self._kept_promises = KeyPromises(), KeyPromises()
        self._now = now
        self._bounded = run.bounded
        self._lateness = run.lateness
        self._store, self._sources = run.store, Sources()
        self._schemas: dict[str, pa.Schema] = {}
        self._plan: Plan | None = None
        self._pipeline: AnyPipeline | None = None
        self._waiting: list[tuple[NDArray[np.int64], list[pa.Array]]] = []
        self._arrived = 0
        self._finished = False
        self._late: list[pa.Table] = []
        self._rejected: list[pa.Table] = []

    def push(self, **batches: object) -> pa.Table:
        """Take in a batch of each named stream; gives the answers that are final from now on.

        All or nothing: if a batch is refused, the query is as it was before.
        """
        self._require_running()
        if not batches:
            raise OptionError("push needs a batch", hint=f"push({self.query.streams[0]}=table)")
        tables = {name: to_table(batch, name) for name, batch in batches.items()}
        bound, schemas = self._bind(tables)
        arrived = self._arrived
        prepared = []
        for name, table in tables.items():
            prepared.append(self._prepare(bound, name, _spelled(table, bound), arrived))
            arrived += len(table)
        pipeline = self._pipeline
        if self._plan is None and not bound.window.origin_first:
            pipeline = self._new_pipeline(bound)
        self._add(prepared, pipeline)
        self._plan, self._pipeline = bound, pipeline
        self._schemas, self._arrived = schemas, arrived
        return self._advance()

    def punctuate(
        self, *, key: Mapping[str, object] | None = None, **promised: Instant
    ) -> pa.Table:
        """Promise that no later row of a stream lies before an instant; gives what that closes.

        With a `key`, ``key={"item": 7}``, the promise is for rows of that key only: its windows
        close, and the others wait for their own.
        """
        self._require_running()
        at = {name: self._position(name, instant) for name, instant in promised.items()}
        if key is None:
            for name, position in at.items():
                self._promises[name].punctuate(position)
            return self._advance()
        values = read_key(self._require_keyed(), key)
        for name, position in at.items():
            self._key_promises.punctuate(name, values, position)
        return self._advance()

    def _require_keyed(self) -> Plan:
        """Promises for one key need windows that can close for one key."""
        if self._plan is None:
            raise InputError("a promise for one key needs a batch first, which tells its type")
        if not isinstance(self._plan.window.spec, Sliding) or self._plan.order is not None:
            raise QueryError("promises for one key are for sliding and tumbling windows")
        if self._plan.window.origin_first or self._counts_arrivals:
            raise QueryError("promises for one key need a time or integer axis with a fixed origin")
        return self._plan

    def _position(self, name: str, instant: Instant) -> int:
        if name not in self._promises:
            raise UnknownStreamError(name, streams=self._promises)
        measure = None if self.query.window is None else self.query.window.measure
        if self._plan is not None:
            measure = self._plan.placing.kind
        if measure != "time" and not isinstance(instant, Integral):
            raise OptionError(f"`{name}` has no time axis: a promise is a whole number there")
        return parse_instant(instant)

    def finish(self) -> pa.Table:
        """The stream has ended: gives all answers that are left, and forgets everything."""
        self._require_running()
        if self._plan is None:
            raise InputError(
                f"the query has seen no batch of {self._names(self._promises)}, so its answers "
                "have no columns",
                hint="push an empty table with the stream's schema",
            )
        self._start_waiting()
        pipeline = self._pipeline
        if pipeline is None:
            answers = self._plan.schema().empty_table()
        elif self._counts_arrivals:
            answers = pipeline.advance(self._arrived)
        elif self._key_promises and isinstance(pipeline, Pipeline):
            answers = self._advance_each(self._plan, pipeline, ends=True)
        else:
            answers = pipeline.finish()
        for promise in self._promises.values():
            promise.punctuate(EVERYTHING)
        self._finished = True
        self._pipeline = None
        return answers

    @property
    def late(self) -> pa.Table:
        """Rows that broke a promise, with the reason."""
        return set_apart(self._late, self._schemas.values())

    def take_late(self) -> pa.Table:
        """The late rows so far, which are then forgotten: for queries that run for long."""
        taken, self._late = self.late, []
        return taken

    @property
    def rejected(self) -> pa.Table:
        """Rows that have no place on the axis, with the reason."""
        return set_apart(self._rejected, self._schemas.values())

    @property
    def progress(self) -> int:
        """What is promised of the whole input, in ticks of the axis."""
        return meld(self._promises.values())

    @property
    def state(self) -> Mapping[str, int]:
        """How much is held: keys, partials, rows that the store keeps, bytes of both.

        Rows wait beside the store for ``ORIGIN FIRST`` to be known, for their own per-row window
        to end, or for the rows before them where a column orders them.
        """
        pipeline = self._pipeline
        return {
            "keys": 0 if pipeline is None else pipeline.held.keys,
            "partials": 0 if pipeline is None else len(pipeline.held),
            "bytes": 0 if pipeline is None else pipeline.held.nbytes,
            "rows": 0 if pipeline is None else pipeline.held.rows,
            "waiting_rows": sum(len(at) for at, _ in self._waiting)
            + (0 if pipeline is None or isinstance(pipeline, Pipeline) else pipeline.waiting),
        }

    @property
    def plan(self) -> Plan:
        """The plan, known from the first batch on."""
        if self._plan is None:
            raise InputError("the plan is not known before every stream has sent a batch")
        return self._plan

    def _require_running(self) -> None:
        if self._finished:
            raise QueryError("the query has finished; open it again to ask once more")

    def _bind(self, tables: Mapping[str, pa.Table]) -> tuple[Plan, dict[str, pa.Schema]]:
        """The plan, with everything checked that new schemas could break; nothing is kept yet."""
        schemas = dict(self._schemas)
        for name, table in tables.items():
            if name not in self._promises:
                raise UnknownStreamError(name, streams=self._promises)
            known = schemas.setdefault(name, table.schema.remove_metadata())
            if not table.schema.remove_metadata().equals(known):
                raise InputError(
                    f"a batch of stream `{name}` has other columns than the first one: "
                    f"{_differences(known, table.schema)}"
                )
        if self._plan is not None and len(schemas) == len(self._schemas):
            return self._plan, schemas
        first = schemas.get(self.query.streams[0], next(iter(schemas.values())))
        every = {name: schemas.get(name, first) for name in self._promises}
        bound = plan(self.query, every, self._aggregates)
        require_lateness(self._lateness, bound.placing.kind)
        if not self._bounded:
            require_streamable(bound)
        return self._plan or bound, schemas

    def _prepare(self, bound: Plan, name: str, table: pa.Table, arrived: int) -> _Prepared:
        """Sort out a batch's rows: which count, which are late, which have no place."""
        result = _Prepared(name)
        at, table = self._placed(bound, table, arrived, result)
        result.newest = int(at.max()) if len(at) else None
        promised = self._promises[name].at
        kept, columns = bound.rows(table)
        if bound.counts_rows:
            result.everything, result.partition = at, bound.partition(table)
        result.kept = np.arange(len(at)) if kept is None else kept
        at = at if kept is None else at[kept]
        keys = columns[: len(bound.key_types)]
        is_timed = bound.placing.kind != "rows" and (promised != NOTHING or self._key_promises)
        promises = self._key_promises.of(name, promised, keys, len(at)) if is_timed else at
        if (is_late := at < promises).any():
            which = np.flatnonzero(is_late)
            rows = table.take(pa.array(which if kept is None else kept[which]))
            late_keys = [c.take(pa.array(which)) for c in keys]
            reasons = self._reasons(bound, at[which], promises[which], late_keys)
            result.late.append(with_reason(rows, reasons))
            if self.terms.drops_late or bound.order is not None:
                on_time = np.flatnonzero(~is_late)
                at, columns = at[on_time], [c.take(pa.array(on_time)) for c in columns]
                result.kept = result.kept[on_time]
        result.at, result.columns = at, columns
        return result

    def _placed(
        self, bound: Plan, table: pa.Table, arrived: int, result: _Prepared
    ) -> tuple[NDArray[np.int64], pa.Table]:
        """Where the rows lie; rows without a place are set apart."""
        axis = bound.placing
        if axis.kind == "rows":
            return arrived + np.arange(len(table)), table
        ticks, missing = axis.ticks(table.column(axis.column).combine_chunks())
        if self.terms.punctuation is not None:
            table, ticks, missing = self._without_promises(bound, table, ticks, missing, result)
        if missing is not None:
            reason = no_place(axis.column)
            table, ticks = _without(table, ticks, missing, reason, result)
        max_ahead = self.terms.max_ahead
        if self.terms.lateness is not None and axis.kind == "time" and max_ahead is not None:
            ahead = ticks > self._now() + max_ahead
            if ahead.any():
                reason = too_far_ahead(axis.column)
                table, ticks = _without(table, ticks, ahead, reason, result)
        return ticks, table

    def _without_promises(
        self,
        bound: Plan,
        table: pa.Table,
        ticks: NDArray[np.int64],
        missing: NDArray[np.bool_] | None,
        result: _Prepared,
    ) -> tuple[pa.Table, NDArray[np.int64], NDArray[np.bool_] | None]:
        """Note what a batch promises; rows that are nothing but a promise are left out."""
        column = promise_column(bound, table.schema, self.terms.punctuation, result.stream)
        promised, without = bound.placing.ticks(table.column(column).combine_chunks())
        given = np.ones(len(table), dtype=np.bool_) if without is None else ~without
        if given.any():
            result.promise = int(promised[given].max())
        if missing is None or not (missing & given).any():
            return table, ticks, missing
        rows = ~(missing & given)
        return table.filter(pa.array(rows)), ticks[rows], missing[rows]

    def _reasons(
        self,
        bound: Plan,
        at: NDArray[np.int64],
        promised: NDArray[np.int64],
        keys: Sequence[pa.Array],
    ) -> list[str]:
        is_open = np.ones(len(at), dtype=np.bool_)
        if self._pipeline is not None:
            is_open = self._pipeline.has_open_window(at)
        if self._key_promises:
            size, slide, origin = ruler(bound.spec)
            progress = self._key_promises.melded(self._promises, keys, len(at))
            is_open &= last_wid(at, size, slide, origin) >= first_wid(progress, slide, origin)
        return late_reasons(bound.placing, promised, is_open, dropped=self.terms.drops_late)

    def _add(self, prepared: Sequence[_Prepared], pipeline: AnyPipeline | None) -> None:
        """Let prepared rows in, all streams of a push together."""
        held = [(p.at, p.columns) for p in prepared if len(p.at)]
        if isinstance(pipeline, RankedPipeline | PerRowPipeline):
            for batch in prepared:
                pipeline.add(batch.arrival())
        elif pipeline is None:
            self._waiting += held
        elif held:
            at = held[0][0] if len(held) == 1 else np.concatenate([a for a, _ in held])
            columns = held[0][1]
            if len(held) > 1:
                columns = [pa.concat_arrays(c) for c in zip(*(c for _, c in held), strict=True)]
            pipeline.add(at, columns)
        for batch in prepared:
            self._late += batch.late
            self._rejected += batch.rejected
            if batch.newest is not None:
                self._promises[batch.stream].observe(batch.newest)
                self._sources.hear(batch.stream, batch.newest, len(batch.at))
            if batch.promise is not None:
                self._promises[batch.stream].punctuate(batch.promise)

    def _advance(self) -> pa.Table:
        if self._plan is None:
            return pa.table({})
        progress = self._arrived if self._counts_arrivals else self.progress
        oldest = min((int(at.min()) for at, _ in self._waiting if len(at)), default=EVERYTHING)
        if self._pipeline is None and oldest < progress:
            self._start_waiting()
        if self._key_promises and isinstance(self._pipeline, Pipeline):
            return self._advance_each(self._plan, self._pipeline)
        if self._pipeline is None or progress == NOTHING:
            return self._plan.schema().empty_table()
        return self._pipeline.advance(progress)

    def _advance_each(self, bound: Plan, pipeline: Pipeline, *, ends: bool = False) -> pa.Table:
        """Every group has its own progress, as long as there are promises for some keys."""
        keys, count = pipeline.held.key_columns, pipeline.held.keys
        before = self._kept_promises.melded(self._kept, keys, count)
        now = self._key_promises.melded(self._promises, keys, count)
        if ends:
            now = np.full(count, EVERYTHING, dtype=np.int64)
        answers = pipeline.close_each(before, now, self.progress)
        self._kept = {name: replace(p) for name, p in self._promises.items()}
        self._key_promises.forget(self.progress)
        self._kept_promises = self._key_promises.copy()
        return projected(bound, answers)

    @property
    def _counts_arrivals(self) -> bool:
        return self._plan is not None and self._plan.placing.kind == "rows"

    def _new_pipeline(self, bound: Plan, origin: int | None = None) -> AnyPipeline:
        store = choose_store(bound, self._store).name
        return pipeline_of(bound, store, self._sources, origin=origin)

    def _start_waiting(self) -> None:
        """``ORIGIN FIRST``: nothing older can come, so the origin is known. Let the rows in."""
        if self._pipeline is not None or self._plan is None or not self._waiting:
            return
        rows, self._waiting = self._waiting, []
        oldest = min((int(at.min()) for at, _ in rows if len(at)), default=None)
        if oldest is None:
            return
        pipeline = self._new_pipeline(self._plan, origin=oldest)
        assert isinstance(pipeline, Pipeline)
        for at, columns in rows:
            pipeline.add(at, columns)
        self._pipeline = pipeline

    @staticmethod
    def _names(names: Mapping[str, object]) -> str:
        return ", ".join(f"`{n}`" for n in names)


def pipeline_of(
    bound: Plan,
    store: StoreName = "panes",
    sources: Sources | None = None,
    *,
    origin: int | None = None,
) -> AnyPipeline:
    """The pipeline for a plan's kind of window, on the named store."""
    if isinstance(bound.window.spec, PerRow):
        return PerRowPipeline(bound, hold=positions_held_in(store))
    hold = windows_held_in(store, sources or Sources())
    if isinstance(bound.window.spec, PartitionedRows) or bound.order is not None:
        return RankedPipeline(bound, hold=hold)
    return Pipeline(bound, origin=origin, hold=hold)


def promise_column(bound: Plan, schema: pa.Schema, name: str | None, stream: str) -> str:
    """The column in which a stream makes promises, whatever the case it is written in."""
    column = find_column(name or "", schema, stream=stream)
    kind = axis_over(column, schema.field(column).type, stream=stream).kind
    if kind != bound.placing.kind:
        raise ColumnTypeError(
            f"`{column}` cannot promise anything of `{bound.axis.column}`: one is of {kind}, "
            f"the other of {bound.placing.kind}"
        )
    return column


def require_streamable(bound: Plan) -> None:
    """Refuse what only makes sense once all rows are there."""
    if isinstance(bound.window.spec, Landmark):
        for call, aggregate in zip(bound.query.calls, bound.aggregates, strict=True):
            if aggregate.kind == "holistic":
                raise QueryError(
                    f"an exact {call.sql} over RANGE ALL would keep every value for ever",
                    hint="use an approx_ aggregate, or a window with an end",
                )


@dataclass(slots=True)
class _Prepared:
    """What becomes of one batch, before anything is changed."""

    stream: str
    at: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    columns: list[pa.Array] = field(default_factory=list)
    newest: int | None = None
    promise: int | None = None
    late: list[pa.Table] = field(default_factory=list)
    rejected: list[pa.Table] = field(default_factory=list)
    everything: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    partition: Sequence[pa.Array] = ()
    kept: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def arrival(self) -> Arrival:
        """For windows that count rows: all of them, and which count as more than a number."""
        return Arrival(self.everything, self.kept, self.columns, self.partition)


def _without(
    table: pa.Table,
    at: NDArray[np.int64],
    which: NDArray[np.bool_],
    reason: str,
    result: _Prepared,
) -> tuple[pa.Table, NDArray[np.int64]]:
    """The other rows; these are set apart with the reason."""
    apart = table.filter(pa.array(which))
    result.rejected.append(with_reason(apart, [reason] * len(apart)))
    return table.filter(pa.array(~which)), at[~which]


def _spelled(table: pa.Table, bound: Plan) -> pa.Table:
    """Columns under the names that the plan knows them by, whatever their case."""
    known = bound.column_names
    wanted = {n.lower(): n for n in known}
    names = [n if n in known else wanted.get(n.lower(), n) for n in table.column_names]
    return table if names == table.column_names else table.rename_columns(names)


def _differences(known: pa.Schema, other: pa.Schema) -> str:
    before = {(f.name, str(f.type)) for f in known}
    after = {(f.name, str(f.type)) for f in other}
    gone = [f"`{n}` {t} is missing" for n, t in sorted(before - after)]
    new = [f"`{n}` {t} is new" for n, t in sorted(after - before)]
    return "; ".join(gone + new) or "the same columns in another order"
