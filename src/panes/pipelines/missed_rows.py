"""What a query has missed if it is added to a register of joins while rows come.

A query takes of a join what is joined from now on. Pairs that were joined before it came are
missing in its windows, and so are pairs with rows that came before, if its join is new. Rows up to
some position may be among those; behind it nothing is missed, and only what begins there is whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.arrays.columns import column_of
from panes.errors import QueryError
from panes.language.query import WINDOW_COLUMNS
from panes.planning.join_query_plan import JoinQueryPlan
from panes.windows.spec import Landmark, PerRow, Sliding, Spec


def newest_missed(
    plan: JoinQueryPlan, newest: Mapping[str, int], *, joins_anew: bool
) -> int | None:
    """The last position up to which rows may be missed; None: none has come before.

    `newest` are the newest rows of streams that came before the query. If it `joins_anew`, they are
    not stored for it, and rows that could have been their partners miss them.
    """
    streams = [name for source in plan.join.sources for name in source.source.streams]
    came = [newest[name] for name in streams if name in newest]
    if not came:
        return None
    return max(came) + (plan.join.reach if joins_anew else 0)


@dataclass(frozen=True, slots=True)
class Whole:
    """What is whole of a query that may have missed rows up to a position."""

    plan: JoinQueryPlan
    missed: int

    def require_answers(self) -> None:
        """Refuse a query that could never be answered in full."""
        if isinstance(self._spec, Landmark):
            raise QueryError(
                "rows have come before this query, and windows over ALL rows would miss them",
                hint="add it before the first batch, or give it a RANGE",
            )

    def rows(self, joined: pa.Table) -> pa.Table:
        """Joined rows without those of groups by positions that may miss some."""
        found = self.plan.aggregation
        if found is None or found.by != "positions":
            return joined
        join = self.plan.join
        sides = [
            pc.coalesce(column_of(joined, name).cast(join.axis.type).cast(pa.int64()), _NEVER)
            for name in (join.left_at, join.right_at)
            if name in joined.column_names
        ]
        return joined.filter(pc.greater(pc.max_element_wise(*sides), self.missed))

    def answers(self, given: pa.Table) -> pa.Table:
        """Answers without those of windows that may miss rows."""
        if not isinstance(self._spec, Sliding | PerRow) or not given.num_columns:
            return given
        starts = column_of(given, WINDOW_COLUMNS[0]).cast(pa.int64())
        return given.filter(pc.greater(starts, self.missed))

    @property
    def begins(self) -> object | None:
        """Where the first window starts, or the first group lies, that is answered.

        None, of a query for joined rows: these are given from the moment it is added.
        """
        if self.plan.aggregation is None:
            return None
        first, spec = self.missed + 1, self._spec
        if isinstance(spec, Sliding):
            first += (spec.origin - spec.size - first) % spec.slide
        return self.plan.join.axis.label(np.array([first]))[0].as_py()

    @property
    def _spec(self) -> Spec | None:
        """The windows of the answers."""
        found = self.plan.aggregation
        if found is None or found.by == "positions":
            return None
        if found.by == "window":
            return self.plan.join.windows
        return None if found.query.window is None else found.query.window.spec


_NEVER = -(2**62)
