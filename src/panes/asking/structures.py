"""What answers prepared questions: one structure for every argument and filter, and its rows.

All structures of a register take in the same batches. Each looks at those of their rows that its
filter lets through and whose argument is not NULL, by arrival number or by position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.asking.preparable import StructureKey
from panes.asking.timegram_column import BoundedColumn
from panes.axis import BEGINNING
from panes.stores.nested.nested_windows import StaircaseSharing

Positions: TypeAlias = NDArray[np.int64]


class WindowStructure(Protocol):
    """Something that answers for windows of every size up to a largest one."""

    @property
    def nbytes(self) -> int: ...
    def add(self, at: Positions, values: pa.Array) -> None: ...
    def advance(self, end: int) -> None: ...
    def resize(self, max_size: int) -> None: ...


class Newest:
    """The newest row, which tells of every window whether it holds one."""

    nbytes = 8

    def __init__(self) -> None:
        self.at = BEGINNING

    def add(self, at: Positions, values: pa.Array) -> None:  # noqa: ARG002 - as a WindowStructure does
        self.at = max(self.at, int(at.max(initial=BEGINNING)))

    def advance(self, end: int) -> None:
        """There is nothing that could go."""

    def resize(self, max_size: int) -> None:
        """It depends on no size."""


@dataclass(slots=True)
class SharedStructure:
    """A structure, the columns it reads, from where on it knows all rows, and who asks for it.

    `sizes` counts the questions for windows of each size; `largest` is the largest of them.
    """

    over: StructureKey
    structure: WindowStructure
    argument: int | None
    where: int | None
    known_from: int
    largest: int
    sizes: Counter[int] = field(default_factory=Counter)

    def release(self, size: int) -> None:
        """Forget one question's interest in a size."""
        self.sizes[size] -= 1
        if not self.sizes[size]:
            del self.sizes[size]
            if self.sizes and size == self.largest:
                self.resize(max(self.sizes))

    def resize(self, largest: int) -> None:
        """Let another window be the largest that can be asked for."""
        self.largest = largest
        self.structure.resize(largest)


@dataclass(slots=True)
class Batch:
    """Columns of some rows, their arrival numbers and their positions.

    Filters and NULLs are looked at once for all structures over the same.
    """

    columns: Mapping[int, pa.Array]
    arrivals: Positions
    at: Positions
    _chosen: dict[tuple[int | None, int | None, bool], tuple[Positions, pa.Array]] = field(
        default_factory=dict
    )

    def rows_for(self, shared: SharedStructure) -> tuple[Positions, pa.Array]:
        """Positions and values that count: those that the filter lets through, without NULLs."""
        key = shared.argument, shared.where, shared.over.by_arrival
        if key not in self._chosen:
            self._chosen[key] = self._choose(*key)
        return self._chosen[key]

    def _choose(
        self, argument: int | None, where: int | None, by_arrival: bool
    ) -> tuple[Positions, pa.Array]:
        at = self.arrivals if by_arrival else self.at
        values = _zeros(len(at)) if argument is None else self.columns[argument]
        passing = None if where is None else self.columns[where]
        if values.null_count:
            valid = pc.is_valid(values)
            passing = valid if passing is None else pc.and_(passing, valid)
        if passing is None:
            return at, values
        return at[passing.to_numpy(zero_copy_only=False)], values.filter(passing)


def structure_for(over: StructureKey, max_size: int) -> WindowStructure:
    """An empty structure."""
    if over.form == "newest":
        return Newest()
    if over.width is not None:
        return BoundedColumn(width=over.width, max_size=max_size)
    return StaircaseSharing("min" if over.form == "min" else "max", max_size=max_size)


def _zeros(count: int) -> pa.Array:
    return pa.array(np.zeros(count, dtype=np.int64))
