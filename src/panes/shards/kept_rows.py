"""The rows that a shard of a register keeps for questions, in its state.

Which rows these are, a `Keep` says. A row goes to one shard by its position alone, so rows at one
position stay in the order in which their batches came. Rows are stored as those of a join are, in
runs of blocks of time (`panes.shards.stored_runs`): a batch writes what is new, and what no window
can reach any more goes with its block.

Invariant: all rows that were admitted are there from `KeptLedger.whole_from` on, as far back as the
longest window reaches. Columns may come and go from batch to batch, and so may the length of the
longest window; what is there stays, and what is missing is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.columns import column_of
from panes.arrays.type_names import type_name
from panes.axis import FOREVER
from panes.join.sorted_rows import SortedRows
from panes.shards.kept_ledger import KeptColumn, KeptLedger
from panes.shards.names import AT, KEPT, column_name
from panes.shards.sent_rows import numbered
from panes.shards.state import State
from panes.shards.stored_runs import StoredRuns
from panes.sharing.completeness import after
from panes.sharing.keep import Keep


def sent_rows(at: NDArray[np.int64], columns: Sequence[pa.Array]) -> pa.Table:
    """Rows as a task sends them to be kept."""
    named = {column_name(i): column for i, column in enumerate(columns)}
    return pa.table({AT: pa.array(at), **named})


class KeptRows:
    """The kept rows of one shard, for one batch.

    `ledger` is what the last batch wrote of them, if they were kept then; `newest` is where the
    newest row of all lies. Without a `keep`, rows that are still there are forgotten.
    """

    def __init__(
        self, keep: Keep | None, state: State, ledger: KeptLedger | None, newest: int
    ) -> None:
        self._keep, now = keep, after(newest)
        self._runs = StoredRuns(KEPT, 1 if keep is None else keep.size, state)
        self._since, known = now, dict[tuple[str, str], int]()
        if ledger is not None:
            self._runs.restore(ledger.about, ledger.runs)
            self._since = ledger.since
            known = {(column.name, column.type): column.since for column in ledger.columns}
        fields = () if keep is None else tuple(keep.columns)
        named = [(field.name, type_name(field.type)) for field in fields]
        self._columns = tuple(KeptColumn(*name, known.get(name, now)) for name in named)
        if keep is None:
            self._runs.drop_before(FOREVER)
        elif ledger is not None and [(c.name, c.type) for c in ledger.columns] != named:
            places = {(c.name, c.type): place for place, c in enumerate(ledger.columns)}
            self._runs.rewrite(lambda rows: self._with_columns(rows, places))

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows in the state."""
        return self._runs.nbytes

    def add(self, sent: Sequence[pa.Table], promised: int) -> None:
        """Take in the rows of a batch; those before what is promised do not count."""
        if self._keep is None or not sent:
            return
        rows = pa.concat_tables(sent).combine_chunks()
        at = column_of(rows, AT).to_numpy()
        columns = numbered(rows, range(len(self._columns)))
        added = SortedRows.of(np.zeros_like(at), at, columns)
        in_time = added.at >= promised
        self._runs.add(added if in_time.all() else added.where(in_time))

    def rewrite(self) -> None:
        """Let everything be written again with this batch."""
        self._runs.rewrite()

    def write(self, newest: int) -> dict[str, pa.Table]:
        """Put back what changed, without what no window reaches; gives what is to be remembered."""
        if self._keep is not None:
            self._runs.drop_before(self._keep.start(newest))
        self._runs.write()
        if self._keep is None:
            return {}
        return KeptLedger.tables(self._runs, self._columns, self._since)

    def _with_columns(self, rows: SortedRows, places: Mapping[tuple[str, str], int]) -> SortedRows:
        """Rows with the columns of now; those that were not kept are NULL."""
        assert self._keep is not None
        whole = rows.picked(np.arange(len(rows)))
        columns = []
        for field, column in zip(self._keep.columns, self._columns, strict=True):
            place = places.get((column.name, column.type))
            missing = pa.nulls(len(whole), field.type)
            columns.append(missing if place is None else whole.columns[place])
        return SortedRows(whole.code, whole.at, whole.row, tuple(columns))
