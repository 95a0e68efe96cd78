"""A query over a join of streams in this process: push, punctuate, finish.

Batches go through a `JoinRun`, which joins their rows, and joined rows through `JoinAnswers`. What
fails on the way leaves no trace: the query is as it was before the call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.axis import BEGINNING
from panes.errors import InputError, OptionError, QueryError, UnknownStreamError
from panes.frames import empty_tables, to_table
from panes.html import facts_html, facts_line
from panes.language.join_query import JoinQuery
from panes.language.join_text import read_join
from panes.nodes.inner import joined_schemas, schemas_made
from panes.nodes.promised_answers import promised_by_join
from panes.nodes.set_aside import SetAside
from panes.planning.explain_join import explain_join
from panes.planning.join_plan import SourcePlan
from panes.planning.join_query_plan import JoinQueryPlan, plan_join_query
from panes.planning.join_terms import require_join_options
from panes.planning.terms import StreamOptions
from panes.process.in_turn import Turn
from panes.process.join_answers import JoinAnswers
from panes.process.join_run import JoinRun
from panes.process.joined_windows import Above
from panes.process.open_query import Instant
from panes.process.query_on_streams import QueryOnStreams
from panes.process.step import in_turn, kept, step, whole
from panes.process.watched import Watcher


class OpenJoin(QueryOnStreams):
    """A running query over a join: rows of both sides go in, joined rows or answers come out.

    A pair is given as soon as both its rows are there, a row without partner as soon as progress
    proves that it has none. Row order and the split into batches change nothing, as long as no row
    comes later than was promised. Threads may share it: they take turns.
    """

    UNCHANGED = frozenset({"watcher"})

    def __init__(
        self,
        text: str | JoinQuery,
        run: StreamOptions = StreamOptions(),  # noqa: B008 - frozen
        *,
        aggregates: Sequence[UserAggregate] = (),
        schemas: Mapping[str, pa.Schema] | None = None,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000,
    ) -> None:
        self.query = read_join(text, aggregates) if isinstance(text, str) else text
        require_join_options(self.query, run)
        self._run, self._aggregates, self._now = run, tuple(aggregates), now
        self._schemas: dict[str, pa.Schema] = {}
        self._waiting: list[tuple[Literal["take", "punctuate", "beat"], tuple[Any, ...]]] = []
        self._set_aside = SetAside()
        self._bound: _Bound | None = None
        self._finished = False
        self._turn = Turn(run.max_answers)
        self.watcher: Watcher | None = None
        self._note(empty_tables(schemas or {}))

    # What comes

    @step
    @whole
    def push(self, /, **batches: object) -> pa.Table:
        """Take in a batch of each named stream; gives what is joined, or final, from now on.

        All or nothing: if a batch is refused, the query is as it was before. Until every side has
        sent a batch, nothing is known of its columns: what comes waits, and nothing is given.
        """
        self._require_running()
        if not batches:
            raise OptionError("push needs a batch", hint=f"push({self.query.streams[0]}=table)")
        known = self._schemas
        tables = {name: to_table(batch, name, known.get(name)) for name, batch in batches.items()}
        self._note(tables)
        return self._step("take", tables, self._now())

    @step
    @whole
    def punctuate(self, /, **promised: Instant) -> pa.Table:
        """Promise that no later row of a stream lies before an instant; gives what that proves."""
        self._require_running()
        if "key" in promised and "key" not in self.query.streams:
            raise QueryError("promises for one key are for windows over one stream")
        for name in promised:
            if name not in self.query.streams:
                raise UnknownStreamError(name, streams=self.query.streams)
        if self._bound is None and promised:
            raise no_batch_yet(unseen(self.query, self._schemas), "a promise cannot be understood")
        return self._step("punctuate", promised)

    @step
    @whole
    def beat(self) -> pa.Table:
        """Let the clock say how far the streams are, as `heartbeat` allows."""
        self._require_running()
        if self._run.heartbeat is None:
            raise OptionError("the query has no heartbeat", hint='open(..., heartbeat="5 seconds")')
        return self._step("beat", self._now())

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

    @step
    @whole
    def finish(self) -> pa.Table:
        """The streams have ended: gives all that is left, and forgets everything."""
        self._require_running()
        self._require_bound()
        self._finished = True
        return self._step("take", {}, self._now(), True)

    @in_turn
    @whole
    @kept
    def answer(self, /, **tables: object) -> pa.Table:
        """Take in whole streams at once, which end with it; nothing of them is stored."""
        self._require_running()
        arrow = {name: to_table(table, name) for name, table in tables.items()}
        self._note(arrow)
        self._require_bound()
        self._finished = True
        return self._step("take", arrow, self._now(), True)

    def require_instants(self, promised: Mapping[str, Instant]) -> None:
        """Refuse promises that are no positions of the streams."""
        if self._bound is None and promised:
            raise no_batch_yet(unseen(self.query, self._schemas), "a promise cannot be understood")
        if self._bound is not None:
            self._bound.run.require_instants(promised)

    # What there is to see

    @property
    @in_turn
    def progress(self) -> Mapping[str, int]:
        """Up to where each side is complete (its watermark), by the name of the side.

        In microseconds, or in units of an integer axis. After the end it is just after the newest
        row, or at the last promise if that is further.
        """
        return {} if self._bound is None else self._bound.run.reached()

    @property
    def given_columns(self) -> Mapping[str, pa.Schema]:
        """The columns of batches, of the streams that are known."""
        return self._schemas

    @property
    @in_turn
    def state(self) -> Mapping[str, int]:
        """How much is stored: rows and bytes of each side, and what windows above the join hold."""
        stored = dict.fromkeys(("left_rows", "right_rows", "left_bytes", "right_bytes"), 0)
        held = {"keys": 0, "partials": 0, "bytes": 0}
        if self._bound is not None:
            stored |= self._bound.run.stage.stored()
            held |= {} if self._bound.above is None else self._bound.above.stored
        total = stored["left_bytes"] + stored["right_bytes"] + held["bytes"]
        rows = stored["left_rows"] + stored["right_rows"]
        return {
            **held,
            **stored,
            "rows": rows,
            "bytes": total,
            **self._set_aside.counts,
            **self._on_disk,
        }

    @property
    def answer_schema(self) -> pa.Schema | None:
        """Nothing: the columns of joined rows are known when some are given."""

    @property
    def next_end(self) -> int:
        """No window above the join that is yet to be answered ends before, if that is known."""
        above = None if self._bound is None else self._bound.above
        return BEGINNING if above is None or above.next_end is None else above.next_end

    @property
    def open_from(self) -> int:
        """The first position of rows that may still be joined."""
        if self._bound is None:
            return BEGINNING
        sides = self._bound.plan.join.sources
        return min(self._bound.run.stage.open_from(side.name) for side in sides)

    @property
    def sides(self) -> Sequence[SourcePlan]:
        """The sides, known once every one has sent a batch."""
        return () if self._bound is None else self._bound.plan.join.sources

    def promised_answers(self) -> dict[str, int]:
        """What is promised of the columns of answers to come, by their names in small letters."""
        if self._bound is None:
            return {}
        above = self._bound.above
        next_end = None if above is None else above.next_end
        return promised_by_join(self._bound.plan, self._bound.run.stage, next_end)

    @property
    def plan(self) -> JoinQueryPlan:
        """The plan, known once every side has sent a batch."""
        return self._require_bound().plan

    def explain(self, *, details: bool = False) -> str:
        """The plan as text; see `panes.explain`."""
        return self._explained(explain_join(self.plan, details=details))

    def __repr__(self) -> str:
        how = "finished" if self._finished else "open"
        return facts_line("OpenJoin", self.query.text, how)

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {"state": "finished" if self._finished else "open"}
        facts |= {name: self.state[name] for name in ("rows", "bytes", "late_rows")}
        return facts_html("open join", self.query.text, facts)

    # Within

    def _step(self, call: Literal["take", "punctuate", "beat"], *given: Any) -> pa.Table:
        """Make a call, after those that waited for the columns of all sides; or let it wait."""
        self._waiting.append((call, given))
        if self._bound is None:
            return pa.table({})
        calls, self._waiting = self._waiting, []
        self._bound.run.watcher = self.watcher
        return pa.concat_tables([getattr(self._bound, name)(*given) for name, given in calls])

    def _note(self, tables: Mapping[str, pa.Table]) -> None:
        """Remember the columns of streams; once every side is known, make the plan."""
        for name, table in tables.items():
            if name not in self.query.streams:
                raise UnknownStreamError(name, streams=self.query.streams)
            self._schemas.setdefault(name, table.schema.remove_metadata())
        if self._bound is not None:
            return
        known = known_schemas(self.query, self._schemas)
        if known is None:
            return
        plan = plan_join_query(self.query, joined_schemas(self.query.join, known), self._aggregates)
        run = JoinRun(plan, self._run, self._set_aside)
        self._bound = _Bound(plan, run, JoinAnswers(plan, self._run, self._aggregates))

    def _made(self) -> list[pa.Schema]:
        """The columns of all streams after what FROM makes of each, once they are known."""
        known = known_schemas(self.query, self._schemas)
        return [] if known is None else list(chain(*schemas_made(self.query.join, known)))

    def _require_bound(self) -> _Bound:
        if self._bound is None:
            raise no_batch_yet(unseen(self.query, self._schemas), NO_COLUMNS)
        return self._bound


class _Bound:
    """A query over a join whose columns are known: the join, and what is answered of it."""

    def __init__(self, plan: JoinQueryPlan, run: JoinRun, answers: JoinAnswers) -> None:
        self.plan, self.run, self._answers = plan, run, answers

    @property
    def above(self) -> Above | None:
        """The windows above the join."""
        return self._answers.above

    def take(self, tables: Mapping[str, pa.Table], now: int, ends: bool = False) -> pa.Table:
        """Take in batches; with `ends`, they are the last ones."""
        return self._answers.of(self.run.take(tables, now, ends=ends), self.run, ends=ends)

    def punctuate(self, promised: Mapping[str, Instant]) -> pa.Table:
        """Streams promise something; gives what that proves."""
        return self._answers.of(self.run.punctuate(promised), self.run)

    def beat(self, now: int) -> pa.Table:
        """The clock promises something; gives what that proves."""
        return self._answers.of(self.run.beat(now), self.run)


NO_COLUMNS = "its answers have no columns"


def unseen(query: JoinQuery, schemas: Mapping[str, pa.Schema]) -> list[str]:
    """A stream of each side of a join of which nothing is known."""
    sides = [side.streams for side in query.join.sources]
    missing = (names[0] for names in sides if not any(name in schemas for name in names))
    return list(dict.fromkeys(dict(query.again).get(name, name) for name in missing))


def no_batch_yet(streams: Sequence[str], what: str) -> InputError:
    """What cannot be done before some sides of a join are known."""
    names = ", ".join(f"`{name}`" for name in streams)
    return InputError(
        f"the query has seen no batch of {names}, so {what}",
        hint="push an empty table with the stream's schema, or give panes.open a schema",
    )


def known_schemas(
    query: JoinQuery, schemas: Mapping[str, pa.Schema]
) -> dict[str, pa.Schema] | None:
    """The columns of all streams; None unless every side has sent a batch.

    Streams of a union that have not been seen yet look like the others.
    """
    known = dict(schemas)
    for source in query.join.sources:
        first = next((known[s] for s in source.streams if s in known), None)
        if first is None:
            return None
        known |= {s: first for s in source.streams if s not in known}
    return known
