"""Many queries over joins of the same streams: queries with the same join share it.

Two queries have the same join if they join the same sides by the same keys, band or windows and
conditions; they may differ in what they select, in filters on one side, and in the windows above.
Rows are then stored and joined once, and each query takes of the joined rows what it needs. A query
that only aggregates the partners of each left row needs no pairs and has a join of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.axis import BEGINNING
from panes.errors import (
    FailedQueryWarning,
    OptionError,
    PanesError,
    QueryError,
    UnknownStreamError,
    warn,
)
from panes.frames import to_table
from panes.html import facts_line
from panes.language.join_query import JoinQuery
from panes.language.join_text import is_join, read_join
from panes.nodes.inner import joined_schemas, schemas_made
from panes.nodes.missed_rows import Missed, sure_rows
from panes.nodes.set_aside import SetAside
from panes.planning.explain_join import explain_join
from panes.planning.join_query_plan import JoinQueryPlan, plan_join_query
from panes.planning.terms import StreamOptions
from panes.process.added import Added
from panes.process.in_turn import Turn
from panes.process.join_answers import JoinAnswers
from panes.process.join_run import JoinRun
from panes.process.newest_rows import NewestRows
from panes.process.open_join import NO_COLUMNS, known_schemas, no_batch_yet, unseen
from panes.process.open_query import Instant
from panes.process.step import in_turn, step, whole
from panes.process.watched import Watcher
from panes.sharing.join_view import JoinedQuery, JoinsView


class JoinRegister:
    """Queries over joins of some streams, which come and go while rows are pushed.

    Threads may share it: they take turns.
    """

    UNCHANGED = frozenset({"watcher"})

    def __init__(
        self,
        streams: Sequence[str],
        run: StreamOptions = StreamOptions(),  # noqa: B008 - frozen
        *,
        aggregates: Sequence[UserAggregate] = (),
        now: Callable[[], int] = lambda: time.time_ns() // 1_000,
    ) -> None:
        if run.late == "revise":
            raise OptionError("late='revise' is for windows over one stream; a pair is given once")
        self.streams = tuple(streams)
        self._run, self._aggregates, self._now = run, tuple(aggregates), now
        self._asked: dict[str, JoinQuery] = {}
        self._failed: dict[str, tuple[JoinQuery, str]] = {}
        self._schemas: dict[str, pa.Schema] = {}
        self._joins: dict[object, _SharedJoin] = {}
        self._newest = NewestRows()
        self._early: list[Callable[[JoinRun], pa.Table]] = []
        self._newest_before_early = NewestRows()
        self._read: dict[str, int] = {}
        self._finished = False
        self._ended_at = BEGINNING
        self._last_view: JoinsView | None = None
        self._turn = Turn(run.max_answers)
        self.watcher: Watcher | None = None

    # Queries

    @in_turn
    @whole
    def add(self, name: str, text: str) -> Added:
        """Answer one more query from now on: rows that are joined, and windows that are whole.

        Windows that may miss rows, because these came before, are not answered (`exact_from`).
        """
        self._require_running()
        if name in self._asked:
            raise QueryError(f"there is a query `{name}` already", hint="remove it first")
        if not is_join(text):
            raise QueryError("a register of several streams takes queries over joins of them")
        query = read_join(text, self._aggregates)
        for stream in query.streams:
            if stream not in self.streams:
                raise UnknownStreamError(stream, streams=self.streams)
        self._asked[name] = query
        self._failed.pop(name, None)
        self._bind(name, query)
        return Added(self, name)

    @in_turn
    @whole
    def remove(self, name: str) -> None:
        """Answer a query no longer, and forget a join that only it needed."""
        if name not in self._asked:
            known = ", ".join(self._asked) or "none"
            raise QueryError(f"there is no query `{name}`", hint=f"queries: {known}")
        del self._asked[name]
        self._read.pop(name, None)
        self._unbind(name)

    @in_turn
    def queries(self) -> dict[str, str]:
        """The texts of all queries, by name, in the order in which they came."""
        return {name: query.text for name, query in self._asked.items()}

    @in_turn
    def exact_from(self, name: str) -> object | None:
        """Where the first window of a query starts, or its first group or joined row lies.

        All answers from there on are given: every window that starts there or later, and every
        joined row of which all rows lie there or later. Joined rows that are sure are given before
        it as well, windows and groups are not. None: from the beginning of the streams; and as long
        as a stream has sent no batch, so that nothing is known of its columns.
        """
        if name not in self._asked:
            raise QueryError(f"there is no query `{name}`")
        found = (join.answers.get(name) for join in self._joins.values())
        whole = next((answers.whole for answers in found if answers is not None), None)
        return None if whole is None else whole.begins

    @property
    @in_turn
    def failed(self) -> dict[str, str]:
        """The queries that were set aside because they could not be answered, and why."""
        return {name: reason for name, (_, reason) in self._failed.items()}

    @in_turn
    def put_back(self, name: str) -> Added:
        """Answer a query again that was set aside."""
        if name not in self._failed:
            raise QueryError(f"no query `{name}` was set aside")
        return self.add(name, self._failed[name][0].text)

    # The streams

    @step
    @whole
    def push(self, /, **batches: object) -> dict[str, pa.Table]:
        """Take in a batch of each named stream; gives what is joined or final from now on.

        All or nothing: if a batch is refused, the register is as it was before. A query that cannot
        be answered, or does not fit the columns of its streams, is set aside (`failed`), and the
        others go on. If there are no others, the batch is refused.
        """
        self._require_running()
        if not batches:
            raise OptionError("push needs a batch", hint=f"push({self.streams[0]}=table)")
        known = self._schemas
        tables = {name: to_table(batch, name, known.get(name)) for name, batch in batches.items()}
        for name, table in tables.items():
            if name not in self.streams:
                raise UnknownStreamError(name, streams=self.streams)
            if not any(name in query.streams for query in self._asked.values()):
                raise QueryError(
                    f"no query reads `{name}`, so it cannot be known which column orders its rows",
                    hint='add one first: reg.add("near", "SELECT ...")',
                )
            self._schemas.setdefault(name, table.schema.remove_metadata())
        self._bind_waiting()
        now = self._now()
        found = self._answers(
            lambda run: run.take({n: t for n, t in tables.items() if n in run.streams}, now)
        )
        self._newest = self._newest.after(tables, self._run, now)
        return found

    @step
    @whole
    def punctuate(self, /, **promised: Instant) -> dict[str, pa.Table]:
        """Promise that no later row of a stream lies before an instant; gives what that proves."""
        self._require_running()
        for name in promised:
            if name not in self.streams:
                raise UnknownStreamError(name, streams=self.streams)
        for query in self._unbound().values():
            if not promised.keys().isdisjoint(query.streams):
                raise no_batch_yet(unseen(query, self._schemas), "a promise cannot be understood")
        for join in self._joins.values():
            join.run.require_instants(promised)
        return self._answers(
            lambda run: run.punctuate({n: p for n, p in promised.items() if n in run.streams})
        )

    @step
    @whole
    def finish(self) -> dict[str, pa.Table]:
        """The streams have ended: gives all that is left, and forgets everything."""
        self._require_running()
        now = self._now()
        for name, query in self._unbound().items():
            self._set_aside_query(name, no_batch_yet(unseen(query, self._schemas), NO_COLUMNS))
        found = self._answers(lambda run: run.take({}, now, ends=True), ends=True)
        self._last_view, self._ended_at = self.view(), self.progress
        self._finished = True
        self._joins.clear()
        return found

    def ask(self, text: str) -> pa.Table:  # noqa: ARG002
        """Refused: joined rows are given when they are joined and not stored."""
        raise QueryError(
            "a register of joins answers no questions: joined rows are not stored",
            hint="add the query, or ask a register of one stream",
        )

    # What there is to see

    @property
    @in_turn
    def late(self) -> pa.Table:
        """Rows that broke a promise, with the reason; once for each join that reads them."""
        return self._together("late")

    @property
    @in_turn
    def rejected(self) -> pa.Table:
        """Rows that have no place on the axis, with the reason; once for each join."""
        return self._together("rejected")

    @property
    @in_turn
    def state(self) -> Mapping[str, int]:
        """How much is stored: queries, joins, rows and bytes of both sides of all joins."""
        stored = [join.run.stage.stored() for join in self._joins.values()]
        rows = sum(s["left_rows"] + s["right_rows"] for s in stored)
        nbytes = sum(s["left_bytes"] + s["right_bytes"] for s in stored)
        counts = {"queries": len(self._asked), "failed": len(self._failed)}
        return {**counts, "joins": len(self._joins), "rows": rows, "bytes": nbytes}

    @property
    @in_turn
    def progress(self) -> int:
        """How far all joins are: no row before it will come.

        In microseconds, or in units of an integer axis.
        """
        reached = [at for join in self._joins.values() for at in join.run.reached().values()]
        return min(reached, default=self._ended_at)

    @property
    def is_finished(self) -> bool:
        """Whether the streams have ended."""
        return self._finished

    @property
    @in_turn
    def joined_rows(self) -> Mapping[str, int]:
        """How many rows its join has given each query; of a fold, which makes no pairs, answers."""
        return dict(self._read)

    @in_turn
    def view(self) -> JoinsView:
        """Which queries there are and which join each shares; after the end, as it was then."""
        if self._last_view is not None:
            return self._last_view
        bound = {
            name: (number, answers.plan)
            for number, join in enumerate(self._joins.values())
            for name, answers in join.answers.items()
        }
        queries = []
        for name, query in self._asked.items():
            number, plan = bound.get(name, (None, None))
            queries.append(JoinedQuery(name, query.text, plan, number))
        failed = {name: (query.text, why) for name, (query, why) in self._failed.items()}
        return JoinsView(self.streams, tuple(queries), failed)

    @in_turn
    def explain(self, *, details: bool = False) -> str:
        """How each join is run, and which queries share it."""
        parts = []
        for join in self._joins.values():
            names = ", ".join(join.answers)
            first = next(iter(join.answers.values()))
            parts.append(f"queries    {names}\n" + explain_join(first.plan, details=details))
        return "\n".join(parts)

    def __repr__(self) -> str:
        how = "finished" if self._finished else "open"
        counts = f"queries={len(self._asked)}", f"failed={len(self._failed)}"
        return facts_line("JoinRegister", f"of {', '.join(self.streams)}", how, *counts)

    # Within

    def _bind_waiting(self) -> None:
        """Bind the queries whose streams are all known by now; those that do not fit are aside."""
        failing: dict[str, PanesError] = {}
        for name, query in self._asked.items():
            try:
                self._bind(name, query)
            except PanesError as error:
                failing[name] = error.of(f"query `{name}`")
        if failing and len(failing) == len(self._asked):
            raise next(iter(failing.values()))  # rather than all queries, the batch is wrong
        for name, reason in failing.items():
            self._set_aside_query(name, reason)

    def _bind(self, name: str, query: JoinQuery) -> None:
        """Find or make the join of a query, if all its streams are known and it has none yet."""
        if any(name in join.answers for join in self._joins.values()):
            return
        known = known_schemas(
            query, {s: schema for s, schema in self._schemas.items() if s in query.streams}
        )
        if known is None:
            return
        schemas = joined_schemas(query.join, known)
        plan = plan_join_query(query, schemas, self._aggregates)
        came = self._newest_before_early if self._early else self._newest
        unstored = _newest_of(plan, came, known)
        folds = plan.aggregation is not None and plan.aggregation.fold is not None
        if not folds or max(unstored) > BEGINNING:  # a fold would answer rows that miss partners
            folds = False
            plan = plan_join_query(query, schemas, self._aggregates, is_shared=True)
        key: object = (name,) if folds else plan.join.identity
        if key not in self._joins:
            self._joins[key] = _SharedJoin(plan, self._run, self._early, unstored)
            self._newest = self._newest.laid(plan.join.sources, known)
        shared = self._joins[key]
        joined = _newest_of(plan, self._newest if shared.has_begun else NewestRows(), known)
        answers = JoinAnswers(plan, self._run, self._aggregates, Missed(shared.unstored, joined))
        if answers.whole is not None:
            answers.whole.require_answers()
        shared.answers[name] = answers

    def _unbind(self, name: str) -> None:
        for key, join in list(self._joins.items()):
            join.answers.pop(name, None)
            if not join.answers:
                del self._joins[key]

    def _answers(
        self, call: Callable[[JoinRun], pa.Table], *, ends: bool = False
    ) -> dict[str, pa.Table]:
        """What every query answers after a step of its join; those that fail are set aside."""
        found: dict[str, pa.Table] = {}
        failing: dict[str, PanesError] = {}
        self._watch()
        for join in list(self._joins.values()):
            try:
                joined = join.after(call)
            except PanesError as error:
                failing |= dict.fromkeys(join.answers, error)
                continue
            for name, answers in join.answers.items():
                self._read[name] = self._read.get(name, 0) + len(joined)
                try:
                    found[name] = answers.of(joined, join.run, ends=ends)
                except PanesError as error:
                    failing[name] = error
        if not self._unbound():
            self._early = []
        else:
            if not self._early:
                self._newest_before_early = self._newest
            self._early = [*self._early, call]
        for name, reason in failing.items():
            self._set_aside_query(name, reason)
        return {name: found[name] for name in self._asked if name in found}

    def _watch(self) -> None:
        """Let the first join that reads a stream tell of its batches."""
        untold = frozenset(self.streams)
        for join in self._joins.values():
            join.run.watcher, join.run.tells = self.watcher, untold & join.run.streams
            untold -= join.run.streams

    def _set_aside_query(self, name: str, reason: PanesError) -> None:
        self._failed[name] = (self._asked.pop(name), str(reason))
        self._read.pop(name, None)
        self._unbind(name)
        warn(
            f"query `{name}` failed and is set aside; the others go on. {reason}",
            FailedQueryWarning,
        )

    def _unbound(self) -> dict[str, JoinQuery]:
        """The queries whose streams are not all known yet."""
        bound = {name for join in self._joins.values() for name in join.answers}
        return {name: query for name, query in self._asked.items() if name not in bound}

    def _together(self, which: str) -> pa.Table:
        tables = list(self._set_aside(which))
        return pa.concat_tables(tables, promote_options="default") if tables else pa.table({})

    def _set_aside(self, which: str) -> Iterator[pa.Table]:
        for join in self._joins.values():
            query = next(iter(join.answers.values())).plan.query
            known = known_schemas(query, self._schemas)
            made = [] if known is None else schemas_made(query.join, known)
            yield getattr(join.set_aside, which)(chain(*made))

    def _require_running(self) -> None:
        if self._finished:
            raise QueryError("the register has finished; open it again")


class _SharedJoin:
    """A join, and the answers of all queries that share it.

    What came `early`, before the columns of all its streams were known, is still to be taken in.
    Rows that came before that are `unstored`, up to a position of each source.
    """

    def __init__(
        self,
        plan: JoinQueryPlan,
        run: StreamOptions,
        early: Sequence[Callable[[JoinRun], pa.Table]],
        unstored: tuple[int, ...],
    ) -> None:
        self.unstored, self.has_begun = unstored, False
        self.set_aside = SetAside()
        self.run = JoinRun(plan, run, self.set_aside)
        self.answers: dict[str, JoinAnswers] = {}
        self._early = list(early)

    def after(self, call: Callable[[JoinRun], pa.Table]) -> pa.Table:
        """Joined rows after a call, and after those that waited for it."""
        calls = [*self._early, call]
        self._early, self.has_begun = [], True
        joined = pa.concat_tables([one(self.run) for one in calls])
        return sure_rows(self.run.join, self.unstored, joined)


def _newest_of(
    plan: JoinQueryPlan, newest: NewestRows, known: Mapping[str, pa.Schema]
) -> tuple[int, ...]:
    """Where the newest row of each source of a join lies."""
    return tuple(newest.of(side, known) for side in plan.join.sources)
