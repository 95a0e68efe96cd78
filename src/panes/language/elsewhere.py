"""Words that other systems have for windows, and what to write here instead.

They are looked at only when a query cannot be read, so a column may have any of these names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

from panes.errors import QueryError
from panes.language.tokens import TokenReader, tokenize

_TUMBLING = "a tumbling window is FROM bids [TUMBLING 10 minutes WATTR ts]"
_WINDOW = (
    "the window stands in brackets behind the stream: FROM bids [RANGE 1 hour SLIDE 1 minute WATTR "
    "ts], or without overlap FROM bids [TUMBLING 10 minutes WATTR ts]"
)
_CALLED = f"leave it out of GROUP BY and SELECT: {_WINDOW}"
_SLIDING = "a sliding window is FROM bids [RANGE 10 minutes SLIDE 5 minutes WATTR ts]"
_SESSION = (
    "there are no windows of sessions; the window before each row is "
    "FROM bids [RANGE 5 minutes RATTR ts SLIDE 1 ROW], and docs/cookbook/sessions.md has more"
)
_CUMULATE = "windows that begin with the stream are FROM bids [RANGE ALL SLIDE 1 hour WATTR ts]"
_OFFSET = "windows are moved by ORIGIN: FROM bids [TUMBLING 1 hour WATTR ts ORIGIN 30 minutes]"
_ZONE = (
    "days are those of UTC, FROM bids [TUMBLING 1 day WATTR ts]; local ones are FROM (SELECT "
    "convert_timezone('Europe/Berlin', CAST(ts AS TIMESTAMP_NTZ)) AS local, price FROM bids) "
    "[TUMBLING 1 day WATTR local]"
)
_QUALIFY = "answers are filtered by HAVING: GROUP BY item HAVING count(*) > 1"
_LIMIT = (
    "every window has all its answers; the most frequent alone are SELECT top_k(item, 3) AS top "
    "FROM bids [TUMBLING 10 minutes WATTR ts], and docs/cookbook/top_three.md has others; to leave "
    "some out: GROUP BY item HAVING count(*) > 1"
)

OVER = (
    "the window before each row stands in brackets behind the stream, and PA says for which key: "
    "SELECT item, sum(price) AS s FROM bids [RANGE 5 minutes RATTR ts SLIDE 1 ROW PA item]"
)
WITH = (
    "a query that is asked of a register reads its stream as it is, and WHERE leaves rows out: "
    "SELECT max(price) AS m FROM bids [TUMBLING 10 minutes WATTR ts] "
    "WHERE price > 0"
)
WINDOW_INSIDE = (
    "panes.sql and panes.open take an inner SELECT with a window of its own: SELECT avg(high) AS "
    "mean FROM (SELECT max(price) AS high FROM bids [TUMBLING 1 minute WATTR ts]) [TUMBLING 1 hour]"
)
JOIN_OUTSIDE = (
    "join in the outer SELECT: SELECT sum(b.price) AS s FROM bids b JOIN (SELECT ts, item FROM "
    "bids WHERE price > 2) c ON b.item = c.item [TUMBLING 10 minutes WATTR ts]"
)
SUBQUERY = (
    "rows that another stream has, too, are a semi join: SELECT b.item, count(*) AS n FROM bids b "
    "LEFT SEMI JOIN (SELECT ts, item FROM bids WHERE price > 2) c ON b.item = c.item "
    "[TUMBLING 10 minutes WATTR ts] GROUP BY b.item; those that it has not, LEFT ANTI JOIN"
)
"""A way to write a form of SQL, in words and as a line that runs."""
FORMS = (OVER, WITH, WINDOW_INSIDE, JOIN_OUTSIDE, SUBQUERY)

WORDS = {
    "TUMBLE": _TUMBLING,
    "DESCRIPTOR": _TUMBLING,
    "WINDOW": _WINDOW,
    "HOP": _SLIDING,
    "HOPPING": _SLIDING,
    "SLIDING": _SLIDING,
    "SIZE": _SLIDING,
    "SESSION": _SESSION,
    "SESSION_WINDOW": _SESSION,
    "CUMULATE": _CUMULATE,
    "OFFSET": _OFFSET,
    "TIMEZONE": _ZONE,
    "ZONE": _ZONE,
    "QUALIFY": _QUALIFY,
    "LIMIT": _LIMIT,
    "OVER": OVER,
}


def require_select(reader: TokenReader) -> None:
    """Refuse a text that is not one SELECT."""
    if reader.word() != "SELECT":
        hint = "SELECT count(*) AS n FROM bids [TUMBLING 1 minute WATTR ts]"
        hint = WITH if reader.word() == "WITH" else hint
        raise reader.error(f"a window query is one SELECT, found {reader.found()}", hint)


@contextmanager
def hints_for_other_dialects(text: str) -> Iterator[None]:
    """If a text cannot be read, and has a word of another system, say what to write instead."""
    try:
        yield
    except QueryError as failure:
        hint = _hint(text)
        if hint is None or failure.hint in FORMS:
            raise
        message = failure.message
        if hint == _CALLED:  # what the grammar says of it is about its parentheses
            message = "a window is no function here, as Spark's window(...) is"
        raise QueryError(message, hint=hint, line=failure.line, column=failure.column) from None


def _hint(text: str) -> str | None:
    """A hint for the first word of another system; None: there is none."""
    try:
        reader = TokenReader(tokenize(text))
    except QueryError:
        return None
    words = [reader.word(ahead) for ahead in range(len(reader.tokens) + 1)]
    sizes = ("SIZE", "(")  # of arrays, which nobody takes for the size of a window
    found = (pair for pair in pairwise(words) if pair != sizes and pair[0] in WORDS)
    first = next(found, ("", ""))
    return _CALLED if first == ("WINDOW", "(") else WORDS.get(first[0])
