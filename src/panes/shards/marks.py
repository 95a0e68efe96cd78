"""Marks: what a task says of how far its rows reach, source by source.

A task knows nothing of progress. Marks move the promises of a shard after the batch has been taken
in, so rows are late only by what was promised before their batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from panes.axis import FOREVER, Axis
from panes.nodes.set_aside import late_reasons
from panes.progress.promise import Promise
from panes.shards.names import AT, ENDED, EVERY_SOURCE, MARKS, ROW, SOURCE, positions_name
from panes.stores.parcel import widened


@dataclass(slots=True)
class Marks:
    """How far the rows of one source reach in a task.

    `low` and `newest` are of rows that pass WHERE, `high` is of all rows.
    """

    low: int | None = None
    high: int | None = None
    newest: int | None = None
    promise: int | None = None

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
    """The marks in a package, by source."""
    return {row.pop(SOURCE): Marks(**row) for row in tables[MARKS].to_pylist()}


def have_ended(marks: Iterable[Mapping[int, Marks]]) -> bool:
    """Whether a task says that its sources have ended."""
    return any(mark.promise == ENDED for found in marks for mark in found.values())


def observe_marks(marks: Mapping[int, Marks], promises: Sequence[Promise]) -> None:
    """Move the promises of sources by what a task has seen of them."""
    for number, mark in marks.items():
        for promise in promises if number == EVERY_SOURCE else [promises[number]]:
            if mark.high is not None:
                promise.observe(np.array([mark.high]))
            if mark.promise is not None and mark.promise != ENDED:
                promise.punctuate(mark.promise)


def oldest_late(packages: Iterable[Mapping[str, pa.Table]], promises: Sequence[Promise]) -> int:
    """Where the oldest row lies that breaks a promise made before this batch; `FOREVER`: none."""
    oldest = FOREVER
    for tables in packages:
        for number, mark in read_marks(tables).items():
            if mark.low is None or positions_name(number) not in tables:
                continue
            if mark.low < promises[number].at:
                oldest = min(oldest, mark.low)
    return oldest


def late_rows(
    tables: Mapping[str, pa.Table],
    promises: Sequence[Promise],
    axis: Axis,
    open_from: int,
    late: str,
) -> list[pa.Table]:
    """Rows of a package that break a promise made before this batch: reasons, and the rows.

    Positions from `open_from` on still have an open window.
    """
    found = []
    for number, mark in read_marks(tables).items():
        positions = tables.get(positions_name(number))
        if positions is None or mark.low is None:
            continue
        promised = promises[number].at
        at = mark.low + widened(positions.column(AT).combine_chunks())
        which = np.flatnonzero(at < promised)
        if len(which):
            reasons = late_reasons(axis, promised, at[which] >= open_from, late=late)
            columns = {"reason": pa.array(reasons)}
            if ROW in positions.column_names:
                columns[ROW] = positions.column(ROW).take(pa.array(which))
            found.append(pa.table(columns))
    return found


_SCHEMA = pa.schema(
    {
        SOURCE: pa.int32(),
        "low": pa.int64(),
        "high": pa.int64(),
        "newest": pa.int64(),
        "promise": pa.int64(),
    }
)
