"""What a register makes of a task's rows: the panes of all its stores, in one pass over the rows.

A task's columns are those that any store reads, each once. Stores that read the same expression
read the same column.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from panes.arrays.columns import column_of
from panes.shards.kept_rows import sent_rows
from panes.shards.names import AT, KEPT, ROWS, column_name
from panes.shards.sent_rows import by_shard, numbered
from panes.shards.shard_of import shards_of
from panes.sharing.failures import naming
from panes.sharing.parcels import split
from panes.sharing.queries import Queries
from panes.sharing.shared_store import SharedStore
from panes.stores.parcel import to_tables


def read_columns(queries: Queries) -> dict[str, exp.Expression]:
    """The columns of a task's rows, by name: what all stores read, and what is kept."""
    trees: dict[str, exp.Expression] = {}
    for store in queries.stores.values():
        computed, compared = _read_by(store)
        for tree in (*computed.values(), *compared.values()):
            trees.setdefault(_text(tree), tree)
    for tree in _kept_columns(queries):
        trees.setdefault(_text(tree), tree)
    return {column_name(i): tree for i, tree in enumerate(trees.values())}


def _read_by(store: SharedStore) -> tuple[dict[int, exp.Expression], dict[str, exp.Expression]]:
    """What a store reads: expressions by number, and columns that filters compare by name.

    A filter that only compares columns is not sent: hundreds may compare the same few columns.
    """
    compared = store.rows.compared_columns()
    computed = {n: tree for n, tree in store.rows.computed().items() if n not in compared}
    return computed, {c.name: c for columns in compared.values() for c in columns}


def _kept_columns(queries: Queries) -> list[exp.Expression]:
    """The columns that are kept for questions, in their order."""
    names = () if queries.keep is None else queries.keep.columns.names
    return [exp.column(exp.to_identifier(name, quoted=True)) for name in names]


def _text(tree: exp.Expression) -> str:
    return tree.sql(dialect="spark")


def part_name(store: SharedStore, table: str) -> str:
    """What a table of one store is called in a package."""
    return f"{store.serial}/{table}"


def tables_of(store: SharedStore, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """The tables of one store in a package, under their own names."""
    prefix = part_name(store, "")
    return {n.removeprefix(prefix): t for n, t in tables.items() if n.startswith(prefix)}


class RegisterFiller:
    """Fills the panes of all stores of a register, and forgets them once they are parts.

    With `keep_rows`, rows are sent as they are: the store then decides row by row, as
    ``late='drop'`` needs.
    """

    def __init__(self, queries: Queries, *, keep_rows: bool = False) -> None:
        self._queries, self._keep_rows = queries, keep_rows
        names = {_text(tree): name for name, tree in read_columns(queries).items()}
        self._computed: dict[int, dict[int, str]] = {}
        self._compared: dict[int, dict[str, str]] = {}
        for store in queries.stores.values():
            computed, compared = _read_by(store)
            self._computed[store.serial] = {n: names[_text(t)] for n, t in computed.items()}
            self._compared[store.serial] = {n: names[_text(t)] for n, t in compared.items()}
        self._keeps = [names[_text(tree)] for tree in _kept_columns(queries)]
        self._sent: dict[int, list[pa.Table]] = {}
        self._kept: list[pa.Table] = []
        for store in queries.stores.values():  # a task before this one may have failed
            store.panes.clear()

    @property
    def column(self) -> str | None:
        """The column of the axis."""
        return None if self._queries.axis is None else self._queries.axis.column

    def see(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None:
        """Rows are not counted here."""

    def take(
        self,
        table: pa.Table,
        source: NDArray[np.int32],  # noqa: ARG002 - a register has one
        at: NDArray[np.int64],
    ) -> None:
        """Fill panes, unless the stores are to do that; rows that are kept are sent beside them."""
        keep = self._queries.keep
        if keep is not None:
            given = zip(self._keeps, keep.columns.types, strict=True)
            kept = [column_of(table, name).cast(kind) for name, kind in given]
            self._kept.append(sent_rows(at, kept))
        for store in self._queries.stores.values():
            columns, compared = self._read(store, table)
            if self._keep_rows:
                columns |= store.rows.holding(compared, store.rows.compared_columns())
                named = {column_name(n): c for n, c in columns.items()}
                sent = pa.table({AT: pa.array(at), **named})
                self._sent.setdefault(store.serial, []).append(sent)
            else:
                with naming(lambda: self._queries.shapes):
                    store.panes.add(store.fill_read(at, columns, compared))

    def parts(self, shards: int) -> dict[int, dict[str, pa.Table]]:
        """The tables of each shard that has any."""
        found: dict[int, dict[str, pa.Table]] = {}
        for store in self._queries.stores.values():
            with naming(lambda: self._queries.shapes):
                parts = self._rows(store, shards) if self._keep_rows else _panes(store, shards)
            for shard, tables in parts.items():
                named = {part_name(store, name): table for name, table in tables.items()}
                found.setdefault(shard, {}).update(named)
            store.panes.clear()
        for shard, rows in by_shard(self._kept, lambda rows: [column_of(rows, AT)], shards).items():
            found.setdefault(shard, {})[KEPT] = rows
        return found

    def _read(self, store: SharedStore, table: pa.Table) -> tuple[dict[int, pa.Array], pa.Table]:
        """What a store reads, by number; and the columns that its filters compare, by name."""
        rows, columns = store.rows, {}
        for number, name in self._computed[store.serial].items():
            column = column_of(table, name)
            if number in rows.filters:
                column = pc.fill_null(column, False)
            columns[number] = column.cast(rows.types[number])
        compared = {
            name: column_of(table, sent).cast(rows.schema.field(name).type)
            for name, sent in self._compared[store.serial].items()
        }
        return columns, pa.table(compared)

    def _rows(self, store: SharedStore, shards: int) -> dict[int, dict[str, pa.Table]]:
        sent = self._sent.get(store.serial, [])
        mine = by_shard(sent, lambda rows: numbered(rows, range(len(store.keys))), shards)
        return {shard: {ROWS: rows} for shard, rows in mine.items()}


def _panes(store: SharedStore, shards: int) -> dict[int, dict[str, pa.Table]]:
    shard = shards_of(store.panes.groups.columns(np.arange(len(store.panes.groups))), shards)
    parcels = split(store, lambda _, keys: shard[keys])
    return {shard: to_tables(store.panes.pieces, parcel) for shard, parcel in parcels.items()}


def columns_of_rows(store: SharedStore, table: pa.Table) -> dict[int, pa.Array]:
    """The columns of rows that were sent as they are, by number."""
    return {n: column_of(table, column_name(n)) for n in store.rows.expressions}
