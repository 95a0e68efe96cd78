"""What a join makes of a task's rows: they go to the shard of their key, as they are."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.columns import column_of
from panes.planning.join_plan import SourcePlan
from panes.shards.join_keys import ShardKeys
from panes.shards.names import AT, ROW, ROWS, SOURCE, column_name
from panes.shards.shard_of import shards_of


def rows_name(side: int) -> str:
    """The table of a package with the rows of one side."""
    return f"{ROWS}{side}"


@dataclass(slots=True)
class SideFiller:
    """Sends the rows of one side of a join, which is its `number` among all sides."""

    side: SourcePlan
    number: int
    keys: ShardKeys
    _sent: list[pa.Table] = field(default_factory=list)

    @property
    def column(self) -> str | None:
        """The column of the axis."""
        return self.side.axis.column

    def see(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None:
        """Rows that do not pass are of no use to a join."""

    def take(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None:
        """Keep rows until it is known which shards there are."""
        named = {AT: pa.array(at)}
        if len(self.side.source.streams) > 1:
            named[SOURCE] = pa.array(source)
        if ROW in table.column_names:
            named[ROW] = column_of(table, ROW)
        for i, kind in enumerate(self.side.schema().types):
            named[column_name(i)] = column_of(table, column_name(i)).cast(kind)
        self._sent.append(pa.table(named))

    def parts(self, shards: int) -> dict[int, dict[str, pa.Table]]:
        """The rows of each shard that has any."""
        if not self._sent:
            return {}
        rows = pa.concat_tables(self._sent)
        name = rows_name(self.number)
        if shards == 1 or not self.keys:
            return {0: {name: rows}}
        columns = [column_of(rows, column_name(i)) for i in range(len(self.side.columns))]
        shard = shards_of(self.keys.of(pa.table(columns, names=self.side.columns)), shards)
        return {
            int(one): {name: rows.take(pa.array(np.flatnonzero(shard == one)))}
            for one in np.flatnonzero(np.bincount(shard, minlength=shards))
        }
