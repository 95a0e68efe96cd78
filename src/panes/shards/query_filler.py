"""What one query makes of a task's rows: partials where it can, the rows themselves elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.columns import column_of
from panes.planning.plan import Plan
from panes.shards.combiner import Filler
from panes.shards.names import column_name
from panes.shards.sent_rows import rows_of_plan
from panes.shards.shard_of import shards_of
from panes.stores.keyed_panes import KeyedPanes, inside
from panes.stores.parcel import to_tables


def filler_of(plan: Plan, *, keep_rows: bool = False) -> Filler:
    """What fills the panes of a plan; or with `keep_rows`, and where rows are counted, sends rows.

    The store then decides row by row, as ``late='drop'`` needs.
    """
    return rows_of_plan(plan) if keep_rows or plan.counts_rows else PlanFiller(plan)


@dataclass(slots=True)
class PlanFiller:
    """Fills the panes of one plan."""

    plan: Plan
    _stored: KeyedPanes | None = None

    @property
    def column(self) -> str | None:
        """The column of the axis."""
        return self.plan.axis.column

    def see(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None:
        """Rows that do not pass are in no pane."""

    def take(
        self,
        table: pa.Table,
        source: NDArray[np.int32],  # noqa: ARG002 - all streams fill the same panes
        at: NDArray[np.int64],
    ) -> None:
        """Fill panes."""
        types = enumerate(self.plan.row_types)
        columns = [column_of(table, column_name(i)).cast(t) for i, t in types]
        if self._stored is None:
            self._stored = KeyedPanes(self.plan.contents, self.plan.spec)
        at, stored = inside(self.plan.spec, at, columns)
        if len(at):
            self._stored.add(at, stored)

    def parts(self, shards: int) -> dict[int, dict[str, pa.Table]]:
        """The tables of each shard that has any."""
        if self._stored is None:
            return {}
        shard = shards_of(self._stored.key_columns, shards)
        parcels = self._stored.split(lambda _, groups: shard[groups])
        return {shard: to_tables(self.plan.pieces, parcel) for shard, parcel in parcels.items()}
