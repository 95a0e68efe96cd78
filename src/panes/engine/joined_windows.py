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
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.aggregates.custom import UserAggregate
from panes.arrays.columns import column_of
from panes.axis import LIMIT
from panes.engine.open_query import OpenQuery
from panes.join.progress import joint
from panes.language.query import WINDOW_COLUMNS
from panes.pipelines.join_stage import WID, JoinStage
from panes.planning.join_query_plan import AT, PAIRS, Aggregation, JoinQueryPlan
from panes.planning.terms import Run
from panes.windows.extent import edges_of
from panes.windows.spec import PanedSpec


class Above(Protocol):
    """What joined rows are made into."""

    def take(self, joined: pa.Table, stage: JoinStage) -> pa.Table:
        """Take in joined rows; gives the answers that are final by what the join promises now."""
        ...

    def finish(self, joined: pa.Table) -> pa.Table:
        """Take in the last joined rows; gives all answers that are left."""
        ...

    def early(self) -> pa.Table:
        """The windows that are still open, as they are now."""
        ...

    @property
    def stored(self) -> dict[str, int]:
        """How much is stored above the join."""
        ...


def above(plan: JoinQueryPlan, run: Run, aggregates: Sequence[UserAggregate]) -> Above | None:
    """What aggregates the joined rows of a plan; None if none are made, or given as they are."""
    if plan.aggregation is None or plan.aggregation.fold is not None:
        return None
    if plan.aggregation.by == "positions":
        return PositionGroups(plan, plan.aggregation, aggregates)
    return JoinedWindows(plan, plan.aggregation, run, aggregates)


class JoinedWindows:
    """Joined rows in windows over a position of theirs."""

    def __init__(
        self,
        plan: JoinQueryPlan,
        aggregation: Aggregation,
        run: Run,
        aggregates: Sequence[UserAggregate],
    ) -> None:
        self._plan, self._by = plan, aggregation.by
        terms = Run(
            max_ahead=None, bounded=run.bounded, why=run.why, flush=run.flush,
            store=run.store, max_answers=run.max_answers,
        )  # fmt: skip
        self._query = OpenQuery(aggregation.query, terms, aggregates=aggregates)

    def take(self, joined: pa.Table, stage: JoinStage) -> pa.Table:
        """Take in joined rows; gives the answers that are final by what the join promises now."""
        found = self._query.push(**{PAIRS: self._placed(joined)})
        assert self._by != "positions"
        progress = stage.progress_above(self._by)
        if progress > -LIMIT:
            closed = self._query.punctuate(pairs=min(progress, LIMIT - 1))
            found = pa.concat_tables([found, closed])
        return self._named(found)

    def finish(self, joined: pa.Table) -> pa.Table:
        """Take in the last joined rows; gives all answers that are left."""
        found = self._query.push(**{PAIRS: self._placed(joined)})
        return self._named(pa.concat_tables([found, self._query.finish()]))

    def early(self) -> pa.Table:
        """The windows that are still open, as they are now."""
        return self._named(self._query.early())

    @property
    def stored(self) -> dict[str, int]:
        """How much is stored above the join."""
        return {name: self._query.state[name] for name in ("keys", "partials", "bytes")}

    def _placed(self, joined: pa.Table) -> pa.Table:
        """Joined rows with the column that they are windowed by."""
        if self._by in ("left", "right"):
            return joined
        return joined.append_column(AT, _position(self._plan, joined, self._by))

    def _named(self, answers: pa.Table) -> pa.Table:
        """Answers with the edges of their windows in place of the numbers of these."""
        if self._by != "window":
            return answers
        spec = self._plan.join.windows
        assert spec is not None
        wid = column_of(answers, WINDOW_COLUMNS[0]).to_numpy()
        edges = _edges(self._plan, spec, wid)
        return pa.table([*edges, *answers.columns[2:]], names=answers.column_names)


