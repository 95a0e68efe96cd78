"""Any query text: one stream or a union of streams, or a join."""

from __future__ import annotations

from collections.abc import Sequence

from panes.aggregates.custom import UserAggregate
from panes.language.join_query import JoinQuery
from panes.language.join_text import is_join, read_join
from panes.language.parse import parse
from panes.language.query import Query


def read(text: str, aggregates: Sequence[UserAggregate] = ()) -> Query | JoinQuery:
    """Understand a query.

    >>> type(read("SELECT l.id FROM l, r [TUMBLING 5 WATTR at] WHERE l.k = r.k")).__name__
    'JoinQuery'
    """
    return read_join(text, aggregates) if is_join(text) else parse(text, aggregates)
