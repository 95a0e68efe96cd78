"""Questions prepared for asking: what answers them is kept up to date, so asking reads no row.

Until the columns of the stream are known, questions wait. Then each gets the structures that it
needs (`panes.asking.shared_structures`), which answer it (`panes.asking.answer_prepared`).

Invariant: once the columns are known, every question is settled, and structures are there for
exactly the questions that are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.asking.answer_prepared import (
    Asked,
    Question,
    answer,
    can_be_answered,
    refusal,
    written,
)
from panes.asking.preparable import QuestionShape, StructureKey, question_shape, require_preparable
from panes.asking.refusals import length
from panes.asking.row_tail import RowTail, ask_rows
from panes.asking.shared_structures import SharedStructures
from panes.asking.structures import Positions
from panes.axis import BEGINNING
from panes.errors import FailedQueryWarning, PanesError, QueryError, warn
from panes.language.query import Query
from panes.planning.plan import Plan, plan
from panes.stores.nested.buckets import Number

Settle: TypeAlias = Callable[[Plan, pa.Schema], None]
"""Refuses a plan whose axis is not that of the stream."""
ShapeKey: TypeAlias = tuple[Query, str, Number | None]


class Prepared:
    """The prepared questions of a register, and what is kept up to date for them."""

    UNCHANGED = frozenset({"_queries", "_questions", "_shapes"})  # rows change none of these

    def __init__(self, stream: str, aggregates: Sequence[UserAggregate] = ()) -> None:
        self._stream, self._aggregates = stream, tuple(aggregates)
        self._queries: dict[Asked, Query] = {}
        self._questions: dict[Asked, Question] = {}
        self._shapes: dict[ShapeKey, QuestionShape] = {}
        self._structures: SharedStructures | None = None
        self._failed: dict[Asked, str] = {}

    def __len__(self) -> int:
        return len(self._queries)

    @property
    def asked(self) -> list[Asked]:
        """Texts and widths, in the order in which they came."""
        return list(self._queries)

    @property
    def failed(self) -> dict[str, str]:
        """The questions that were set aside because rows made them fail, by text, and why."""
        named = {asked: asked[0] if asked[1] is None else written(asked) for asked in self._failed}
        return {named[asked]: reason for asked, reason in self._failed.items()}

    @property
    def nbytes(self) -> int:
        """Bytes that all structures take."""
        return 0 if self._structures is None else self._structures.nbytes

    @property
    def structures(self) -> SharedStructures | None:
        """What answers the questions, once the columns are known."""
        return self._structures

    @property
    def arrived(self) -> int:
        """How many rows have come."""
        return 0 if self._structures is None else self._structures.arrived

    # Questions come and go

    def add(self, asked: Asked, query: Query, *, tail: RowTail | None, settle: Settle) -> None:
        """Have from now on what a question needs; rows that a tail has are known already."""
        if asked in self._queries:
            return
        require_preparable(query, asked[1], self._stream, self._aggregates)
        if self._structures is not None:
            self._questions[asked] = self._settled(asked, query, self._structures, tail, settle)
        self._queries[asked] = query
        self._failed.pop(asked, None)

    def bind(
        self, schema: pa.Schema, settle: Settle, *, arrived: int = 0, newest: int = BEGINNING
    ) -> dict[Asked, Exception]:
        """The columns are known now: waiting questions are given what they need.

        Gives those that cannot be answered, which are to be set aside. So many rows have `arrived`
        before, the `newest` at that position; nothing is known of them.
        """
        settled, failing = Prepared(self._stream, self._aggregates), dict[Asked, Exception]()
        settled._structures = SharedStructures(schema)
        settled._structures.arrived, settled._structures.newest = arrived, newest
        for asked, query in self._queries.items():
            try:
                settled.add(asked, query, tail=None, settle=settle)
            except PanesError as error:
                failing[asked] = error
        self._questions, self._shapes = settled._questions, settled._shapes
        self._structures = settled._structures
        return failing

    def forget(self, asked: Asked) -> None:
        """Forget a question, and what only it needs."""
        if self._failed.pop(asked, None) is not None:
            return
        if asked not in self._queries:
            known = "; ".join(written(one) for one in self._queries) or "none"
            raise QueryError(f"{written(asked)} is not prepared", hint=f"prepared: {known}")
        del self._queries[asked]
        question = self._questions.pop(asked, None)
        if question is None or self._structures is None:
            return
        structures = self._structures
        structures.release(question.shape.needs, question.size)
        self._shapes = {
            key: shape
            for key, shape in self._shapes.items()
            if all(over in structures for over in shape.needs)
        }

    def _settled(
        self,
        asked: Asked,
        query: Query,
        structures: SharedStructures,
        tail: RowTail | None,
        settle: Settle,
    ) -> Question:
        try:
            shape, size = self._shape(query, asked[1], structures.schema), _size_of(query)
            settle(shape.plan, structures.schema)
        except PanesError as error:
            raise error.of(f"the prepared question `{asked[0]}`") from None
        structures.prepare(shape.needs, size, tail)
        return Question(asked, shape, size)

    def _shape(self, query: Query, within: Number | None, schema: pa.Schema) -> QuestionShape:
        """What questions that differ in their size alone have in common, planned once."""
        window = query.window
        axis = "" if window is None else f"{window.measure} {window.column}"
        key = replace(query, text="", window=None), axis, within
        if key not in self._shapes:
            planned = plan(query, {self._stream: schema}, self._aggregates)
            self._shapes[key] = question_shape(planned, within)
        return self._shapes[key]

    # Rows come

    def read(self, rows: pa.Table) -> dict[int, pa.Array]:
        """The columns that structures need of a batch, by number; nothing is taken in yet.

        Questions that cannot read these rows are set aside.
        """
        if self._structures is None:
            return {}
        try:
            return self._structures.read(rows)
        except PanesError:
            failing = self._failed_reading(self._structures.schema, rows)
            if not failing:
                raise
        self.set_aside(failing)
        return self._structures.read(rows)

    def push(self, at: Positions, columns: Mapping[int, pa.Array], newest: int) -> None:
        """Take in what `read` gave of rows at these positions, in the order they came.

        Questions whose structures cannot take these rows are set aside.
        """
        if self._structures is None:
            return
        failed = self._structures.push(at, columns, newest)
        needed = {asked: set(question.shape.needs) for asked, question in self._questions.items()}
        self.set_aside(
            {
                asked: why
                for asked, of in needed.items()
                for over, why in failed.items()
                if over in of
            }
        )

    def _failed_reading(self, schema: pa.Schema, rows: pa.Table) -> dict[Asked, Exception]:
        """The questions that cannot read some rows by themselves, and why."""
        found: dict[Asked, Exception] = {}
        for asked, question in self._questions.items():
            alone = SharedStructures(schema)
            alone.prepare(question.shape.needs, question.size, None)
            try:
                alone.read(rows)
            except PanesError as error:
                found[asked] = error
        return found

    def set_aside(self, failing: Mapping[Asked, Exception]) -> None:
        """These questions cannot be answered: they are listed as failed, and that is told."""
        self._queries, self._questions = dict(self._queries), dict(self._questions)
        for asked, reason in failing.items():
            self.forget(asked)
            self._failed[asked] = str(reason)
            words = f"{written(asked)} failed and is set aside; the others go on. {reason}"
            warn(words, FailedQueryWarning)

    # Asking

    def find(self, asked: Asked) -> pa.Table | None:
        """The answer to a question that was prepared with this text; None if there is none."""
        if asked in self._failed:
            raise QueryError(
                f"{written(asked)} was prepared and has failed: {self._failed[asked]}",
                hint="reg.prepare(...) it again, or reg.forget(...) it",
            )
        question, structures = self._questions.get(asked), self._structures
        if question is None or structures is None or refusal(question, structures) is not None:
            return None
        return answer(question, structures)

    def ask(self, plan: Plan, size: int, within: Number | None, tail: RowTail | None) -> pa.Table:
        """The answer from what is there, or, where it is exact, from the rows that a tail has."""
        try:
            require_preparable(plan.query, within, self._stream, self._aggregates)
            question = Question((plan.query.text, within), question_shape(plan, within), size)
        except PanesError:
            if within is not None:
                raise
            return ask_rows(plan, tail, size, f"panes.register(..., keep_rows={size})")
        assert self._structures is not None
        why = refusal(question, self._structures)
        if why is None:
            return answer(question, self._structures)
        has_rows = tail is not None and tail.has(size)
        if within is not None or (can_be_answered(question, self._structures) and not has_rows):
            raise why
        hint = f"panes.register(..., keep_rows={size}), or reg.prepare(...) it before the rows come"
        return ask_rows(plan, tail, size, hint)

    def explain(self) -> Iterator[str]:
        """What is kept up to date, and for how many questions; a line each."""
        for over in self._structures or ():
            if over.form != "newest":
                yield self._explain_one(over)

    def _explain_one(self, over: StructureKey) -> str:
        assert self._structures is not None
        shared = self._structures[over]
        what = "rows" if over.argument is None else over.argument.sql(dialect="spark")
        where = "" if over.where is None else f" where {over.where.sql(dialect='spark')}"
        axis = next(q.shape.plan.axis for q in self._questions.values() if over in q.shape.needs)
        longest = f"{shared.largest:,}" if over.by_arrival else length(axis, shared.largest)
        reach = f"{'ROWS' if over.by_arrival else 'RANGE'} up to {longest}"
        form = f"TimeGram of {what}, within {over.width}"
        if over.form != "timegram":
            form = f"rows that can be {over.form} of {what}"
        users = sum(shared.sizes.values())
        return f"{form}{where}; {reach}, {users:,} {'question' if users == 1 else 'questions'}"


def _size_of(query: Query) -> int:
    assert query.window is not None
    return query.window.spec.size  # type: ignore[union-attr]
