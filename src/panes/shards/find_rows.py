"""Where the rows of a question are, among the rows that all shards of a register keep.

What the states say beside their rows is enough to tell whether a question can be answered, and
which runs have rows of its window. No row is read for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.asking.kept_columns import columns_read
from panes.asking.refusals import column_not_kept, no_rows, not_known_yet, not_that_long
from panes.axis import BEGINNING, FOREVER, Axis
from panes.language.row_question import RowQuestion
from panes.shards.kept_ledger import KeptLedger
from panes.shards.register_state import newest_row
from panes.shards.run_bytes import unpacked
from panes.sharing.completeness import after
from panes.sharing.keep import Keep

Tables = Mapping[str, pa.Table]


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The window ``[start, end)`` of a question, and where its rows are.

    `runs` are the runs of each shard that may have rows of it, numbered: rows at one position come
    in that order. `columns` says which places the columns have in a run.
    """

    start: int
    end: int
    columns: Mapping[str, int]
    runs: Mapping[tuple[int, str], int]

    def rows_in(self, data: bytes) -> tuple[NDArray[np.int64], list[pa.Array]]:
        """The positions of a run's rows that are in the window, in order, and their columns."""
        rows = unpacked(data)
        inside = rows.where(rows.at >= self.start)
        return inside.at, [inside.columns[place] for place in self.columns.values()]


def find_rows(
    asked: RowQuestion,
    schema: pa.Schema,
    abouts: Mapping[int, Tables],
    keep: Keep | None,
    axis: Axis,
) -> FoundRows | None:
    """The rows of the window that ends just after the newest row, by what each shard remembers.

    `schema` has all columns of the stream. None if no row has come. A window of which rows or
    columns are missing is refused.
    """
    fields = _require_kept(asked, schema, keep)
    newest = max((newest_row(tables) for tables in abouts.values()), default=BEGINNING)
    if newest == BEGINNING:
        return None
    start, known, there = newest + 1 - asked.size, BEGINNING, dict[int, KeptLedger]()
    for shard, tables in abouts.items():
        ledger = KeptLedger.of(tables)
        whole = FOREVER if ledger is None else ledger.whole_from(fields)
        known = max(known, min(whole, after(newest)))
        there |= {} if ledger is None else {shard: ledger}
    if start < known:
        raise not_known_yet(axis, start, known)
    runs = [(shard, name) for shard, ledger in there.items() for name in ledger.runs_from(start)]
    first = next(iter(there.values()))  # all shards have the same columns
    places = {field.name: first.place(field.name) for field in fields}
    return FoundRows(start, newest + 1, places, {run: i for i, run in enumerate(runs)})


def _require_kept(asked: RowQuestion, schema: pa.Schema, keep: Keep | None) -> list[pa.Field]:
    """The columns that a question reads; refused if they are not kept for as long."""
    if keep is None:
        raise no_rows()
    if asked.size > keep.size:
        raise not_that_long()
    names = columns_read(asked, schema)
    for name in names:
        if name not in keep.columns.names:
            raise column_not_kept(name)
    return [keep.columns.field(name) for name in names]
