"""A query over a join of streams in this process: push, punctuate, finish.

Each side is admitted as the stream of any query is: placed, filtered, late rows set aside. Then a
`JoinStage` joins what counts, and joined rows are selected, or aggregated in windows above. What
fails on the way leaves no trace: the query is as it was before the call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral

import pyarrow as pa

from panes.admit.gate import Gate
from panes.admit.inputs import Inputs
from panes.admit.promises import Promises
from panes.admit.set_aside import SetAside
from panes.aggregates.custom import UserAggregate
from panes.axis import parse_instant
from panes.engine.all_or_nothing import whole
from panes.engine.in_turn import Turn, in_turn
from panes.engine.joined_windows import Above, above, with_edges
from panes.engine.open_query import Instant
from panes.errors import InputError, OptionError, QueryError, UnknownStreamError
from panes.frames import to_table
from panes.join.rule import Arrivals
from panes.language.join_query import JoinQuery
from panes.language.join_text import read_join
from panes.operators.inner import joined_schemas
from panes.pipelines.join_stage import JoinStage
from panes.planning.explain_join import explain_join
from panes.planning.join_plan import SourcePlan
from panes.planning.join_query_plan import JoinQueryPlan, plan_join_query
from panes.planning.join_terms import (
    COUNTED,
    FORGOTTEN,
    require_join_options,
    require_streamable_join,
)
from panes.planning.scalar import Projection
from panes.planning.terms import Run, Terms, agree, require_terms


class OpenJoin:
    """A running query over a join: rows of both sides go in, joined rows or answers come out.

    A pair is given as soon as both its rows are there, a row without partner as soon as progress
    proves that it has none. Row order and the split into batches change nothing, as long as no row
    comes later than was promised. Threads may share it: they take turns.
    """

    def __init__(
        self,
        text: str | JoinQuery,
        run: Run = Run(),  # noqa: B008 - frozen
        *,
        aggregates: Sequence[UserAggregate] = (),
        now: Callable[[], int] = lambda: time.time_ns() // 1_000,
    ) -> None:
        self.query = read_join(text, aggregates) if isinstance(text, str) else text
        require_join_options(self.query, run)
        self._run, self._aggregates, self._now = run, tuple(aggregates), now
        self._schemas: dict[str, pa.Schema] = {}
        self._waiting_calls: list[Callable[[_Bound], pa.Table]] = []
        self._set_aside = SetAside()
        self._bound: _Bound | None = None
        self._finished = False
        self._turn = Turn(run.max_answers)

    # What comes

    @in_turn
    @whole
    def push(self, /, **batches: object) -> pa.Table:
        """Take in a batch of each named stream; gives what is joined, or final, from now on.

        All or nothing: if a batch is refused, the query is as it was before. Until every side has
        sent a batch, nothing is known of its columns: what comes waits, and nothing is given.
        """
        self._require_running()
        if not batches:
            raise OptionError("push needs a batch", hint=f"push({self.query.streams[0]}=table)")
        tables = {name: to_table(batch, name) for name, batch in batches.items()}
        return self._step(lambda bound: bound.take(tables, self._now()), tables)

    @in_turn
    @whole
    def punctuate(self, /, **promised: Instant) -> pa.Table:
        """Promise that no later row of a stream lies before an instant; gives what that proves."""
        self._require_running()
        if "key" in promised and "key" not in self.query.streams:
            raise QueryError("promises for one key are for windows over one stream")
        for name in promised:
            if name not in self.query.streams:
                raise UnknownStreamError(name, streams=self.query.streams)
        return self._step(lambda bound: bound.punctuate(promised))

    @in_turn
    @whole
    def beat(self) -> pa.Table:
        """Let the clock say how far the streams are, as `heartbeat` allows."""
        self._require_running()
        if self._run.heartbeat is None:
            raise OptionError("the query has no heartbeat", hint='open(..., heartbeat="5 seconds")')
        return self._step(lambda bound: bound.beat(self._now()))

    @in_turn
    def early(self) -> pa.Table:
        """The windows above the join that are still open, as they are now."""
        self._require_running()
        if not self.query.emits_early:
            raise QueryError("the query does not emit early", hint="end it with EMIT EARLY")
        bound = self._require_bound()
        if bound.above is None:
            raise QueryError("EMIT EARLY is for joined rows that are aggregated")
        return bound.above.early()

    @in_turn
    @whole
    def finish(self) -> pa.Table:
        """The streams have ended: gives all that is left, and forgets everything."""
        self._require_running()
        self._require_bound()
        self._finished = True
        return self._step(lambda bound: bound.take({}, self._now(), ends=True))

    @in_turn
    @whole
    def answer(self, /, **tables: object) -> pa.Table:
        """Take in whole streams at once, which end with it; nothing of them is stored."""
        self._require_running()
        arrow = {name: to_table(table, name) for name, table in tables.items()}
        self._note(arrow)
        self._require_bound()
        self._finished = True
        return self._step(lambda bound: bound.take(arrow, self._now(), ends=True))

    # What there is to see

    @property
    @in_turn
    def late(self) -> pa.Table:
        """Rows that broke a promise, with the reason."""
        return self._set_aside.late(self._schemas.values())

    @in_turn
    def take_late(self) -> pa.Table:
        """The late rows so far, which are then forgotten: for queries that run for long."""
        return self._set_aside.take_late(self._schemas.values())

    @property
    @in_turn
    def rejected(self) -> pa.Table:
        """Rows that have no place on the axis, with the reason."""
        return self._set_aside.rejected(self._schemas.values())

    @property
    @in_turn
    def progress(self) -> Mapping[str, int]:
        """What is promised of each side, in ticks of the axis, by the name of the side."""
        return {} if self._bound is None else self._bound.promised()

    @property
    @in_turn
    def state(self) -> Mapping[str, int]:
        """How much is stored: rows and bytes of each side, and what windows above the join hold."""
        stored = dict.fromkeys(("left_rows", "right_rows", "left_bytes", "right_bytes"), 0)
        held = {"keys": 0, "partials": 0, "bytes": 0}
        if self._bound is not None:
            stored |= self._bound.stage.stored()
            held |= {} if self._bound.above is None else self._bound.above.stored
        total = stored["left_bytes"] + stored["right_bytes"] + held["bytes"]
        rows = stored["left_rows"] + stored["right_rows"]
        return {**held, **stored, "rows": rows, "bytes": total, **self._set_aside.counts}

    @property
    def plan(self) -> JoinQueryPlan:
        """The plan, known once every side has sent a batch."""
        return self._require_bound().plan

    def explain(self, *, details: bool = False) -> str:
        """The plan as text; see `panes.explain`."""
        return explain_join(self.plan, details=details)

    # Within

    def _step(
        self, call: Callable[[_Bound], pa.Table], tables: Mapping[str, pa.Table] | None = None
    ) -> pa.Table:
        """Make a call, after those that waited for the columns of all sides; or let it wait."""
        self._note(tables or {})
        if self._bound is None:
            self._waiting_calls.append(call)
            return pa.table({})
        calls = [*self._waiting_calls, call]
        self._waiting_calls.clear()
        return pa.concat_tables([one(self._bound) for one in calls])

    def _note(self, tables: Mapping[str, pa.Table]) -> None:
        """Remember the columns of streams; once every side is known, make the plan."""
        for name, table in tables.items():
            if name not in self.query.streams:
                raise UnknownStreamError(name, streams=self.query.streams)
            self._schemas.setdefault(name, table.schema.remove_metadata())
        if self._bound is not None:
            return
        known = dict(self._schemas)
        for source in self.query.join.sources:
            first = next((known[s] for s in source.streams if s in known), None)
            if first is None:
                return
            known |= {s: first for s in source.streams if s not in known}
        self._bound = _Bound(self.query, known, self._run, self._aggregates, self._set_aside)

    def _require_running(self) -> None:
        if self._finished:
            raise QueryError("the query has finished; open it again to ask once more")

    def _require_bound(self) -> _Bound:
        if self._bound is None:
            unseen = [s.name for s in self.query.join.sources
                      if not any(n in self._schemas for n in s.streams)]  # fmt: skip
            names = ", ".join(f"`{name}`" for name in unseen)
            raise InputError(
                f"the query has seen no batch of {names}, so its answers have no columns",
                hint="push an empty table with the stream's schema",
            )
        return self._bound


class _Side:
    """One side while the query runs: its columns, what it has promised, and its gate."""

    def __init__(self, plan: SourcePlan, terms: Terms, *, carries_promises: bool) -> None:
        self.plan, self._terms = plan, terms
        query = plan.plan.query
        self._inputs = Inputs.of(query, terms, carries_promises=carries_promises)
        self._promises = Promises(query, terms)
        self._arrived = 0

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that this side reads."""
        return self.plan.source.streams

    @property
    def promised(self) -> int:
        """No later row of this side lies before."""
        return self._promises.melded()[0]

    def admit(
        self, tables: Mapping[str, pa.Table], now: int, open_from: int, set_aside: SetAside
    ) -> list[Arrivals]:
        """Take in batches of its streams; gives the rows that count."""
        mine = {name: tables[name] for name in self.streams if name in tables}
        inputs = self._inputs.after(mine)
        promised = self._promises.known(inputs.chains)
        gate = Gate(
            self.plan.plan, self._terms, now, promised, open_from,
            counted=COUNTED, closed=FORGOTTEN,
        )  # fmt: skip
        admitted = gate.admit_all(mine, inputs.chains, self._arrived)
        self._inputs = inputs
        self._promises.settle(inputs.chains)
        for batch in admitted:
            self._arrived += batch.rows
            inputs.chains[batch.stream].settle()
            set_aside.add(batch.late, batch.rejected, ahead=batch.ahead)
            self._promises.observe(batch.stream, batch.placed, batch.promise)
        defining = self.plan.plan.defining_columns
        return [
            Arrivals(b.arrival.at, (), tuple(b.arrival.columns[c] for c in defining))
            for b in admitted
            if len(b.arrival.at)
        ]

    def punctuate(self, stream: str, at: int, why: str) -> None:
        """A stream of this side promises that no row before `at` will come."""
        self._promises.punctuate(stream, at, why, self._inputs.chains)

    def end(self) -> None:
        """No stream of this side will send any more."""
        self._promises.end()

    def forget(self, progress: int) -> None:
        """Nothing before `progress` will come out of what FROM makes of the streams."""
        for chain in self._inputs.chains.values():
            chain.forget(progress)


