"""Rows that a task sends to their shards as they are, and as the store there takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.arrays.columns import column_of
from panes.nodes.arrival import Arrival
from panes.planning.join_plan import SourcePlan
from panes.planning.plan import Plan
from panes.shards.join_keys import ShardKeys
from panes.shards.names import AT, PASSING, ROW, ROWS, SOURCE, column_name
from panes.shards.shard_of import shards_of


@dataclass(slots=True)
class RowFiller:
    """Sends rows to the shards of their `keys`, with columns of these types, in a table of a name.

    `has_sources`: it is told which stream each row is of. `is_whole`: each has its whole row too,
    if there is one. `is_counted`: rows that do not pass WHERE are sent, too.
    """

    column: str | None
    types: Sequence[pa.DataType]
    keys: Callable[[pa.Table], Sequence[pa.Array]]
    name: str = ROWS
    has_sources: bool = False
    is_whole: bool = True
    is_counted: bool = False
    _sent: list[pa.Table] = field(default_factory=list)

    def see(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None:
        """Where rows are counted, one counts before WHERE."""
        if self.is_counted:
            self._send(table, source, at)

    def take(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None:
        """Keep rows until it is known which shards there are."""
        if not self.is_counted:
            self._send(table, source, at)

    def parts(self, shards: int) -> dict[int, dict[str, pa.Table]]:
        """The rows of each shard that has any."""
        return {n: {self.name: rows} for n, rows in by_shard(self._sent, self.keys, shards).items()}

    def _send(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None:
        named = {AT: pa.array(at)}
        if self.has_sources:
            named[SOURCE] = pa.array(source)
        if self.is_counted and PASSING in table.column_names:
            named[PASSING] = pc.fill_null(column_of(table, PASSING), False)
        if self.is_whole and ROW in table.column_names:
            named[ROW] = column_of(table, ROW)
        for i, kind in enumerate(self.types):
            named[column_name(i)] = column_of(table, column_name(i)).cast(kind)
        self._sent.append(pa.table(named))


def rows_of_plan(plan: Plan) -> RowFiller:
    """Sends the rows of a query whose store decides row by row, or counts them."""
    return RowFiller(
        plan.axis.column,
        plan.row_types,
        lambda rows: numbered(rows, plan.shard_columns),
        has_sources=True,
        is_whole=False,  # their positions are noted with them
        is_counted=plan.counts_rows,
    )


def rows_name(side: int) -> str:
    """The table of a package with the rows of one side of a join."""
    return f"{ROWS}{side}"


def rows_of_side(side: SourcePlan, number: int, keys: ShardKeys) -> RowFiller:
    """Sends the rows of one side of a join, which is its `number` among all sides."""

    def of(rows: pa.Table) -> Sequence[pa.Array]:
        columns = numbered(rows, range(len(side.columns)))
        return keys.of(pa.table(columns, names=side.columns)) if keys else ()

    several = len(side.source.streams) > 1
    return RowFiller(side.axis.column, side.schema().types, of, rows_name(number), several)


def rows_of_schema(column: str | None, schema: pa.Schema) -> RowFiller:
    """Sends rows to the shard of rows like them; `column` gives their positions."""
    return RowFiller(column, schema.types, lambda rows: numbered(rows, range(len(schema))))


def arrival_of(plan: Plan, rows: pa.Table, counts: NDArray[np.bool_] | None = None) -> Arrival:
    """Rows as they were sent, for a pipeline; with `counts`, the others do not pass."""
    passing = np.ones(len(rows), dtype=np.bool_) if counts is None else counts
    if PASSING in rows.column_names:
        passing = passing & rows.column(PASSING).to_numpy()
    which = np.flatnonzero(passing)
    found = zip(numbered(rows, range(len(plan.row_types))), plan.row_types, strict=True)
    columns = [column.cast(kind) for column, kind in found]
    partition = [columns[c] for c in plan.partition_columns]
    if len(which) < len(rows):
        columns = [column.take(pa.array(which)) for column in columns]
    return Arrival(column_of(rows, AT).to_numpy(), columns, which, partition)


def numbered(table: pa.Table, numbers: Iterable[int]) -> list[pa.Array]:
    """The columns of these numbers."""
    return [column_of(table, column_name(number)) for number in numbers]


def by_shard(
    sent: Sequence[pa.Table], keys: Callable[[pa.Table], Sequence[pa.Array]], shards: int
) -> dict[int, pa.Table]:
    """The rows of each shard that has any, by their keys; without keys, all are in the first."""
    if not sent:
        return {}
    rows = pa.concat_tables(sent).combine_chunks()
    values = keys(rows) if shards > 1 else ()
    if not values:
        return {0: rows}
    shard = shards_of(values, shards)
    return {
        int(one): rows.take(pa.array(np.flatnonzero(shard == one)))
        for one in np.flatnonzero(np.bincount(shard, minlength=shards))
    }
