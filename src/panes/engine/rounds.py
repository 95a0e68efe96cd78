"""A round of a register: rows or promises come in, answers go out, all of it or nothing.

A round ends in one of three ways::

    it succeeds         answers are handed over, and their windows are closed
    a query fails       all is as before, the query is set aside, and the round begins again
    the sink fails      all is as before, but for windows whose answers it has taken: a caller who
                        makes the round again neither loses answers nor gets any of them twice
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from panes.answers.portions import Portion, QueryAnswers
from panes.engine.all_or_nothing import all_or_nothing
from panes.engine.reading import Reading
from panes.errors import FailedQueryWarning, UserFunctionError, warn
from panes.register.due import Due, close
from panes.register.failures import QueriesFailed, failed_calling, set_aside_words
from panes.register.queries import Queries

HandOver = Callable[[str, pa.Table], None]


def run_round(
    queries: Queries,
    reading: Reading,
    step: Callable[[], Iterator[Portion]],
    hand_over: HandOver | None,
) -> QueryAnswers:
    """Answers of a `step`, which changes queries and what was read."""
    given: list[Portion] = []
    while True:
        found: list[Portion] = []
        taken: set[str] = set()
        due: list[Due] = []
        try:
            with all_or_nothing(queries, reading):
                for portion in step():
                    found.append(portion)
                    due = queries.due
                    for name, table in portion.tables() if hand_over is not None else ():
                        assert hand_over is not None
                        hand_over(name, table)
                        taken.add(name)
                return QueryAnswers([*given, *found])
        except QueriesFailed as failed:
            _take_back(queries, due, taken)
            reasons: dict[str, object] = failed.reasons
        except UserFunctionError as error:
            _take_back(queries, due, taken)
            reasons = dict(failed_calling(queries.shapes, error))
            if not reasons:
                raise
        except BaseException:
            _take_back(queries, due, taken)
            raise
        given += found if hand_over is not None else []
        for name, reason in reasons.items():
            queries.set_aside(name, reason)
            warn(set_aside_words(name, reason), FailedQueryWarning)


def _take_back(queries: Queries, due: list[Due], taken: set[str]) -> None:
    """All is as before; answers that were taken stay given."""
    queries.forget_schedule()
    if taken:
        close(due, taken)
