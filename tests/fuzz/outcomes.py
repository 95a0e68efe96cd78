"""What becomes of a text: answers, or an error of ours. Anything else is a fault of the library."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import panes
from panes.errors import PanesError
from panes.language.join_query import JoinQuery
from panes.language.parse import parse
from panes.language.query_graph import read_graph
from panes.language.row_question import read_row_question
from tests.fuzz.tables import TABLE
from tests.support import read

MOST_ANSWERS = 200_000
MOST_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a text ended on one of the ways in, and the processor time that took."""

    way: str
    kind: Literal["answered", "refused", "raw"]
    error: BaseException | None
    seconds: float

    @property
    def is_fault(self) -> bool:
        """Whether a user would see something that is not ours, or wait too long."""
        return self.kind == "raw" or self.seconds > MOST_SECONDS


def outcome(way: str, text: str) -> Outcome:
    """Take a text in, in one of the `WAYS`."""
    begun = time.process_time()
    kind: Literal["answered", "refused", "raw"] = "answered"
    error: BaseException | None = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            WAYS[way](text)
    except PanesError as refusal:
        kind, error = "refused", refusal
    except (Exception, RecursionError) as fault:
        kind, error = "raw", fault
    return Outcome(way, kind, error, time.process_time() - begun)


def _streams(text: str) -> dict[str, Any]:
    return dict.fromkeys(read(text).streams, TABLE)


def _as_table(text: str) -> None:
    panes.sql(text, max_answers=MOST_ANSWERS, **_streams(text))


def _as_explained(text: str) -> None:
    if not isinstance(read(text), JoinQuery):  # what a join does follows from its columns
        panes.explain(text)
    panes.explain(text, details=True, **_streams(text))


def _as_stream(text: str) -> None:
    query = panes.open(text, max_ahead=None, rows_late=2, why=True, max_answers=MOST_ANSWERS)
    for begin in range(0, len(TABLE), 5):
        query.push(**dict.fromkeys(read_graph(text).streams, TABLE.slice(begin, 5)))
    query.explain()
    query.finish()


def _as_registered(text: str) -> None:
    query = read(text)
    if isinstance(query, JoinQuery):
        _as_registered_join(text, query)
        return
    register = panes.register(
        query.streams[0], max_ahead=None, rows_late=2, max_answers=MOST_ANSWERS
    )
    register.add("fuzzed", text)
    for begin in range(0, len(TABLE), 5):
        register.push(TABLE.slice(begin, 5))
    register.explain(details=True)
    dict(register.finish())


def _as_registered_join(text: str, query: JoinQuery) -> None:
    register = panes.register(query.streams, max_ahead=None, rows_late=2, max_answers=MOST_ANSWERS)
    register.add("fuzzed", text)
    for begin in range(0, len(TABLE), 5):
        register.push(**dict.fromkeys(query.streams, TABLE.slice(begin, 5)))
    register.explain(details=True)
    register.finish()


def _as_asked(text: str) -> None:
    """Asked of a register that stores groups of `k`, and rows; by a question of either kind."""
    about_rows = read_row_question(text)
    stream = parse(text, once=True).streams[0] if about_rows is None else about_rows.stream
    register = panes.register(stream, max_ahead=None, rows_late=2, keep_rows=10)
    register.add("there", f"SELECT count(*) AS n FROM `{stream}` [TUMBLING 5 WATTR at]")
    register.add("keys", f"SELECT k, sum(x) AS t FROM `{stream}` [TUMBLING 5 WATTR at] GROUP BY k")
    if about_rows is not None:
        register.prepare(text)
    register.push(TABLE)
    register.ask(text)


WAYS: dict[str, Callable[[str], None]] = {
    "table": _as_table,
    "explained": _as_explained,
    "stream": _as_stream,
    "registered": _as_registered,
    "asked": _as_asked,
}
