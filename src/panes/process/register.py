"""A register: many queries over one stream, which share its read, its panes and its partials.

Each batch is placed on the axis once, late rows are set aside once, and every store (one for each
GROUP BY) takes it in once. When progress moves, the schedule names the queries that have windows
due, and these are answered in one pass per store (`panes.sharing.roll_together`).

Every answer is what the query would get alone. Queries come and go while the stream runs; one
that comes late is answered from its first window that the panes there can answer in full.
"""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.answers.portions import Portion, QueryAnswers
from panes.asking.ask_panes import ask_panes
from panes.asking.look_up import planned_question
from panes.asking.preparable import as_width
from panes.asking.prepared import Prepared
from panes.asking.row_questions import ordering_of
from panes.asking.row_window import answered, ask_tail
from panes.asking.set_questions import planned_sets
from panes.axis import ARRIVAL, BEGINNING, FOREVER, Axis, Duration, parse_instant
from panes.errors import InputError, OptionError, QueryError, StateError
from panes.frames import empty_tables, to_table
from panes.html import facts_html, facts_line
from panes.language.parse import parse
from panes.language.query import Query
from panes.language.row_question import RowQuestion, read_row_question
from panes.planning.plan import Plan, plan
from panes.planning.terms import StreamOptions, check_options
from panes.process import register_file
from panes.process.added import Added
from panes.process.all_or_nothing import all_or_nothing
from panes.process.in_turn import Turn
from panes.process.keeper import Kept
from panes.process.kept_register import register_tree, take_up_tree
from panes.process.object_tree import Tree
from panes.process.open_query import Instant, bytes_of
from panes.process.reading import Reading
from panes.process.register_file import Signature, StreamState
from panes.process.rounds import run_round, set_aside
from panes.process.step import in_turn, kept, step, uninterrupted
from panes.process.tree_reader import TreeReader
from panes.process.tree_writer import TreeWriter
from panes.process.watched import Watcher
from panes.sharing.completeness import after
from panes.sharing.explain import explain_finished, explain_stores
from panes.sharing.pace import Behind
from panes.sharing.queries import Queries
from panes.sharing.shared_store import SharedStore
from panes.sharing.view import RegisterView, version_of, view_of
from panes.windows.spec import Sliding