class _Bound:
    """A query over a join whose columns are known: its plan, its sides, and what is stored."""

    def __init__(
        self,
        query: JoinQuery,
        schemas: Mapping[str, pa.Schema],
        run: Run,
        aggregates: Sequence[UserAggregate],
        set_aside: SetAside,
    ) -> None:
        self.plan = plan_join_query(query, joined_schemas(query.join, schemas), aggregates)
        if not run.bounded:
            require_streamable_join(self.plan)
        asked = self.plan.join.right.plan.query
        self._terms = agree(asked, run)
        require_terms(run, asked, self.plan.join.axis.kind)
        self._sides = [
            _Side(source, self._terms, carries_promises=not run.bounded)
            for source in self.plan.join.sources
        ]
        self._set_aside = set_aside
        self.stage = JoinStage(self.plan.join)
        self.above: Above | None = above(self.plan, run, aggregates)

    def promised(self) -> dict[str, int]:
        """What is promised of each side."""
        return {side.plan.name: side.promised for side in self._sides}

    def take(self, tables: Mapping[str, pa.Table], now: int, *, ends: bool = False) -> pa.Table:
        """Take in batches; with `ends`, they are the last ones."""
        rows = {
            side.plan.name: side.admit(
                tables, now, self.stage.open_from(side.plan.name), self._set_aside
            )
            for side in self._sides
        }
        self._beat(now)
        if ends:
            for side in self._sides:
                side.end()
        return self._answered(rows, ends=ends)

    def punctuate(self, promised: Mapping[str, Instant]) -> pa.Table:
        """Streams promise something; gives what that proves."""
        kind = self.plan.join.axis.kind
        for name, instant in promised.items():
            if kind != "time" and not isinstance(instant, Integral):
                raise OptionError(f"`{name}` has no time axis: a promise is a whole number there")
            for side in self._sides:
                if name in side.streams:
                    side.punctuate(name, parse_instant(instant), "punctuation")
        return self._answered({})

    def beat(self, now: int) -> pa.Table:
        """The clock promises something; gives what that proves."""
        self._beat(now)
        return self._answered({})

    def _beat(self, now: int) -> None:
        if self._terms.heartbeat is not None:
            at = self._terms.heartbeat.promise(now)
            for side in self._sides:
                for name in side.streams:
                    side.punctuate(name, at, "heartbeat")

    def _answered(self, rows: Mapping[str, Sequence[Arrivals]], *, ends: bool = False) -> pa.Table:
        """Join rows, and give what is selected of joined rows or aggregated above them."""
        promised = self.promised()
        for side in self._sides:
            side.forget(promised[side.plan.name])
        joined = self.stage.step(rows, promised)
        if self.above is None:
            return self._selected(with_edges(self.plan, joined))
        passing, _ = Projection((), self.plan.answers.where)(joined)
        joined = joined if passing is None else joined.take(pa.array(passing))
        return self.above.finish(joined) if ends else self.above.take(joined, self.stage)

    def _selected(self, joined: pa.Table) -> pa.Table:
        plan = self.plan
        passing, columns = plan.answers(joined)
        edges = list(joined.columns[: 2 * plan.names_windows])
        if passing is not None:
            edges = [c.take(pa.array(passing)) for c in edges]
        return pa.table([*edges, *columns], schema=plan.schema())
