"""Joined rows as their query sees them: with the edges of their windows, placed, selected.

A joined row of a join by windows has the number of its window (`panes.nodes.join_stage`); a
user sees where the window starts and ends.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.arrays.columns import column_of
from panes.expressions.projection import Projection
from panes.join.progress import joint
from panes.language.query import WINDOW_COLUMNS
from panes.nodes.join_stage import WID, JoinStage
from panes.planning.join_query_plan import AT, Aggregation, JoinQueryPlan
from panes.windows.extent import edges_of
from panes.windows.spec import PanedSpec


def with_edges(plan: JoinQueryPlan, joined: pa.Table) -> pa.Table:
    """Joined rows that begin with the edges of their window, in place of its number."""
    spec = plan.join.windows
    if spec is None:
        return joined
    wid = column_of(joined, WID).to_numpy()
    rest = joined.drop_columns([WID])
    names = [*WINDOW_COLUMNS, *rest.column_names]
    return pa.table([*_edges(plan, spec, wid), *rest.columns], names=names)


def selected_rows(plan: JoinQueryPlan, joined: pa.Table) -> pa.Table:
    """What was selected of joined rows, of those that pass WHERE."""
    edged = with_edges(plan, joined)
    passing, columns = plan.answers(edged)
    edges = list(edged.columns[: 2 * plan.names_windows])
    if passing is not None:
        edges = [c.take(pa.array(passing)) for c in edges]
    return pa.table([*edges, *columns], schema=plan.schema())


def passing_rows(plan: JoinQueryPlan, joined: pa.Table) -> pa.Table:
    """The joined rows that pass WHERE, as they are."""
    passing, _ = Projection((), plan.answers.where)(with_edges(plan, joined))
    return joined if passing is None else joined.take(pa.array(passing))


def placed_rows(plan: JoinQueryPlan, by: str, joined: pa.Table) -> pa.Table:
    """Joined rows with the column that they are windowed by."""
    if by in ("left", "right"):
        return joined
    return joined.append_column(AT, _position(plan, joined, by))


def named_windows(plan: JoinQueryPlan, by: str, answers: pa.Table) -> pa.Table:
    """Answers with the edges of the join's windows, where their own are only numbers of these."""
    if by == "positions":
        return answers.drop_columns(list(WINDOW_COLUMNS))
    if by != "window":
        return answers
    spec = plan.join.windows
    assert spec is not None
    wid = column_of(answers, WINDOW_COLUMNS[0]).to_numpy()
    edges = _edges(plan, spec, wid)
    return pa.table([*edges, *answers.columns[2:]], names=answers.column_names)


def complete_groups(
    plan: JoinQueryPlan, aggregation: Aggregation, rows: pa.Table, stage: JoinStage
) -> tuple[pa.Table, pa.Table]:
    """Joined rows of groups by positions that no other row can come into any more, and the rest."""
    by_left, by_right = aggregation.grouped
    left, has_left = _positions(plan, rows, plan.join.left_at)
    right, has_right = _positions(plan, rows, plan.join.right_at)
    complete = np.zeros(len(rows), dtype=np.bool_)
    if by_left:
        complete |= has_left & (left < stage.progress("left"))
    if by_right:
        complete |= has_right & (right < stage.progress("right"))
    if by_left and by_right:
        complete |= has_left & has_right & joint(stage.promised, left, right)
    return rows.filter(pa.array(complete)), rows.filter(pa.array(~complete))


def _positions(
    plan: JoinQueryPlan, rows: pa.Table, name: str
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The positions of one side, and which rows have one."""
    if name not in rows.column_names:
        return np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.bool_)
    at, missing = plan.join.axis.ticks(column_of(rows, name))
    return at, np.ones(len(rows), dtype=np.bool_) if missing is None else ~missing


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
