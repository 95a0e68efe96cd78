"""Combine: what one task of a host makes of its rows, before anything is shuffled.

A task sees some rows of a batch and knows nothing of progress. It fills panes as far as it can,
and sends each shard one package: the partials of the shard's keys, and marks that say how far
the task's rows reach. Only the store, which knows what was promised before, can tell late rows;
for that, the positions of all rows go to one shard, and the rows themselves if they are wanted.
Where all rows are sent anyway, their shards tell which are late. Positions that lie very far ahead
of the task's other rows are rejected here, before they move anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.arrays.columns import column_of
from panes.axis import LIMIT, Axis
from panes.nodes.gate import believed_up_to
from panes.nodes.set_aside import no_position, too_far_ahead, too_far_ahead_of_others
from panes.planning.terms import CheckedOptions
from panes.shards.marks import Marks, marks_table
from panes.shards.names import (
    ASIDE,
    AT,
    EVERY_SOURCE,
    MARKS,
    PASSING,
    PROMISE,
    REJECTED,
    ROW,
    SOURCE,
    positions_name,
)
from panes.shards.shard_of import shards_of
from panes.stores import codec
from panes.stores.parcel import narrowed

_FULL = 1 << 18
Combiners: TypeAlias = "Callable[[], Combiner]"
"""What makes a combiner for each task."""


class Filler(Protocol):
    """What is made of rows that have a position on the axis, which is named by its `column`."""

    @property
    def column(self) -> str | None: ...

    def see(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None:
        """All rows, before WHERE."""
        ...

    def take(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None:
        """The rows that pass."""
        ...

    def parts(self, shards: int) -> dict[int, dict[str, pa.Table]]:
        """The tables of each shard that has any."""
        ...


def combiners(
    filler: Callable[[], Filler],
    shards: int,
    terms: CheckedOptions,
    axis: Axis,
    *,
    notes_positions: bool = False,
) -> Combiners:
    """A combiner for each task, with a filler of its own."""
    step = terms.step_on(axis.kind)
    return lambda: Combiner(filler(), shards, notes_positions=notes_positions, max_step=step)


@dataclass(slots=True)
class Combiner:
    """Collects a task's rows; gives one package per shard."""

    filler: Filler
    shards: int
    notes_positions: bool = True
    max_step: int | None = None
    _waiting: list[pa.Table] = field(default_factory=list)
    _rows: int = 0
    _had_rows: bool = False
    _marks: dict[int, Marks] = field(default_factory=dict)
    _positions: dict[int, list[pa.Table]] = field(default_factory=dict)
    _rejected: list[pa.Table] = field(default_factory=list)
    _aside: list[pa.Table] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in some of the task's rows."""
        if batch.num_rows:
            self._waiting.append(pa.Table.from_batches([batch]))
            self._rows += batch.num_rows
            self._had_rows = True
        if self._rows >= _FULL:
            self._combine()

    def tell(self, source: int, *, promise: int | None, before: int | None) -> None:
        """Say what is promised of a source, and was before this batch."""
        marks = self._marks.setdefault(source, Marks())
        marks.promise, marks.before = promise, before

    def packages(self, *, always: bool = False) -> Iterator[tuple[int, bytes]]:
        """What each shard is sent; nothing if the task had no row, unless `always`."""
        self._combine()
        if not self._had_rows and not always:
            return
        parts = self.filler.parts(self.shards)
        marks = marks_table(self._marks)
        # Batches of whole seconds would all go to one shard if it were not for the hash.
        newest = pa.array([pc.max(marks.column("high")).as_py()], pa.int64())
        noted_by = int(shards_of([newest], self.shards)[0])
        for shard in range(self.shards):
            tables = {MARKS: marks, **parts.get(shard, {})}
            if shard == noted_by:
                tables |= self._position_tables()
                if self._rejected:
                    tables[REJECTED] = pa.concat_tables(self._rejected)
                if self._aside:
                    tables[ASIDE] = pa.concat_tables(self._aside)
            yield shard, codec.pack(tables)

    def _combine(self) -> None:
        """Work through the rows that wait."""
        if not self._waiting:
            return
        table = pa.concat_tables(self._waiting).combine_chunks()
        self._waiting, self._rows = [], 0
        table = self._passed_on(table)
        source = self._sources(table)
        self._note_promises(table, source)
        table, source = self._placed(table, source)
        at = column_of(table, AT).to_numpy()
        self._note_positions(source, at, "high")
        self.filler.see(table, source, at)
        if PASSING in table.column_names:
            passing = pc.fill_null(column_of(table, PASSING), False)
            table = table.filter(passing)
            mask = passing.to_numpy(zero_copy_only=False)
            source, at = source[mask], at[mask]
        if not len(at):
            return
        self._note_positions(source, at, "newest")
        if self.notes_positions:
            self._note_rows(table, source, at)
        self.filler.take(table, source, at)

    def _passed_on(self, table: pa.Table) -> pa.Table:
        """Without rows that were set aside elsewhere, which are passed on."""
        if ASIDE not in table.column_names:
            return table
        is_aside = pc.is_valid(column_of(table, ASIDE))
        aside = table.select([ASIDE]).filter(is_aside)
        self._aside += [aside] if len(aside) else []
        return table.drop_columns([ASIDE]).filter(pc.invert(is_aside))

    def _sources(self, table: pa.Table) -> NDArray[np.int32]:
        if SOURCE not in table.column_names:
            return np.zeros(len(table), dtype=np.int32)
        numbers: NDArray[np.int32] = column_of(table, SOURCE).to_numpy().astype(np.int32)
        return numbers

    def _note_rows(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None:
        """Note where rows lie, so that the store can tell which are late."""
        for number in np.unique(source).tolist():
            which = None if (source == number).all() else np.flatnonzero(source == number)
            positions = at if which is None else at[which]
            columns = {AT: pa.array(positions)}
            if ROW in table.column_names:
                rows = table.column(ROW)
                columns[ROW] = rows if which is None else rows.take(pa.array(which))
            self._positions.setdefault(number, []).append(pa.table(columns))
            self._marks[number].lower_to(int(positions.min()))

    def _position_tables(self) -> dict[str, pa.Table]:
        """Where the rows of each source lie, counted from its low mark."""
        found = {}
        for number, stored in self._positions.items():
            table = pa.concat_tables(stored)
            positions = table.column(AT).combine_chunks().to_numpy() - self._marks[number].low
            found[positions_name(number)] = table.set_column(0, AT, narrowed(positions))
        return found

    def _note_promises(self, table: pa.Table, source: NDArray[np.int32]) -> None:
        if PROMISE not in table.column_names:
            return
        promised = column_of(table, PROMISE)
        valid = pc.is_valid(promised).to_numpy(zero_copy_only=False)
        self._note_positions(source[valid], promised.drop_null().to_numpy(), "promise")

    def _note_positions(self, source: NDArray[np.int32], at: NDArray[np.int64], name: str) -> None:
        if len(source) and (source == source[0]).all():
            self._marks.setdefault(int(source[0]), Marks()).raise_to(name, int(at.max()))
            return
        for number in np.unique(source).tolist():
            greatest = int(at[source == number].max())
            self._marks.setdefault(number, Marks()).raise_to(name, greatest)

    def _placed(
        self, table: pa.Table, source: NDArray[np.int32]
    ) -> tuple[pa.Table, NDArray[np.int32]]:
        """Without rows that have no position, which are rejected, or that are a promise only."""
        has_position = np.ones(len(table), dtype=np.bool_)
        at = column_of(table, AT)
        if at.null_count:
            missing = pc.is_null(at).to_numpy(zero_copy_only=False)
            is_row = source != EVERY_SOURCE
            if PROMISE in table.column_names:
                is_row &= pc.is_null(column_of(table, PROMISE)).to_numpy(zero_copy_only=False)
            self._reject(table, missing & is_row, no_position(self.filler.column))
            has_position &= ~missing
        ahead = pc.fill_null(pc.greater(at, LIMIT), False).to_numpy(zero_copy_only=False)
        if ahead.any():
            self._reject(table, ahead, too_far_ahead(self.filler.column))
            has_position &= ~ahead
        if self.max_step is not None:
            self._reject_far(table, source, has_position)
        if has_position.all():
            return table, source
        return table.filter(pa.array(has_position)), source[has_position]

    def _reject_far(
        self, table: pa.Table, source: NDArray[np.int32], has_position: NDArray[np.bool_]
    ) -> None:
        """Reject rows that are more than a step ahead of all others that the task has seen."""
        assert self.max_step is not None
        at = pc.fill_null(column_of(table, AT), 0).to_numpy(zero_copy_only=False)
        for number in np.unique(source[has_position]).tolist():
            of_source = has_position & (source == number)
            before = self._marks.get(number, Marks()).high
            last = believed_up_to(at[of_source], before, self.max_step)
            far = of_source & (at > last)
            self._reject(table, far, too_far_ahead_of_others(self.filler.column, last))
            has_position &= ~far

    def _reject(self, table: pa.Table, which: NDArray[np.bool_], reason: str) -> None:
        count = int(which.sum())
        if not count:
            return
        columns: dict[str, Sequence[object]] = {"reason": pa.array([reason] * count)}
        if ROW in table.column_names:
            columns[ROW] = table.column(ROW).filter(pa.array(which))
        self._rejected.append(pa.table(columns))