class PositionGroups:
    """Joined rows in groups by the positions of one side or both, without windows."""

    def __init__(
        self, plan: JoinQueryPlan, aggregation: Aggregation, aggregates: Sequence[UserAggregate]
    ) -> None:
        self._plan, self._aggregation, self._aggregates = plan, aggregation, aggregates
        self._waiting: pa.Table | None = None

    def take(self, joined: pa.Table, stage: JoinStage) -> pa.Table:
        """Take in joined rows; gives the groups that no joined row can come into any more."""
        rows = joined if self._waiting is None else pa.concat_tables([self._waiting, joined])
        complete = self._complete(rows, stage)
        self._waiting = rows.filter(pa.array(~complete)).combine_chunks()
        return self._grouped(rows.filter(pa.array(complete)))

    def finish(self, joined: pa.Table) -> pa.Table:
        """Take in the last joined rows; gives all groups that are left."""
        rows = joined if self._waiting is None else pa.concat_tables([self._waiting, joined])
        self._waiting = None
        return self._grouped(rows)

    def early(self) -> pa.Table:
        """All groups that are not complete, as they are now."""
        joined = self._plan.joined_schema().empty_table()
        return self._grouped(joined if self._waiting is None else self._waiting)

    @property
    def stored(self) -> dict[str, int]:
        """How much is stored above the join: rows of groups that are not complete."""
        waiting = self._waiting
        return {
            "keys": 0,
            "partials": 0 if waiting is None else len(waiting),
            "bytes": 0 if waiting is None else waiting.nbytes,
        }

    def _complete(self, rows: pa.Table, stage: JoinStage) -> NDArray[np.bool_]:
        by_left, by_right = self._aggregation.grouped
        join = self._plan.join
        left, has_left = self._positions(rows, join.left_at)
        right, has_right = self._positions(rows, join.right_at)
        complete = np.zeros(len(rows), dtype=np.bool_)
        if by_left:
            complete |= has_left & (left < stage.progress("left"))
        if by_right:
            complete |= has_right & (right < stage.progress("right"))
        if by_left and by_right:
            complete |= has_left & has_right & joint(stage.promised, left, right)
        return complete

    def _positions(self, rows: pa.Table, name: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The positions of one side, and which rows have one."""
        if name not in rows.column_names:
            return np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.bool_)
        at, missing = self._plan.join.axis.ticks(column_of(rows, name))
        return at, np.ones(len(rows), dtype=np.bool_) if missing is None else ~missing

    def _grouped(self, rows: pa.Table) -> pa.Table:
        """Aggregates of whole groups: windows play no part, so all rows lie in one."""
        once = rows.append_column(AT, pa.array(np.zeros(len(rows), dtype=np.int64)))
        query = OpenQuery(
            self._aggregation.query, Run(bounded=True, max_ahead=None), aggregates=self._aggregates
        )
        query.push(**{PAIRS: once})
        return query.finish().drop_columns(list(WINDOW_COLUMNS))


def _position(plan: JoinQueryPlan, joined: pa.Table, by: str) -> pa.Array:
    if by == "window":
        return column_of(joined, WID)
    kind = plan.join.axis.type
    names = (plan.join.left_at, plan.join.right_at)
    sides = [column_of(joined, name).cast(kind).cast(pa.int64()) for name in names]
    element_wise = pc.max_element_wise if by == "max" else pc.min_element_wise
    return element_wise(*sides).cast(kind)


def _edges(plan: JoinQueryPlan, spec: PanedSpec, wid: NDArray[np.int64]) -> list[pa.Array]:
    """Where windows start and end, as a user sees it; a landmark window has no start."""
    starts, ends = edges_of(spec, wid)
    axis = plan.join.axis
    first = pa.nulls(len(wid), axis.type) if starts is None else axis.label(starts)
    return [first, axis.label(ends)]


def with_edges(plan: JoinQueryPlan, joined: pa.Table) -> pa.Table:
    """Joined rows that begin with the edges of their window, in place of its number."""
    spec = plan.join.windows
    if spec is None:
        return joined
    wid = column_of(joined, WID).to_numpy()
    rest = joined.drop_columns([WID])
    names = [*WINDOW_COLUMNS, *rest.column_names]
    return pa.table([*_edges(plan, spec, wid), *rest.columns], names=names)
