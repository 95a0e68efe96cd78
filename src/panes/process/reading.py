"""How a register reads its stream: the columns, the axis that places rows, and the terms.

The first query or question that names an axis settles it for all, and so do its terms. Invariant:
what is settled stays, and rows are admitted only once all of it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from panes.aggregates.custom import UserAggregate
from panes.asking.prepared import Prepared
from panes.asking.row_questions import RowQuestions, ordering_by, ordering_of
from panes.asking.row_tail import RowTail
from panes.asking.row_window import answered
from panes.axis import ARRIVAL, BEGINNING, FOREVER
from panes.errors import NoProgressWarning, PanesError, warn
from panes.expressions.projection import Projection
from panes.language.parse import parse
from panes.language.query import Query
from panes.language.row_question import RowQuestion
from panes.nodes.gate import Admitted, Gate
from panes.nodes.operator import Chain
from panes.nodes.promises import Promised
from panes.nodes.set_aside import SetAside
from panes.planning.plan import Plan, plan
from panes.planning.terms import (
    CheckedOptions,
    StreamOptions,
    check_options,
    require_lateness,
    stalled,
)
from panes.process.watched import Watcher
from panes.progress.promise import Promise
from panes.progress.stall import Stall
from panes.sharing.classed_panes import Filled
from panes.sharing.failures import blaming, failed_reading, noted
from panes.sharing.queries import Asked, Queries, other_axis
from panes.sharing.shared_store import SharedStore


class PreparedRows(NamedTuple):
    """What prepared questions need of a batch; `newest` is the newest row so far."""

    at: NDArray[np.int64]
    columns: Mapping[int, pa.Array]
    newest: int


class Reading:
    """The columns of a stream, the plan that places its rows, and the terms; each once known.

    Rows that were set aside, and the last ones where they are wanted, are kept here. `open_beside`
    says from where on windows are open that others have over the same stream.
    """

    UNCHANGED = frozenset({"watcher", "open_beside"})

    def __init__(
        self,
        queries: Queries,
        run: StreamOptions,
        aggregates: Sequence[UserAggregate],
        now: Callable[[], int],
        keep_rows: int = 0,
    ) -> None:
        """`tail` has the last `keep_rows` rows, if there are to be any."""
        self._queries, self.run, self._now = queries, run, now
        self._aggregates = tuple(aggregates)
        self.set_aside = SetAside()
        self.tail = RowTail(keep_rows) if keep_rows else None
        self.row_questions = RowQuestions(queries.stream)
        self.schema: pa.Schema | None = None
        self.terms: CheckedOptions | None = None
        self.stall = Stall(run.stall_rows)
        self._plan: Plan | None = None
        self.watcher: Watcher | None = None
        self.open_beside: Callable[[], int] = lambda: FOREVER

    # What is settled

    @property
    def placing(self) -> Plan | None:
        """The plan that places rows, once it is settled."""
        return self._plan

    @property
    def has_axis(self) -> bool:
        """Whether it is known which column orders the rows."""
        return self._plan is not None

    def plan(self, query: Query, schema: pa.Schema) -> Plan:
        """A query over the stream, planned."""
        planned = plan(query, {self._queries.stream: schema}, self._aggregates)
        require_lateness(self.run.lateness, planned.axis.kind)
        return planned

    def bind(self, asked: Asked, schema: pa.Schema) -> None:
        """Give a query its shape in a store, from now on."""
        self._queries.bind(asked, schema, lambda query: self.plan(query, schema))
        _, shape = self._queries.homes[asked.name]
        self.place_by(shape.plan, schema)

    def bind_waiting(self, schema: pa.Schema) -> dict[str, Exception]:
        """Give all queries their shapes, and say which cannot have one; the columns are known now.

        The first query says which column orders the rows, among those that can be answered.
        """
        queries, placing, failing = self._queries, self._plan, dict[str, Exception]()
        self.schema = schema
        while True:
            queries.forget_bindings()
            self._plan = placing
            for name, asked in queries.asked.items():
                if name in failing:
                    continue
                before = queries.axis, len(queries.stores)
                with noted(failing, [name]):
                    self.bind(asked, schema)
                if name in failing and (queries.axis, len(queries.stores)) != before:
                    break  # what it has left behind is gone when all others are bound anew
            else:
                return failing

    def bind_row_questions(self, schema: pa.Schema) -> dict[str, Exception]:
        """Check the questions for rows; gives those that cannot be answered, by their text."""
        failing: dict[str, Exception] = {}
        for text, rows in self.row_questions.asked.items():
            with noted(failing, [text]), _of_question(text):
                answered(rows, schema.empty_table(), schema, ARRIVAL, (0, 0))
                self.settle_rows(rows)
        return failing

    def require_said_axis(self, column: str | None, name: str | None = None) -> None:
        """Refuse what names another column than the others did, as long as none is known.

        `name` is that of a query; a question has none.
        """
        said = [a.query.window.column for a in self._queries.asked.values() if a.query.window]
        said += [question.window.column for question in self.row_questions.asked.values()]
        first = next((one for one in said if one is not None), None)
        if self.schema is not None or first is None or column is None:
            return
        if first.lower() != column.lower():
            raise other_axis(name, column, first)

    def settle_axis(self, planned: Plan, schema: pa.Schema) -> None:
        """A question over a column has the axis of all, or is the first to say which."""
        if planned.axis.column is not None:
            require_lateness(self.run.lateness, planned.axis.kind)
            self._queries.require_same_axis(None, planned)
            self._queries.axis = planned.axis
            self.place_by(planned, schema)

    def place_by(self, planned: Plan, schema: pa.Schema) -> None:
        """Place rows as a plan does, if nothing has said how."""
        if self._plan is None:
            self._plan = _placing(planned, schema)

    def settle_terms(self, terms: CheckedOptions) -> None:
        """The first question says how the stream progresses; where it stands stays as it is.

        Rows that came before promise something by the terms, too.
        """
        if self.terms is None:
            promised, self.terms = self._queries.promise, terms
            self._queries.promise = Promise(terms.bound(), promised.at, promised.why)
            if self._queries.newest > BEGINNING:
                self._queries.promise.observe(np.array([self._queries.newest]))

    def ordering(self) -> str | None:
        """A query over the column that orders the rows: it is known even if no query is left."""
        if self._plan is None:
            return None
        return ordering_by(self._queries.stream, self._plan.axis.column, self._plan.axis.kind)

    def settle_by(self, text: str, schema: pa.Schema) -> None:
        """The column that a query lies on orders the rows, and its terms are those of all."""
        query = parse(text)
        self.settle_axis(plan(query, {self._queries.stream: schema}), schema)
        self.settle_terms(check_options(query, self.run))

    def settle_rows(self, asked: RowQuestion) -> None:
        """A question for rows has the axis of all, or is the first to say which."""
        query = parse(ordering_of(asked))
        if self.schema is not None:
            self.settle_axis(plan(query, {self._queries.stream: self.schema}), self.schema)
        self.settle_terms(check_options(query, self.run))

    # Rows come

    def take_in(self, table: pa.Table, prepared: Prepared) -> PreparedRows:
        """Take in a batch; gives what prepared questions need of it, which is not taken in yet."""
        admitted, queries = self._admit(table), self._queries
        at = admitted.arrival.at
        rows = pa.table(admitted.arrival.columns, names=table.column_names)
        filled = [(store, self._fill(store, at, rows)) for store in queries.stores.values()]
        read = prepared.read(rows)
        for store, partials in filled:
            store.panes.add(partials)
        if self.tail is not None:
            self.tail.push(at, rows)
        self.row_questions.push(at, rows, max(queries.newest, int(at.max(initial=BEGINNING))))
        self.set_aside.add(admitted.late, admitted.rejected, ahead=admitted.ahead)
        queries.newest = max(queries.newest, int(admitted.placed.max(initial=BEGINNING)))
        queries.promise.observe(admitted.placed)
        if admitted.promise is not None:
            queries.promise.punctuate(admitted.promise)
        if self.stall.push(len(at), queries.promise.at) and self.terms is not None:
            told = stalled(self.stall.rows, self.terms, queries.stream)
            warn(told, NoProgressWarning)
        if self.watcher is not None:
            self.watcher.took([admitted])
        return PreparedRows(at, read, queries.newest)

    def beat(self) -> None:
        """Let the clock say how far the stream is, where a heartbeat was asked for."""
        if self.terms is not None and self.terms.heartbeat is not None:
            at = self.terms.heartbeat.promise(self._now())
            self._queries.promise.punctuate(at, "heartbeat")

    def _fill(self, store: SharedStore, at: NDArray[np.int64], rows: pa.Table) -> Filled:
        with blaming(lambda: failed_reading(store, self._aggregates, at, rows)):
            return store.fill(at, rows)

    def _admit(self, table: pa.Table) -> Admitted:
        """A batch placed on the axis; rows that are late or have no position are set aside."""
        assert self._plan is not None
        assert self.terms is not None
        queries = self._queries
        promised = Promised({queries.stream: queries.promise.at})
        newest = {} if queries.newest == BEGINNING else {queries.stream: queries.newest}
        open_from = min(queries.open_from(), self.open_beside())
        gate = Gate(self._plan, self.terms, self._now(), promised, open_from, newest=newest)
        return gate.admit(queries.stream, table, Chain(), 0)


@contextmanager
def _of_question(text: str) -> Iterator[None]:
    """What is wrong with a prepared question says which one it is."""
    try:
        yield
    except PanesError as error:
        raise error.of(f"the prepared question `{text}`") from None


def _placing(planned: Plan, schema: pa.Schema) -> Plan:
    """A plan that only places rows: all columns of the stream, no filter, no key."""
    every = tuple(exp.column(exp.to_identifier(name, quoted=True)) for name in schema.names)
    query = replace(planned.query, keys=(), where=None)
    rows = Projection(every, None)
    return replace(planned, query=query, rows=rows, row_types=tuple(schema.types))
