"""The queries of a register over joins as plain data, for whoever shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from panes.planning.join_query_plan import JoinQueryPlan


@dataclass(frozen=True, slots=True)
class JoinedQuery:
    """One query. `join` is a number that queries share, as they share the join.

    It is None, and so is the plan, until all its streams have sent a batch.
    """

    name: str
    text: str
    plan: JoinQueryPlan | None = None
    join: int | None = None

    @property
    def keys(self) -> int:
        """How many columns its answers are grouped by."""
        if self.plan is None or self.plan.aggregation is None:
            return 0
        return len(self.plan.aggregation.query.shown_keys)


@dataclass(frozen=True, slots=True)
class JoinsView:
    """All queries, and those that were set aside, with their texts and reasons."""

    streams: tuple[str, ...]
    queries: tuple[JoinedQuery, ...]
    failed: Mapping[str, tuple[str, str]]


def view_of_several(
    streams: tuple[str, ...],
    texts: Mapping[str, str],
    joined: Iterable[JoinedQuery],
    failed: Mapping[str, tuple[str, str]],
) -> JoinsView:
    """A register of several streams: its queries in their order, those over joins with the join."""
    known = {query.name: query for query in joined}
    queries = tuple(known.get(name, JoinedQuery(name, text)) for name, text in texts.items())
    return JoinsView(streams, queries, failed)
