"""What all tasks have sent a shard in one batch, unpacked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from panes.axis import FOREVER, Axis
from panes.nodes.set_aside import late_reasons
from panes.progress.promise import Promise
from panes.shards.marks import Marks, read_marks
from panes.shards.names import AT, ENDED, EVERY_SOURCE, ROW, positions_name
from panes.stores import codec
from panes.stores.parcel import widened

Tables: TypeAlias = Mapping[str, pa.Table]
"""The tables of a package."""


@dataclass(frozen=True, slots=True)
class Packages:
    """The packages of a batch, each with its tables, and with the marks of each source."""

    opened: tuple[Tables, ...] = ()
    marks: tuple[Mapping[int, Marks], ...] = ()

    @classmethod
    def of(cls, packages: Iterable[bytes]) -> Packages:
        """Packages as they were sent."""
        opened = tuple(codec.unpack(data) for data in packages)
        return cls(opened, tuple(map(read_marks, opened)))

    def __add__(self, others: Packages) -> Packages:
        return Packages((*self.opened, *others.opened), (*self.marks, *others.marks))

    def __iter__(self) -> Iterator[Tables]:
        return iter(self.opened)

    def named(self, name: str) -> list[pa.Table]:
        """The tables of this name, of those packages that have one."""
        return [tables[name] for tables in self.opened if name in tables]

    @property
    def have_ended(self) -> bool:
        """Whether a task says that its sources have ended."""
        return any(mark.promise == ENDED for marks in self.marks for mark in marks.values())

    def highest(self, name: str = "high") -> dict[int, int]:
        """The greatest mark of each source that has one."""
        found: dict[int, int] = {}
        for marks in self.marks:
            for source, mark in marks.items():
                at = getattr(mark, name)
                if at is not None:
                    found[source] = max(at, found.get(source, at))
        return found

    def observe(self, promises: Sequence[Promise]) -> None:
        """Move the promises of sources by what tasks have seen of them."""
        for marks in self.marks:
            for source, mark in marks.items():
                for promise in promises if source == EVERY_SOURCE else [promises[source]]:
                    if mark.high is not None:
                        promise.observe(np.array([mark.high]))
                    if mark.promise is not None and mark.promise != ENDED:
                        promise.punctuate(mark.promise)

    def oldest_late(self, promises: Sequence[Promise]) -> int:
        """Where the oldest row lies that breaks a promise made before; `FOREVER`: none does."""
        late = (low for source, low, _ in self._noted() if low < promises[source].at)
        return min(late, default=FOREVER)

    def late_rows(
        self, promises: Sequence[Promise], axis: Axis, open_from: int, late: str
    ) -> list[pa.Table]:
        """Rows that break a promise made before this batch: reasons, and the rows.

        Positions from `open_from` on still have an open window.
        """
        found = []
        for source, low, positions in self._noted():
            promised = promises[source].at
            at = low + widened(positions.column(AT).combine_chunks())
            which = np.flatnonzero(at < promised)
            if len(which):
                reasons = late_reasons(axis, promised, at[which] >= open_from, late=late)
                columns = {"reason": pa.array(reasons)}
                if ROW in positions.column_names:
                    columns[ROW] = positions.column(ROW).take(pa.array(which))
                found.append(pa.table(columns))
        return found

    def _noted(self) -> Iterator[tuple[int, int, pa.Table]]:
        """Where tasks noted the rows of each source: from which position on, and where."""
        for tables, marks in zip(self.opened, self.marks, strict=True):
            for source, mark in marks.items():
                if mark.low is not None and positions_name(source) in tables:
                    yield source, mark.low, tables[positions_name(source)]