class Register(Kept):
    """Queries over one stream, run together. See `panes.register`. Threads take turns.

    `saves` is how often it has been saved, in this process and in those before it.
    """

    UNCHANGED = frozenset({"_queries", "_reading", "_prepared", "_turn"})  # each by itself

    def __init__(
        self,
        stream: str,
        run: StreamOptions = StreamOptions(),  # noqa: B008 - frozen
        *,
        schema: pa.Schema | None = None,
        aggregates: Sequence[UserAggregate] = (),
        keep_rows: int = 0,
        hand_over: Callable[[str, pa.Table], None] | None = None,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000,
    ) -> None:
        if run.late == "revise":
            raise OptionError(
                "a register answers every window once, so late must be 'open' or 'drop'",
                hint="panes.open(..., late='revise') for a query of its own",
            )
        self.stream = stream
        self._run, self._aggregates = run, tuple(aggregates)
        self._hand_over = hand_over
        self.saves = 0
        self._finished = False
        self._ended_at = BEGINNING
        self._written: dict[str, Signature] = {}
        self._turn = Turn(run.max_answers)
        self._queries = Queries(stream, aggregates)
        self._queries.hands_over = hand_over is not None
        self._prepared = Prepared(stream, aggregates)
        self._reading = Reading(self._queries, run, aggregates, now, keep_rows)
        if schema is not None:
            self._reading.schema = empty_tables({stream: schema})[stream].schema.remove_metadata()
            self._prepared.bind(self._reading.schema, self._reading.settle_axis)

    @property
    def watcher(self) -> Watcher | None:
        """Who is told of every step; see `panes.live`."""
        return self._reading.watcher

    @watcher.setter
    def watcher(self, watcher: Watcher | None) -> None:
        self._reading.watcher = watcher

    # Queries

    @uninterrupted
    def add(self, name: str, text: str, *, deadline: Duration | None = None) -> Added:
        """Answer one more query from now on; says from where its answers are exact.

        With a `deadline`, it is answered before those that have more time, and `behind` tells
        beforehand if it will be late.
        """
        self._require_running()
        asked = self._queries.read(name, text, deadline)
        if asked.query.window is not None:
            self._reading.require_said_axis(asked.query.window.column, name)
        self._queries.failed.pop(name, None)
        terms = check_options(asked.query, self._run)
        if self._reading.schema is not None:
            self._reading.bind(asked, self._reading.schema)
        self._reading.settle_terms(terms)
        self._queries.asked[name] = asked
        self._note_change()
        return Added(self, name)

    @uninterrupted
    def remove(self, name: str) -> None:
        """Answer a query no longer, and forget what only it needed."""
        self._queries.remove(name)
        self._note_change()

    @property
    @in_turn
    def failed(self) -> dict[str, str]:
        """The queries that were set aside because they could not be answered, and why.

        Prepared questions that were set aside are listed by their text.
        """
        queries = {name: failed.reason for name, failed in self._queries.failed.items()}
        return queries | self._prepared.failed | self._reading.row_questions.failed

    @in_turn
    def put_back(self, name: str) -> Added:
        """Answer a query again that was set aside, from its next window that can be answered."""
        failed = self._queries.require_failed(name)
        deadline = None if failed.deadline is None else dt.timedelta(microseconds=failed.deadline)
        return self.add(name, failed.text, deadline=deadline)

    @in_turn
    def queries(self) -> dict[str, str]:
        """The texts of all queries, by name, in the order in which they came."""
        return {name: asked.text for name, asked in self._queries.asked.items()}

    @in_turn
    def exact_from(self, name: str) -> object | None:
        """Where the first answered window of a query starts; None: at the stream's beginning."""
        at, axis = self._queries.exact_from.get(name), self._queries.axis
        if at is None or axis is None:
            return None
        return axis.label(np.array([at]))[0].as_py()

    # The stream

    @step
    def push(self, batch: object) -> QueryAnswers:
        """Take in a batch; gives the answers that are final from now on, by query.

        All or nothing: if the batch is refused or the sink fails, the register is as it was before,
        and the batch can be pushed again; no answer that was handed over is given twice. A query
        that cannot be answered is set aside (`failed`), and the others go on.
        """
        self._require_running()
        table = to_table(batch, self.stream, self._reading.schema)
        self._require_axis()
        self._bind_waiting(table.schema.remove_metadata())

        def rows_come() -> Iterator[Portion]:
            if self.watcher is not None:
                self.watcher.began()
            rows = self._reading.take_in(table, self._prepared)
            yield from self._queries.answers()
            self._prepared.push(*rows)

        return self._round(rows_come)

    def _round(self, step: Callable[[], Iterator[Portion]]) -> QueryAnswers:
        """The answers of a step, all of it or nothing; queries that fail are set aside."""
        changed = self._reading, self._prepared, self
        return run_round(self._queries, step, self._hand_over, self._turn.undo, *changed)

    @step
    def punctuate(self, at: Instant) -> QueryAnswers:
        """Promise that no later row lies before an instant; gives what that closes."""
        self._require_running()
        self._require_axis()
        asked = self._queries.asked.values()
        measures = {a.query.window.measure for a in asked if a.query.window}
        is_number = isinstance(at, int | np.integer)
        if measures == {"integer"} and not is_number:
            raise OptionError(
                f"`{self.stream}` has no time axis: a promise is a whole number there"
            )
        position = parse_instant(at)

        def promise_comes() -> Iterator[Portion]:
            self._queries.promise.punctuate(position)
            return self._queries.answers()

        return self._round(promise_comes)

    @step
    def finish(self) -> QueryAnswers:
        """The stream has ended: gives all answers that are left, and forgets everything."""
        self._require_running()
        queries, nothing = self._queries, Prepared(self.stream)

        def end_comes() -> Iterator[Portion]:
            yield from queries.last_answers()
            queries.promise.punctuate(FOREVER, "the end")
            exact_from, axis = queries.exact_from, queries.axis
            queries.forget_bindings()
            queries.exact_from, queries.axis = exact_from, axis

        ended_at = max(queries.promise.at, after(queries.newest))
        found = self._round(end_comes)
        self._ended_at = ended_at
        self._finished, self._prepared = True, nothing
        return found

    @property
    @in_turn
    def behind(self) -> list[Behind]:
        """Queries that the last push was expected to answer after their deadline."""
        return self._queries.behind

    @property
    @in_turn
    def progress(self) -> int:
        """Up to where the stream is complete: the watermark.

        In microseconds, or in units of an integer axis. After the end it is just after the newest
        row, or at the last promise if that is further.
        """
        return self._ended_at if self._finished else self._queries.promise.at

    @property
    @in_turn
    def reached(self) -> tuple[int, str]:
        """How far the windows of the queries have come, and what says so."""
        return self._queries.promise.at, self._queries.promise.why

    @property
    def axis(self) -> Axis | None:
        """What orders the rows, once a query has said so and a batch has come."""
        return self._queries.axis

    @property
    def is_finished(self) -> bool:
        """Whether the stream has ended."""
        return self._finished

    @property
    def version(self) -> tuple[int, ...]:
        """Changes when a query comes, goes, fails, or gets its store."""
        return version_of(self._queries)

    @in_turn
    def view(self) -> RegisterView:
        """Which queries there are and what they share, as plain data."""
        return view_of(self._queries)

    @property
    @in_turn
    def late(self) -> pa.Table:
        """Rows that broke a promise, with the reason. They are those of the stream."""
        return self._reading.set_aside.late(self._columns)

    @in_turn
    @kept
    def take_late(self) -> pa.Table:
        """The late rows so far, which are then forgotten: for registers that run for long."""
        self._turn.undo.remember(self._reading.set_aside)
        return self._reading.set_aside.take_late(self._columns)

    @property
    @in_turn
    def rejected(self) -> pa.Table:
        """Rows that have no position on the axis, with the reason."""
        return self._reading.set_aside.rejected(self._columns)

    @property
    def _columns(self) -> list[pa.Schema]:
        """The columns of the stream, if they are known."""
        return [] if self._reading.schema is None else [self._reading.schema]

    @property
    @in_turn
    def state(self) -> Mapping[str, int]:
        """How much is stored: queries, stores, keys, partial results, prepared questions, bytes.

        ``bytes`` are those of partial results, ``key_bytes`` of keys, ``table_bytes`` of tables
        that later answers use again. ``total_bytes`` are all of them.
        """
        stores, tail = self.stores, self._reading.tail
        row_questions = self._reading.row_questions
        stored = {
            "queries": len(self._queries.asked),
            "failed": len(self.failed),
            "stores": len(stores),
            "keys": sum(len(s.panes.groups) for s in stores if len(s.panes)),
            "partials": sum(len(s.panes) for s in stores),
            "bytes": sum(s.panes.nbytes for s in stores),
            "key_bytes": sum(s.panes.key_bytes for s in stores),
            "table_bytes": sum(s.panes.table_bytes for s in stores),
            "rows": row_questions.rows + (0 if tail is None else len(tail)),
            "row_bytes": row_questions.nbytes + (0 if tail is None else tail.nbytes),
            "prepared": len(self._prepared) + len(row_questions),
            "prepared_bytes": self._prepared.nbytes,
            **self._reading.set_aside.counts,
        }
        return {**stored, "total_bytes": bytes_of(stored), **self._on_disk}

    @property
    @in_turn
    def stores(self) -> Sequence[SharedStore]:
        """The stores, one for each GROUP BY."""
        return list(self._queries.stores.values())

    # Asking

    @uninterrupted
    def prepare(self, text: str, *, within: float | None = None) -> None:
        """Say that a question will be asked: what answers it is kept up to date from now on.

        Min and max over ``[ROWS n]`` are exact. With `within`, a width of values, count, sum, avg,
        min and max over ROWS or RANGE are known by an interval, which a TimeGram gives. Questions
        over the same argument and filter share a structure, whatever their sizes.
        """
        self._require_running()
        width = as_width(within)
        rows = read_row_question(text, self._aggregates)
        if rows is not None:
            self._prepare_rows(text, rows, width)
            return
        query = parse(text, self._aggregates, once=True)
        is_placed = query.window is not None and query.window.measure != "rows"
        if query.window is not None:
            self._reading.require_said_axis(query.window.column)
        terms = check_options(query, self._run) if is_placed else None
        self._prepared.add(
            (text, width), query, tail=self._reading.tail, settle=self._reading.settle_axis
        )
        if terms is not None:
            self._reading.settle_terms(terms)

    def _prepare_rows(self, text: str, rows: RowQuestion, width: object) -> None:
        """Keep the rows that a question asks for, from now on."""
        reading = self._reading
        if width is not None:
            raise OptionError("rows are exact: within is for aggregates")
        reading.row_questions.require_preparable(rows)
        reading.require_said_axis(rows.window.column)
        with all_or_nothing(reading):
            reading.settle_rows(rows)
            if reading.schema is not None:
                answered(rows, reading.schema.empty_table(), reading.schema, ARRIVAL, (0, 0))
            reading.row_questions.prepare(text, rows, reading.tail, self._queries.newest)

    @uninterrupted
    def forget(self, text: str, *, within: float | None = None) -> None:
        """Keep no longer what only this prepared question needs."""
        row_questions = self._reading.row_questions
        if text in row_questions.asked or text in row_questions.failed:
            self._reading.row_questions.forget(text, self._queries.newest)
            return
        self._prepared.forget((text, as_width(within)))

    @in_turn
    def prepared(self) -> list[tuple[str, float | None]]:
        """The prepared questions: text and `within`, in the order in which they came."""
        return [*self._prepared.asked, *((t, None) for t in self._reading.row_questions.asked)]

    @uninterrupted
    def ask(self, text: str, *, within: float | None = None) -> pa.Table:
        """An answer now, from what is stored: of the newest panes, or of the last rows.

        A question without an aggregate asks for rows, as in ``SELECT * FROM bids [RANGE 1 hour
        WATTR ts] WHERE item = 7 ORDER BY price LIMIT 10``: of the window that ends just after the
        newest row. Rows are there once the question, or one with a longer window, is prepared, or
        as long as all rows fit into ``keep_rows``.

        ``[RANGE 10 minutes WATTR ts]`` ends with the pane of the newest row. ``[ROWS 500]`` needs
        to be prepared, or a register with ``keep_rows``. `within` asks for the interval that was
        prepared with that width; RANGE windows end just after the newest row then.
        """
        self._require_running()
        width = as_width(within)
        found = self._prepared.find((text, width))
        if found is not None:
            return found
        rows = read_row_question(text, self._aggregates)
        if rows is not None:
            return self._ask_rows(rows)
        query = parse(text, self._aggregates, once=True)
        schema = self._reading.schema
        if schema is None or query.streams != (self.stream,) or query.window is None:
            raise QueryError(
                f"only windows over `{self.stream}` can be asked for, once it has sent a batch"
            )
        columns, own, stores = {self.stream: schema}, self._aggregates, self._queries.stores

        def plan_of(asked: Query) -> Plan:
            return plan(asked, columns, own)

        planned = planned_question(query, plan_of, stores)
        spec = planned.window.spec
        if not isinstance(spec, Sliding):
            raise QueryError("what is asked for now is one window: RANGE or ROWS")
        if planned.axis.column is not None:
            self._queries.require_same_axis(None, planned)
        if planned.axis.column is None or width is not None:
            return self._prepared.ask(planned, spec.size, width, self._reading.tail)
        sets = planned_sets(text, planned, plan_of, stores, own)
        if sets is not None:
            return sets.combined(
                *(self._ask_panes(p, spec.size) for p in (sets.first, sets.second))
            )
        return self._ask_panes(planned, spec.size)

    def _ask_panes(self, planned: Plan, size: int) -> pa.Table:
        return ask_panes(planned, self._queries.store_of(planned), size, self._queries.newest)

    def _ask_rows(self, asked: RowQuestion) -> pa.Table:
        """Rows of the live window, from those that are kept."""
        reading, schema = self._reading, self._reading.schema
        if schema is None or asked.stream.lower() != self.stream.lower():
            raise QueryError(
                f"only rows of `{self.stream}` can be asked for, once it has sent a batch"
            )
        if asked.window.measure == "rows":
            return ask_tail(asked, reading.tail, schema)
        query = parse(ordering_of(asked))
        self._queries.require_same_axis(None, plan(query, {self.stream: schema}))
        axis, newest = self._queries.axis, self._queries.newest
        assert axis is not None
        return reading.row_questions.ask(asked, reading.tail, schema, axis, newest)

    @uninterrupted
    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write everything to a file; ``panes.register(stream, saved=path)`` goes on from there.

        Lateness and the like are said anew then, and so are prepared questions. A file that is
        there and is not as this register wrote or read it is refused, unless `overwrite` says that
        it may go: another register may have written it.
        """
        self._require_running()
        if not overwrite:
            register_file.require_own(path, self._written.get(os.path.realpath(path)))
        if self._run.rows_late is not None:
            raise OptionError("a register with rows_late cannot be saved", hint="give a lateness")
        if self._reading.schema is None:
            raise QueryError("nothing has come yet that could be saved")
        register_file.write(path, self._queries, self._beside(self._reading.schema))
        self._written[os.path.realpath(path)] = register_file.signature(path)
        self.saves += 1

    def _beside(self, schema: pa.Schema) -> StreamState:
        """What is to be saved beside queries and panes."""
        tail = self._reading.tail
        return StreamState(
            schema=schema,
            late=self._reading.set_aside.late(self._columns),
            rejected=self._reading.set_aside.rejected(self._columns),
            arrived=self._prepared.arrived,
            ordering=self._reading.ordering(),
            tail=tail.last(tail.keep) if tail else None,
            known_from=tail.known_from if tail else None,
            saves=self.saves + 1,
        )

    @uninterrupted
    def take_up(self, path: str | Path) -> None:
        """Go on where a saved register ended."""
        found = register_file.signature(path)
        manifest, state, beside = register_file.read(path)
        if manifest.stream != self.stream:
            raise StateError(
                f"{path} holds a register of `{manifest.stream}`, not of `{self.stream}`"
            )
        self._reading.take_up(manifest, state, beside)
        self.saves = beside.saves
        self._written[os.path.realpath(path)] = found
        self._bind_prepared(beside)

    def _bind_prepared(self, beside: StreamState) -> None:
        self._prepared.bind(
            beside.schema,
            self._reading.settle_axis,
            arrived=beside.arrived,
            newest=self._queries.newest,
        )

    @property
    def given_columns(self) -> Mapping[str, pa.Schema]:
        """None: the columns of the stream are written with all else."""
        return {}

    def open_streams(self, **streams: pa.Table) -> None:
        """There are none to meet."""

    def written_by(self, writer: TreeWriter) -> Tree:
        """All that is remembered, but for prepared questions."""
        schema = None if self._finished else self._reading.schema
        beside = None if schema is None else self._beside(schema)
        flags = {"finished": self._finished, "ended_at": self._ended_at, "saves": self.saves}
        return {**flags, **register_tree(self._queries, self._reading, beside, writer)}

    def read_from(self, tree: Tree, reader: TreeReader) -> None:
        """Remember what was written."""
        beside = take_up_tree(self._queries, self._reading, tree, reader)
        self._finished, self._ended_at = tree["finished"], tree["ended_at"]
        self.saves = tree["saves"]
        if beside is not None:
            self._bind_prepared(beside)

    @in_turn
    def explain(self, *, details: bool = False) -> str:
        """What the queries share, and how much is stored; see `panes.explain` for `details`."""
        prepared = [*self._prepared.explain(), *self._reading.row_questions.explain()]
        if self._finished:
            return self._explained(explain_finished(self.stream, len(self._queries.asked)))
        stores, waiting = self.stores, len(self._queries.asked) - len(self._queries.homes)
        return self._explained(
            explain_stores(self.stream, stores, prepared, waiting=waiting, details=details)
        )

    def __repr__(self) -> str:
        how = "finished" if self._finished else "open"
        queries = self._queries
        counts = f"queries={len(queries.asked)}", f"failed={len(queries.failed)}"
        return facts_line("Register", f"of {self.stream}", how, *counts)

    def _repr_html_(self) -> str:
        state = self.state
        facts: dict[str, object] = {"state": "finished" if self._finished else "open"}
        facts |= {n: state[n] for n in ("queries", "failed", "stores", "keys", "partials")}
        facts |= {n: state[n] for n in ("total_bytes", "late_rows")}
        return facts_html(f"register of {self.stream}", self.explain(), facts)

    # Binding

    def _bind_waiting(self, schema: pa.Schema) -> None:
        """The columns are known now: whatever cannot be answered over them is set aside.

        If that is everything, it is rather the batch that is wrong, and is refused.
        """
        reading, prepared, undo = self._reading, self._prepared, self._turn.undo
        if reading.schema is not None:
            return
        waiting = len(self._queries.asked) + len(prepared) + len(reading.row_questions)
        undo.remember(self._queries, reading, prepared)
        failing = reading.bind_waiting(schema)
        unprepared = prepared.bind(schema, reading.settle_axis)
        unread = reading.bind_row_questions(schema)
        refused = [*failing.values(), *unprepared.values(), *unread.values()]
        if refused and len(refused) == waiting:
            raise refused[0]
        set_aside(self._queries, failing)
        prepared.set_aside(unprepared)
        reading.row_questions.set_aside(unread)
        if self._hand_over is not None:
            undo.forget()  # answers that it takes are answers of these stores

    def _require_running(self) -> None:
        if self._finished:
            raise QueryError("the register has finished; open another one to go on")

    def _require_axis(self) -> None:
        row_questions = self._reading.row_questions
        is_asked = self._queries.asked or len(self._prepared) or len(row_questions)
        if self._reading.terms is None or not (self._reading.has_axis or is_asked):
            raise InputError(
                f"the register of `{self.stream}` has no query yet, so it cannot know which column "
                "orders the rows",
                hint='add one first: reg.add("hot", "SELECT ...")',
            )
