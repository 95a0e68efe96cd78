"""The answer to a prepared question, read from structures; or why there is none.

A window that begins before all its rows are known is refused, and never answered from fewer rows
than it holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from panes.answers.select import projected
from panes.asking.preparable import QuestionShape, bounded_names
from panes.asking.refusals import not_known_yet, not_prepared, too_large
from panes.asking.shared_structures import SharedStructures
from panes.asking.structures import Newest
from panes.asking.timegram_column import BoundedColumn, IntervalEstimate
from panes.axis import BEGINNING
from panes.errors import QueryError
from panes.language.query import WINDOW_COLUMNS
from panes.stores.nested.buckets import Number
from panes.stores.nested.nested_windows import StaircaseSharing

Asked: TypeAlias = tuple[str, Number | None]
"""A question as it was asked: its text, and `within`."""


@dataclass(frozen=True, slots=True)
class Question:
    """One window to be asked for."""

    asked: Asked
    shape: QuestionShape
    size: int


def can_be_answered(question: Question, structures: SharedStructures) -> bool:
    """Whether there is everything that a question needs, for windows of some size."""
    return all(over in structures for over in question.shape.needs)


def refusal(question: Question, structures: SharedStructures) -> QueryError | None:
    """Why a question cannot be answered; None if it can."""
    shape, axis = question.shape, question.shape.plan.axis
    if not can_be_answered(question, structures):
        return not_prepared(written(question.asked), _widths(shape, structures))
    there = [structures[over] for over in shape.needs]
    largest = min(one.largest for one in there)
    if question.size > largest:
        return too_large(axis, question.size, largest)
    start, known = _extent(question, structures)[0], max(one.known_from for one in there)
    first = max(start, 0) if shape.rows.by_arrival else start
    if structures.newest == BEGINNING or known <= first:
        return None
    return not_known_yet(axis, start, known)


def _widths(shape: QuestionShape, structures: SharedStructures) -> list[str]:
    """The widths that the same aggregates are prepared within."""
    if shape.within is None:
        return []
    alike = {o.width for o in structures if replace(o, width=shape.within) in shape.calls}
    return [str(width) for width in sorted(w for w in alike if w is not None)]


def answer(question: Question, structures: SharedStructures) -> pa.Table:
    """The answer, now, to a question without a `refusal`; nothing if no row is there."""
    shape, size = question.shape, question.size
    start, end = _extent(question, structures)
    newest = structures[shape.rows].structure
    assert isinstance(newest, Newest)
    is_empty = newest.at == BEGINNING or newest.at < start
    labels = [shape.plan.axis.label(np.array([at])) for at in (start, end)]
    if shape.within is not None:
        found = _intervals(shape, labels, list(_estimates(shape, size, structures)))
        return found.slice(0, 0) if is_empty else found
    columns = [*labels, *_extremes(shape, size, structures)]
    lowered = pa.table(columns, schema=shape.plan.lowered_schema())
    return projected(shape.plan, lowered.slice(0, 0) if is_empty else lowered)


def _extent(question: Question, structures: SharedStructures) -> tuple[int, int]:
    end = structures.end(question.shape.rows)
    return end - question.size, end


def _extremes(shape: QuestionShape, size: int, structures: SharedStructures) -> Iterator[pa.Array]:
    for over, aggregate in zip(shape.calls, shape.plan.aggregates, strict=True):
        stairs = structures[over].structure
        assert isinstance(stairs, StaircaseSharing)
        yield stairs.ask_each([size]).cast(aggregate.type)


def _estimates(
    shape: QuestionShape, size: int, structures: SharedStructures
) -> Iterator[IntervalEstimate]:
    for over, aggregate in zip(shape.calls, shape.names, strict=True):
        column = structures[over].structure
        assert isinstance(column, BoundedColumn)
        yield column.ask(aggregate, size)


def _intervals(
    shape: QuestionShape, labels: list[pa.Array], estimates: list[IntervalEstimate]
) -> pa.Table:
    """One answer: the window, and of each aggregate the middle and the ends of its interval."""
    names, columns = list(WINDOW_COLUMNS), labels
    for output in shape.plan.query.outputs:
        number = int(output.expression.name.removeprefix("__a"))
        data_type = pa.int64() if shape.names[number] == "count" else pa.float64()
        one = estimates[number]
        names += bounded_names(output.name)
        columns += [pa.array([v], data_type) for v in (one.value, one.low, one.high)]
    return pa.table(columns, names=names)


def written(asked: Asked) -> str:
    """A question as a user would write it."""
    text, within = asked
    return f"`{text}`" + ("" if within is None else f" within {within}")
