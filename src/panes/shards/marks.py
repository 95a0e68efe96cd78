"""Marks: what a task says of how far its rows reach, source by source.

A task knows nothing of progress. Marks move the promises of a shard after the batch has been taken
in, so rows are late only by what was promised before their batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import pyarrow as pa

from panes.shards.names import MARKS, SOURCE


@dataclass(slots=True)
class Marks:
    """How far the rows of one source reach in a task.

    `low` and `newest` are of rows that pass WHERE, `high` is of all rows. `before` is what was
    promised before this batch, where nobody else knows it.
    """

    low: int | None = None
    high: int | None = None
    newest: int | None = None
    promise: int | None = None
    before: int | None = None

    def raise_to(self, name: str, at: int) -> None:
        """Let a mark be at least so high."""
        before = getattr(self, name)
        setattr(self, name, at if before is None else max(before, at))

    def lower_to(self, at: int) -> None:
        """Let the low mark be at most so high."""
        self.low = at if self.low is None else min(self.low, at)


def marks_table(marks: Mapping[int, Marks]) -> pa.Table:
    """The marks of all sources, to be sent."""
    rows = [{SOURCE: number, **asdict(marks[number])} for number in sorted(marks)]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def read_marks(tables: Mapping[str, pa.Table]) -> dict[int, Marks]:
    """The marks in a package, by source; there may be none."""
    rows = tables[MARKS].to_pylist() if MARKS in tables else ()
    return {row.pop(SOURCE): Marks(**row) for row in rows}


_SCHEMA = pa.schema(
    {
        SOURCE: pa.int32(),
        "low": pa.int64(),
        "high": pa.int64(),
        "newest": pa.int64(),
        "promise": pa.int64(),
        "before": pa.int64(),
    }
)
