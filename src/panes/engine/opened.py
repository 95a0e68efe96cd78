"""A query of any kind, opened on streams in this process."""

from __future__ import annotations

from collections.abc import Sequence

from panes.aggregates.custom import UserAggregate
from panes.engine.open_join import OpenJoin
from panes.engine.open_query import OpenQuery
from panes.language.join_query import JoinQuery
from panes.language.query import Query
from panes.language.read import read
from panes.planning.terms import Run


def opened(
    text: str | Query | JoinQuery, run: Run, aggregates: Sequence[UserAggregate] = ()
) -> OpenQuery | OpenJoin:
    """Open a query, over one stream or a union, or over a join."""
    query = read(text, aggregates) if isinstance(text, str) else text
    if isinstance(query, JoinQuery):
        return OpenJoin(query, run, aggregates=aggregates)
    return OpenQuery(query, run, aggregates=aggregates)
