"""Questions to a register of one stream: prepared, asked, forgotten.

They are answered from what is stored: from the newest panes of the queries, from the last rows, or
from what was prepared for them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.asking.ask_panes import ask_panes
from panes.asking.look_up import planned_question
from panes.asking.preparable import as_width
from panes.asking.row_questions import ordering_of
from panes.asking.row_window import answered, ask_tail
from panes.asking.set_questions import planned_sets
from panes.axis import ARRIVAL
from panes.errors import OptionError, QueryError
from panes.language.parse import parse
from panes.language.query import Query
from panes.language.row_question import RowQuestion, read_row_question
from panes.planning.plan import Plan, plan
from panes.planning.terms import StreamOptions, check_options
from panes.process.all_or_nothing import all_or_nothing
from panes.process.in_turn import Turn
from panes.process.shared_windows import SharedWindows
from panes.process.step import in_turn, uninterrupted
from panes.windows.spec import Sliding


class Questions(ABC):
    """What a register of one stream can be asked at any moment."""

    stream: str
    streams: tuple[str, ...]
    _run: StreamOptions
    _aggregates: tuple[UserAggregate, ...]
    _turn: Turn
    _finished: bool

    @property
    @abstractmethod
    def _windows(self) -> Sequence[SharedWindows]:
        """Those of all streams."""

    @property
    def _primary(self) -> SharedWindows:
        """The windows on the column that was said first, if that is one of the stream."""
        if len(self.streams) > 1:
            raise QueryError(
                "a register of several streams answers no questions: joined rows are not stored",
                hint="add the query, or ask a register of one stream",
            )
        return next((w for w in self._windows if w.reading.has_axis), self._windows[0])

    def _require_running(self) -> None:
        if self._finished:
            raise QueryError("the register has finished; open another one to go on")

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
            self._primary.reading.require_said_axis(query.window.column)
        terms = check_options(query, self._run) if is_placed else None
        self._primary.prepared.add(
            (text, width),
            query,
            tail=self._primary.reading.tail,
            settle=self._primary.reading.settle_axis,
        )
        if terms is not None:
            self._primary.reading.settle_terms(terms)

    def _prepare_rows(self, text: str, rows: RowQuestion, width: object) -> None:
        """Keep the rows that a question asks for, from now on."""
        reading = self._primary.reading
        if width is not None:
            raise OptionError("rows are exact: within is for aggregates")
        reading.row_questions.require_preparable(rows)
        reading.require_said_axis(rows.window.column)
        with all_or_nothing(reading):
            reading.settle_rows(rows)
            if reading.schema is not None:
                answered(rows, reading.schema.empty_table(), reading.schema, ARRIVAL, (0, 0))
            reading.row_questions.prepare(text, rows, reading.tail, self._primary.queries.newest)

    @uninterrupted
    def forget(self, text: str, *, within: float | None = None) -> None:
        """Keep no longer what only this prepared question needs."""
        row_questions = self._primary.reading.row_questions
        if text in row_questions.asked or text in row_questions.failed:
            self._primary.reading.row_questions.forget(text, self._primary.queries.newest)
            return
        self._primary.prepared.forget((text, as_width(within)))

    @in_turn
    def prepared(self) -> list[tuple[str, float | None]]:
        """The prepared questions: text and `within`, in the order in which they came."""
        return [
            *self._primary.prepared.asked,
            *((t, None) for t in self._primary.reading.row_questions.asked),
        ]

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
        found = self._primary.prepared.find((text, width))
        if found is not None:
            return found
        rows = read_row_question(text, self._aggregates)
        if rows is not None:
            return self._ask_rows(rows)
        query = parse(text, self._aggregates, once=True)
        schema = self._primary.reading.schema
        if schema is None or query.streams != (self.stream,) or query.window is None:
            raise QueryError(
                f"only windows over `{self.stream}` can be asked for, once it has sent a batch"
            )
        columns, own, stores = {self.stream: schema}, self._aggregates, self._primary.queries.stores

        def plan_of(asked: Query) -> Plan:
            return plan(asked, columns, own)

        planned = planned_question(query, plan_of, stores)
        spec = planned.window.spec
        if not isinstance(spec, Sliding):
            raise QueryError("what is asked for now is one window: RANGE or ROWS")
        if planned.axis.column is not None:
            self._primary.queries.require_same_axis(None, planned)
        if planned.axis.column is None or width is not None:
            return self._primary.prepared.ask(planned, spec.size, width, self._primary.reading.tail)
        sets = planned_sets(text, planned, plan_of, stores, own)
        if sets is not None:
            return sets.combined(
                *(self._ask_panes(p, spec.size) for p in (sets.first, sets.second))
            )
        return self._ask_panes(planned, spec.size)

    def _ask_panes(self, planned: Plan, size: int) -> pa.Table:
        return ask_panes(
            planned, self._primary.queries.store_of(planned), size, self._primary.queries.newest
        )

    def _ask_rows(self, asked: RowQuestion) -> pa.Table:
        """Rows of the live window, from those that are kept."""
        reading, schema = self._primary.reading, self._primary.reading.schema
        if schema is None or asked.stream.lower() != self.stream.lower():
            raise QueryError(
                f"only rows of `{self.stream}` can be asked for, once it has sent a batch"
            )
        if asked.window.measure == "rows":
            return ask_tail(asked, reading.tail, schema)
        query = parse(ordering_of(asked))
        self._primary.queries.require_same_axis(None, plan(query, {self.stream: schema}))
        axis, newest = self._primary.queries.axis, self._primary.queries.newest
        assert axis is not None
        return reading.row_questions.ask(asked, reading.tail, schema, axis, newest)
