"""The oracle of joins: every row with every row, and the definition asked of each pair.

Conditions are evaluated whole, as the query has them: nothing is taken out of them as a band, a key
or a filter. Windows are asked one by one whether they hold both rows. What happens to rows without
a partner is said once, in the words of SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from sqlglot import exp

from panes.aggregates.custom import UserAggregate
from panes.expressions.projection import Projection
from panes.language.join_query import Join, JoinQuery, Side, Source
from panes.language.query import WINDOW_COLUMNS, Query
from panes.planning.join_plan import JoinPlan, SourcePlan
from panes.planning.join_query_plan import AT, PAIRS, JoinQueryPlan, plan_join_query
from panes.planning.joined_columns import JoinedColumns, joined_name
from panes.planning.using import joined_columns, side_schema, using_sides
from panes.reference.derived import derived
from panes.reference.folds import order
from panes.windows.extent import extent, windows
from panes.windows.partners import Band
from panes.windows.spec import PanedSpec

WindowAnswers: TypeAlias = Callable[
    [Query, Mapping[str, pa.Table], Sequence[UserAggregate]], pa.Table
]
Row: TypeAlias = "tuple[int | None, int | None, int | None]"


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a side: their columns under joined names."""

    table: pa.Table

    def at(self, plan: JoinPlan, name: str) -> list[int | None]:
        """Where the rows lie; None for those that have no position."""
        ticks, missing = plan.axis.ticks(self.table.column(name).combine_chunks())
        return [None if missing is not None and missing[i] else int(t)
                for i, t in enumerate(ticks)]  # fmt: skip


def join_answers(
    query: JoinQuery,
    tables: Mapping[str, pa.Table],
    aggregates: Sequence[UserAggregate],
    answer: WindowAnswers,
) -> pa.Table:
    """The answer to a query over a join of bounded tables; `answer` aggregates joined rows."""
    sides = [_source(source, tables) for source in query.join.sources]
    plan = plan_join_query(query, [side.schema for side in sides], aggregates)
    columns = joined_columns(query.join, [side.schema for side in sides])
    named = [
        side.rename_columns([joined_name(source.name, n) for n in side.column_names])
        for source, side in zip(query.join.sources, sides, strict=True)
    ]
    joined = _joined(query.join, plan.join, named, columns)
    where = query.select.args.get("where")
    if where is not None:
        passing, _ = Projection((), columns.given_by(query.join).qualified(where.this))(joined)
        joined = joined.take(pa.array(passing))
    if plan.aggregation is None:
        _, values = Projection(plan.answers.expressions, None)(joined)
        edges = [joined.column(n) for n in WINDOW_COLUMNS] if plan.names_windows else []
        return pa.table([*edges, *values], schema=plan.schema())
    return _aggregated(plan, joined, aggregates, answer)


def _joined(
    join: Join, plan: JoinPlan, sides: Sequence[pa.Table], columns: JoinedColumns
) -> pa.Table:
    """All joined rows of some sides, from left to right, with all columns of all."""
    mine = _left(join.left, plan.left, sides[:-1], columns)
    # A joined row without a position has no partner; a row of a stream without one is no row.
    keeps_all = isinstance(join.left, Join) and plan.windows is None
    left = _Rows(mine) if keeps_all else _placed(mine, plan, plan.left_at)
    right = _placed(sides[-1], plan, plan.right_at)
    pairs = _pairs(join, plan, left, right, columns)
    spec = plan.windows
    if plan.as_of:
        rows = _as_of(pairs, left, right, plan)
    elif spec is None:
        lefts = [(i, None) for i in range(len(left.table))]
        rights = [(j, None) for j in range(len(right.table))]
        rows = _by_kind(plan.how, [(i, j, None) for i, j in pairs], lefts, rights)
    else:
        rows = _in_windows(plan, spec, pairs, left, right)
    return _table(plan, spec, rows, left, right)


