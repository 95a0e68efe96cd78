"""Windows above a join: joined rows are aggregated as the rows of one stream.

The stream of joined rows makes progress of its own (`panes.join.progress`): a window above is
answered as soon as no joined row can come into it any more, which may be long before the band has
passed. Groups by the positions of both sides close by joint punctuation, one by one (thesis 7.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.axis import LIMIT
from panes.language.query import WINDOW_COLUMNS, Query
from panes.nodes.join_stage import JoinStage
from panes.nodes.joined_rows import complete_groups, named_windows, placed_rows
from panes.planning.join_query_plan import AT, PAIRS, Aggregation, JoinQueryPlan
from panes.planning.terms import StreamOptions
from panes.process.node import Step
from panes.process.query_node import Inside
from panes.process.windows_node import WindowsNode


class Above(Protocol):
    """What joined rows are made into."""

    def take(self, joined: pa.Table, stage: JoinStage, *, ends: bool) -> pa.Table:
        """Take in joined rows; gives the answers that are final by what the join promises now.

        If it `ends`, they are the last ones, and all answers are given that are left.
        """
        ...

    def early(self) -> pa.Table:
        """The windows that are still open, as they are now."""
        ...

    @property
    def stored(self) -> dict[str, int]:
        """How much is stored above the join."""
        ...

    @property
    def next_end(self) -> int | None:
        """No window that is yet to be answered ends before; None if there are no windows."""
        ...


def above(
    plan: JoinQueryPlan, run: StreamOptions, aggregates: Sequence[UserAggregate]
) -> Above | None:
    """What aggregates the joined rows of a plan; None if none are made, or given as they are."""
    if plan.aggregation is None or plan.aggregation.fold is not None:
        return None
    if plan.aggregation.by == "positions":
        return PositionGroups(plan, plan.aggregation, aggregates)
    return JoinedWindows(plan, plan.aggregation, run, aggregates)


class JoinedWindows:
    """Joined rows in windows over a position of theirs: a node of windows that reads the join."""

    def __init__(
        self,
        plan: JoinQueryPlan,
        aggregation: Aggregation,
        run: StreamOptions,
        aggregates: Sequence[UserAggregate],
    ) -> None:
        self._plan, self._by = plan, aggregation.by
        options = StreamOptions(
            max_ahead=None, bounded=run.bounded, why=run.why, flush=run.flush, store=run.store
        )
        self._windows = _over_pairs(aggregation.query, options, aggregates)

    def take(self, joined: pa.Table, stage: JoinStage, *, ends: bool) -> pa.Table:
        """Take in joined rows; gives the answers that are final by what the join promises now."""
        step = Step({PAIRS: placed_rows(self._plan, self._by, joined)}, is_last=ends)
        assert self._by != "positions"
        progress = stage.progress_above(self._by)
        if progress > -LIMIT and not ends:
            step.told = {PAIRS: min(progress, LIMIT - 1)}
        return self._named(self._windows.take(step)[0].table)

    def early(self) -> pa.Table:
        """The windows that are still open, as they are now."""
        return self._named(self._windows.early())

    @property
    def stored(self) -> dict[str, int]:
        """How much is stored above the join."""
        state = self._windows.state
        return {name: state[name] for name in ("keys", "partials", "bytes")}

    @property
    def next_end(self) -> int:
        """No window that is yet to be answered ends before, as the windows above count."""
        return self._windows.next_end

    def _named(self, answers: pa.Table) -> pa.Table:
        return named_windows(self._plan, self._by, answers)


class PositionGroups:
    """Joined rows in groups by the positions of one side or both, without windows."""

    def __init__(
        self, plan: JoinQueryPlan, aggregation: Aggregation, aggregates: Sequence[UserAggregate]
    ) -> None:
        self._plan, self._aggregation, self._aggregates = plan, aggregation, aggregates
        self._waiting = plan.joined_schema().empty_table()

    def take(self, joined: pa.Table, stage: JoinStage, *, ends: bool) -> pa.Table:
        """Take in joined rows; gives the groups that no joined row can come into any more."""
        rows = pa.concat_tables([self._waiting, joined]) if len(self._waiting) else joined
        complete, waiting = rows, rows.schema.empty_table()
        if not ends:
            complete, waiting = complete_groups(self._plan, self._aggregation, rows, stage)
        self._waiting = waiting.combine_chunks()
        return self._grouped(complete)

    def early(self) -> pa.Table:
        """All groups that are not complete, as they are now."""
        return self._grouped(self._waiting)

    @property
    def stored(self) -> dict[str, int]:
        """How much is stored above the join: rows of groups that are not complete."""
        return {"keys": 0, "partials": len(self._waiting), "bytes": self._waiting.nbytes}

    @property
    def next_end(self) -> None:
        """There are no windows."""

    def _grouped(self, rows: pa.Table) -> pa.Table:
        """Aggregates of whole groups: windows play no part, so all rows lie in one."""
        once = rows.append_column(AT, pa.array(np.zeros(len(rows), dtype=np.int64)))
        options = StreamOptions(bounded=True, max_ahead=None)
        windows = _over_pairs(self._aggregation.query, options, self._aggregates)
        [given] = windows.take(Step({PAIRS: once}, is_last=True))
        return given.table.drop_columns(list(WINDOW_COLUMNS))


def _over_pairs(
    query: Query, run: StreamOptions, aggregates: Sequence[UserAggregate]
) -> WindowsNode:
    return WindowsNode(query, Inside({PAIRS: PAIRS}), run, aggregates=aggregates)
