"""What a shard's state says of the rows it keeps, beside the rows themselves.

So whoever asks knows before any row is read whether all rows of a window are there, with all
columns, and in which runs they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

from panes.arrays.type_names import type_name
from panes.axis import FOREVER
from panes.shards.names import KEPT
from panes.shards.stored_runs import StoredRuns, about_table, ledger_table

_ABOUT, _COLUMNS, _RUNS, _SINCE = "kept", "kept_columns", "kept_runs", "since"


@dataclass(frozen=True, slots=True)
class KeptColumn:
    """A column of kept rows. All rows from `since` on have it."""

    name: str
    type: str
    since: int


@dataclass(frozen=True, slots=True)
class KeptLedger:
    """The columns of kept rows, in the order in which runs have them, and the runs.

    All rows from `since` on are kept, but for those that have been forgotten.
    """

    columns: Sequence[KeptColumn]
    since: int
    about: dict[str, object]
    runs: Sequence[dict[str, object]]

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table]) -> KeptLedger | None:
        """What is written in a state; None if that keeps no rows."""
        if _ABOUT not in tables:
            return None
        [about] = tables[_ABOUT].to_pylist()
        columns = [KeptColumn(**row) for row in tables[_COLUMNS].to_pylist()]
        return cls(columns, about.pop(_SINCE), about, tables[_RUNS].to_pylist())

    @staticmethod
    def tables(runs: StoredRuns, columns: Iterable[KeptColumn], since: int) -> dict[str, pa.Table]:
        """What is written of rows that are kept since a position."""
        listed = [asdict(column) for column in columns]
        return {
            _ABOUT: about_table([runs]).append_column(_SINCE, pa.array([since], pa.int64())),
            _COLUMNS: pa.Table.from_pylist(listed, schema=_COLUMN),
            _RUNS: ledger_table([runs]),
        }

    def whole_from(self, fields: Iterable[pa.Field]) -> int:
        """From where on all rows are there with these columns; `FOREVER` if one never was."""
        since = {(column.name, column.type): column.since for column in self.columns}
        known = [since.get((field.name, type_name(field.type)), FOREVER) for field in fields]
        return max([int(str(self.about["passed"])), self.since, *known])

    def runs_from(self, start: int) -> list[str]:
        """The names of the runs that have rows at or after a position.

        Rows at one position are in the order in which they came, run by run.
        """
        blocks = sorted(self.runs, key=lambda run: int(str(run["block"])))
        return [f"{KEPT}/{run['run']}" for run in blocks if int(str(run["high"])) >= start]

    def place(self, name: str) -> int:
        """Where a column is among those of a run."""
        return [column.name for column in self.columns].index(name)


_COLUMN = pa.schema({"name": pa.string(), "type": pa.string(), "since": pa.int64()})
