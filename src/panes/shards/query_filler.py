"""What one query makes of a task's rows: partials where it can, the rows themselves elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.arrays.columns import column_of
from panes.arrays.key_numbers import KeyNumbers
from panes.planning.plan import Plan
from panes.shards.names import AT, PASSING, ROWS, SOURCE, column_name
from panes.shards.shard_of import shards_of
from panes.stores.keyed_panes import KeyedPanes, inside
from panes.stores.parcel import to_tables


@dataclass(slots=True)
class PlanFiller:
    """Fills the panes of one plan.

    With `keep_rows`, rows are sent as they are instead of being filled here: the store then
    decides row by row, as ``late='drop'`` needs.
    """

    plan: Plan
    keep_rows: bool = False
    _sent: list[pa.Table] = field(default_factory=list)
    _stored: KeyedPanes | None = None

    @property
    def column(self) -> str | None:
        """The column of the axis."""
        return self.plan.axis.column

    def see(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None:
        """Where rows are counted, one counts before WHERE."""
        if self.plan.counts_rows:
            self._send(table, source, at)

    def take(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None:
        """Fill panes, unless the store is to do that."""
        if self.plan.counts_rows:
            return
        if self.keep_rows:
            self._send(table, source, at)
            return
        columns = self._columns(table)
        if self._stored is None:
            self._stored = KeyedPanes(self.plan.contents, self.plan.spec)
        at, stored = inside(self.plan.spec, at, columns)
        if len(at):
            self._stored.add(at, stored)

    def parts(self, shards: int) -> dict[int, dict[str, pa.Table]]:
        """The tables of each shard that has any."""
        if self._sent:
            return self._split_rows(shards)
        if self._stored is None:
            return {}
        shard = shards_of(self._stored.key_columns, shards)
        parcels = self._stored.split(lambda _, groups: shard[groups])
        return {shard: to_tables(self.plan.pieces, parcel) for shard, parcel in parcels.items()}

    def _split_rows(self, shards: int) -> dict[int, dict[str, pa.Table]]:
        rows = pa.concat_tables(self._sent).combine_chunks()
        columns = self.plan.shard_columns
        keys = [column_of(rows, column_name(c)) for c in columns]
        return {
            shard: {ROWS: rows.filter(pa.array(mine))}
            for shard, mine in rows_by_shard(keys, len(rows), shards).items()
        }

    def _columns(self, table: pa.Table) -> list[pa.Array]:
        types = enumerate(self.plan.row_types)
        return [column_of(table, column_name(i)).cast(t) for i, t in types]

    def _send(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None:
        """Rows go to their shards as they are."""
        named = {SOURCE: pa.array(source), AT: pa.array(at)}
        if self.plan.counts_rows and PASSING in table.column_names:
            named[PASSING] = pc.fill_null(column_of(table, PASSING), False)
        named |= {column_name(i): c for i, c in enumerate(self._columns(table))}
        self._sent.append(pa.table(named))


def rows_by_shard(keys: list[pa.Array], rows: int, shards: int) -> dict[int, NDArray[np.bool_]]:
    """Which rows go to each shard that has any, by their keys."""
    groups = KeyNumbers([k.type for k in keys])
    numbers = groups.encode(keys, rows)
    shard = shards_of(groups.columns(np.arange(len(groups))), shards)[numbers]
    return {int(s): shard == s for s in np.unique(shard)}
