"""Partials that are long vectors: count-min sketches and bitmaps, bit for bit as Spark's.

A partial is one array, added, or'ed or and'ed place by place; None for a group that has seen no
row. All three are exact in whole numbers, so no order of rows changes a byte of the answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Argument, Bounded, Rows, Selection
from panes.aggregates.count_min import SketchShape, buckets
from panes.aggregates.identity import identity
from panes.aggregates.monoid import Columns, Objects, Slots
from panes.aggregates.murmur128 import is_binary, is_text_or_binary
from panes.errors import ColumnTypeError, PanesError

BITMAP_BYTES = 4096
_FOLDS = {"or": np.bitwise_or, "and": np.bitwise_and}


@dataclass(frozen=True, slots=True)
class _Vectors(ABC):
    """A vector per slot, of the selected values of the argument."""

    argument: Argument
    selection: Selection
    VERSION: ClassVar[int] = 1

    @property
    @abstractmethod
    def monoid(self) -> Objects: ...

    @abstractmethod
    def _table(self, values: pa.Array, place: NDArray[np.intp], slots: int) -> NDArray[Any]:
        """The vectors of so many slots; `place` says which of them each value is for."""

    def _identified(self, name: str, form: str) -> str:
        given = self.argument.identity, self.selection.identity
        return identity(name, self.VERSION, form, *given)

    def lift(self, rows: Rows, slots: Slots, size: int) -> Columns:
        own = self.selection.slots(rows, slots)
        chosen = np.flatnonzero(own >= 0)
        named, place = np.unique(own[chosen], return_inverse=True)
        values = rows.columns[self.argument.column].take(pa.array(chosen))
        result = self.monoid.empty(size)
        for slot, vector in zip(named, self._table(values, place, len(named)), strict=True):
            result[0, slot] = vector
        return result


@dataclass(frozen=True, slots=True)
class CountMin(_Vectors):
    """Counts of hashed values in a table of `shape`; the last place counts all values."""

    shape: SketchShape

    @property
    def identity(self) -> str:
        return self._identified("count_min", self.shape.identity)

    @property
    def monoid(self) -> Objects:
        return Objects("count-min sketch", np.add)

    def _table(self, values: pa.Array, place: NDArray[np.intp], slots: int) -> NDArray[Any]:
        cells = self.shape.depth * self.shape.width
        table = np.zeros((slots, cells + 1), dtype=np.int64)
        for row, bucket in enumerate(buckets(self.shape, values)):
            np.add.at(table, (place, row * self.shape.width + bucket), 1)
        np.add.at(table[:, cells], place, 1)
        return table

    def to_bytes(self, vector: NDArray[np.int64]) -> bytes:
        """The counts as they are stored."""
        return vector.astype("<i8").tobytes()

    def from_bytes(self, data: bytes) -> NDArray[np.int64]:
        """The counts that `to_bytes` wrote."""
        return np.frombuffer(data, dtype="<i8").astype(np.int64)


@dataclass(frozen=True, slots=True)
class Bitmap(_Vectors):
    """A bitmap of 32,768 bits: those at the argument's positions, or of all its bitmaps."""

    fold: Literal["set", "or", "and"]

    @property
    def identity(self) -> str:
        return self._identified("bitmap", self.fold)

    @property
    def monoid(self) -> Objects:
        return Objects("bitmap", _FOLDS["and" if self.fold == "and" else "or"])

    def _table(self, values: pa.Array, place: NDArray[np.intp], slots: int) -> NDArray[Any]:
        table = np.full((slots, BITMAP_BYTES), 255 if self.fold == "and" else 0, dtype=np.uint8)
        if self.fold == "set":
            at = values.cast(pa.int64()).to_numpy()
            _require_positions(at)
            np.bitwise_or.at(table, (place, at // 8), np.left_shift(1, at % 8).astype(np.uint8))
        else:
            fold = _FOLDS[self.fold]
            for i, data in zip(place, values.to_pylist(), strict=True):
                table[i] = fold(table[i], _padded(data))
        return table

    def to_bytes(self, vector: NDArray[np.uint8]) -> bytes:
        """The bits as they are stored."""
        return vector.tobytes()

    def from_bytes(self, data: bytes) -> NDArray[np.uint8]:
        """The bits that `to_bytes` wrote."""
        return np.frombuffer(data, dtype=np.uint8)


def count_min_sketch(argument: Argument, where: int | None, shape: SketchShape) -> Bounded:
    """``count_min_sketch(x, eps, confidence, seed)``: the bytes that Spark's own function gives."""
    kind = argument.type
    plain = pa.types.is_integer(kind) and not pa.types.is_uint64(kind)
    if not (plain or is_text_or_binary(kind)):
        raise ColumnTypeError(f"count_min_sketch needs integers, text or binary, got {kind}")
    piece = CountMin(argument, Selection((argument.column,), where), shape)

    def lower(partials: Sequence[Columns]) -> pa.Array:
        nothing = np.zeros(shape.depth * shape.width + 1, dtype=np.int64)
        vectors: list[Any] = [nothing if v is None else v for v in partials[0][0]]
        return pa.array([shape.written(v[:-1], int(v[-1])) for v in vectors], pa.binary())

    return Bounded((piece,), lower, pa.binary(), "full")


def bitmap(argument: Argument, where: int | None, fold: Literal["set", "or", "and"]) -> Bounded:
    """``bitmap_construct_agg(position)``, ``bitmap_or_agg(bits)``, ``bitmap_and_agg(bits)``."""
    kind = argument.type
    if fold == "set" and not pa.types.is_integer(kind):
        raise ColumnTypeError(f"bitmap_construct_agg needs positions of bits, got {kind}")
    if fold != "set" and not is_binary(kind):
        raise ColumnTypeError(f"bitmap_{fold}_agg needs bitmaps, in binary, got {kind}")
    nothing = (b"\xff" if fold == "and" else b"\0") * BITMAP_BYTES

    def lower(partials: Sequence[Columns]) -> pa.Array:
        vectors: list[Any] = list(partials[0][0])
        return pa.array([nothing if v is None else v.tobytes() for v in vectors], pa.binary())

    piece = Bitmap(argument, Selection((argument.column,), where), fold)
    return Bounded((piece,), lower, pa.binary(), "none")


def _require_positions(at: NDArray[np.int64]) -> None:
    outside = (at < 0) | (at >= 8 * BITMAP_BYTES)
    if outside.any():
        raise PanesError(
            f"a bitmap has the positions 0 to {8 * BITMAP_BYTES - 1:,}, got {at[outside][0]}",
            hint="bitmap_construct_agg(bitmap_bit_position(x)), grouped by bitmap_bucket_number(x)",
        )


def _padded(data: bytes) -> NDArray[np.uint8]:
    whole = np.zeros(BITMAP_BYTES, dtype=np.uint8)
    given = np.frombuffer(data[:BITMAP_BYTES], dtype=np.uint8)
    whole[: len(given)] = given
    return whole
