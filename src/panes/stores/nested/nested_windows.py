"""Minima and maxima of windows that all end together: each holds all smaller ones.

Values of any fixed-width type become integers that sort the same way; a minimum is a maximum of
complements. So what lies underneath only ever looks for the greatest of 64-bit integers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.order_keys import decode, encode, has_key
from panes.errors import ColumnTypeError, InputError, OptionError
from panes.stores.nested.reach import NestedReach
from panes.stores.nested.staircase import Staircase


class NestedWindows(ABC):
    """Min or max over windows that all end together, so that each holds all smaller ones."""

    def __init__(self, aggregate: Literal["min", "max"], *, max_size: int) -> None:
        if aggregate not in ("min", "max"):
            raise OptionError(f"nested windows share min or max; asked for {aggregate!r}")
        self._flip = np.int64(-1 if aggregate == "min" else 0)
        self._none: pa.Array | None = None  # of the type of the values
        self._reach = NestedReach(max_size)

    @property
    def end(self) -> int:
        """Where all windows end: just after the newest row, or at the newest promise."""
        return self._reach.end

    def resize(self, max_size: int) -> None:
        """Let another window be the largest; rows that are evicted by now stay so."""
        self._reach.resize(max_size)
        self._evict_before(self._reach.oldest)

    def add(self, at: NDArray[np.int64], values: NDArray[np.generic] | pa.Array) -> None:
        """Take in rows in axis order, none of them NULL; NaN is greater than any other number."""
        if len(at) != len(values):
            raise InputError(f"{len(at)} positions came with {len(values)} values")
        column = values if isinstance(values, pa.Array) else pa.array(values)
        if self._none is not None and self._none.type != column.type:
            raise ColumnTypeError(
                f"values were {self._none.type} so far, and now are {column.type}"
            )
        if not has_key(column.type):
            raise ColumnTypeError(f"min and max here need numbers or times, got {column.type}")
        self._reach.follow(at)
        if self._none is None:
            self._none = pa.array([], column.type)
        self._insert(at, encode(column) ^ self._flip)
        self._evict_before(self._reach.oldest)

    def add_rows(self, values: NDArray[np.generic]) -> None:
        """Take in rows whose positions are their arrival numbers, from 0."""
        self.add(self._reach.arrivals(len(values)), values)

    def advance(self, progress: int) -> None:
        """Move all windows on to a promise: no later row lies before `progress`."""
        self._reach.advance(progress)
        self._evict_before(self._reach.oldest)

    def ask(self, size: int) -> object:
        """The answer over ``[end - size, end)``; None if no row lies there."""
        return self.ask_each([size])[0].as_py()

    def ask_each(self, sizes: Sequence[int] | NDArray[np.int64]) -> pa.Array:
        """The answers of many windows; NULL where no row lies in one."""
        starts = self._reach.starts(np.asarray(sizes, dtype=np.int64))
        keys, found = self._lookup(starts)
        return self._values(keys, ~found)

    def _values(self, keys: NDArray[np.int64], is_null: NDArray[np.bool_]) -> pa.Array:
        if self._none is None:
            return pa.nulls(len(keys))
        return decode(keys ^ self._flip, is_null, self._none.type)

    @abstractmethod
    def _insert(self, at: NDArray[np.int64], keys: NDArray[np.int64]) -> None:
        """Take in rows."""

    @abstractmethod
    def _lookup(self, starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The greatest key from each start on, and whether there is one."""

    @abstractmethod
    def _evict_before(self, at: int) -> None:
        """Drop the rows before a position."""


class StaircaseSharing(NestedWindows):
    """Min or max over the last N rows or ticks, for any N up to `max_size` (*Aggregate Sharing* 6).

    It keeps the rows that are the answer of some window; windows need not be registered.

    >>> lowest = StaircaseSharing("min", max_size=60)
    >>> lowest.add(np.array([0, 25, 50]), np.array([1.5, 2.5, 4.0]))
    >>> lowest.ask_each([1, 26, 60]).to_pylist()
    [4.0, 2.5, 1.5]
    """

    def __init__(self, aggregate: Literal["min", "max"], *, max_size: int) -> None:
        super().__init__(aggregate, max_size=max_size)
        self._stairs = Staircase()

    def __len__(self) -> int:
        """The number of rows that are remembered: those that are the answer of some window."""
        return len(self._stairs)

    @property
    def nbytes(self) -> int:
        """Bytes that they take."""
        return 16 * len(self._stairs)

    def _insert(self, at: NDArray[np.int64], keys: NDArray[np.int64]) -> None:
        self._stairs.push(at, keys)

    def _lookup(self, starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        return self._stairs.greatest(starts)

    def _evict_before(self, at: int) -> None:
        self._stairs.evict_before(at)
