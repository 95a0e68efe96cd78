"""Which rows of a batch count: they are placed on the axis, and late and rejected ones set aside.

Nothing is changed here. A `Gate` is what is known when a batch comes, an `Admitted` what becomes of
the batch; whoever runs the query takes it in once all batches of a push have been looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.axis import BEGINNING, Axis, axis_over
from panes.errors import ColumnTypeError
from panes.expressions.projection import find_column
from panes.nodes.arrival import Arrival
from panes.nodes.operator import Chain
from panes.nodes.promises import Promised
from panes.nodes.set_aside import (
    late_reasons,
    no_position,
    too_far_ahead,
    too_far_ahead_of_others,
    with_reason,
)
from panes.planning.plan import Plan
from panes.planning.terms import CheckedOptions

Positions: TypeAlias = NDArray[np.int64]
_NOWHERE = np.empty(0, dtype=np.int64)
_MANY = 3  # rows that one wrong position does not outvote


@dataclass(slots=True)
class Admitted:
    """What becomes of one batch.

    `arrival` are the rows that count. `placed` are the positions of all rows that have one, in the
    order they came, `newest` is where the newest one lay before any chain, if that matters, and
    `promise` is what rows of the batch promise. `behind` are the positions and
    keys of late rows. `late` and `rejected` are rows with the reason, in the columns of the stream.
    """

    stream: str
    arrival: Arrival = field(default_factory=lambda: Arrival(_NOWHERE, ()))
    placed: Positions = field(default_factory=lambda: _NOWHERE)
    rows: int = 0
    newest: int | None = None
    promise: int | None = None
    behind: Arrival = field(default_factory=lambda: Arrival(_NOWHERE, ()))
    late: list[pa.Table] = field(default_factory=list)
    rejected: list[pa.Table] = field(default_factory=list)
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class Gate:
    """What is known of a query when a batch comes: plan, terms, the time, promises, open windows.

    `open_from` is the first position that an open window holds. Unless `counts_late`, late rows
    count nowhere: windows of ordered rows have no room for them, and before ``ORIGIN FIRST`` is
    known there are no windows. `newest` are the greatest positions that streams have had.
    `counted` and `closed` are the words for what becomes of late rows.
    """

    plan: Plan
    terms: CheckedOptions
    now: int
    promised: Promised
    open_from: int = BEGINNING
    counts_late: bool = True
    newest: Mapping[str, int] = field(default_factory=dict)
    counted: str = "counted in its open windows"
    closed: str = "all its windows are closed"

    def admit_all(
        self, tables: Mapping[str, pa.Table], chains: Mapping[str, Chain], arrived: int
    ) -> list[Admitted]:
        """Sort out the batches of a push, which come after `arrived` rows."""
        admitted = []
        for name, table in tables.items():
            admitted.append(self.admit(name, table, chains[name], arrived))
            arrived += admitted[-1].rows
        return admitted

    def admit(self, stream: str, table: pa.Table, chain: Chain, arrived: int) -> Admitted:
        """Sort out a batch that comes after `arrived` rows, and goes through a chain first.

        What rows promise is seen before the chain, which may leave some of them out.
        """
        plan, result = self.plan, Admitted(stream)
        if not chain.operators:
            at, table = self._placed(_spelled(table, plan), plan.placing, arrived, result)
            result.placed = at
        else:
            at, table = self._derived(table, chain, arrived, result)
        result.rows = len(table)
        passing, columns = plan.rows(table)
        passing, columns = self._without_late(table, at, passing, columns, result)
        if plan.counts_rows:
            result.arrival = Arrival(at, columns, passing, plan.partition(table))
        else:
            result.arrival = Arrival(at if passing is None else at[passing], columns)
        return result

    def _derived(
        self, table: pa.Table, chain: Chain, arrived: int, result: Admitted
    ) -> tuple[Positions, pa.Table]:
        """Rows through the chain, and where they come out."""
        axis = self.plan.placing
        if chain.places is not None and axis.kind != "rows":
            at, table = self._placed(table, axis, arrived, result, chain.places(table))
            result.placed = at
        elif chain.axis is not None and axis.kind != "rows":
            at, table = self._placed(table, chain.axis, arrived, result)
            result.placed = at if chain.moves is None else chain.moves(table, at)
            if result.promise is not None:
                result.promise = chain.punctuate(result.promise)
        table = _spelled(chain.push(table), self.plan)
        if axis.kind == "rows":
            return arrived + np.arange(len(table)), table
        at, missing = axis.ticks(table.column(axis.column).combine_chunks())
        if missing is not None:
            table, at = _without(table, at, missing, no_position(axis.column), result)
        return at, table

    def _without_late(
        self,
        table: pa.Table,
        at: Positions,
        passing: Positions | None,
        columns: list[pa.Array],
        result: Admitted,
    ) -> tuple[Positions | None, list[pa.Array]]:
        """Set late rows aside; gives the passing rows that count, and their columns.

        Rows that WHERE leaves out are not late.
        """
        passing_at = at if passing is None else at[passing]
        keys = columns[: len(self.plan.key_types)]
        promised = None
        if not self.plan.counts_arrivals:  # a row's number is never behind
            promised = self.promised.of_rows(result.stream, keys, len(passing_at))
        if promised is None or not (is_late := passing_at < promised).any():
            return passing, columns
        which = np.flatnonzero(is_late)
        late_at, late_keys = passing_at[which], [c.take(pa.array(which)) for c in keys]
        result.behind = Arrival(late_at, late_keys)
        is_open = late_at >= self.open_from
        is_open &= self.promised.leaves_open(self.plan.spec, late_at, late_keys)
        reasons = late_reasons(
            self.plan.placing, promised[which], is_open, late=self.terms.late,
            counted=self.counted, closed=self.closed,
        )  # fmt: skip
        rows = np.arange(len(at)) if passing is None else passing
        result.late.append(with_reason(table.take(pa.array(rows[which])), reasons))
        if self.counts_late and not self.terms.drops_late:
            return passing, columns
        on_time = np.flatnonzero(~is_late)
        return rows[on_time], [c.take(pa.array(on_time)) for c in columns]

    def _placed(
        self,
        table: pa.Table,
        axis: Axis,
        arrived: int,
        result: Admitted,
        column: pa.Array | None = None,
    ) -> tuple[Positions, pa.Table]:
        """Where the rows lie, by a column; rows without a position are set aside."""
        terms = self.terms.of(result.stream)
        if axis.kind == "rows":
            return arrived + np.arange(len(table)), table
        if column is None:
            column = table.column(axis.column).combine_chunks()
        ticks, missing = axis.ticks(column)
        if terms.punctuation is not None:
            table, ticks, missing = self._without_promises(table, ticks, missing, result)
        if missing is not None:
            table, ticks = _without(table, ticks, missing, no_position(axis.column), result)
        max_ahead = terms.max_ahead
        if terms.trusts_rows and axis.kind == "time" and max_ahead is not None:
            ahead = ticks > self.now + max_ahead
            if ahead.any():
                result.ahead = int(ahead.sum())
                table, ticks = _without(table, ticks, ahead, too_far_ahead(axis.column), result)
        step = terms.step_on(axis.kind)
        if step is not None and len(ticks):
            last = believed_up_to(ticks, self.newest.get(result.stream), step)
            far = ticks > last
            if far.any():
                result.ahead = int(far.sum())
                reason = too_far_ahead_of_others(axis.column, last)
                table, ticks = _without(table, ticks, far, reason, result)
            result.newest = int(ticks.max(initial=BEGINNING))
        return ticks, table

    def _without_promises(
        self,
        table: pa.Table,
        ticks: Positions,
        missing: NDArray[np.bool_] | None,
        result: Admitted,
    ) -> tuple[pa.Table, Positions, NDArray[np.bool_] | None]:
        """Note what a batch promises; rows that are nothing but a promise are left out."""
        column = promise_column(
            self.plan.placing, table.schema, self.terms.punctuation, result.stream
        )
        promised, without = self.plan.placing.ticks(table.column(column).combine_chunks())
        given = np.ones(len(table), dtype=np.bool_) if without is None else ~without
        if given.any():
            result.promise = int(promised[given].max())
        if missing is None or not (missing & given).any():
            return table, ticks, missing
        rows = ~(missing & given)
        return table.filter(pa.array(rows)), ticks[rows], missing[rows]


def believed_up_to(at: Positions, newest: int | None, max_step: int) -> int:
    """How far positions can be believed: none is further than a step ahead of all others.

    Those of a batch are looked at from the smallest on, so it does not matter in which order rows
    come. What comes first has none before it: there, half of the rows are believed. So they are in
    a later batch of three rows or more, so that a stream goes on after a gap.

    >>> believed_up_to(np.array([40, 10, 999, 25]), newest=12, max_step=20)
    40
    >>> believed_up_to(np.array([0, 70, 71, 72, 10**15]), newest=None, max_step=20)
    72
    >>> believed_up_to(np.array([500, 501, 502, 10**15]), newest=12, max_step=20)
    502
    """
    greatest = int(at.max())
    near = int(at.min()) if newest is None else newest
    if greatest - near <= max_step:
        return max(near, greatest)
    ascending = np.sort(at)
    half = int(ascending[(len(ascending) - 1) // 2])
    if newest is None:
        newest = half
    elif len(ascending) >= _MANY:
        newest = max(newest, half)
    ahead = ascending[np.searchsorted(ascending, newest, side="right") :]
    steps = np.diff(ahead, prepend=newest)
    far = np.flatnonzero(steps > max_step)
    if not len(far):
        return max(newest, greatest)
    return newest if far[0] == 0 else int(ahead[far[0] - 1])


def promise_column(placing: Axis, schema: pa.Schema, name: str | None, stream: str) -> str:
    """The column in which a stream makes promises, whatever the case it is written in.

    Rows are placed by another column, of the same kind.
    """
    column = find_column(name or "", schema, stream=stream)
    kind = axis_over(column, schema.field(column).type, stream=stream).kind
    if kind != placing.kind:
        raise ColumnTypeError(
            f"`{column}` cannot promise anything of `{placing.column}`: one is of {kind}, "
            f"the other of {placing.kind}"
        )
    return column


def _without(
    table: pa.Table, at: Positions, which: NDArray[np.bool_], reason: str, result: Admitted
) -> tuple[pa.Table, Positions]:
    """The other rows; these are set aside with the reason."""
    rejected = table.filter(pa.array(which))
    result.rejected.append(with_reason(rejected, [reason] * len(rejected)))
    return table.filter(pa.array(~which)), at[~which]


def _spelled(table: pa.Table, plan: Plan) -> pa.Table:
    """Columns under the names that the plan knows them by, whatever their case."""
    known = plan.column_names
    wanted = {n.lower(): n for n in known}
    names = [n if n in known else wanted.get(n.lower(), n) for n in table.column_names]
    return table if names == table.column_names else table.rename_columns(names)