def _pairs(
    join: Join, plan: JoinPlan, left: _Rows, right: _Rows, columns: JoinedColumns
) -> list[tuple[int, int]]:
    """The pairs for which ON and USING hold, and the band of the window clauses if there is one."""
    n, m = len(left.table), len(right.table)
    i, j = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
    cross = pa.table(
        [*left.table.take(pa.array(i)).columns, *right.table.take(pa.array(j)).columns],
        names=[*left.table.column_names, *right.table.column_names],
    )
    holds = np.ones(len(cross), dtype=np.bool_)
    read = columns.given_by(join.left)
    conditions = [] if join.condition is None else [read.qualified(join.condition)]
    conditions += [_using(name, join, columns) for name in join.using]
    for condition in conditions:
        passing, _ = Projection((), condition)(cross)
        mask = np.zeros(len(cross), dtype=np.bool_)
        mask[passing] = True
        holds &= mask
    found = list(zip(i[holds].tolist(), j[holds].tolist(), strict=True))
    if not isinstance(plan.partners, Band) or not _has_clause(join):
        return found
    low, high = plan.partners.low, plan.partners.high
    mine, other = left.at(plan, plan.left_at), right.at(plan, plan.right_at)
    return [(a, b) for a, b in found if _is_between(low, mine[a], other[b], high)]


def _in_windows(
    plan: JoinPlan,
    spec: PanedSpec,
    pairs: Sequence[tuple[int, int]],
    left: _Rows,
    right: _Rows,
) -> list[Row]:
    """The join of what each window holds, window by window."""
    mine, other = left.at(plan, plan.left_at), right.at(plan, plan.right_at)
    rows: list[Row] = []
    for wid in windows(spec, [at for at in (*mine, *other) if at is not None]):
        start, end = extent(spec, wid)
        inside = [i for i, at in enumerate(mine) if at is not None and start <= at < end]
        outside = [j for j, at in enumerate(other) if at is not None and start <= at < end]
        held = [(i, j, wid) for i, j in pairs if i in set(inside) and j in set(outside)]
        rows += _by_kind(plan.how, held, [(i, wid) for i in inside], [(j, wid) for j in outside])
    return rows


def _by_kind(
    how: str,
    pairs: Sequence[tuple[int, int, int | None]],
    left: Sequence[tuple[int, int | None]],
    right: Sequence[tuple[int, int | None]],
) -> list[Row]:
    """What a kind of join gives, of all pairs and all rows."""
    with_partner = {i for i, _, _ in pairs}
    other_with_partner = {j for _, j, _ in pairs}
    if how == "semi":
        return [(i, None, w) for i, w in left if i in with_partner]
    lone = [(i, None, w) for i, w in left if i not in with_partner]
    if how == "anti":
        return list(lone)
    rows: list[Row] = list(pairs)
    if how in ("left", "full"):
        rows += lone
    if how in ("right", "full"):
        rows += [(None, j, w) for j, w in right if j not in other_with_partner]
    return rows


def _as_of(
    pairs: Sequence[tuple[int, int]], left: _Rows, right: _Rows, plan: JoinPlan
) -> list[Row]:
    """Each row with the last of its candidates, the greatest of several at one position."""
    at = right.at(plan, plan.right_at)
    values = [tuple(map(order, row.values())) for row in right.table.to_pylist()]
    rows: list[Row] = []
    for i in range(len(left.table)):
        candidates = [j for a, j in pairs if a == i]
        if candidates:
            rows.append((i, max(candidates, key=lambda j: (at[j] or 0, values[j])), None))
        elif plan.how == "left":
            rows.append((i, None, None))
    return rows


