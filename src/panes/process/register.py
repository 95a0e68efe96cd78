"""A register: many queries over one stream or several, which run as one graph.

Sliding windows share the read, panes and partials of their stream (`SharedWindows`), queries over
joins share the join (`SharedJoins`), and every other query that `panes.open` takes is a node beside
them; what several queries contain runs once (`panes.process.register_graph`).

Every answer is what the query would get alone. Queries come and go while the streams run; one that
comes late is answered from where nothing that it needs is missing.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.answers.portions import Portion, QueryAnswers
from panes.axis import BEGINNING, Axis, Duration
from panes.errors import FailedQueryWarning, QueryError, warn
from panes.frames import empty_tables, to_table
from panes.html import facts_html, facts_line
from panes.language.query_graph import read_graph
from panes.nodes.set_aside import late_of, rejected_of, take_late_of
from panes.planning.terms import StreamOptions
from panes.process.added import Added
from panes.process.in_turn import Turn
from panes.process.node import Instant, Step, bytes_of, clock
from panes.process.register_graph import RegisterGraph
from panes.process.rounds import HandOver
from panes.process.saved_register import SavedRegister, Signature
from panes.process.shared_windows import SharedWindows
from panes.process.step import in_turn, kept, step, uninterrupted
from panes.process.watched import Watcher
from panes.sharing.explain import explain_finished
from panes.sharing.failures import set_aside_words
from panes.sharing.pace import Behind
from panes.sharing.queries import Failed
from panes.sharing.shared_store import SharedStore
from panes.sharing.view import RegisterView, version_of, view_of_joins, view_of_one


class Register(SavedRegister):
    """Queries over some streams, run together. See `panes.register`. Threads take turns.

    `saves` is how often it has been saved, in this process and in those before it. `is_of_one`: it
    was opened for one stream, whose batches need no name.
    """

    UNCHANGED = frozenset({"_turn", "_came", "_written", "_taken", "_watcher"})

    def __init__(
        self,
        streams: str | Sequence[str],
        run: StreamOptions = StreamOptions(),  # noqa: B008 - frozen
        *,
        schema: pa.Schema | None = None,
        aggregates: Sequence[UserAggregate] = (),
        keep_rows: int = 0,
        hand_over: HandOver | None = None,
        now: Callable[[], int] = clock,
    ) -> None:
        self.streams = (streams,) if isinstance(streams, str) else tuple(streams)
        self.stream, self.is_of_one = self.streams[0], isinstance(streams, str)
        self._run, self._aggregates, self._hand_over = run, tuple(aggregates), hand_over
        self.saves = 0
        self._finished = False
        self._last_progress = BEGINNING
        self._last_view: RegisterView | None = None
        self._written: dict[str, Signature] = {}
        self._failed: dict[str, Failed] = {}
        self._came: dict[str, int] = {}
        self._taken: dict[str, pa.Table] = {}
        self._turn = Turn(run.max_answers)
        self._watcher: Watcher | None = None
        self._graph = RegisterGraph(
            self.streams, run, self._turn, aggregates=aggregates, now=now, keep_rows=keep_rows,
            hand_over=hand_over,
        )  # fmt: skip
        if schema is not None:
            known = empty_tables({self.stream: schema})
            self._graph.bind(known)

    @property
    def _windows(self) -> Sequence[SharedWindows]:
        return self._graph.windows

    @property
    def watcher(self) -> Watcher | None:
        """Who is told of every step; see `panes.live`."""
        return self._watcher

    @watcher.setter
    def watcher(self, watcher: Watcher | None) -> None:
        self._watcher = watcher
        self._graph.watch(watcher)

    # Queries

    @uninterrupted
    def add(self, name: str, text: str, *, deadline: Duration | None = None) -> Added:
        """Answer one more query from now on; says from where its answers are exact.

        It may be any query that `panes.open` takes. With a `deadline`, it is answered before those
        that have more time, and `behind` tells beforehand if it will be late; that is for sliding
        windows over a stream.
        """
        self._require_running()
        self._graph.require_new(name)
        graph = read_graph(text, self._aggregates)
        self._graph.require_streams(name, graph.streams)
        self._graph.add(name, text, graph, deadline)
        self._failed.pop(name, None)
        for windows in self._windows:
            windows.queries.failed.pop(name, None)
        self._came[name] = max(self._came.values(), default=0) + 1
        self._graph.watch(self._watcher)
        self._note_change()
        return Added(self, name)

    @uninterrupted
    def remove(self, name: str) -> None:
        """Answer a query no longer, and forget what only it needed."""
        if self._failed.pop(name, None) is not None:
            return
        if not self._graph.has(name) and name not in self._all_failed():
            known = ", ".join(sorted(self._texts())) or "none"
            raise QueryError(f"no query `{name}` is registered", hint=f"queries: {known}")
        self._graph.remove(name)
        self._note_change()

    def _all_failed(self) -> dict[str, Failed]:
        return self._graph.failed() | self._failed

    @property
    @in_turn
    def failed(self) -> dict[str, str]:
        """The queries that were set aside because they could not be answered, and why.

        Prepared questions that were set aside are listed by their text.
        """
        found = {name: failed.reason for name, failed in self._all_failed().items()}
        for windows in self._windows:
            found |= windows.prepared.failed | windows.reading.row_questions.failed
        return found

    @in_turn
    def put_back(self, name: str) -> Added:
        """Answer a query again that was set aside, from its next window that can be answered."""
        failed = self._all_failed()
        if name not in failed:
            known = f"set aside: {', '.join(sorted(failed)) or 'none'}"
            raise QueryError(f"no query `{name}` was set aside", hint=known)
        ticks = failed[name].deadline
        deadline = None if ticks is None else dt.timedelta(microseconds=ticks)
        return self.add(name, failed[name].text, deadline=deadline)

    @in_turn
    def queries(self) -> dict[str, str]:
        """The texts of all queries, by name, in the order in which they came."""
        return self._texts()

    def _texts(self) -> dict[str, str]:
        """The same for who has the turn."""
        return self._graph.all_texts(self._came)

    @in_turn
    def exact_from(self, name: str) -> object | None:
        """Where the first answered window of a query starts; None: at the stream's beginning.

        Of joined rows that are not aggregated, all are given of which every row lies there or
        later, and those before that are sure.
        """
        return self._graph.exact_from(name)

    # The streams

    @step
    def push(self, batch: object = None, /, **batches: object) -> QueryAnswers:
        """Take in a batch of the stream, or of each named one; gives the answers by query.

        All or nothing: if a batch is refused or the sink fails, the register is as it was before,
        and the batch can be pushed again; no answer that was handed over is given twice. A query
        that cannot be answered is set aside (`failed`), and the others go on.
        """
        self._require_running()
        given = self._graph.named(batch, batches, "push needs a batch", "table")
        known = self._graph.schemas
        tables = {name: to_table(one, name, known.get(name)) for name, one in given.items()}
        for name in tables:
            self._graph.require_read(name)
        self._bind_waiting(tables)
        found = self._step(Step(tables))
        for name, table in tables.items():
            self._graph.arrived[name] = self._graph.arrived.get(name, 0) + len(table)
        return found

    def _step(self, step: Step) -> QueryAnswers:
        """The answers of a step, all of it or nothing; queries that fail are set aside."""
        self._turn.undo.remember(self)
        step.others_go_on = True
        found = []
        for portion in self._graph.step(step):
            if portion.columns < 0 and self._hand_over is not None:
                self._hand(self._hand_over, portion)
            found.append(portion)
        for name, reason in step.failed.items():
            self._set_aside(name, reason)
        self._taken.clear()
        return QueryAnswers(found)

    def _hand(self, sink: HandOver, portion: Portion) -> None:
        """Hand over answers, but for those that the sink has taken in a step that was undone."""
        [name], table = portion.names, portion.table
        taken = self._taken.get(name)
        if taken is not None and table.slice(0, len(taken)).equals(taken):
            table = table.slice(len(taken))
        if len(table):
            for _ in zip([name], map(sink, [name], [table]), strict=True):
                self._taken[name] = portion.table

    def _set_aside(self, name: str, reason: Exception) -> None:
        text = self._graph.texts[name]
        self._graph.remove(name)
        self._failed[name] = Failed(text, None, str(reason))
        warn(set_aside_words(name, reason), FailedQueryWarning)

    def _bind_waiting(self, tables: Mapping[str, pa.Table]) -> None:
        """The columns of streams are known now: queries that do not fit them are set aside."""
        if all(name in self._graph.schemas for name in tables):
            return
        undo = self._turn.undo
        bound = [one for w in self._windows for one in (w.queries, w.reading, w.prepared)]
        undo.remember(self, *bound)
        for name, reason in self._graph.bind(tables).items():
            self._set_aside(name, reason)
        if self._hand_over is not None:
            undo.forget()  # answers that it takes are answers of these stores

    @step
    def punctuate(self, at: Instant | None = None, /, **promised: Instant) -> QueryAnswers:
        """Promise that no later row of a stream lies before an instant; gives what that closes."""
        self._require_running()
        told = self._graph.named(at, promised, "punctuate needs an instant", "instant")
        for name in told:
            self._graph.require_read(name)
        self._graph.require_instants(told)
        return self._step(Step(told=told))

    @step
    def finish(self) -> QueryAnswers:
        """The streams have ended: gives all answers that are left, and forgets everything."""
        self._require_running()
        found = self._step(Step(is_last=True))
        self._last_view, self._last_progress = self._viewed(), self._reached()
        self._finished = True
        self._graph.end()
        return found

    @property
    @in_turn
    def behind(self) -> list[Behind]:
        """Queries that the last push was expected to answer after their deadline."""
        return [one for windows in self._windows for one in windows.queries.behind]

    # What there is to see

    @property
    @in_turn
    def progress(self) -> int:
        """Up to where the streams are complete: the watermark; of several, the least.

        In microseconds, or in units of an integer axis. After the end it is just after the newest
        row, or at the last promise if that is further.
        """
        return self._last_progress if self._finished else self._reached()

    def _reached(self) -> int:
        if len(self.streams) == 1 and self._primary.column is not None:
            return self._primary.progress
        return min(self._graph.reached(), default=BEGINNING)

    @property
    @in_turn
    def reached(self) -> tuple[int, str]:
        """How far the windows of the queries have come, and what says so."""
        first = next((w for w in self._windows if w.reading.has_axis), None)
        if first is None:
            return self._reached(), ""
        return first.queries.promise.at, first.queries.promise.why

    @property
    def axis(self) -> Axis | None:
        """What orders the rows, once a query has said so and a batch has come."""
        return next((w.queries.axis for w in self._windows if w.queries.axis is not None), None)

    @property
    def is_finished(self) -> bool:
        """Whether the streams have ended."""
        return self._finished

    @property
    def version(self) -> tuple[int, ...]:
        """Changes when a query comes, goes, fails, or gets its store."""
        beside = len(self._graph.texts), len(self._failed), max(self._came.values(), default=0)
        if self.is_of_one:
            return (*version_of(self._primary.queries), *beside)
        return (*beside, len(self._graph.joins.bound))

    @in_turn
    def view(self) -> RegisterView:
        """Which queries there are and what they share, as plain data."""
        return self._viewed() if self._last_view is None else self._last_view

    def _viewed(self) -> RegisterView:
        failed = {name: (one.text, one.reason) for name, one in self._all_failed().items()}
        if self.is_of_one:
            return view_of_one(self._primary.queries, self._texts(), failed, self.version)
        joined = self._graph.joins.bound
        return view_of_joins(self.streams, self._texts(), joined, failed, self.version)

    @property
    @in_turn
    def late(self) -> pa.Table:
        """Rows that broke a promise, with the reason. They are those of the streams."""
        return late_of(self._graph.aside())

    @in_turn
    @kept
    def take_late(self) -> pa.Table:
        """The late rows so far, which are then forgotten: for registers that run for long."""
        aside = self._graph.aside()
        self._turn.undo.remember(self, *aside)
        return take_late_of(aside)

    @property
    @in_turn
    def rejected(self) -> pa.Table:
        """Rows that have no position on the axis, with the reason."""
        return rejected_of(self._graph.aside())

    @property
    @in_turn
    def state(self) -> Mapping[str, int]:
        """How much is stored: queries, stores, keys, partial results, prepared questions, bytes.

        ``bytes`` are those of partial results, ``key_bytes`` of keys, ``table_bytes`` of tables
        that later answers use again. ``total_bytes`` are all of them. ``joins`` are shared ones,
        and ``nodes`` are queries, or parts of queries, that run beside the shared windows.
        """
        stored = self._graph.state()
        stored |= {"queries": len(self._texts()), "failed": len(self.failed)}
        return {**stored, "total_bytes": bytes_of(stored), **self._on_disk}

    @property
    @in_turn
    def joined_rows(self) -> Mapping[str, int]:
        """How many rows its join has given each query; of a fold, which makes no pairs, answers."""
        return dict(self._graph.joins.joined_rows)

    @property
    @in_turn
    def stores(self) -> Sequence[SharedStore]:
        """The stores, one for each GROUP BY."""
        return [store for windows in self._windows for store in windows.stores]

    @in_turn
    def explain(self, *, details: bool = False) -> str:
        """What the queries share, and how much is stored; see `panes.explain` for `details`."""
        if self._finished and len(self.streams) == 1:
            return self._explained(explain_finished(self.stream, len(self._texts())))
        return self._explained("\n".join(self._graph.explained(details=details)))

    def __repr__(self) -> str:
        how = "finished" if self._finished else "open"
        counts = f"queries={len(self._texts())}", f"failed={len(self._all_failed())}"
        return facts_line("Register", f"of {', '.join(self.streams)}", how, *counts)

    def _repr_html_(self) -> str:
        state = self.state
        facts: dict[str, object] = {"state": "finished" if self._finished else "open"}
        facts |= {n: state[n] for n in ("queries", "failed", "stores", "keys", "partials")}
        facts |= {n: state[n] for n in ("total_bytes", "late_rows")}
        return facts_html(f"register of {', '.join(self.streams)}", self.explain(), facts)


JoinRegister = Register
"""A register of several streams; it was a class of its own once."""
