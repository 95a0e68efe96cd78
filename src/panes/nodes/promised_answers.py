"""What a query promises of its answers: from where on those lie that are yet to come, by column.

Answers leave a query in the order of their windows, so when a window has been closed nothing will
be said of it or of an earlier one. That is a promise, as punctuation is: whoever reads answers as
rows closes windows by it. A column that no promise moves with is not named here.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from panes.arrays.columns import column_of
from panes.axis import BEGINNING, DAY, LIMIT
from panes.language.query import WINDOW_COLUMNS, WINDOW_TIME, Query
from panes.nodes.join_stage import Above, JoinStage
from panes.nodes.promised_columns import column_within, promising_columns
from panes.planning.join_query_plan import JoinQueryPlan
from panes.windows.extent import extent
from panes.windows.spec import Landmark, Sliding, Spec

WINDOW_START, WINDOW_END = WINDOW_COLUMNS


def promised_by_windows(query: Query, next_end: int) -> dict[str, int]:
    """What a window query promises, of whose windows none that ends before will be answered."""
    return {} if next_end == BEGINNING else _of_windows(query, next_end)


def _of_windows(query: Query, next_end: int) -> dict[str, int]:
    window, named = query.window, promising_columns(query)
    if window is None or not named:
        return {}
    if isinstance(window.spec, Sliding | Landmark):
        return _of_edges(window.spec, next_end)
    return dict.fromkeys(named, next_end - 1)


def _of_edges(spec: Spec, next_end: int) -> dict[str, int]:
    found = {WINDOW_TIME: next_end - 1, WINDOW_END: next_end}
    return found | ({WINDOW_START: next_end - spec.size} if isinstance(spec, Sliding) else {})


def promised_by_join(plan: JoinQueryPlan, stage: JoinStage, next_end: int | None) -> dict[str, int]:
    """What a query over a join promises; `next_end` is that of the windows above it, if any."""
    above = plan.aggregation
    has_windows = above is not None and above.fold is None and above.by != "positions"
    if has_windows and next_end is not None:
        return promised_above(plan, next_end)
    if plan.names_windows:
        return _of_common_windows(plan, stage.progress_above("window"))
    named: dict[str, int] = {}
    sides: tuple[Above, Above] = ("left", "right")
    for by, at in zip(sides, (plan.join.left_at, plan.join.right_at), strict=True):
        progress = stage.progress_above(by)
        if abs(progress) < LIMIT:
            named |= dict.fromkeys(_selected_as(plan, at), progress)
    return named


def promised_above(plan: JoinQueryPlan, next_end: int) -> dict[str, int]:
    """What windows above a join promise; nothing where its groups are by positions."""
    above = plan.aggregation
    if above is None or above.by == "positions" or next_end == BEGINNING:
        return {}
    if above.by == "window":
        return _of_common_windows(plan, next_end - 1)
    return promised_by_windows(above.query, next_end)


def promising_columns_of_join(plan: JoinQueryPlan) -> frozenset[str]:
    """The columns of the answers of a query over a join that shards of it promise something of.

    Groups by positions are complete one by one, of which no column of the answers tells.
    """
    above = plan.aggregation
    if above is not None and above.by != "window":
        return frozenset() if above.by == "positions" else promising_columns(above.query)
    if plan.join.windows is not None:
        return frozenset(_of_edges(plan.join.windows, 0))
    sides = (plan.join.left_at, plan.join.right_at)
    return frozenset(name for at in sides for name in _selected_as(plan, at))


def _of_common_windows(plan: JoinQueryPlan, wid: int) -> dict[str, int]:
    """What is promised if no window before one of the join's own will be answered."""
    spec = plan.join.windows
    assert spec is not None
    return {} if abs(wid) >= LIMIT else _of_edges(spec, extent(spec, wid).end)


def _selected_as(plan: JoinQueryPlan, at: str) -> list[str]:
    """The names of the columns of answers that are nothing but a position of a side."""
    items = list(zip(plan.names, plan.answers.expressions, strict=True))
    if plan.aggregation is not None:
        items = [(key.name, key.expression) for key in plan.aggregation.query.keys]
    return [
        name.lower() for name, tree in items if isinstance(tree, exp.Column) and tree.name == at
    ]


def as_rows(answers: pa.Table) -> pa.Table:
    """Answers as others read them: with the last instant of their window, if they name one."""
    if WINDOW_END not in answers.column_names:
        return answers
    ends = column_of(answers, WINDOW_END)
    return answers.append_column(WINDOW_TIME, last_instants(ends))


def last_instants(ends: pa.Array) -> pa.Array:
    """The positions one tick before the ends of windows."""
    ticks = ends.view(pa.int64()).to_numpy(zero_copy_only=False)
    return pa.array(ticks - 1).view(ends.type)


def at_least(at: int, data_type: pa.DataType) -> pa.Array:
    """The first value of a column of positions at or after a position; NULL if it has none.

    >>> at_least(1, pa.date32()).to_pylist(), at_least(-300, pa.int8()).to_pylist()
    ([datetime.date(1970, 1, 2)], [None])
    """
    ticks = pa.array([-(-at // DAY) if pa.types.is_date32(data_type) else at], pa.int64())
    if pa.types.is_timestamp(data_type):
        return ticks.view(pa.timestamp("us", data_type.tz)).cast(data_type)
    try:
        return ticks.cast(pa.int32() if pa.types.is_date32(data_type) else data_type).cast(
            data_type
        )
    except pa.ArrowInvalid:
        return pa.nulls(1, data_type)


def column_read(query: Query, stream: str) -> str | None:
    """The column of a stream that its rows are placed by; None: no column says it alone."""
    if query.window is None or query.window.column is None:
        return None
    return column_within(query.inner[query.streams.index(stream)], query.window.column)


def least(promised: Mapping[str, int], column: str | None) -> int:
    """What is promised of a column."""
    return BEGINNING if column is None else promised.get(column, BEGINNING)
