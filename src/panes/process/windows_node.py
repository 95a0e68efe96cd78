"""Windows of one query as a node: rows go in, answers come out as promises close windows.

A batch goes through the rooms: inputs, gate, pipeline, closing, answers. What fails on the way, in
an expression, an aggregate or a function of the user, is undone by whoever makes the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.axis import BEGINNING, FOREVER
from panes.errors import InputError, NoProgressWarning, QueryError, warn
from panes.frames import empty_tables, to_table
from panes.language.query import Query
from panes.nodes.arrival import Arrival, joined
from panes.nodes.choose import pipeline_of
from panes.nodes.closing import Closed, Closing, closed_by
from panes.nodes.gate import Admitted, Gate
from panes.nodes.inputs import Inputs
from panes.nodes.key_promises import KeyValues, read_key
from panes.nodes.origin_first import OriginFirst
from panes.nodes.pipeline import Pipeline
from panes.nodes.promised_answers import as_rows, promised_by_windows
from panes.nodes.promises import Promises
from panes.nodes.status import Answers
from panes.planning.choose_store import choose_store
from panes.planning.explain import explain
from panes.planning.plan import Plan, plan
from panes.planning.terms import (
    StreamOptions,
    check_options,
    require_streamable,
    require_terms,
    stalled,
)
from panes.process.later_node import LaterNode
from panes.process.node import Instant, Step, bytes_of, clock, position_of
from panes.process.query_node import Inside
from panes.process.run_observer import RunObserver
from panes.process.step import Steps, at_once
from panes.progress.stall import Stall
from panes.stores.durations import ArrivalSkew
from panes.windows.spec import Sliding

ARRIVALS = "rows of the stream"
_STORED = (
    *("keys", "partials", "bytes", "key_bytes", "rows", "waiting_rows", "waiting_bytes"),
    "waiting_answers",
)


class WindowsNode(LaterNode):
    """The state of one query over windows of a stream, a union, or answers of other nodes."""

    def __init__(
        self,
        query: Query,
        inside: Inside,
        run: StreamOptions,
        *,
        aggregates: Sequence[UserAggregate] = (),
        schemas: Mapping[str, pa.Schema] | None = None,
        now: Callable[[], int] = clock,
    ) -> None:
        """`schemas` are those of the sources, as far as they are known."""
        super().__init__(query, inside, run, aggregates=aggregates, now=now)
        run, self.begins_behind = self.run, BEGINNING
        self.terms = check_options(query, run)
        self._inputs = Inputs.of(query, self.terms, is_bounded=run.bounded)
        self._promises = Promises(query, self.terms)
        self._closing = Closing(self._promises.known({}))
        self._skew = ArrivalSkew()
        self._observer = RunObserver(self._skew)
        self._stall = Stall(None if run.bounded else run.stall_rows)
        self._newest: dict[str, int] = {}
        self._last_at = BEGINNING
        self.arrived = 0
        self._plan: Plan | None = None
        self._pipeline: Pipeline | None = None
        self._answered: Answers | None = None
        self._ended_at = BEGINNING
        if known := inside.mine(schemas or {}):
            inputs = self._inputs.after(empty_tables(known))
            self._plan, self._inputs = self._planned(inputs), inputs

    def _of(self, schemas: Mapping[str, pa.Schema]) -> WindowsNode:
        return WindowsNode(
            self.query, self._inside, self.run, aggregates=self.aggregates, schemas=schemas
        )

    # Steps

    def _answers(self, step: Step) -> pa.Table:
        return self._whole(at_once(self.in_steps(step, pauses=False)))

    def in_steps(self, step: Step, *, pauses: bool = True) -> Steps:
        """The steps of a step: with pauses, some windows are closed after each; see `taken`."""
        rows, told, beats = self._inside.mine(step.rows), self._told(step), self._beats(step)
        arrival = self._take_in(rows) if rows else None
        self._promise(told, step.key)
        if rows or beats:
            self._beat()
        if rows or not step.is_last:
            yield from self._advancing(pauses)
        if arrival is not None:
            self._tell_stall(arrival)
            self._offer_early()
        if not step.is_last:
            return self._released(arrival)
        return (yield from self._finishing(pauses))

    def taken(self) -> pa.Table:
        """The answers since the last pause."""
        assert self._answered is not None
        return self._answered.taken()

    def _take_in(self, rows: Mapping[str, object]) -> Arrival:
        """Take in a batch of each named stream, and close nothing yet."""
        tables = {name: to_table(batch, name, self.given.get(name)) for name, batch in rows.items()}
        inputs = self._inputs.after(tables)
        plan = self._planned(inputs)
        answered = self._answered or Answers(plan, self.terms)
        promised = self._promises.known(inputs.chains)
        pipeline = self._pipeline or self._new_pipeline(plan, promised.progress)
        gate = Gate(
            plan,
            self.terms,
            self._now(),
            promised,
            pipeline.open_from,
            pipeline.counts_late,
            self._newest,
        )
        admitted = gate.admit_all(tables, inputs.chains, self.arrived)
        arrival = joined([batch.arrival for batch in admitted])
        with self._observer.timed():
            pipeline.add(arrival)
        self._inputs, self._plan, self._pipeline, self._answered = inputs, plan, pipeline, answered
        self._note(admitted, pipeline)
        late = joined([batch.behind for batch in admitted])
        if self.terms.late == "revise" and len(late.at):  # closed windows are answered again
            answered.revise(pipeline.revised(late.at, late.columns))
        return arrival

    def _promise(
        self, told: Iterable[tuple[str, Instant]], key: Mapping[str, object] | None
    ) -> None:
        """Streams and nodes promise something, of all their rows or of those with a key."""
        at = [(name, self._position(name, instant)) for name, instant in told]
        values: KeyValues | None = None if key is None else read_key(self._require_keyed(), key)
        for name, position in at:
            if values is None:
                self._promises.punctuate(name, position, "punctuation", self._inputs.chains)
            else:
                self._promises.punctuate_key(name, values, position, self._inputs.chains)
                self._stall.moved(self._promises.melded()[0])

    def _finishing(self, pauses: bool) -> Steps:
        """The steps of the end: windows are closed, all is forgotten, and the rest is given."""
        pipeline, answered = self._require_begun()
        yield
        if pipeline.plan.counts_arrivals:
            closing = closed_by(pipeline, self.arrived, ARRIVALS, in_steps=pauses)
        else:
            promised = self._promises.known(self._inputs.chains)
            closing = self._closing.finish(pipeline, promised, in_steps=pauses)
        yield from self._answering(pipeline, answered, closing)
        after = self._last_at + (self._last_at > BEGINNING)
        self._ended_at = max(self.progress, after)
        self._promises.end()
        self._pipeline = None
        self.is_finished = True
        return answered.rest()

    def early(self) -> pa.Table:
        """The windows that are still open, as they are now; their answers are not final."""
        if self._answered is None or self._pipeline is None:
            raise InputError("the query has seen no batch, so its answers have no columns")
        return self._answered.early(self._pipeline.open_windows())

    def count_on(self, arrived: int) -> None:
        """So many rows have come before the first one that is pushed: their numbers are taken."""
        self.arrived = arrived

    def require_instants(self, told: Mapping[str, Instant]) -> None:
        """Refuse promises that are no positions of the streams."""
        for name, instant in self._inside.mine(told).items():
            self._position(name, instant)

    # What there is to see

    @property
    def progress(self) -> int:
        """Up to where the whole input is complete; after the end, how far it had come."""
        return self._ended_at if self.is_finished else self._promises.melded()[0]

    def reached(self) -> tuple[int, str]:
        """How far the windows have come, and what says so."""
        if self._plan is not None and self._plan.counts_arrivals:
            return self.arrived, ARRIVALS
        return self._promises.melded()

    @property
    def next_end(self) -> int:
        """No window that is yet to be answered ends before; `BEGINNING` if that is not known."""
        return BEGINNING if self._pipeline is None else self._pipeline.next_end

    def promised_answers(self) -> dict[str, int]:
        """What is promised of the columns of answers to come, by their names in small letters."""
        return promised_by_windows(self.query, self.next_end)

    @property
    def given(self) -> Mapping[str, pa.Schema]:
        """The columns of batches, of the streams that are known."""
        return self._inputs.given

    @property
    def punctuations(self) -> Mapping[str, int]:
        """How often progress moved, and how often it moved past the end of a window."""
        return {"received": self._closing.received, "passed": self._closing.passed}

    @property
    def state(self) -> Mapping[str, int]:
        """How much is stored; see `OpenQuery.state`."""
        stored = dict.fromkeys(_STORED, 0)
        if self._pipeline is not None:
            stored |= self._pipeline.stored()
        if self._answered is not None:
            stored["waiting_answers"] = self._answered.waiting
            stored["waiting_bytes"] += self._answered.waiting_bytes
        stored["operator_bytes"] = sum(chain.nbytes for chain in self._inputs.chains.values())
        stored |= self.set_aside.counts
        return {**stored, "total_bytes": bytes_of(stored)}

    @property
    def schema(self) -> pa.Schema | None:
        """The columns of its answers as others read them, once those of a stream are known."""
        if self._plan is None:
            return None
        return as_rows(Answers(self._plan, self.terms).schema.empty_table()).schema

    @property
    def open_from(self) -> int:
        """The first position that an open window holds."""
        return BEGINNING if self._pipeline is None else self._pipeline.open_from

    @property
    def plan(self) -> Plan:
        """The plan, known from the first batch on."""
        if self._plan is None:
            raise InputError("the plan is not known before a first batch")
        return self._plan

    def explain(self, *, details: bool = False) -> str:
        """The plan, and what it was estimated to cost and did so far."""
        store = choose_store(self.plan, self.run.store)
        return explain(self.plan, store, self._observer.observed(), details=details)

    def shown(self) -> dict[str, object]:
        """How far it is, as one says it."""
        if self._plan is None:
            return {}
        at, by = self.reached()
        is_known = BEGINNING < at < FOREVER
        return {"progress": f"{self._plan.placing.format(at)}, {by}" if is_known else by}

    def _made(self) -> Sequence[pa.Schema]:
        return tuple(self._inputs.derived.values())

    def _placed(self) -> Iterable[Query]:
        return (self.query,)

    # Before anything changes

    def _require_begun(self) -> tuple[Pipeline, Answers]:
        """What there is to finish: a pipeline that knows its windows, and its answers."""
        if self._pipeline is None or self._answered is None:
            names = ", ".join(f"`{name}`" for name in self.query.streams)
            raise InputError(
                f"the query has seen no batch of {names}, so its answers have no columns",
                hint="push an empty table with the stream's schema",
            )
        self._pipeline = self._pipeline.settled(FOREVER)
        return self._pipeline, self._answered

    def _require_keyed(self) -> Plan:
        """Promises for one key need windows that can close for one key."""
        if self._plan is None:
            raise InputError("a promise for one key needs a batch first, which tells its type")
        if not isinstance(self._plan.window.spec, Sliding) or self._plan.order is not None:
            raise QueryError("promises for one key are for sliding and tumbling windows")
        if self._plan.window.origin_first or self._plan.counts_arrivals:
            raise QueryError("promises for one key need a time or integer axis with a fixed origin")
        if self.terms.late == "revise" or self.query.emits_early:
            asked = "EMIT EARLY" if self.query.emits_early else "late='revise'"
            raise QueryError(f"promises for one key cannot go with {asked}")
        return self._plan

    def _position(self, name: str, instant: Instant) -> int:
        measure = None if self.query.window is None else self.query.window.measure
        if self._plan is not None:
            measure = self._plan.placing.kind
        return position_of(name, instant, measure)

    def _planned(self, inputs: Inputs) -> Plan:
        """The plan for these inputs, with everything checked that new ones could break."""
        if self._plan is not None and len(inputs.derived) == len(self._inputs.derived):
            return self._plan
        planned = plan(self.query, inputs.schemas(), self.aggregates)
        require_terms(self.run, self.query, planned.placing.kind)
        choose_store(planned, self.run.store)
        if not self.run.bounded:
            require_streamable(planned)
        return self._plan or planned

    def _new_pipeline(self, plan: Plan, progress: int) -> Pipeline:
        """An empty pipeline, for which holds what was promised before."""
        store = choose_store(plan, self.run.store).name
        new = OriginFirst if plan.window.origin_first else pipeline_of
        pipeline: Pipeline = new(plan, store, self._skew, revisable=self.terms.keeps)
        if not plan.counts_arrivals and progress != BEGINNING:
            pipeline.close(progress)
        return pipeline

    # After rows or promises have come

    def _note(self, admitted: Sequence[Admitted], pipeline: Pipeline) -> None:
        """Remember what batches have brought beside the rows that count."""
        self._promises.settle(self._inputs.chains)
        for batch in admitted:
            self.arrived += batch.rows
            self._last_at = max(self._last_at, int(batch.placed.max(initial=BEGINNING)))
            self._inputs.chains[batch.stream].settle()
            self.set_aside.add(batch.late, batch.rejected, ahead=batch.ahead)
            self._promises.observe(batch.stream, batch.placed, batch.promise)
            if batch.newest is not None:
                before = self._newest.get(batch.stream, BEGINNING)
                self._newest[batch.stream] = max(before, batch.newest)
            self._observer.saw(batch, pipeline)
        if self.watcher is not None:
            self.watcher.took(admitted)

    def _beat(self) -> None:
        if self.terms.heartbeat is not None:
            at = self.terms.heartbeat.promise(self._now())
            for name in self.query.streams:
                if name not in self.terms.inside:
                    self._promises.punctuate(name, at, "heartbeat", self._inputs.chains)

    def _advancing(self, pauses: bool) -> Iterator[None]:
        """Close the windows that progress has reached; before that, there is a first pause."""
        if self._pipeline is None or self._answered is None:
            return
        progress, why = self.reached()
        self._pipeline = self._pipeline.settled(progress)
        for chain in self._inputs.chains.values():
            chain.forget(progress)
        yield
        promised = self._promises.known(self._inputs.chains)
        closing = self._closing.advance(self._pipeline, promised, progress, why, in_steps=pauses)
        yield from self._answering(self._pipeline, self._answered, closing)
        self._promises.forget_passed()

    def _answering(
        self, pipeline: Pipeline, answered: Answers, closing: Iterator[Closed]
    ) -> Iterator[None]:
        """Select what is asked of windows as they are closed, with a pause after each step."""
        for closed, why in self._observer.timing(closing):
            self._observer.closed(pipeline, closed)
            answered.close(closed, why)
            yield

    def _tell_stall(self, arrival: Arrival) -> None:
        """Tell, once, that rows come and nothing closes."""
        if self.plan.counts_arrivals:
            return
        progress, least = self._promises.least()
        if self._stall.push(len(arrival.at), progress):
            warn(stalled(self._stall.rows, self.terms, least), NoProgressWarning)

    def _offer_early(self) -> None:
        if self._answered is not None and self._pipeline is not None:
            self._answered.offer_early(self._pipeline.open_windows, self._pipeline.newest)

    def _released(self, arrival: Arrival | None) -> pa.Table:
        """The answers to give now, after these rows have come."""
        if self._answered is None:
            return pa.table({})
        return self._answered.released(arrival, self.reached()[0])
