"""One join of a plan while it runs: rows of both sides in, joined rows out.

A stage turns rows into arrivals (positions, keys, columns), steps the join, and gathers the columns
that go up. The left side may be another stage, whose joined rows are this one's rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.columns import column_of
from panes.arrays.gather import gather
from panes.axis import BEGINNING, FOREVER
from panes.errors import InputError
from panes.expressions.projection import Projection
from panes.join.as_of import AsOfJoin
from panes.join.key_codes import are_exact
from panes.join.oa_join import OAJoin
from panes.join.partner_runs import PartnerRunsJoin
from panes.join.progress import Of, individual
from panes.join.rule import Arrivals, Columns, JoinedRows, JoinRule, Numbers, Progress
from panes.join.sorted_rows import SortedRows
from panes.planning.join_plan import JoinPlan, SidePlan
from panes.windows.extent import windows_closed
from panes.windows.limit import require_room

WID = "__wid"
"""The column of joined rows that has the number of their window."""
Above: TypeAlias = Literal["left", "right", "max", "min", "window"]
"""What windows above a join lie on: a position of joined rows, or the number of their window."""


class JoinStage:
    """The state of one join."""

    def __init__(self, plan: JoinPlan) -> None:
        self.plan = plan
        self._names = plan.left.schema().names, plan.right.schema().names
        rule = JoinRule(
            plan.partners,
            plan.how,
            hashed=0 if are_exact(plan.key_types) else len(plan.key_types),
            accepts=None if plan.rest is None else self._accepts,
        )
        self.rule = rule
        self.join: OAJoin | AsOfJoin | PartnerRunsJoin = self._join()
        self.below = JoinStage(plan.left) if isinstance(plan.left, JoinPlan) else None
        plan.require_types()
        self.promised = Progress()
        self._nowhere: pa.Table | None = None

    def _join(self) -> OAJoin | AsOfJoin | PartnerRunsJoin:
        return AsOfJoin(self.rule) if self.plan.as_of else OAJoin(self.rule)

    def progress(self, of: Of) -> int:
        """What is promised of joined rows to come."""
        plan = self.plan
        return individual(plan.partners, self.promised, of, how=plan.how, as_of=plan.as_of)

    def progress_above(self, by: Above) -> int:
        """What is promised of joined rows to come, where windows above them lie on `by`."""
        if by != "window":
            return self.progress(by)
        windows, least = self.plan.windows, min(self.promised)
        assert windows is not None
        return least if abs(least) >= FOREVER else windows_closed(windows, least)

    def resume(self, promised: Mapping[str, int]) -> None:
        """Go on where these promises of the sides have been made."""
        left = promised.get(self.plan.left.name, BEGINNING)
        if self.below is not None:
            self.below.resume(promised)
            left = self.below.progress(self._of_below)
        self.promised = Progress(left, promised[self.plan.right.name])

    def open_from(self, side: str) -> int:
        """The first position of a side that a late row of it can still be joined from."""
        partners, promised = self.plan.partners, self.promised
        if self.below is not None:
            return BEGINNING
        if side == self.plan.right.name:
            return partners.right_from(min(partners.left_from(promised.right), promised.left))
        return partners.left_from(min(partners.right_from(promised.left), promised.right))

    @property
    def _of_below(self) -> Of:
        """Which position of joined rows below is the one here."""
        assert self.below is not None
        return "left" if self.plan.left_at == self.below.plan.left_at else "right"

    def step(self, rows: Mapping[str, Sequence[Arrivals]], promised: Mapping[str, int]) -> pa.Table:
        """Take in rows of the sides, by name; gives joined rows. Promises hold from now on."""
        assert not isinstance(self.join, PartnerRunsJoin)
        left, right, after = self.arrivals(rows, promised)
        before, self.promised = self.promised, after
        found, count = [], 0
        for joined in self.join.step(left, right, before, after):
            count += len(joined)
            require_room(count)
            found += [self._gathered(joined)] if len(joined) else []
        if self._nowhere is not None and self.rule.gives_lone_left and self.plan.windows is None:
            found.append(self._without_partner(self._nowhere))
        return pa.concat_tables([self.schema().empty_table(), *found])

    def _without_partner(self, left: pa.Table) -> pa.Table:
        """Rows on the left as they are given without a partner."""
        own = set(left.column_names)
        columns = [
            column_of(left, f.name) if f.name in own else pa.nulls(len(left), f.type)
            for f in self.plan.schema()
        ]
        return pa.table(columns, schema=self.plan.schema())

    def arrivals(
        self, rows: Mapping[str, Sequence[Arrivals]], promised: Mapping[str, int]
    ) -> tuple[Arrivals, Arrivals, Progress]:
        """The rows of both sides with their keys, and what is promised of those to come."""
        left, left_promise = self._left(rows, promised)
        right = _one(rows.get(self.plan.right.name, ()), self.plan.right)
        left = self._with_keys(left, self.plan.left_keys, self._names[0])
        right = self._with_keys(right, self.plan.right_keys, self._names[1])
        return left, right, Progress(left_promise, promised[self.plan.right.name])

    def schema(self) -> pa.Schema:
        """The columns of joined rows; the last is the window's number, of a join by windows."""
        window = [(WID, pa.int64())] * (self.plan.windows is not None)
        return pa.schema([*self.plan.schema(), *window])

    def stored(self) -> dict[str, int]:
        """Rows and bytes of both sides, those of joins below included."""
        found = {
            "left_rows": len(self.join.left),
            "right_rows": len(self.join.right),
            "left_bytes": self.join.left.nbytes,
            "right_bytes": self.join.right.nbytes,
        }
        if self.below is not None:
            for count in ("rows", "bytes"):
                below = self.below.stored()
                found[f"left_{count}"] += below[f"left_{count}"] + below[f"right_{count}"]
        return found

    def _left(
        self, rows: Mapping[str, Sequence[Arrivals]], promised: Mapping[str, int]
    ) -> tuple[Arrivals, int]:
        """The rows on the left, and what is promised of those to come."""
        if self.below is None:
            name = self.plan.left.name
            return _one(rows.get(name, ()), self.plan.left), promised[name]
        joined = self.below.step(rows, promised)
        at, missing = self.plan.axis.ticks(column_of(joined, self.plan.left_at))
        self._nowhere = None
        if missing is not None:  # without a partner below, a row may have no position here
            self._nowhere = joined.filter(pa.array(missing))
            joined, at = joined.filter(pa.array(~missing)), at[~missing]
        columns = [column_of(joined, name) for name in self._names[0]]
        return Arrivals(at, (), columns), self.below.progress(self._of_below)

    def _with_keys(self, rows: Arrivals, keys: Projection, names: Sequence[str]) -> Arrivals:
        """Rows with their keys, in the types that both sides are compared in."""
        if not keys.expressions:
            return rows
        _, values = keys(pa.table(list(rows.columns), names=names))
        cast = [
            value if value.type == wanted else _cast(value, wanted)
            for value, wanted in zip(values, self.plan.key_types, strict=True)
        ]
        return Arrivals(rows.at, cast, rows.columns)

    def _accepts(self, left: Columns, right: Columns) -> NDArray[np.bool_]:
        """Which pairs pass the conditions that are neither keys nor positions."""
        assert self.plan.rest is not None
        names = [*self._names[0], *self._names[1]]
        table = pa.table([*left, *right], names=names)
        passing, _ = self.plan.rest(table)
        mask = np.zeros(len(table), dtype=np.bool_)
        mask[passing] = True
        return mask

    def _gathered(self, joined: JoinedRows) -> pa.Table:
        """Joined rows as columns; NULL where a side has nothing."""
        schema = self.plan.schema()
        taken = {
            **self._taken(joined.left, joined.left_index, self._names[0]),
            **self._taken(joined.right, joined.right_index, self._names[1]),
        }
        columns = [
            taken[f.name] if f.name in taken else pa.nulls(len(joined), f.type) for f in schema
        ]
        if joined.wid is not None:
            columns.append(pa.array(joined.wid))
            schema = schema.append(pa.field(WID, pa.int64()))
        return pa.table(columns, schema=schema)

    def _taken(
        self, side: SortedRows | None, index: Numbers, names: Sequence[str]
    ) -> dict[str, pa.Array]:
        """The columns that go up of a side's rows; none if the side has nothing."""
        asked = [name for name in names if name in self.plan.columns]
        if side is None:
            return {}
        columns = [side.columns[names.index(name)] for name in asked]
        return dict(zip(asked, gather(columns, side.row, index), strict=True))


def _cast(keys: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Keys as values of another type; a large integer becomes the nearest float, as in Spark."""
    try:
        return keys.cast(wanted, safe=not pa.types.is_floating(wanted))
    except pa.ArrowInvalid as failure:
        raise InputError(f"keys of a join cannot be compared as {wanted}: {failure}") from None


def _one(arrivals: Sequence[Arrivals], side: SidePlan) -> Arrivals:
    """The rows of all streams of a side together."""
    some = [a for a in arrivals if len(a.at)]
    if not some:
        return Arrivals(columns=tuple(pa.array([], f.type) for f in side.schema()))
    if len(some) == 1:
        return some[0]
    columns = zip(*(a.columns for a in some), strict=True)
    return Arrivals(
        np.concatenate([a.at for a in some]), (), tuple(pa.concat_arrays(c) for c in columns)
    )
