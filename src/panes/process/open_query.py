"""A query over a stream in this process: push, punctuate, finish.

An `OpenQuery` leads each batch through the rooms: inputs, gate, pipeline, closing, answers. What
fails on the way, in an expression, an aggregate or a function of the user, leaves no trace: the
query is as it was before the call, which can be made again.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import TypeAlias

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.axis import BEGINNING, FOREVER, parse_instant
from panes.errors import (
    InputError,
    NoProgressWarning,
    OptionError,
    QueryError,
    UnknownStreamError,
    warn,
)
from panes.frames import empty_tables, to_table
from panes.html import facts_html, facts_line
from panes.language.parse import parse
from panes.language.query import Query
from panes.nodes.arrival import Arrival, joined
from panes.nodes.choose import pipeline_of
from panes.nodes.closing import Closed, Closing, closed_by
from panes.nodes.gate import Admitted, Gate
from panes.nodes.inputs import Inputs
from panes.nodes.key_promises import read_key
from panes.nodes.origin_first import OriginFirst
from panes.nodes.pipeline import Pipeline
from panes.nodes.promised_answers import promised_by_windows
from panes.nodes.promises import Promises
from panes.nodes.set_aside import SetAside
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
from panes.process.in_turn import Turn
from panes.process.query_on_streams import QueryOnStreams
from panes.process.run_observer import RunObserver
from panes.process.step import Steps, at_once, in_turn, step, whole
from panes.process.watched import Watcher
from panes.progress.stall import Stall
from panes.stores.durations import ArrivalSkew
from panes.windows.spec import Sliding

ARRIVALS = "rows of the stream"
_STORED = (
    *("keys", "partials", "bytes", "key_bytes", "rows", "waiting_rows", "waiting_bytes"),
    "waiting_answers",
)
Instant: TypeAlias = "str | int | dt.datetime"


def bytes_of(state: Mapping[str, int]) -> int:
    """All bytes of a state."""
    return sum(size for name, size in state.items() if name.endswith("bytes"))


class OpenQuery(QueryOnStreams):
    """A running query: rows go in, final answers come out.

    Answers are given once, when nothing can change them any more; with ``EMIT EARLY`` before that
    too, and with ``late="revise"`` again when a late row changes them. Row order and the split into
    batches change no answer, as long as no row comes later than was promised. Threads may share it:
    they take turns.
    """

    UNCHANGED = frozenset({"watcher"})

    def __init__(
        self,
        text: str | Query,
        run: StreamOptions = StreamOptions(),  # noqa: B008 - frozen
        *,
        aggregates: Sequence[UserAggregate] = (),
        schemas: Mapping[str, pa.Schema] | None = None,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000,
    ) -> None:
        self.query = parse(text, aggregates) if isinstance(text, str) else text
        self._aggregates = tuple(aggregates)
        self._run, self.terms = run, check_options(self.query, run)
        self._now = now
        self._inputs = Inputs.of(self.query, self.terms, is_bounded=run.bounded)
        self._promises = Promises(self.query, self.terms)
        self._closing = Closing(self._promises.known({}))
        self._set_aside = SetAside()
        self._skew = ArrivalSkew()
        self._observer = RunObserver(self._skew)
        self._stall = Stall(None if run.bounded else run.stall_rows)
        self._newest: dict[str, int] = {}
        self._last_at = BEGINNING
        self._arrived = 0
        self._plan: Plan | None = None
        self._pipeline: Pipeline | None = None
        self._answers: Answers | None = None
        self._finished = False
        self._ended_at = BEGINNING
        self._turn = Turn(run.max_answers)
        self.watcher: Watcher | None = None
        if schemas:
            inputs = self._inputs.after(empty_tables(schemas))
            self._plan, self._inputs = self._planned(inputs), inputs

    # What comes

    @step
    @whole
    def push(self, /, **batches: object) -> pa.Table:
        """Take in a batch of each named stream; gives the answers that are final from now on.

        All or nothing: if a batch is refused, or its answers cannot be computed, the query is as it
        was before.
        """
        return at_once(self._pushing(batches))

    def _pushing(self, batches: Mapping[str, object], *, in_steps: bool = False) -> Steps:
        """The steps of a push: rows are taken in, windows are closed, and the rest is given."""
        arrival = self._take_in(batches)
        self._beat()
        yield from self._advancing(in_steps=in_steps)
        self._tell_stall(arrival)
        self._offer_early()
        return self._released(arrival)

    def _take_in(self, batches: Mapping[str, object]) -> Arrival:
        """Take in a batch of each named stream, and close nothing yet."""
        self._require_running()
        if not batches:
            raise OptionError("push needs a batch", hint=f"push({self.query.streams[0]}=table)")
        given = self._inputs.given
        tables = {name: to_table(batch, name, given.get(name)) for name, batch in batches.items()}
        inputs = self._inputs.after(tables)
        plan = self._planned(inputs)
        answers = self._answers or Answers(plan, self.terms)
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
        admitted = gate.admit_all(tables, inputs.chains, self._arrived)
        arrival = joined([batch.arrival for batch in admitted])
        with self._observer.timed():
            pipeline.add(arrival)
        self._inputs, self._plan, self._pipeline, self._answers = inputs, plan, pipeline, answers
        self._note(admitted, pipeline)
        self._revise(admitted, pipeline, answers)
        return arrival

    @step
    @whole
    def punctuate(
        self, /, *, key: Mapping[str, object] | None = None, **promised: Instant
    ) -> pa.Table:
        """Promise that no later row of a stream lies before an instant; gives what that closes.

        With a `key`, ``key={"item": 7}``, the promise is for rows of that key only: its windows
        close, and the others wait for their own.
        """
        self._require_running()
        at = {name: self._position(name, instant) for name, instant in promised.items()}
        values = None if key is None else read_key(self._require_keyed(), key)
        for name, position in at.items():
            if values is None:
                self._promises.punctuate(name, position, "punctuation", self._inputs.chains)
            else:
                self._promises.punctuate_key(name, values, position, self._inputs.chains)
                self._stall.moved(self._promises.melded()[0])
        at_once(self._advancing())
        return self._released()

    @step
    @whole
    def beat(self) -> pa.Table:
        """Let the clock say how far the stream is, as `heartbeat` allows; gives what that closes.

        To be called now and then while no rows come; every push does it too.
        """
        self._require_running()
        if self.terms.heartbeat is None:
            raise OptionError("the query has no heartbeat", hint='open(..., heartbeat="5 seconds")')
        self._beat()
        at_once(self._advancing())
        return self._released()

    @in_turn
    def early(self) -> pa.Table:
        """The windows that are still open, as they are now; their answers are not final."""
        self._require_running()
        if not self.query.emits_early:
            raise QueryError("the query does not emit early", hint="end it with EMIT EARLY")
        if self._answers is None or self._pipeline is None:
            raise InputError("the query has seen no batch, so its answers have no columns")
        return self._answers.early(self._pipeline.open_windows())

    @step
    @whole
    def finish(self) -> pa.Table:
        """The stream has ended: gives all answers that are left, and forgets everything."""
        return at_once(self._finishing())

    def _finishing(self, *, in_steps: bool = False) -> Steps:
        """The steps of the end: windows are closed, all is forgotten, and the rest is given."""
        pipeline, answers = self._require_begun()
        yield
        if pipeline.plan.counts_arrivals:
            closing = closed_by(pipeline, self._arrived, ARRIVALS, in_steps=in_steps)
        else:
            promised = self._promises.known(self._inputs.chains)
            closing = self._closing.finish(pipeline, promised, in_steps=in_steps)
        yield from self._answering(pipeline, answers, closing)
        after = self._last_at + (self._last_at > BEGINNING)
        self._ended_at = max(self.progress, after)
        self._promises.end()
        self._pipeline = None
        self._finished = True
        return answers.rest()

    def count_on(self, arrived: int) -> None:
        """So many rows have come before the first one that is pushed: their numbers are taken."""
        self._arrived = arrived

    def require_instants(self, promised: Mapping[str, Instant]) -> None:
        """Refuse promises that are no positions of the streams."""
        for name, instant in promised.items():
            self._position(name, instant)

    # What there is to see

    @property
    @in_turn
    def progress(self) -> int:
        """Up to where the whole input is complete: the watermark.

        In microseconds, or in units of an integer axis. After the end it is just after the newest
        row, or at the last promise if that is further.
        """
        return self._ended_at if self._finished else self._promises.melded()[0]

    @property
    @in_turn
    def reached(self) -> tuple[int, str]:
        """How far the windows of the query have come, and what says so."""
        return self._reached()

    @property
    def next_end(self) -> int:
        """No window that is yet to be answered ends before; `BEGINNING` if that is not known."""
        return BEGINNING if self._pipeline is None else self._pipeline.next_end

    def promised_answers(self) -> dict[str, int]:
        """What is promised of the columns of answers to come, by their names in small letters."""
        return promised_by_windows(self.query, self.next_end)

    @property
    def given_columns(self) -> Mapping[str, pa.Schema]:
        """The columns of batches, of the streams that are known."""
        return self._inputs.given

    @property
    def punctuations(self) -> Mapping[str, int]:
        """How often progress moved, and how often it moved past the end of a window."""
        return {"received": self._closing.received, "passed": self._closing.passed}

    @property
    @in_turn
    def state(self) -> Mapping[str, int]:
        """How much is stored: keys, partial results, rows, answers, and the bytes of each.

        ``bytes`` are those of partial results and of rows that the store keeps.
        ``operator_bytes`` are rows that DISTINCT inside FROM remembers. ``total_bytes`` are all.

        Rows wait beside the store for ``ORIGIN FIRST`` to be known, for their own per-row window
        to end, or for the rows before them where a column orders them. Answers wait where a
        `flush` releases them a few at a time. Rows that were set aside are counted; the first
        million of late and of rejected ones are stored.
        """
        stored = dict.fromkeys(_STORED, 0)
        if self._pipeline is not None:
            stored |= self._pipeline.stored()
        if self._answers is not None:
            stored["waiting_answers"] = self._answers.waiting
            stored["waiting_bytes"] += self._answers.waiting_bytes
        stored["operator_bytes"] = sum(chain.nbytes for chain in self._inputs.chains.values())
        stored |= self._set_aside.counts
        return {**stored, "total_bytes": bytes_of(stored), **self._on_disk}

    @property
    def answer_schema(self) -> pa.Schema | None:
        """The columns of its answers, once those of a stream are known."""
        return None if self._plan is None else Answers(self._plan, self.terms).schema

    @property
    def open_from(self) -> int:
        """The first position that an open window holds."""
        return BEGINNING if self._pipeline is None else self._pipeline.open_from

    @property
    def is_planned(self) -> bool:
        """Whether the columns of a stream are known, and with them the plan."""
        return self._plan is not None

    @property
    def plan(self) -> Plan:
        """The plan, known from the first batch on."""
        if self._plan is None:
            raise InputError("the plan is not known before a first batch")
        return self._plan

    def explain(self, *, details: bool = False) -> str:
        """The plan, and what it was estimated to cost and did so far; see `panes.explain`."""
        store = choose_store(self.plan, self._run.store)
        seen = self._observer.observed()
        return self._explained(explain(self.plan, store, seen, details=details))

    def __repr__(self) -> str:
        how = "finished" if self._finished else f"open, {self._arrived:,} rows came"
        return facts_line("OpenQuery", self.query.text, how)

    def _repr_html_(self) -> str:
        state = self.state
        facts: dict[str, object] = {"state": "finished" if self._finished else "open"}
        if self._plan is not None:
            at, by = self._reached()
            is_known = BEGINNING < at < FOREVER
            facts["progress"] = f"{self._plan.placing.format(at)}, {by}" if is_known else by
        facts |= {name: state[name] for name in ("keys", "partials", "total_bytes", "late_rows")}
        return facts_html("open query", self.query.text, facts)

    def _made(self) -> Iterable[pa.Schema]:
        return self._inputs.derived.values()

    # Before anything changes

    def _require_begun(self) -> tuple[Pipeline, Answers]:
        """What there is to finish: a pipeline that knows its windows, and its answers."""
        self._require_running()
        if self._pipeline is None or self._answers is None:
            names = ", ".join(f"`{name}`" for name in self.query.streams)
            raise InputError(
                f"the query has seen no batch of {names}, so its answers have no columns",
                hint="push an empty table with the stream's schema",
            )
        self._pipeline = self._pipeline.settled(FOREVER)
        return self._pipeline, self._answers

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
        if name not in self.query.streams:
            raise UnknownStreamError(name, streams=self.query.streams)
        measure = None if self.query.window is None else self.query.window.measure
        if self._plan is not None:
            measure = self._plan.placing.kind
        if measure != "time" and not isinstance(instant, Integral):
            raise OptionError(f"`{name}` has no time axis: a promise is a whole number there")
        return parse_instant(instant)

    def _planned(self, inputs: Inputs) -> Plan:
        """The plan for these inputs, with everything checked that new ones could break."""
        if self._plan is not None and len(inputs.derived) == len(self._inputs.derived):
            return self._plan
        planned = plan(self.query, inputs.schemas(), self._aggregates)
        require_terms(self._run, self.query, planned.placing.kind)
        choose_store(planned, self._run.store)
        if not self._run.bounded:
            require_streamable(planned)
        return self._plan or planned

    def _new_pipeline(self, plan: Plan, progress: int) -> Pipeline:
        """An empty pipeline, for which holds what was promised before."""
        store = choose_store(plan, self._run.store).name
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
            self._arrived += batch.rows
            self._last_at = max(self._last_at, int(batch.placed.max(initial=BEGINNING)))
            self._inputs.chains[batch.stream].settle()
            self._set_aside.add(batch.late, batch.rejected, ahead=batch.ahead)
            self._promises.observe(batch.stream, batch.placed, batch.promise)
            if batch.newest is not None:
                before = self._newest.get(batch.stream, BEGINNING)
                self._newest[batch.stream] = max(before, batch.newest)
            self._observer.saw(batch, pipeline)
        if self.watcher is not None:
            self.watcher.took(admitted)

    def _revise(self, admitted: Sequence[Admitted], pipeline: Pipeline, answers: Answers) -> None:
        """Answer closed windows again that late rows belong to."""
        late = joined([batch.behind for batch in admitted])
        if self.terms.late == "revise" and len(late.at):
            answers.revise(pipeline.revised(late.at, late.columns))

    def _beat(self) -> None:
        if self.terms.heartbeat is not None:
            at = self.terms.heartbeat.promise(self._now())
            for name in self.query.streams:
                if name not in self.terms.inside:
                    self._promises.punctuate(name, at, "heartbeat", self._inputs.chains)

    def _advancing(self, *, in_steps: bool = False) -> Iterator[None]:
        """Close the windows that progress has reached; before that, there is a first pause."""
        if self._pipeline is None or self._answers is None:
            return
        progress, why = self._reached()
        self._pipeline = self._pipeline.settled(progress)
        for chain in self._inputs.chains.values():
            chain.forget(progress)
        yield
        promised = self._promises.known(self._inputs.chains)
        closing = self._closing.advance(self._pipeline, promised, progress, why, in_steps=in_steps)
        yield from self._answering(self._pipeline, self._answers, closing)
        self._promises.forget_passed()

    def _answering(
        self, pipeline: Pipeline, answers: Answers, closing: Iterator[Closed]
    ) -> Iterator[None]:
        """Select what is asked of windows as they are closed, with a pause after each step."""
        for closed, why in self._observer.timing(closing):
            self._observer.closed(pipeline, closed)
            answers.close(closed, why)
            yield

    def _taken(self) -> pa.Table:
        """The answers since the last pause of a step that pauses."""
        assert self._answers is not None
        return self._answers.taken()

    def _tell_stall(self, arrival: Arrival) -> None:
        """Tell, once, that rows come and nothing closes."""
        assert self._plan is not None
        if self._plan.counts_arrivals:
            return
        progress, least = self._promises.least()
        if self._stall.push(len(arrival.at), progress):
            warn(stalled(self._stall.rows, self.terms, least), NoProgressWarning)

    def _reached(self) -> tuple[int, str]:
        """How far the stream is, and why."""
        if self._plan is not None and self._plan.counts_arrivals:
            return self._arrived, ARRIVALS
        return self._promises.melded()

    def _offer_early(self) -> None:
        if self._answers is not None and self._pipeline is not None:
            self._answers.offer_early(self._pipeline.open_windows, self._pipeline.newest)

    def _released(self, arrival: Arrival | None = None) -> pa.Table:
        """The answers to give now, after these rows have come."""
        if self._answers is None:
            return pa.table({})
        return self._answers.released(arrival, self._reached()[0])
