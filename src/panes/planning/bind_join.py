"""From the text of a join and the columns of its streams to its plan.

Every condition of ON, and of WHERE where it may, becomes one of four things: part of the band, a
pair of keys, a filter of one side, or the rest, which is asked of pairs. Sides deliver the columns
that anything above needs, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa
from sqlglot import exp

from panes.axis import Axis, axis_over
from panes.errors import ColumnTypeError, QueryError
from panes.expressions.projection import Projection
from panes.language.clause import Parts, written
from panes.language.join_query import Join, Side, Source
from panes.language.query import Query, Window
from panes.planning.band import COMPARISONS, Positions, compared, find_band, require_intervals
from panes.planning.join_clauses import band, clauses, partners, two_meanings, window_of_both
from panes.planning.join_keys import Pair, key_pair, keys_of
from panes.planning.join_plan import JoinPlan, SidePlan, SourcePlan
from panes.planning.joined_columns import (
    JoinedColumns,
    all_of,
    column,
    conjuncts,
    joined_name,
    of_side,
)
from panes.planning.plan import plan
from panes.planning.using import joined_columns, using_sides
from panes.planning.utc_days import tell_of_days
from panes.windows.partners import CommonWindows
from panes.windows.spec import Sliding

Measure: TypeAlias = Literal["time", "integer"]
_EVERY_POSITION = Sliding(size=1, slide=1)
Needs: TypeAlias = Callable[[JoinedColumns], Sequence[exp.Expression]]


@dataclass(frozen=True, slots=True)
class Joined:
    """A bound join, the names its columns go by, and what WHERE asks after joining."""

    plan: JoinPlan
    columns: JoinedColumns
    after: exp.Expression | None


def plan_join(
    join: Join,
    sides: Sequence[pa.Schema],
    where: exp.Expression | None,
    needs: Needs,
    *,
    is_aggregated: bool,
    is_shared: bool = False,
) -> Joined:
    """Bind a join to the schemas of its sides, from left to right.

    `needs` tells, given the joined columns, which expressions are over the result. `sides` have the
    columns of the streams after what FROM makes of each. A join that `is_shared` by several queries
    gives all columns up, and what WHERE asks of one side alone is asked of joined rows. Where
    rows are aggregated, messages tell of windows above the join.
    """
    bound = _Binding(joined_columns(join, sides), is_aggregated=is_aggregated)
    given = bound.columns.given_by(join)
    asked = [given.qualified(c) for c in conjuncts(where)]
    wanted = {c.name for tree in needs(given) for c in tree.find_all(exp.Column)}
    filters, after = bound.pushed_down(join, asked, is_shared=is_shared)
    if is_shared:
        wanted |= set(bound.columns.schema().names)
    wanted |= {c.name for tree in after for c in tree.find_all(exp.Column)}
    planned = bound.planned(join, filters, wanted)
    return Joined(planned, given, all_of(after))


class _Binding:
    """The sides of a join while it is bound."""

    def __init__(self, columns: JoinedColumns, *, is_aggregated: bool) -> None:
        self.columns, self._is_aggregated = columns, is_aggregated
        self._types = {f.name: f.type for f in columns.schema()}

    def pushed_down(
        self, join: Join, asked: Sequence[exp.Expression], *, is_shared: bool
    ) -> tuple[list[exp.Expression], list[exp.Expression]]:
        """The conditions of WHERE on the pairs of an inner join, and those on joined rows."""
        if is_shared and join.how == "inner" and not join.as_of:
            mine = [c for c in asked if len(self.columns.sides_of(c)) > 1]
            return mine, [c for c in asked if not any(c is m for m in mine)]
        if join.how == "inner" and not join.as_of and not isinstance(join.left, Join):
            mine = [c for c in asked if c.find(exp.Column) is None or self.columns.sides_of(c)]
            return mine, [c for c in asked if not any(c is m for m in mine)]
        if join.how == "inner" and not join.as_of:
            return list(asked), []
        return [], list(asked)

    def planned(self, join: Join, filters: Sequence[exp.Expression], wanted: set[str]) -> JoinPlan:
        """The join of these sides, which also asks `filters`, and gives `wanted` columns up."""
        right_side = len(join.sources) - 1
        read = self.columns.given_by(join.left)
        mine = [read.qualified(c) for c in conjuncts(join.condition)]
        mine += [c for name in join.using for c in [self._equal(join, name)]]
        mine += filters
        below = [c for c in mine if right_side not in self.columns.sides_of(c)]
        if isinstance(join.left, Join) and join.left.how == "inner" and join.how == "inner":
            deeper = [c for c in below if self.columns.sides_of(c)]
            mine = [c for c in mine if not any(c is d for d in deeper)]
        else:
            deeper = []
        positions, conditions = self._positions(join, mine, right_side)
        left_only, right_only, pairs, rest = self._sorted(join, conditions, right_side)
        needed = wanted | {positions.left, positions.right}
        for tree in (*left_only, *right_only, *rest, *(e for pair in pairs for e in pair)):
            needed |= {c.name for c in tree.find_all(exp.Column)}
        if join.as_of:  # which of several rows at one position is the last depends on all columns
            needed |= {
                joined_name(join.right.name, n) for n in self.columns.schemas[right_side].names
            }
        left = self._left(join.left, positions.left, left_only, deeper, needed)
        right = self._source(join.right, right_side, positions.right, right_only, needed)
        keys, types, unlike = keys_of(self.columns, pairs)
        axis, near = self._axis(join, positions), partners(join, positions)
        if isinstance(near, CommonWindows):
            tell_of_days(near.spec, axis)
        rest += unlike
        goes_up = [*left.schema().names] + ([] if join.how in ("semi", "anti")
                                            else [*right.schema().names])  # fmt: skip
        return JoinPlan(
            left=left,
            right=right,
            how=join.how,
            as_of=join.as_of,
            partners=near,
            left_at=positions.left,
            right_at=positions.right,
            axis=axis,
            left_keys=Projection(tuple(k for k, _ in keys), None),
            right_keys=Projection(tuple(k for _, k in keys), None),
            key_types=types,
            rest=None if not rest else Projection((), all_of(rest)),
            columns=tuple(n for n in goes_up if n in wanted),
        )

    def _positions(
        self, join: Join, conditions: list[exp.Expression], right: int
    ) -> tuple[Positions, list[exp.Expression]]:
        """The columns that give positions, the band if there is one, and the other conditions."""
        named = clauses(join)
        if named is None:
            found, rest = find_band(
                conditions, self._types, lambda name: self._side_of_joined(name) != right
            )
            if found is None:
                raise self._without_band(join, conditions, right)
            if join.as_of and found.band.high > 0:
                raise QueryError(
                    "an ASOF JOIN finds the last row at or before, and ON asks for one after",
                    hint=f"{found.right} <= {found.left}, or r [RANGE 5 minutes WATTR ts]",
                )
            return found, rest
        first, second = named
        self._require_one_meaning(join, conditions, right)
        is_of_both = first is second
        left = self._position(first, list(range(right)), join, is_of_both=is_of_both)
        other = self._position(second, [right], join, is_of_both=is_of_both)
        return Positions(left, other, band(join)), conditions

    def _require_one_meaning(
        self, join: Join, conditions: Sequence[exp.Expression], right: int
    ) -> None:
        """Refuse windows on one side's column behind an ON that bounds how far apart rows are.

        They could be windows that hold both rows, or windows that joined rows are aggregated in.
        """
        clause = window_of_both(join)
        if clause is None or clause.taken is not None or not clause.paths:
            return
        path = clause.paths[0]
        holders = [s for s in range(right + 1) if self.columns.has(s, path[-1])]
        named = self.columns.side_of(path[0]) if len(path) > 1 else None
        both_have_it = right in holders and len(holders) > 1
        if not holders or (named is None and both_have_it):
            return
        side = holders[0] if named is None else named
        name = self.columns.column(side, path[-1])
        bounded = compared(conditions, self._types, lambda c: self._side_of_joined(c) != right)
        if any(name in pair for pair in bounded):
            called = self.columns.names[side][0]
            own = name.removeprefix(joined_name(called, ""))
            raise two_meanings(
                clause, called, own, both_have_it=both_have_it, is_aggregated=self._is_aggregated
            )

    def _without_band(
        self, join: Join, conditions: Sequence[exp.Expression], right: int
    ) -> QueryError:
        """Nothing bounds the distance of joined rows: why, as far as that can be told."""
        l, r = join.left.name, join.right.name
        for condition in conditions:
            sides = self.columns.sides_of(condition)
            is_bound = isinstance(condition, COMPARISONS) and not isinstance(condition, exp.EQ)
            require_intervals(condition)
            if is_bound and right in sides and len(sides) > 1:
                names = dict.fromkeys(c.name for c in condition.find_all(exp.Column))
                types = " and ".join(f"`{n}` is {self._types[n]}" for n in names)
                written = condition.sql(dialect="spark").replace("`", "")
                return QueryError(
                    f"`{written}` does not say how far apart joined rows may be: {types}",
                    hint="compare timestamps with timestamps, both with a time zone or both "
                    "without, or integers with integers, at a distance of fixed length: "
                    f"{r}.ts <= {l}.ts + INTERVAL 5 SECONDS",
                )
        hint = (
            f"add AND {r}.ts BETWEEN {l}.ts - INTERVAL 5 SECONDS AND {l}.ts, or a window: "
            f"{l} [RANGE 5 seconds WATTR ts], {r} [RANGE 5 seconds WATTR ts]"
        )
        if join.as_of:
            hint = f"ASOF JOIN {r} [RANGE 5 seconds WATTR ts] ON ..."
        elif len(self.columns.names) > 2:
            hint = (
                "of three streams, each join has its own: FROM l JOIN r ON ... [TUMBLING 5 minutes "
                "WATTR ts] JOIN m ON ... [TUMBLING 5 minutes WATTR ts]"
            )
        return QueryError(
            f"nothing says how far apart rows of {l} and {r} may be",
            hint=hint,
        )

    def _axis(self, join: Join, positions: Positions) -> Axis:
        """The axis of both sides, which must be the same."""
        axes = [
            axis_over(name, self._types[name], stream=name.rpartition(".")[0])
            for name in (positions.left, positions.right)
        ]
        zones = [bool(getattr(a.type, "tz", None)) for a in axes]
        if axes[0].kind != axes[1].kind or zones[0] != zones[1]:
            types = [self._types[n] for n in (positions.left, positions.right)]
            raise ColumnTypeError(
                f"`{positions.left}` is {types[0]} and `{positions.right}` is {types[1]}: "
                "their rows do not lie on one axis",
                hint="cast one of them in a SELECT inside FROM",
            )
        for clause in clauses(join) or ():
            units = {length.unit for length in (clause.size, clause.slide) if length is not None}
            if units and units != {_measure(axes[0])}:
                raise QueryError(
                    f"`{positions.left}` is {self._types[positions.left]}, so RANGE and SLIDE "
                    + ("need a unit of time" if axes[0].kind == "time" else "are plain numbers")
                )
        return axes[0]

    def _position(self, clause: Parts, sides: list[int], join: Join, *, is_of_both: bool) -> str:
        """The column that a clause names, of one of some sides.

        One that is meant for both sides may name the column of either: the other has one so called.
        """
        if clause.taken is not None or not clause.paths:
            raise QueryError(
                "the window of a join names the column it lies on",
                hint="add WATTR ts"
                if clause.taken is None
                else "WATTR ts; for windows of joined rows, write it behind the SELECT list",
            )
        path = clause.paths[0]
        if len(path) > 1 and (side := self.columns.side_of(path[0])) is not None:
            if side in sides:
                return self.columns.column(side, path[1])
            if not is_of_both:
                raise QueryError(f"`{'.'.join(path)}` is not a column of this side of the join")
        of_row = [s for s in sides if s == len(join.sources) - 1 or s in _lying(join.left)]
        holder = next((s for s in reversed(of_row) if self.columns.has(s, path[-1])), None)
        if holder is None and is_of_both and window_of_both(join) is None:
            self._require_column_of_each(clause, path[-1], sides[0], len(join.sources))
        return self.columns.column(sides[0] if holder is None else holder, path[-1])

    def _require_column_of_each(self, clause: Parts, name: str, lacking: int, sides: int) -> None:
        """Say how to write a clause for each side, where one of them lacks the column of both."""
        having = next((s for s in range(sides) if self.columns.has(s, name)), None)
        if having is None:
            return
        columns = {having: name, lacking: "ts"}
        each = (
            f"{self.columns.names[s][0]} {written(clause, columns[s])}" for s in sorted(columns)
        )
        raise QueryError(
            f"`{name}` is to order the rows of both sides of the join, and "
            f"`{self.columns.names[lacking][0]}` has no such column",
            hint=f"name the column of each: {' ... '.join(each)}",
        )

    def _sorted(
        self, join: Join, conditions: Sequence[exp.Expression], right: int
    ) -> tuple[
        list[exp.Expression],
        list[exp.Expression],
        list[Pair],
        list[exp.Expression],
    ]:
        """Filters of the left, filters of the right, pairs of keys, and the rest.

        A condition on one side may be asked before joining unless rows of that side are given
        even without a partner.
        """
        left_first = join.how in ("inner", "right", "semi") and isinstance(join.left, Source)
        right_first = join.how in ("inner", "left", "semi", "anti")
        of_left: list[exp.Expression] = []
        of_right: list[exp.Expression] = []
        pairs: list[Pair] = []
        rest: list[exp.Expression] = []
        for condition in conditions:
            sides = self.columns.sides_of(condition)
            if sides and right not in sides and left_first:
                of_left.append(condition)
            elif sides == {right} and right_first:
                of_right.append(condition)
            elif (pair := key_pair(self.columns, condition, right)) is not None:
                pairs.append(pair)
            else:
                rest.append(condition)
        return of_left, of_right, pairs, rest

    def _left(
        self,
        side: Side,
        at: str,
        filters: Sequence[exp.Expression],
        deeper: Sequence[exp.Expression],
        needed: set[str],
    ) -> SidePlan:
        if isinstance(side, Source):
            return self._source(side, 0, at, [*filters, *deeper], needed)
        return self.planned(side, deeper, needed)

    def _source(
        self,
        source: Source,
        side: int,
        at: str,
        filters: Sequence[exp.Expression],
        needed: set[str],
    ) -> SourcePlan:
        schema = self.columns.schemas[side]
        mine = [n for n in schema.names if joined_name(source.name, n) in needed]
        position = at.removeprefix(joined_name(source.name, ""))
        own = [of_side(f, source.name) for f in filters]
        axis = axis_over(position, schema.field(position).type, stream=source.name)
        asked = Query(
            text="",
            streams=source.streams,
            window=Window(_EVERY_POSITION, _measure(axis), position),
            where=all_of(own),
            keys=(),
            key_order=(),
            calls=(),
            outputs=(),
            having=None,
            defining=tuple(column(n) for n in mine),
            inner=source.inner,
        )
        planned = plan(asked, dict.fromkeys(source.streams, schema))
        return SourcePlan(source, planned, tuple(joined_name(source.name, n) for n in mine), at)

    def _equal(self, join: Join, name: str) -> exp.Expression:
        """The equality that USING means for one column."""
        one, other = using_sides(join, self.columns, name)
        return exp.EQ(this=one, expression=other)

    def _side_of_joined(self, name: str) -> int | None:
        found = self.columns.sides_of(column(name))
        return next(iter(found), None)


def _lying(side: Side) -> range:
    """The sides that say where a row lies: a row that finds its last partner lies where it lay."""
    if isinstance(side, Join) and side.as_of:
        return _lying(side.left)
    return range(len(side.sources))


def _measure(axis: Axis) -> Measure:
    return "time" if axis.kind == "time" else "integer"
