"""A register: many queries over one stream, which share its read, its panes and its partials.

Each batch is placed on the axis once, late rows are set apart once, and every store (one for each
GROUP BY) takes it in once. When progress moves, the schedule names the queries that have windows
due, and these are answered in one pass per store (`panes.register.roll_together`).

Every answer is what the query would get alone. Queries come and go while the stream runs; one
that comes late is answered from its first window that the panes there can answer in full.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from sqlglot import exp

from panes.admit.gate import Gate
from panes.admit.promises import Promised
from panes.admit.set_aside import set_aside
from panes.aggregates.custom import UserAggregate
from panes.answers.portions import Portion, QueryAnswers
from panes.asking.ask_panes import RowTail, ask_panes
from panes.asking.preparable import as_width
from panes.asking.prepared import Prepared, ask_prepared
from panes.axis import BEGINNING, FOREVER, Duration, parse_instant
from panes.engine import register_file as register_save
from panes.engine.open_query import Instant
from panes.errors import InputError, OptionError, PanesError, QueryError, StateError
from panes.frames import differences, to_table
from panes.language.expressions import quoted
from panes.language.parse import parse
from panes.language.query import Query
from panes.operators.operator import Chain
from panes.planning.plan import Plan, plan
from panes.planning.scalar import Projection
from panes.planning.terms import Run, Terms, agree, require_lateness
from panes.progress.promise import Promise
from panes.register.explain import explain_stores
from panes.register.manifest import taken_up
from panes.register.pace import Behind
from panes.register.queries import Asked, Queries
from panes.register.shared_store import SharedStore
from panes.shards.register_shard import resumed
from panes.windows.spec import Sliding

_SCHEMA, _LATE, _REJECTED = "schema", "late", "rejected"
_TAIL, _ARRIVED, _ORDER = "tail", "arrived", "order"


class KnowsQueries(Protocol):
    """A register, wherever it runs."""

    def exact_from(self, name: str) -> object | None: ...


class Added:
    """What became of a query that was added."""

    def __init__(self, register: KnowsQueries, name: str) -> None:
        self.name = name
        self._register = register

    @property
    def exact_from(self) -> object | None:
        """Where the first window starts that is answered, as the axis shows positions.

        Every window from there on is answered in full, none before it. None means that all are:
        from the beginning of the stream.
        """
        return self._register.exact_from(self.name)

    def __repr__(self) -> str:
        return f"Added(name={self.name!r}, exact_from={self.exact_from!r})"


class Register:
    """Queries over one stream, run together. See `panes.register`."""

    def __init__(
        self,
        stream: str,
        run: Run = Run(),  # noqa: B008 - frozen
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
        self._hand_over, self._now = hand_over, now
        self._schema = None if schema is None else schema.remove_metadata()
        self._terms: Terms | None = None
        self._reading: Plan | None = None
        self._finished = False
        self._late: list[pa.Table] = []
        self._rejected: list[pa.Table] = []
        self._tail = RowTail(keep_rows) if keep_rows else None
        self._queries = Queries(stream, aggregates)
        self._queries.hands_over = hand_over is not None
        self._prepared = Prepared(stream, aggregates)
        if self._schema is not None:
            self._prepared.bind(self._schema, self._settle_axis)

    # Queries

    def add(self, name: str, text: str, *, deadline: Duration | None = None) -> Added:
        """Answer one more query from now on; says from where its answers are exact.

        With a `deadline`, it is answered before those that have more time, and `behind` tells
        beforehand if it will be late.
        """
        self._require_running()
        asked = self._queries.read(name, text, deadline)
        terms = agree(asked.query, self._run)
        if self._schema is not None:
            self._bind(asked, self._schema)
        self._settle_terms(terms)
        self._queries.asked[name] = asked
        return Added(self, name)

    def remove(self, name: str) -> None:
        """Answer a query no longer, and forget what only it needed."""
        self._queries.remove(name)

    def queries(self) -> dict[str, str]:
        """The texts of all queries, by name, in the order in which they came."""
        return {name: asked.text for name, asked in self._queries.asked.items()}

    def exact_from(self, name: str) -> object | None:
        """Where the first answered window of a query starts; None: at the stream's beginning."""
        at, axis = self._queries.exact_from.get(name), self._queries.axis
        if at is None or axis is None:
            return None
        return axis.label(np.array([at]))[0].as_py()

    # The stream

    def push(self, batch: object) -> QueryAnswers:
        """Take in a batch; gives the answers that are final from now on, by query.

        All or nothing: if the batch is refused, the register is as it was before.
        """
        self._require_running()
        table = to_table(batch, self.stream)
        schema = table.schema.remove_metadata()
        self._require_terms()
        self._bind_waiting(schema)
        terms = self._require_terms()
        assert self._reading is not None
        promised = Promised({self.stream: self._queries.promise.at})
        gate = Gate(self._reading, terms, self._now(), promised, self._queries.open_from())
        admitted = gate.admit(self.stream, table, Chain(), 0)
        at, rows = admitted.arrival.at, pa.table(admitted.arrival.columns, names=schema.names)
        filled = [(store, store.fill(at, rows)) for store in self.stores]
        prepared = self._prepared.read(rows)
        for store, partials in filled:
            store.add(partials)
        if self._tail is not None:
            self._tail.push(rows)
        self._late += admitted.late
        self._rejected += admitted.rejected
        queries = self._queries
        queries.newest = max(queries.newest, int(admitted.placed.max(initial=BEGINNING)))
        self._prepared.push(at, prepared, queries.newest)
        queries.promise.observe(admitted.placed)
        if admitted.promise is not None:
            queries.promise.punctuate(admitted.promise)
        return self._handed_over(queries.answers())

    def punctuate(self, at: Instant) -> QueryAnswers:
        """Promise that no later row lies before an instant; gives what that closes."""
        self._require_running()
        self._require_terms()
        asked = self._queries.asked.values()
        measures = {a.query.window.measure for a in asked if a.query.window}
        is_number = isinstance(at, int | np.integer)
        if measures == {"integer"} and not is_number:
            raise OptionError(
                f"`{self.stream}` has no time axis: a promise is a whole number there"
            )
        self._queries.promise.punctuate(parse_instant(at))
        return self._handed_over(self._queries.answers())

    def finish(self) -> QueryAnswers:
        """The stream has ended: gives all answers that are left, and forgets everything."""
        self._require_running()
        self._finished = True
        found = self._handed_over(self._queries.last_answers())
        self._queries.promise.punctuate(FOREVER, "the end")
        exact_from, axis = self._queries.exact_from, self._queries.axis
        self._queries.forget_bindings()
        self._queries.exact_from, self._queries.axis = exact_from, axis
        self._prepared = Prepared(self.stream)
        return found

    def _handed_over(self, portions: Iterator[Portion]) -> QueryAnswers:
        """All answers together; each query's as soon as it is there, to who wants it so."""
        found = []
        for portion in portions:
            found.append(portion)
            if self._hand_over is not None:
                for name, table in portion.tables():
                    self._hand_over(name, table)
        return QueryAnswers(found)

    @property
    def behind(self) -> list[Behind]:
        """Queries that the last push was expected to answer after their deadline."""
        return self._queries.behind

    @property
    def progress(self) -> int:
        """What is promised of the stream, in ticks of the axis."""
        return self._queries.promise.at

    @property
    def late(self) -> pa.Table:
        """Rows that broke a promise, with the reason. They are those of the stream."""
        return set_aside(self._late, [self._schema] if self._schema is not None else [])

    @property
    def rejected(self) -> pa.Table:
        """Rows that have no place on the axis, with the reason."""
        return set_aside(self._rejected, [self._schema] if self._schema is not None else [])

    @property
    def state(self) -> Mapping[str, int]:
        """How much is stored: queries, stores, keys, partials, bytes; prepared questions."""
        stores = self.stores
        return {
            "queries": len(self._queries.asked),
            "stores": len(stores),
            "keys": sum(len(s.groups) for s in stores if len(s)),
            "partials": sum(len(s) for s in stores),
            "bytes": sum(s.nbytes for s in stores),
            "rows": 0 if self._tail is None else len(self._tail),
            "prepared": len(self._prepared),
            "prepared_bytes": self._prepared.nbytes,
        }

    @property
    def stores(self) -> Sequence[SharedStore]:
        """The stores, one for each GROUP BY."""
        return list(self._queries.stores.values())

    # Asking

    def prepare(self, text: str, *, within: float | None = None) -> None:
        """Say that a question will be asked: what answers it is kept up to date from now on.

        Min and max over ``[ROWS n]`` are exact. With `within`, a width of values, count, sum, avg,
        min and max over ROWS or RANGE are known by an interval, which a TimeGram gives. Questions
        over the same argument and filter share a structure, whatever their sizes.
        """
        self._require_running()
        width = as_width(within)
        query = parse(text, self._aggregates, once=True)
        is_placed = query.window is not None and query.window.measure != "rows"
        terms = agree(query, self._run) if is_placed else None
        self._prepared.add((text, width), query, tail=self._tail, settle=self._settle_axis)
        if terms is not None:
            self._settle_terms(terms)

    def forget(self, text: str, *, within: float | None = None) -> None:
        """Keep no longer what only this prepared question needs."""
        self._prepared.forget((text, as_width(within)))

    def prepared(self) -> list[tuple[str, float | None]]:
        """The prepared questions: text and `within`, in the order in which they came."""
        return self._prepared.asked

    def ask(self, text: str, *, within: float | None = None) -> pa.Table:
        """An answer now, from what is stored: of the newest panes, or of the last rows.

        ``[RANGE 10 minutes WATTR ts]`` ends with the pane of the newest row. ``[ROWS 500]`` needs
        to be prepared, or a register with ``keep_rows``. `within` asks for the interval that was
        prepared with that width; RANGE windows end just after the newest row then.
        """
        self._require_running()
        width = as_width(within)
        question = self._prepared.find((text, width))
        if question is not None and self._prepared.refusal(question) is None:
            return self._prepared.answer(question)
        query = parse(text, self._aggregates, once=True)
        if self._schema is None or query.streams != (self.stream,) or query.window is None:
            raise QueryError(
                f"only windows over `{self.stream}` can be asked for, once it has sent a batch"
            )
        bound = plan(query, {self.stream: self._schema}, self._aggregates)
        spec = bound.window.spec
        if not isinstance(spec, Sliding):
            raise QueryError("what is asked for now is one window: RANGE or ROWS")
        if bound.axis.column is not None:
            self._queries.require_same_axis("asked", bound)
        if bound.axis.column is None or width is not None:
            return ask_prepared(bound, spec.size, width, self._prepared, self._tail)
        store = self._queries.stores.get(bound.rows.expressions[: len(bound.query.keys)])
        if store is None:
            raise QueryError(
                "no registered query has that GROUP BY, so nothing is stored for it",
                hint="add one; it is answered from the rows to come",
            )
        return ask_panes(bound, store, spec.size, self._queries.newest)

    def save(self, path: str | Path) -> None:
        """Write everything to a file; ``panes.register(stream, saved=path)`` goes on from there.

        Lateness and the like are said anew then, and so are prepared questions.
        """
        self._require_running()
        if self._run.rows_late is not None:
            raise OptionError("a register with rows_late cannot be saved", hint="give a lateness")
        if self._schema is None:
            raise QueryError("nothing has come yet that could be saved")
        tables = {_SCHEMA: self._schema.empty_table(), _LATE: self.late, _REJECTED: self.rejected}
        tables[_ARRIVED] = pa.table({"rows": [self._prepared.arrived]})
        tables[_ORDER] = pa.table({"query": [self._ordering()]})
        if self._tail is not None and self._tail.arrived:
            tables[_TAIL] = self._tail.last(self._tail.keep)
        register_save.write(path, self._queries, tables)

    def _ordering(self) -> str | None:
        """A query over the column that orders the rows: it is known even if no query is left."""
        if self._reading is None:
            return None
        axis = self._reading.axis
        length = "1 second" if axis.kind == "time" else "1"
        stream, column = quoted(self.stream), quoted(axis.column or "")
        return f"SELECT count(*) FROM {stream} [TUMBLING {length} WATTR {column}]"

    def take_up(self, path: str | Path) -> None:
        """Go on where a saved register ended."""
        kept, state, tables = register_save.read(path)
        if kept.stream != self.stream:
            raise StateError(f"{path} holds a register of `{kept.stream}`, not of `{self.stream}`")
        schema = tables[_SCHEMA].schema

        def bind(asked: Asked) -> None:
            self._terms = agree(asked.query, self._run)
            self._bind(asked, schema)
            self._queries.asked[asked.name] = asked

        self._schema = schema
        taken_up(kept, self._queries, kept.queries, bind)
        ordering = tables[_ORDER].column("query")[0].as_py()
        if self._reading is None and ordering is not None:
            query = parse(ordering)
            self._settle_axis(plan(query, {self.stream: schema}), schema)
            self._settle_terms(agree(query, self._run))
        resumed(self._queries, self._terms or Terms(), state)
        self._late, self._rejected = [tables[_LATE]], [tables[_REJECTED]]
        self._prepared.arrived = tables[_ARRIVED].column("rows")[0].as_py()
        if self._tail is not None:
            if _TAIL in tables:
                self._tail.push(tables[_TAIL])
            self._tail.arrived = self._prepared.arrived

    def explain(self, *, details: bool = False) -> str:
        """What the queries share, and what that saves; see `panes.explain` for `details`."""
        prepared = list(self._prepared.explain())
        return explain_stores(self.stream, self.stores, prepared, details=details)

    # Binding

    def _bind_waiting(self, schema: pa.Schema) -> None:
        """Queries that were added before the columns were known; all of them or none."""
        if self._schema is not None and not schema.equals(self._schema):
            raise InputError(
                f"a batch of stream `{self.stream}` has other columns than the first one: "
                f"{differences(self._schema, schema)}"
            )
        if self._schema is None:
            try:
                for asked in self._queries.asked.values():
                    self._bind(asked, schema)
                self._prepared.bind(schema, self._settle_axis)
            except PanesError:
                self._queries.forget_bindings()
                self._reading = None
                raise
            self._schema = schema

    def _bind(self, asked: Asked, schema: pa.Schema) -> None:
        """Give a query its place in a store, from now on."""

        def plan_of(query: Query) -> Plan:
            bound = plan(query, {self.stream: schema}, self._aggregates)
            require_lateness(self._run.lateness, bound.axis.kind)
            return bound

        self._queries.bind(asked, schema, plan_of)
        if self._reading is None:
            _, shape = self._queries.homes[asked.name]
            self._reading = _reading(shape.plan, schema)

    def _settle_axis(self, bound: Plan, schema: pa.Schema) -> None:
        """A prepared question over a column has the axis of all, or is the first to say which."""
        if bound.axis.column is not None:
            require_lateness(self._run.lateness, bound.axis.kind)
            self._queries.require_same_axis("asked", bound)
            self._queries.axis = bound.axis
            if self._reading is None:
                self._reading = _reading(bound, schema)

    def _settle_terms(self, terms: Terms) -> None:
        """The first question says how the stream progresses; where it stands stays as it is."""
        if self._terms is None:
            promised, self._terms = self._queries.promise, terms
            self._queries.promise = Promise(terms.bound(), promised.at, promised.why)

    def _require_running(self) -> None:
        if self._finished:
            raise QueryError("the register has finished; open another one to go on")

    def _require_terms(self) -> Terms:
        is_asked = self._queries.asked or len(self._prepared)
        if self._terms is None or (self._reading is None and not is_asked):
            raise InputError(
                f"the register of `{self.stream}` has no query yet, so it cannot know which column "
                "orders the rows",
                hint='add one first: reg.add("hot", "SELECT ...")',
            )
        return self._terms


def _reading(bound: Plan, schema: pa.Schema) -> Plan:
    """A plan that only places rows: all columns of the stream, no filter, no key."""
    every = tuple(exp.column(exp.to_identifier(name, quoted=True)) for name in schema.names)
    query = replace(bound.query, keys=(), where=None)
    return replace(bound, query=query, rows=Projection(every, None), row_types=tuple(schema.types))
