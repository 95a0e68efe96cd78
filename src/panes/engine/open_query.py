"""A query over a stream in this process: push, punctuate, finish.

Decides what is promised, and therefore which windows are closed and which answers are given.
Which rows count is the `Gate`'s decision, the work is the pipeline's.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.admit.gate import Admitted, Gate
from panes.admit.key_promises import KeyPromises, read_key
from panes.admit.set_aside import set_apart
from panes.aggregates.custom import UserAggregate
from panes.answers.status import Answers, ends_of
from panes.axis import BEGINNING, FOREVER, parse_instant
from panes.engine.run_observer import Watch
from panes.errors import InputError, OptionError, QueryError, UnknownStreamError
from panes.frames import differences, to_table
from panes.language.parse import parse
from panes.operators.inner import chain_of
from panes.operators.operator import Chain
from panes.pipelines.per_row import PerRowPipeline
from panes.pipelines.ranked_rows import RankedPipeline
from panes.pipelines.sliding import Pipeline
from panes.planning.choose_store import choose_store
from panes.planning.explain import explain
from panes.planning.plan import Plan, plan
from panes.planning.terms import Run, agree, require_terms
from panes.progress.describe import Describe
from panes.progress.promise import Promise, meld
from panes.stores.adaptive import Sources
from panes.stores.store import StoreName
from panes.windows.extent import first_wid, last_wid, ruler
from panes.windows.families import ends_of as edges_of_ends
from panes.windows.spec import Landmark, PartitionedRows, PerRow, Sliding

Instant: TypeAlias = "str | int | dt.datetime"
AnyPipeline: TypeAlias = "Pipeline | RankedPipeline | PerRowPipeline"


class OpenQuery:
    """A running query: rows go in, final answers come out.

    Answers are given once, when nothing can change them any more; with ``EMIT EARLY`` before that
    too, and with ``late="revise"`` again when a late row changes them. Row order and the split into
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
        self._run, self.terms = run, agree(self.query, run)
        self._promises = {name: Promise(self.terms.bound()) for name in self.query.streams}
        self._kept = {name: replace(p) for name, p in self._promises.items()}
        self._key_promises, self._kept_promises = KeyPromises(), KeyPromises()
        self._now = now
        self._chains: dict[str, Chain] = {}
        self._unmoved: dict[str, tuple[int, str]] = {}
        self._given: dict[str, pa.Schema] = {}
        self._schemas: dict[str, pa.Schema] = {}
        self._plan: Plan | None = None
        self._pipeline: AnyPipeline | None = None
        self._answers: Answers | None = None
        self._filter: Describe | None = None
        self._sources = Sources()
        self._watch = Watch(self._sources)
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
        given = {name: to_table(batch, name) for name, batch in batches.items()}
        chains = self._require_same_columns(given)
        bound, schemas = self._bind(given, chains)
        answers = self._answers or Answers(bound, self.terms)
        pipeline = self._pipeline
        if self._plan is None and not bound.window.origin_first:
            pipeline = self._new_pipeline(bound)
            if bound.placing.kind != "rows" and self.progress != BEGINNING:
                pipeline.close(self.progress)  # what was promised before it holds for it too
        gate = Gate(
            bound,
            self.terms,
            self._now,
            self._promised,
            lambda at, keys: self._is_open(bound, pipeline, at, keys),
            counts_late=pipeline is not None,
        )
        arrived, admitted = self._arrived, []
        for name, table in given.items():
            admitted.append(gate.admit(name, table, chains[name], arrived))
            arrived += admitted[-1].arrived
        revised = self._add(admitted, pipeline)
        self._given.update({name: t.schema.remove_metadata() for name, t in given.items()})
        self._plan, self._pipeline, self._answers = bound, pipeline, answers
        self._chains, self._schemas, self._arrived = chains, schemas, arrived
        if revised is not None:
            answers.revise(revised)
        for name in given:
            chains[name].settle()
        self._beat()
        self._advance()
        if isinstance(self._pipeline, Pipeline):
            answers.offer_early(self._pipeline.open_windows, self._pipeline.newest)
        return self._released(admitted)

    def punctuate(
        self, *, key: Mapping[str, object] | None = None, **promised: Instant
    ) -> pa.Table:
        """Promise that no later row of a stream lies before an instant; gives what that closes.

        With a `key`, ``key={"item": 7}``, the promise is for rows of that key only: its windows
        close, and the others wait for their own.
        """
        self._require_running()
        at = {name: self._position(name, instant) for name, instant in promised.items()}
        if key is not None:
            values = read_key(self._require_keyed(), key)
            for name, position in at.items():
                self._key_promises.punctuate(name, values, self._chains[name].punctuate(position))
        else:
            for name, position in at.items():
                self._promise(name, position, "punctuation")
        self._advance()
        return self._released(())

    def beat(self) -> pa.Table:
        """Let the clock say how far the stream is, as `heartbeat` allows; gives what that closes.

        To be called now and then while no rows come; every push does it too.
        """
        self._require_running()
        if self.terms.heartbeat is None:
            raise OptionError("the query has no heartbeat", hint='open(..., heartbeat="5 seconds")')
        self._beat()
        self._advance()
        return self._released(())

    def early(self) -> pa.Table:
        """The windows that are still open, as they are now; their answers are not final."""
        self._require_running()
        if not self.query.emits_early:
            raise QueryError("the query does not emit early", hint="end it with EMIT EARLY")
        if self._answers is None:
            raise InputError("the query has seen no batch, so its answers have no columns")
        if not isinstance(self._pipeline, Pipeline):
            return self._answers.schema.empty_table()
        return self._answers.early(self._pipeline.open_windows())

    def finish(self) -> pa.Table:
        """The stream has ended: gives all answers that are left, and forgets everything."""
        self._require_running()
        if self._plan is None or self._answers is None:
            raise InputError(
                f"the query has seen no batch of {_names(self._promises)}, so its answers "
                "have no columns",
                hint="push an empty table with the stream's schema",
            )
        self._start_waiting()
        pipeline = self._pipeline
        if self._counts_arrivals and pipeline is not None:
            self._close(pipeline, lambda p: p.close(self._arrived), "rows of the stream")
        elif self._key_promises and isinstance(pipeline, Pipeline):
            self._close_each(pipeline, ends=True)
        elif pipeline is not None:
            self._close(pipeline, lambda p: p.close_all(), "the end of the stream")
        for promise in self._promises.values():
            promise.punctuate(FOREVER, "the end")
        self._finished = True
        self._pipeline = None
        return self._answers.rest()

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
        return meld(self._promises)[0]

    @property
    def punctuations(self) -> Mapping[str, int]:
        """How often progress moved, and how often it moved past the end of a window."""
        seen = self._filter
        return {
            "received": 0 if seen is None else seen.received,
            "passed": 0 if seen is None else seen.passed,
        }

    @property
    def state(self) -> Mapping[str, int]:
        """How much is stored: keys, partials, rows that the store keeps, bytes of both.

        Rows wait beside the store for ``ORIGIN FIRST`` to be known, for their own per-row window
        to end, or for the rows before them where a column orders them. Answers wait where a
        `flush` releases them a few at a time.
        """
        pipeline = self._pipeline
        stored = None if pipeline is None else pipeline.store
        waiting = sum(len(at) for at, _ in self._waiting)
        if pipeline is not None and not isinstance(pipeline, Pipeline):
            waiting += pipeline.waiting
        return {
            "keys": 0 if stored is None else stored.keys,
            "partials": 0 if stored is None else len(stored),
            "bytes": 0 if stored is None else stored.nbytes,
            "rows": 0 if stored is None else stored.rows,
            "waiting_rows": waiting,
            "waiting_answers": 0 if self._answers is None else self._answers.waiting,
        }

    @property
    def plan(self) -> Plan:
        """The plan, known from the first batch on."""
        if self._plan is None:
            raise InputError("the plan is not known before every stream has sent a batch")
        return self._plan

    def explain(self, *, details: bool = False) -> str:
        """The plan, and what it was estimated to cost and did so far; see `panes.explain`."""
        store = choose_store(self.plan, self._run.store)
        return explain(self.plan, store, self._watch.observed(), details=details)

    def _require_running(self) -> None:
        if self._finished:
            raise QueryError("the query has finished; open it again to ask once more")

    def _require_keyed(self) -> Plan:
        """Promises for one key need windows that can close for one key."""
        if self._plan is None:
            raise InputError("a promise for one key needs a batch first, which tells its type")
        if not isinstance(self._plan.window.spec, Sliding) or self._plan.order is not None:
            raise QueryError("promises for one key are for sliding and tumbling windows")
        if self._plan.window.origin_first or self._counts_arrivals:
            raise QueryError("promises for one key need a time or integer axis with a fixed origin")
        if self.terms.late == "revise" or self.query.emits_early:
            asked = "EMIT EARLY" if self.query.emits_early else "late='revise'"
            raise QueryError(f"promises for one key cannot go with {asked}")
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

    def _promise(self, name: str, at: int, why: str) -> None:
        """A promise of a stream, moved as its rows are; its first batch may have to tell where."""
        inner = self.query.inner[self.query.streams.index(name)]
        if inner is None or inner.columns is None:
            self._promises[name].punctuate(at, why)
        elif name in self._chains:
            self._promises[name].punctuate(self._chains[name].punctuate(at), why)
        else:
            before, _ = self._unmoved.get(name, (BEGINNING, why))
            self._unmoved[name] = (max(at, before), why)

    def _require_same_columns(self, given: Mapping[str, pa.Table]) -> dict[str, Chain]:
        """Batches look like those before; gives the operators that each stream goes through."""
        chains = dict(self._chains)
        remembers = self._remembers()
        for name, table in given.items():
            if name not in self._promises:
                raise UnknownStreamError(name, streams=self._promises)
            schema = table.schema.remove_metadata()
            known = self._given.get(name, schema)
            if not schema.equals(known):
                raise InputError(
                    f"a batch of stream `{name}` has other columns than the first one: "
                    f"{differences(known, schema)}"
                )
            if name not in chains:
                chains[name] = chain_of(
                    self.query,
                    name,
                    schema,
                    remembers=remembers,
                    carries_promises=not self._run.bounded,
                )
                if name in self._unmoved:
                    at, why = self._unmoved[name]
                    self._promises[name].punctuate(chains[name].punctuate(at), why)
        return chains

    def _remembers(self) -> int | None:
        """How far behind progress a late row can still count somewhere; None: always."""
        spec = None if self.query.window is None else self.query.window.spec
        if self.terms.drops_late or not isinstance(spec, Sliding | PerRow):
            return 0
        return None if self.terms.keeps is None else spec.size + self.terms.keeps

    def _bind(
        self, given: Mapping[str, pa.Table], chains: Mapping[str, Chain]
    ) -> tuple[Plan, dict[str, pa.Schema]]:
        """The plan, with everything checked that new schemas could break; nothing is kept yet."""
        schemas = dict(self._schemas)
        for name, table in given.items():
            if name not in schemas:
                derived = chains[name].push(table.schema.empty_table())
                schemas[name] = derived.schema.remove_metadata()
        if self._plan is not None and len(schemas) == len(self._schemas):
            return self._plan, schemas
        first = schemas.get(self.query.streams[0], next(iter(schemas.values())))
        every = {name: schemas.get(name, first) for name in self._promises}
        bound = plan(self.query, every, self._aggregates)
        require_terms(self._run, self.query, bound.placing.kind)
        choose_store(bound, self._run.store)
        if not self._run.bounded:
            require_streamable(bound)
        return self._plan or bound, schemas

    def _promised(
        self, stream: str, keys: Sequence[pa.Array], rows: int
    ) -> NDArray[np.int64] | None:
        """What was promised of rows with these keys, before they came."""
        promised = self._promises[stream].at
        if self._counts_arrivals or (promised == BEGINNING and not self._key_promises):
            return None
        return self._key_promises.of(stream, promised, keys, rows)

    def _is_open(
        self,
        bound: Plan,
        pipeline: AnyPipeline | None,
        at: NDArray[np.int64],
        keys: Sequence[pa.Array],
    ) -> NDArray[np.bool_]:
        """Which late rows still have an open window."""
        if pipeline is None:
            return np.zeros(len(at), dtype=np.bool_)
        is_open = pipeline.has_open_window(at)
        if self._key_promises:
            size, slide, origin = ruler(bound.spec)
            progress = self._key_promises.melded(self._promises, keys, len(at))
            is_open &= last_wid(at, size, slide, origin) >= first_wid(progress, slide, origin)
        return is_open

    def _add(self, admitted: Sequence[Admitted], pipeline: AnyPipeline | None) -> pa.Table | None:
        """Let rows in, all streams of a push together; gives windows that they revise."""
        with self._watch.timed():
            revised = self._fill(admitted, pipeline)
        for batch in admitted:
            self._late += batch.late
            self._rejected += batch.rejected
            promise = self._promises[batch.stream]
            promise.observe(batch.placed)
            if batch.promise is not None:
                promise.punctuate(batch.promise)
            if len(batch.placed):
                self._sources.hear(batch.stream, int(batch.placed.max()), len(batch.at))
            self._watch.saw(batch, pipeline)
        return revised

    def _fill(self, admitted: Sequence[Admitted], pipeline: AnyPipeline | None) -> pa.Table | None:
        stored = [(a.at, a.columns) for a in admitted if len(a.at)]
        if isinstance(pipeline, RankedPipeline | PerRowPipeline):
            for batch in admitted:
                pipeline.add(batch.arrival())
        elif pipeline is None:
            self._waiting += stored
        elif stored:
            at = stored[0][0] if len(stored) == 1 else np.concatenate([a for a, _ in stored])
            columns = stored[0][1]
            if len(stored) > 1:
                columns = [pa.concat_arrays(c) for c in zip(*(c for _, c in stored), strict=True)]
            pipeline.add(at, columns)
            return self._revised(admitted, pipeline)
        return None

    def _revised(self, admitted: Iterable[Admitted], pipeline: Pipeline) -> pa.Table | None:
        """Closed windows that late rows belong to, answered again."""
        late = [a for a in admitted if len(a.late_at)]
        if self.terms.late != "revise" or not late:
            return None
        at = np.concatenate([a.late_at for a in late])
        keys = [pa.concat_arrays(c) for c in zip(*(a.late_keys for a in late), strict=True)]
        return pipeline.revised(at, keys)

    def _beat(self) -> None:
        if self.terms.heartbeat is not None:
            for name in self._promises:
                self._promise(name, self.terms.heartbeat.promise(self._now()), "heartbeat")

    def _advance(self) -> None:
        """Close the windows that progress has reached."""
        if self._plan is None or self._answers is None:
            return
        progress, why = meld(self._promises)
        if self._counts_arrivals:
            progress, why = self._arrived, "rows of the stream"
        oldest = min((int(at.min()) for at, _ in self._waiting if len(at)), default=FOREVER)
        if self._pipeline is None and oldest < progress:
            self._start_waiting()
        for chain in self._chains.values():
            chain.forget(progress)
        if self._key_promises and isinstance(self._pipeline, Pipeline):
            self._close_each(self._pipeline)
        elif self._pipeline is not None and progress != BEGINNING and self._passes(progress):
            self._close(self._pipeline, lambda p: p.close(progress), why)

    def _close(
        self, pipeline: AnyPipeline, close: Callable[[AnyPipeline], pa.Table], why: str
    ) -> None:
        assert self._answers is not None
        with self._watch.timed():
            lowered = close(pipeline)
        self._watch.closed(pipeline, lowered)
        self._answers.close(lowered, why)

    def _passes(self, progress: int) -> bool:
        """Whether progress has reached the end of a window since it was last asked."""
        pipeline = self._pipeline
        if not isinstance(pipeline, Pipeline) or isinstance(pipeline.spec, Landmark):
            return True  # rows wait there that a later row, or any progress, may free
        if self._filter is None:
            self._filter = Describe([edges_of_ends(pipeline.spec)])
        return self._filter.up_to(progress) is not None

    def _close_each(self, pipeline: Pipeline, *, ends: bool = False) -> None:
        """Every group has its own progress, as long as there are promises for some keys."""
        assert self._answers is not None
        keys, count = pipeline.store.key_columns, pipeline.store.keys
        before = self._kept_promises.melded(self._kept, keys, count)
        now = self._key_promises.melded(self._promises, keys, count)
        if ends:
            now = np.full(count, FOREVER, dtype=np.int64)
        answers = pipeline.close_each(before, now, self.progress)
        self._kept = {name: replace(p) for name, p in self._promises.items()}
        self._key_promises.forget(self.progress)
        self._kept_promises = self._key_promises.copy()
        if ends:
            self._answers.close(answers, "the end of the stream")
            return
        general, why = meld(self._promises)
        by_all = ends_of(answers) <= general
        self._answers.close(answers.filter(pa.array(by_all)), why)
        self._answers.close(answers.filter(pa.array(~by_all)), "a promise for the key")

    def _released(self, admitted: Sequence[Admitted]) -> pa.Table:
        if self._answers is None:
            return pa.table({})
        keys: list[pa.Array] = []
        count = 0 if self._plan is None else len(self._plan.key_types)
        batches = [a for a in admitted if len(a.at)]
        if batches and count:
            columns = zip(*(a.columns[:count] for a in batches), strict=True)
            keys = [pa.concat_arrays(c) for c in columns]
        progress = self._arrived if self._counts_arrivals else self.progress
        return self._answers.released(keys, sum(len(a.at) for a in batches), progress)

    @property
    def _counts_arrivals(self) -> bool:
        return self._plan is not None and self._plan.placing.kind == "rows"

    def _new_pipeline(self, bound: Plan, origin: int | None = None) -> AnyPipeline:
        store = choose_store(bound, self._run.store).name
        return pipeline_of(bound, store, self._sources, origin=origin, keep=self.terms.keeps)

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


def pipeline_of(
    bound: Plan,
    store: StoreName = "panes",
    sources: Sources | None = None,
    *,
    origin: int | None = None,
    keep: int | None = 0,
) -> AnyPipeline:
    """The pipeline for a plan's kind of window, on the named store."""
    if isinstance(bound.window.spec, PerRow):
        return PerRowPipeline(bound, store=store)
    if isinstance(bound.window.spec, PartitionedRows) or bound.order is not None:
        return RankedPipeline(bound, store=store, sources=sources)
    return Pipeline(bound, origin=origin, store=store, sources=sources, keep=keep)


def require_streamable(bound: Plan) -> None:
    """Refuse what only makes sense once all rows are there."""
    if isinstance(bound.window.spec, Landmark):
        for call, aggregate in zip(bound.query.calls, bound.aggregates, strict=True):
            if aggregate.kind == "holistic":
                raise QueryError(
                    f"an exact {call.sql} over RANGE ALL would keep every value for ever",
                    hint="use an approx_ aggregate, or a window with an end",
                )


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)