def _table(
    plan: JoinPlan, spec: PanedSpec | None, rows: Sequence[Row], left: _Rows, right: _Rows
) -> pa.Table:
    mine = left.table.take(pa.array([i for i, _, _ in rows], pa.int64()))
    mine = mine.drop_columns([n for n in WINDOW_COLUMNS if n in mine.column_names])
    columns, names = list(mine.columns), list(mine.column_names)
    if plan.gives_right:
        other = right.table.take(pa.array([j for _, j, _ in rows], pa.int64()))
        columns, names = [*columns, *other.columns], [*names, *other.column_names]
    if spec is not None:
        found = [extent(spec, w) for _, _, w in rows if w is not None]
        landmark = not hasattr(spec, "size")
        starts = [None if landmark else e.start for e in found]
        edges = [pa.array(side, pa.int64()).cast(plan.axis.type)
                 for side in (starts, [e.end for e in found])]  # fmt: skip
        columns, names = [*edges, *columns], [*WINDOW_COLUMNS, *names]
    return pa.table(columns, names=names)


def _aggregated(
    plan: JoinQueryPlan,
    joined: pa.Table,
    aggregates: Sequence[UserAggregate],
    answer: WindowAnswers,
) -> pa.Table:
    """Joined rows as the rows of one stream."""
    found = plan.aggregation
    assert found is not None
    if found.by in ("left", "right"):
        return answer(found.query, {PAIRS: joined}, aggregates)
    if found.by == "positions":
        once = joined.append_column(AT, pa.array([0] * len(joined), pa.int64()))
        return answer(found.query, {PAIRS: once}, aggregates).drop_columns(list(WINDOW_COLUMNS))
    if found.by == "window":
        ends = joined.column(WINDOW_COLUMNS[1]).cast(pa.int64()).to_pylist()
        starts = joined.column(WINDOW_COLUMNS[0]).to_pylist()
        edges = dict(zip(ends, starts, strict=True))
        rest = joined.drop_columns(list(WINDOW_COLUMNS))
        found_answers = answer(
            found.query, {PAIRS: rest.append_column(AT, pa.array(ends, pa.int64()))}, aggregates
        )
        numbers = found_answers.column(WINDOW_COLUMNS[0]).to_pylist()
        kind = plan.join.axis.type
        columns = [pa.array([edges[n] for n in numbers], kind),
                   pa.array(numbers, pa.int64()).cast(kind)]  # fmt: skip
        names = found_answers.column_names
        return pa.table([*columns, *found_answers.columns[2:]], names=names)
    pick = max if found.by == "max" else min
    sides = [_Rows(joined).at(plan.join, n) for n in (plan.join.left_at, plan.join.right_at)]
    at = [pick((v for v in pair if v is not None), default=None)
          for pair in zip(*sides, strict=True)]  # fmt: skip
    placed = joined.append_column(AT, pa.array(at, pa.int64()).view(plan.join.axis.type))
    return answer(found.query, {PAIRS: placed}, aggregates)


def _left(
    side: Side, plan: SourcePlan | JoinPlan, sides: Sequence[pa.Table], columns: JoinedColumns
) -> pa.Table:
    if isinstance(side, Join):
        assert isinstance(plan, JoinPlan)
        return _joined(side, plan, sides, columns)
    return sides[0]


def _source(source: Source, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The rows of all streams of a side, as FROM makes them."""
    made = [derived(inner, name, tables[name])
            for name, inner in zip(source.streams, source.inner, strict=True)]  # fmt: skip
    shared = side_schema(source, [table.schema for table in made]).names
    return pa.concat_tables([table.select(shared) for table in made])


def _placed(table: pa.Table, plan: JoinPlan, at: str) -> _Rows:
    """The rows that have a position."""
    _, missing = plan.axis.ticks(table.column(at).combine_chunks())
    return _Rows(table if missing is None else table.filter(pa.array(~missing)))


def _using(name: str, join: Join, columns: JoinedColumns) -> exp.Expression:
    one, other = using_sides(join, columns, name)
    return exp.EQ(this=one, expression=other)


def _has_clause(join: Join) -> bool:
    return join.clause is not None or any(s.clause is not None for s in join.sources)


def _is_between(low: int, left: int | None, right: int | None, high: int) -> bool:
    return left is not None and right is not None and low <= right - left <= high
