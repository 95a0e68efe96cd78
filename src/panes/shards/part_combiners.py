"""What a task does with the rows of a stream that several parts of a register read.

Every part that reads the stream has a column of structs in the task's rows, and a combiner. What
is said of all sources together, a promise by the clock, is no row and goes to all parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.shards.combiner import Combiner
from panes.shards.handed_on import sent_up
from panes.shards.names import AT, PROMISE, SOURCE
from panes.shards.shared_joins import EVERY_PART, addressed
from panes.sharing.failures import noted, require_none


@dataclass(frozen=True, slots=True)
class Use:
    """What one part makes of a stream: for which queries, and to which part at which level."""

    key: str
    names: tuple[str, ...]
    combiner: Callable[[], Combiner]
    level: int = 1


@dataclass(frozen=True, slots=True)
class Uses:
    """All uses of a stream; called by each task."""

    uses: tuple[Use, ...]
    shards: int

    def __call__(self) -> PartCombiners:
        return PartCombiners(self.uses, self.shards)


def use_column(number: int) -> str:
    """The column of a task's rows that has what one use reads."""
    return f"_use{number}"


class PartCombiners:
    """A combiner for each use of a stream, and one for what is said of all sources."""

    def __init__(self, uses: Sequence[Use], shards: int) -> None:
        self._uses = uses
        failing: dict[str, Exception] = {}
        self._combiners: list[Combiner] = []
        for use in uses:
            with noted(failing, use.names):
                self._combiners.append(use.combiner())
        require_none(failing)
        self._of_all = Combiner(_NoRows(), shards)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in some of the task's rows."""
        source = batch.column(SOURCE)
        rows = batch
        if source.null_count < len(source):
            is_row = pc.is_null(source)
            rows = batch.filter(is_row)
            said = [name for name in (SOURCE, AT, PROMISE) if name in batch.schema.names]
            self._of_all.add(batch.filter(pc.invert(is_row)).select(said))
        failing: dict[str, Exception] = {}
        for i, (use, combiner) in enumerate(zip(self._uses, self._combiners, strict=True)):
            with noted(failing, use.names):
                read = rows.column(use_column(i))
                combiner.add(pa.RecordBatch.from_struct_array(read.drop_null()))
        require_none(failing)

    def packages(self, *, always: bool = False) -> Iterator[tuple[int, bytes]]:
        """What each shard is sent."""
        failing: dict[str, Exception] = {}
        for use, combiner in zip(self._uses, self._combiners, strict=True):
            with noted(failing, use.names):
                for shard, package in combiner.packages():
                    yield sent_up(addressed(use.key, package), shard, 0, use.level)
        require_none(failing)
        for shard, package in self._of_all.packages(always=always):
            yield shard, addressed(EVERY_PART, package)


class _NoRows:
    """Makes nothing of rows: there are none."""

    column = None

    def see(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None: ...
    def take(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None: ...

    def parts(self, shards: int) -> dict[int, dict[str, pa.Table]]:  # noqa: ARG002
        return {}
