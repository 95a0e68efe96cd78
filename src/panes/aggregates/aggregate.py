"""Aggregates: pieces that combine, and how to lower them to an answer.

An aggregate knows nothing of windows, storage or hosts. A *bounded* one (``avg``) is a tuple of
`Piece`s, each a monoid and the way rows are lifted into it; pieces are plain data and compare
equal, so that ``sum(x)``, ``avg(x)`` and ``count(x)`` of one query share theirs. A *holistic* one
(``median``) has no partial of fixed size: its argument is kept as a multiset, counted values per
pane, and it is lowered from the multiset of a window. (*No Pane, No Gain* 3.2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.aggregates.monoid import Columns, Monoid, Slots
from panes.aggregates.ranks import Rule
from panes.arrays.columns import without_nulls
from panes.arrays.type_names import type_name
from panes.errors import ColumnTypeError

Differential = Literal["full", "pseudo", "none"]


@dataclass(frozen=True, slots=True)
class Argument:
    """A column of the projected rows: where it stands and what it is."""

    column: int
    type: pa.DataType

    @property
    def identity(self) -> str:
        """Its part of a piece's identity."""
        return f"{self.column} {type_name(self.type)}"


@dataclass(frozen=True, slots=True)
class Rows:
    """Projected rows, ready to be lifted: positions on the axis and the argument columns."""

    at: NDArray[np.int64]
    columns: tuple[pa.Array, ...]

    def __len__(self) -> int:
        return len(self.at)

    def chunks(self, length: int = 65_536) -> Iterator[tuple[slice, Rows]]:
        """The rows piece by piece, each small enough to stay in the processor's cache."""
        for begin in range(0, len(self), length):
            part = slice(begin, begin + length)
            yield part, Rows(self.at[part], tuple(c[part] for c in self.columns))

    def numbers(self, argument: Argument) -> NDArray[np.float64]:
        """An argument as doubles; NULLs hold an arbitrary number."""
        array = self.columns[argument.column]
        if not pa.types.is_float64(array.type):
            array = array.cast(pa.float64(), safe=False)
        return without_nulls(array, 0.0)


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows an aggregate looks at: its arguments are not NULL and its FILTER holds."""

    present: tuple[int, ...] = ()
    where: int | None = None

    @property
    def identity(self) -> str:
        """Its part of a piece's identity; nothing if it lets all rows through."""
        present = [f"present {' '.join(map(str, self.present))}"] if self.present else []
        return "; ".join(present + ([] if self.where is None else [f"where {self.where}"]))

    def keeps_all(self, rows: Rows) -> bool:
        """True if no row is passed over."""
        return self.where is None and not any(rows.columns[c].null_count for c in self.present)

    def slots(self, rows: Rows, slots: Slots) -> Slots:
        """The slots, with -1 for rows that are passed over."""
        passing: pa.Array | None = None
        for column in self.present:
            array = rows.columns[column]
            if array.null_count:
                valid = pc.is_valid(array)
                passing = valid if passing is None else pc.and_(passing, valid)
        if self.where is not None:
            holds = pc.fill_null(rows.columns[self.where], False)
            passing = holds if passing is None else pc.and_(passing, holds)
        if passing is None:
            return slots
        return np.where(passing.to_numpy(zero_copy_only=False), slots, slots.dtype.type(-1))

    def chosen(self, rows: Rows, slots: Slots) -> tuple[NDArray[np.int64], Slots]:
        """The rows that are not passed over, and their slots."""
        own = self.slots(rows, slots)
        chosen = np.flatnonzero(own >= 0)
        return chosen, own[chosen]


class Piece(Protocol):
    """One monoid of an aggregate and how rows are lifted into it. Hashable, compared by value."""

    @property
    def monoid(self) -> Monoid: ...

    @property
    def identity(self) -> str:
        """The identity of its partials in a state (`panes.aggregates.identity`)."""
        ...

    def lift(self, rows: Rows, slots: Slots, size: int) -> Columns:
        """`size` partials, each of the rows whose slot names it."""
        ...


@runtime_checkable
class BytesPiece(Piece, Protocol):
    """A piece whose partials are objects, which are bytes where they are sent or stored."""

    def to_bytes(self, partial: Any) -> bytes:
        """A partial as bytes."""
        ...

    def from_bytes(self, data: bytes) -> Any:
        """The partial that `to_bytes` wrote."""
        ...


@dataclass(frozen=True, slots=True)
class Bounded:
    """An aggregate whose partial has a fixed size."""

    pieces: tuple[Piece, ...]
    lower: Callable[[Sequence[Columns]], pa.Array]
    type: pa.DataType
    differential: Differential
    error: str | None = None
    kind: Literal["bounded"] = field(default="bounded", init=False)


class Multiset(Protocol):
    """The values of each window, with counts, as `panes.kernels.sliding_multiset` gives them."""

    @property
    def values(self) -> pa.Array:
        """The different values of all windows, ascending."""
        ...

    def distinct(self) -> NDArray[np.int64]:
        """The number of different values in each window."""
        ...

    def ranks_at(
        self, fraction: float, rule: Rule
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """The values around a fraction of each sorted window, and how far between them.

        The first two index `values`, and are -1 where a window holds none. By every rule but
        ``between`` both are the same value, one that occurred.
        """
        ...

    def select(
        self, how: Literal["all", "top", "share"], limit: float
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Chosen values of each window: where its choice begins, value indexes, counts."""
        ...


@dataclass(frozen=True, slots=True)
class Holistic:
    """An aggregate that may need every value of a window.

    If it is `ordered`, values of several arguments are structs, ranked by the first argument,
    then by the next. Nested values are bytes (`panes.arrays.nested_keys`).
    """

    arguments: tuple[Argument, ...]
    selection: Selection
    lower: Callable[[Multiset], pa.Array]
    type: pa.DataType
    ordered: bool = False
    differential: Differential = "pseudo"
    error: str | None = None
    kind: Literal["holistic"] = field(default="holistic", init=False)


Aggregate = Bounded | Holistic


CAST = "text that holds numbers is cast: CAST(price AS DOUBLE)"


def require_numbers(arguments: Iterable[Argument], *, what: str) -> None:
    """Refuse arguments that are not numbers, before the first row."""
    for argument in arguments:
        kind = argument.type
        if not (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_decimal(kind)
            or pa.types.is_null(kind)  # nothing but NULLs, and of no type
        ):
            raise ColumnTypeError(f"{what} needs numbers, got {kind}", hint=CAST)


def nullable(
    values: NDArray[np.generic], is_null: NDArray[np.bool_], data_type: pa.DataType
) -> pa.Array:
    """An answer column with NULL where there was nothing to aggregate."""
    return pa.array(values, type=data_type, mask=is_null if is_null.any() else None)
