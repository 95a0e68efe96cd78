"""A round of a register: rows or promises come in, answers go out, all of it or nothing.

A round ends in one of three ways::

    it succeeds         answers are handed over, and their windows are closed
    a query fails       all is as before, the query is set aside, and the round begins again
    the sink fails      all is as before, but for windows whose answers it has taken: a caller who
                        makes the round again neither loses answers nor gets any of them twice
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from panes.answers.portions import Portion, QueryAnswers
from panes.arrays.workers import apart_from_interrupts
from panes.errors import FailedQueryWarning, UserFunctionError, warn
from panes.process.all_or_nothing import Undo
from panes.sharing.due import Due, close
from panes.sharing.failures import QueriesFailed, failed_calling, set_aside_words
from panes.sharing.queries import Queries

HandOver = Callable[[str, pa.Table], None]


def run_round(
    queries: Queries,
    step: Callable[[], Iterator[Portion]],
    hand_over: HandOver | None,
    undo: Undo,
    *others: object,
) -> QueryAnswers:
    """Answers of a `step`, which changes queries, and other objects.

    What is set aside, and answers that were taken, are not undone.
    """
    given: list[Portion] = []
    before = len(undo)
    while True:
        found: list[Portion] = []
        taken = _Taken(queries)
        undo.last(taken.keep)
        undo.remember(queries, *others)
        try:
            for portion in step():
                found.append(portion)
                if hand_over is not None:
                    taken.hand_over(hand_over, portion)
            return QueryAnswers([*given, *found])
        except QueriesFailed as failed:
            reasons: dict[str, object] = failed.reasons
        except UserFunctionError as error:
            reasons = dict(failed_calling(queries.shapes, error))
            if not reasons:
                raise
        undo.run(down_to=before)
        given += found if hand_over is not None else []
        set_aside(queries, reasons)


def set_aside(queries: Queries, reasons: Mapping[str, object]) -> None:
    """These queries have failed: they are set aside, and that is told."""

    def all_of_them() -> None:
        for name, reason in reasons.items():
            queries.set_aside(name, reason)

    apart_from_interrupts(all_of_them)
    for name, reason in reasons.items():
        warn(set_aside_words(name, reason), FailedQueryWarning)


class _Taken:
    """The queries whose answers a sink has taken in a round."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._names: set[str] = set()
        self._due: list[Due] = []

    def hand_over(self, sink: HandOver, portion: Portion) -> None:
        """Hand over answers, and note whose the sink took.

        No interrupt comes between the two: CPython lets none in where a loop over compiled
        iterators goes on.
        """
        self._due = self._queries.due
        given = list(portion.tables())
        if not given:
            return
        names, tables = zip(*given, strict=True)
        for name, _ in zip(names, map(sink, names, tables), strict=True):
            self._names.add(name)

    def keep(self) -> None:
        """All is as before the round; answers that were taken stay given."""
        self._queries.forget_schedule()
        if self._names:
            close(self._due, self._names)
