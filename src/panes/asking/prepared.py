"""Questions prepared for asking: what is kept of every row, so that asking looks at none.

Each aggregate of a question needs one structure over its argument and filter. All questions that
need the same share it, whatever their sizes::

                               ┌─ newest row, per WHERE ──────── is there a row at all?
    rows ─► columns, filters ──┼─ staircase, per min or max ──── exact, [ROWS n]
            read once          └─ TimeGram, per width ────────── interval, [ROWS n], [RANGE n]

Of the report's two ways to share min and max over many sizes, the staircase is taken and not the
tree of windows: a lookup in the tree that finds no valid answer goes through the rows, and it keeps
them for that; the staircase keeps only rows that are an answer, and never looks at any other.

Invariant: a structure knows all rows from `known_from` on. A window that begins before is refused,
and never answered from fewer rows than it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.answers.select import projected
from panes.asking.ask_panes import RowTail, ask_rows
from panes.asking.preparable import Kind, Over, bounded_names, kind_of, require_preparable
from panes.asking.structures import Batch, Held, Newest, Positions, structure_for
from panes.asking.timegram_column import BoundedColumn, Estimate
from panes.axis import BEGINNING, Axis, format_duration
from panes.errors import PanesError, QueryError
from panes.language.query import WINDOW_COLUMNS, Query
from panes.planning.plan import Plan, plan
from panes.register.columns import SharedRows
from panes.stores.nested.buckets import Number
from panes.stores.nested.ordered_sharing import StaircaseSharing

Asked: TypeAlias = tuple[str, Number | None]
"""A question as it was prepared: its text, and `within`."""
Settle: TypeAlias = Callable[[Plan, pa.Schema], None]
"""Refuses a plan whose axis is not that of the stream."""


@dataclass(frozen=True, slots=True)
class Question:
    """One window to be asked for."""

    asked: Asked
    kind: Kind
    size: int


class Prepared:
    """The prepared questions of a register, and what is kept for them.

    Until the columns of the stream are known they wait; `bind` makes them known.
    """

    def __init__(self, stream: str, aggregates: Sequence[UserAggregate] = ()) -> None:
        self._stream, self._aggregates = stream, tuple(aggregates)
        self._queries: dict[Asked, Query] = {}
        self._schema: pa.Schema | None = None
        self._rows: SharedRows | None = None
        self._questions: dict[Asked, Question] = {}
        self._kinds: dict[tuple[Query, str, Number | None], Kind] = {}
        self._stored: dict[Over, Held] = {}
        self.arrived = 0
        self._newest = BEGINNING

    def __len__(self) -> int:
        return len(self._queries)

    @property
    def asked(self) -> list[Asked]:
        """Texts and widths, in the order in which they came."""
        return list(self._queries)

    @property
    def nbytes(self) -> int:
        """Bytes that all structures take."""
        return sum(stored.structure.nbytes for stored in self._stored.values())

    # Questions come and go

    def add(self, asked: Asked, query: Query, *, tail: RowTail | None, settle: Settle) -> None:
        """Keep from now on what a question needs; rows that a tail has are known already."""
        if asked in self._queries:
            return
        require_preparable(query, asked[1], self._stream, self._aggregates)
        if self._schema is not None:
            self._questions[asked] = self._settled(asked, query, tail, settle)
        self._queries[asked] = query

    def bind(self, schema: pa.Schema, settle: Settle) -> None:
        """The columns are known now: all waiting questions are given what they need, or none."""
        bound = Prepared(self._stream, self._aggregates)
        bound._schema, bound._rows = schema, SharedRows(schema, (), ())
        for asked, query in self._queries.items():
            bound.add(asked, query, tail=None, settle=settle)
        self._schema, self._rows = bound._schema, bound._rows
        self._questions, self._kinds, self._stored = bound._questions, bound._kinds, bound._stored

    def forget(self, asked: Asked) -> None:
        """Keep no longer what only this question needs."""
        if asked not in self._queries:
            known = "; ".join(_written(one) for one in self._queries) or "none"
            raise QueryError(f"{_written(asked)} is not prepared", hint=f"prepared: {known}")
        del self._queries[asked]
        question = self._questions.pop(asked, None)
        if question is None:
            return
        for over in question.kind.needs:
            self._stored[over].release(question.size)
            if not self._stored[over].sizes:
                del self._stored[over]
        self._kinds = {
            key: kind
            for key, kind in self._kinds.items()
            if all(over in self._stored for over in kind.needs)
        }
        self._forget_columns()

    def _settled(
        self, asked: Asked, query: Query, tail: RowTail | None, settle: Settle
    ) -> Question:
        try:
            kind, size = self._kind(query, asked[1]), _size_of(query)
            settle(kind.plan, self._schema)
        except PanesError as error:
            error.add_note(f"in the question {asked[0]}")
            raise
        fresh = [self._new(over, size) for over in kind.needs if self._knows_less(over, size)]
        try:
            self._fill_from(tail, fresh)
        except PanesError:
            self._forget_columns()
            raise
        for stored in fresh:
            self._stored[stored.over] = self._the_wiser(self._stored.get(stored.over), stored)
        for over in kind.needs:
            self._stored[over].sizes[size] += 1
        return Question(asked, kind, size)

    def _the_wiser(self, before: Held | None, fresh: Held) -> Held:
        """What is kept so far and grows, or what a tail knows, whichever knows more rows."""
        if before is None:
            return fresh
        grown_from = max(before.known_from, self._end(before.over) - before.largest)
        if fresh.known_from < grown_from:
            fresh.sizes = before.sizes
            return fresh
        before.known_from = grown_from
        before.resize(fresh.largest)
        return before

    def _kind(self, query: Query, within: Number | None) -> Kind:
        """What questions that differ in their size alone have in common, planned once."""
        window = query.window
        axis = "" if window is None else f"{window.measure} {window.column}"
        key = replace(query, text="", window=None), axis, within
        if key not in self._kinds:
            bound = plan(query, {self._stream: self._schema}, self._aggregates)
            self._kinds[key] = kind_of(bound, within)
        return self._kinds[key]

    def _knows_less(self, over: Over, size: int) -> bool:
        return over not in self._stored or self._stored[over].largest < size

    def _new(self, over: Over, size: int) -> Held:
        """An empty structure that knows what is to come."""
        assert self._rows is not None
        argument = None if over.argument is None else self._rows.place(over.argument, pa.null())
        where = None if over.where is None else self._rows.place_filter(over.where)
        since = BEGINNING if self._newest == BEGINNING and not over.by_arrival else self._end(over)
        return Held(over, structure_for(over, size), argument, where, since, size)

    def _fill_from(self, tail: RowTail | None, fresh: Iterable[Held]) -> None:
        """Take in the last rows, for windows that count them."""
        counted = [stored for stored in fresh if stored.over.by_arrival]
        if tail is None or not len(tail) or not counted:
            return
        assert self._rows is not None
        rows = tail.last(tail.keep)
        arrivals = np.arange(self.arrived - len(rows), self.arrived)
        batch = Batch(self._rows.read(rows, self._rows.filters), arrivals, arrivals)
        for stored in counted:
            self._take(stored, batch)
            stored.known_from = self.arrived - len(rows)

    def _forget_columns(self) -> None:
        if self._rows is not None:
            stored = self._stored.values()
            columns = {c for h in stored for c in (h.argument, h.where) if c is not None}
            self._rows.keep(columns)

    # Rows come

    def _end(self, over: Over) -> int:
        """Where windows end: just after the last row, or the newest one."""
        return self.arrived if over.by_arrival else self._newest + 1

    def read(self, rows: pa.Table) -> dict[int, pa.Array]:
        """The columns that structures need of a batch, by number; nothing is kept yet."""
        if self._rows is None or not self._stored:
            return {}
        return self._rows.read(rows, self._rows.filters)

    def push(self, at: Positions, columns: Mapping[int, pa.Array], newest: int) -> None:
        """Take in what `read` gave of rows at these positions, in the order they came."""
        batch = Batch(columns, np.arange(self.arrived, self.arrived + len(at)), at)
        self.arrived += len(at)
        self._newest = max(self._newest, newest)
        if self._newest != BEGINNING:
            for stored in self._stored.values():
                self._take(stored, batch)

    def _take(self, stored: Held, batch: Batch) -> None:
        stored.structure.add(*batch.rows_for(stored))
        stored.structure.advance(self._end(stored.over))

    # Asking

    def find(self, asked: Asked) -> Question | None:
        """The question that was prepared with this text, if one was."""
        return self._questions.get(asked)

    def question(self, bound: Plan, size: int, within: Number | None) -> Question:
        """A question that nobody prepared as it is written, and which others may answer."""
        require_preparable(bound.query, within, self._stream, self._aggregates)
        return Question((bound.query.text, within), kind_of(bound, within), size)

    def holds(self, question: Question) -> bool:
        """Whether everything is kept that a question needs, for windows of some size."""
        return all(over in self._stored for over in question.kind.needs)

    def refusal(self, question: Question) -> QueryError | None:
        """Why a question cannot be answered; None if it can."""
        kind, size = question.kind, question.size
        if not self.holds(question):
            return QueryError(
                f"nothing is prepared that answers {_written(question.asked)}{self._widths(kind)}",
                hint="reg.prepare(...) the same question; it is answered from the rows to come",
            )
        there = [self._stored[over] for over in kind.needs]
        largest = min(h.largest for h in there)
        if size > largest:
            return QueryError(
                f"windows of up to {_length(kind.plan.axis, largest)} are prepared, and one of "
                f"{_length(kind.plan.axis, size)} is asked for",
                hint="reg.prepare(...) that one; it is answered from the rows to come",
            )
        start, known = self._extent(question)[0], max(h.known_from for h in there)
        if self._newest == BEGINNING or known <= (max(start, 0) if kind.rows.by_arrival else start):
            return None
        shown = kind.plan.axis.format
        return QueryError(
            f"the window begins at {shown(start)}, and what is prepared knows rows from "
            f"{shown(known)} on",
            hint=f"it can be asked once windows begin there: "
            f"{_length(kind.plan.axis, known - start)} from now",
        )

    def _widths(self, kind: Kind) -> str:
        widths = {o.width for o in self._stored if replace(o, width=kind.within) in kind.calls}
        told = ", ".join(str(w) for w in sorted(w for w in widths if w is not None))
        return f"; it is prepared within {told}" if told and kind.within is not None else ""

    def answer(self, question: Question) -> pa.Table:
        """The answer, now, to a question without a `refusal`; nothing if no row is there."""
        kind, size = question.kind, question.size
        start, end = self._extent(question)
        newest = self._stored[kind.rows].structure
        assert isinstance(newest, Newest)
        is_empty = newest.at == BEGINNING or newest.at < start
        if kind.within is not None:
            found = _bounded(kind, (start, end), self._estimates(kind, size))
            return found.slice(0, 0) if is_empty else found
        columns = [kind.plan.axis.label(np.array([at])) for at in (start, end)]
        columns += self._extremes(kind, size)
        lowered = pa.table(columns, schema=kind.plan.lowered_schema())
        return projected(kind.plan, lowered.slice(0, 0) if is_empty else lowered)

    def _extent(self, question: Question) -> tuple[int, int]:
        end = self._end(question.kind.rows)
        return end - question.size, end

    def _extremes(self, kind: Kind, size: int) -> Iterator[pa.Array]:
        for over, aggregate in zip(kind.calls, kind.plan.aggregates, strict=True):
            stairs = self._stored[over].structure
            assert isinstance(stairs, StaircaseSharing)
            yield stairs.ask_each([size]).cast(aggregate.type)

    def _estimates(self, kind: Kind, size: int) -> Iterator[Estimate]:
        for over, aggregate in zip(kind.calls, kind.names, strict=True):
            column = self._stored[over].structure
            assert isinstance(column, BoundedColumn)
            yield column.ask(aggregate, size)

    def explain(self) -> Iterator[str]:
        """What is kept, and for how many questions; a line each."""
        for over, stored in self._stored.items():
            if over.form != "newest":
                yield self._told(over, stored)

    def _told(self, over: Over, stored: Held) -> str:
        assert self._rows is not None
        what = "rows" if over.argument is None else over.argument.sql(dialect="spark")
        where = "" if over.where is None else f" where {over.where.sql(dialect='spark')}"
        axis = next(q.kind.plan.axis for q in self._questions.values() if over in q.kind.needs)
        longest = f"{stored.largest:,}" if over.by_arrival else _length(axis, stored.largest)
        reach = f"{'ROWS' if over.by_arrival else 'RANGE'} up to {longest}"
        form = f"TimeGram of {what}, within {over.width}"
        if over.form != "timegram":
            form = f"staircase for {over.form} of {what}"
        users = sum(stored.sizes.values())
        return f"{form}{where}; {reach}, {users:,} {'question' if users == 1 else 'questions'}"


def ask_prepared(
    bound: Plan, size: int, within: Number | None, prepared: Prepared, tail: RowTail | None
) -> pa.Table:
    """The answer from what is prepared, or, where it is exact, from the rows that a tail keeps."""
    try:
        question = prepared.question(bound, size, within)
    except PanesError:
        if within is not None:
            raise
        return _ask_rows(bound, size, tail, f"panes.register(..., keep_rows={size})")
    refusal = prepared.refusal(question)
    if refusal is None:
        return prepared.answer(question)
    has_rows = tail is not None and size <= tail.keep
    if within is not None or (prepared.holds(question) and not has_rows):
        raise refusal
    hint = f"panes.register(..., keep_rows={size}), or reg.prepare(...) it before the rows come"
    return _ask_rows(bound, size, tail, hint)


def _ask_rows(bound: Plan, size: int, tail: RowTail | None, hint: str) -> pa.Table:
    if tail is None:
        raise QueryError("the register keeps no rows", hint=hint)
    return ask_rows(bound, tail, size)


def _bounded(kind: Kind, extent: tuple[int, int], found: Iterable[Estimate]) -> pa.Table:
    """One answer: the window, and of each aggregate the middle and the ends of its interval."""
    names, columns = list(WINDOW_COLUMNS), [kind.plan.axis.label(np.array([at])) for at in extent]
    estimates = list(found)
    for output in kind.plan.query.outputs:
        number = int(output.expression.name.removeprefix("__a"))
        kept_as = pa.int64() if kind.names[number] == "count" else pa.float64()
        one = estimates[number]
        names += bounded_names(output.name)
        columns += [pa.array([v], kept_as) for v in (one.value, one.low, one.high)]
    return pa.table(columns, names=names)


def _size_of(query: Query) -> int:
    assert query.window is not None
    return query.window.spec.size  # type: ignore[union-attr]


def _length(axis: Axis, ticks: int) -> str:
    if axis.kind == "rows":
        return "1 row" if ticks == 1 else f"{ticks:,} rows"
    return format_duration(ticks) if axis.kind == "time" else str(ticks)


def _written(asked: Asked) -> str:
    text, within = asked
    return f"`{text}`" + ("" if within is None else f" within {within}")
