"""Which rows of a batch count: placed on the axis, told apart from late and rejected ones.

Nothing is changed here. What becomes of a batch is an `Admitted`, and whoever runs the query
takes it in once all batches of a push have been looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.admit.arrival import Arrival
from panes.admit.set_aside import late_reasons, no_place, too_far_ahead, with_reason
from panes.axis import Axis, axis_over
from panes.errors import ColumnTypeError
from panes.operators.operator import Chain
from panes.planning.plan import Plan
from panes.planning.scalar import find_column
from panes.planning.terms import Terms

Positions: TypeAlias = NDArray[np.int64]
_NOWHERE = np.empty(0, dtype=np.int64)


@dataclass(slots=True)
class Admitted:
    """What becomes of one batch.

    `at` and `columns` are the rows that count; `placed` are the positions of all rows that have
    one, in the order they came. Windows that count rows also need `everything`, `kept` and
    `partition`.
    """

    stream: str
    at: Positions = field(default_factory=lambda: _NOWHERE)
    columns: list[pa.Array] = field(default_factory=list)
    placed: Positions = field(default_factory=lambda: _NOWHERE)
    arrived: int = 0
    promise: int | None = None
    late: list[pa.Table] = field(default_factory=list)
    late_at: Positions = field(default_factory=lambda: _NOWHERE)
    late_keys: list[pa.Array] = field(default_factory=list)
    rejected: list[pa.Table] = field(default_factory=list)
    everything: Positions = field(default_factory=lambda: _NOWHERE)
    partition: Sequence[pa.Array] = ()
    kept: Positions = field(default_factory=lambda: _NOWHERE)

    def arrival(self) -> Arrival:
        """For windows that count rows: all of them, and which count as more than a number."""
        return Arrival(self.everything, self.kept, self.columns, self.partition)


@dataclass(frozen=True, slots=True)
class Gate:
    """What decides about rows: the plan, the terms, the clock, and what was promised.

    `promised` tells, for a stream and rows with these keys, what was promised of each row, or
    None if nothing was. `is_open` tells which positions still have an open window, given what
    was promised of them. Unless `counts_late`, late rows count nowhere: before ``ORIGIN FIRST`` is
    known there is no window for them.
    """

    plan: Plan
    terms: Terms
    now: Callable[[], int]
    promised: Callable[[str, Sequence[pa.Array], int], Positions | None]
    is_open: Callable[[Positions, Sequence[pa.Array]], NDArray[np.bool_]]
    counts_late: bool = True

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
        result.arrived = len(table)
        kept, columns = plan.rows(table)
        if plan.counts_rows:
            result.everything, result.partition = at, plan.partition(table)
        result.kept = np.arange(len(at)) if kept is None else kept
        result.at, result.columns = (at if kept is None else at[kept]), columns
        self._set_late_apart(table, result)
        return result

    def _derived(
        self, table: pa.Table, chain: Chain, arrived: int, result: Admitted
    ) -> tuple[Positions, pa.Table]:
        """Rows through the chain, and where they come out."""
        axis = self.plan.placing
        if chain.axis is not None and axis.kind != "rows":
            at, table = self._placed(table, chain.axis, arrived, result)
            result.placed = at if chain.moves is None else chain.moves(table, at)
            if result.promise is not None:
                result.promise = chain.punctuate(result.promise)
        table = _spelled(chain.push(table), self.plan)
        if axis.kind == "rows":
            return arrived + np.arange(len(table)), table
        at, missing = axis.ticks(table.column(axis.column).combine_chunks())
        if missing is not None:
            table, at = _without(table, at, missing, no_place(axis.column), result)
        return at, table

    def _set_late_apart(self, table: pa.Table, result: Admitted) -> None:
        at, columns = result.at, result.columns
        keys = columns[: len(self.plan.key_types)]
        promised = self.promised(result.stream, keys, len(at))
        if promised is None or not (is_late := at < promised).any():
            return
        which = np.flatnonzero(is_late)
        result.late_at, result.late_keys = at[which], [c.take(pa.array(which)) for c in keys]
        is_open = self.is_open(result.late_at, result.late_keys)
        reasons = late_reasons(self.plan.placing, promised[which], is_open, late=self.terms.late)
        rows = table.take(pa.array(result.kept[which]))
        result.late.append(with_reason(rows, reasons))
        if self.terms.drops_late or self.plan.order is not None or not self.counts_late:
            on_time = np.flatnonzero(~is_late)
            result.at, result.kept = at[on_time], result.kept[on_time]
            result.columns = [c.take(pa.array(on_time)) for c in columns]

    def _placed(
        self, table: pa.Table, axis: Axis, arrived: int, result: Admitted
    ) -> tuple[Positions, pa.Table]:
        """Where the rows lie; rows without a place are set apart."""
        terms = self.terms
        if axis.kind == "rows":
            return arrived + np.arange(len(table)), table
        ticks, missing = axis.ticks(table.column(axis.column).combine_chunks())
        if terms.punctuation is not None:
            table, ticks, missing = self._without_promises(table, ticks, missing, result)
        if missing is not None:
            table, ticks = _without(table, ticks, missing, no_place(axis.column), result)
        max_ahead = terms.max_ahead
        if terms.trusts_rows and axis.kind == "time" and max_ahead is not None:
            ahead = ticks > self.now() + max_ahead
            if ahead.any():
                table, ticks = _without(table, ticks, ahead, too_far_ahead(axis.column), result)
        return ticks, table

    def _without_promises(
        self,
        table: pa.Table,
        ticks: Positions,
        missing: NDArray[np.bool_] | None,
        result: Admitted,
    ) -> tuple[pa.Table, Positions, NDArray[np.bool_] | None]:
        """Note what a batch promises; rows that are nothing but a promise are left out."""
        column = promise_column(self.plan, table.schema, self.terms.punctuation, result.stream)
        promised, without = self.plan.placing.ticks(table.column(column).combine_chunks())
        given = np.ones(len(table), dtype=np.bool_) if without is None else ~without
        if given.any():
            result.promise = int(promised[given].max())
        if missing is None or not (missing & given).any():
            return table, ticks, missing
        rows = ~(missing & given)
        return table.filter(pa.array(rows)), ticks[rows], missing[rows]


def promise_column(plan: Plan, schema: pa.Schema, name: str | None, stream: str) -> str:
    """The column in which a stream makes promises, whatever the case it is written in."""
    column = find_column(name or "", schema, stream=stream)
    kind = axis_over(column, schema.field(column).type, stream=stream).kind
    if kind != plan.placing.kind:
        raise ColumnTypeError(
            f"`{column}` cannot promise anything of `{plan.axis.column}`: one is of {kind}, "
            f"the other of {plan.placing.kind}"
        )
    return column


def _without(
    table: pa.Table, at: Positions, which: NDArray[np.bool_], reason: str, result: Admitted
) -> tuple[pa.Table, Positions]:
    """The other rows; these are set apart with the reason."""
    apart = table.filter(pa.array(which))
    result.rejected.append(with_reason(apart, [reason] * len(apart)))
    return table.filter(pa.array(~which)), at[~which]


def _spelled(table: pa.Table, plan: Plan) -> pa.Table:
    """Columns under the names that the plan knows them by, whatever their case."""
    known = plan.column_names
    wanted = {n.lower(): n for n in known}
    names = [n if n in known else wanted.get(n.lower(), n) for n in table.column_names]
    return table if names == table.column_names else table.rename_columns(names)
