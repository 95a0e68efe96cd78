"""``theta_sketch_agg``, ``theta_union_agg`` and ``theta_intersection_agg``, with Spark's bytes.

A partial is a `panes.aggregates.theta.Theta`, which is the same in any order of rows. A group that
has seen nothing is neutral; a sketch that is empty is not, where sketches are intersected.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import Argument, Bounded, Rows, Selection
from panes.aggregates.identity import identity
from panes.aggregates.monoid import Columns, Objects, Slots
from panes.aggregates.murmur128 import has_bytes, hashes, is_binary, is_text_or_binary
from panes.aggregates.theta import (
    ALL,
    DEFAULT_LG,
    EMPTY,
    GREATEST_LG,
    LEAST_LG,
    Hashed,
    Theta,
    intersected,
    sketch_of,
    united,
)
from panes.aggregates.theta_bytes import read, written
from panes.errors import ColumnTypeError, QueryError

Form = Literal["values", "union", "intersection"]


@dataclass(frozen=True, slots=True)
class ThetaPiece:
    """A sketch per slot: of the argument's values, or of all or the common values of sketches."""

    form: Form
    lg: int
    argument: Argument
    selection: Selection
    VERSION: ClassVar[int] = 1

    @property
    def identity(self) -> str:
        size = "" if self.form == "intersection" else f" 2^{self.lg}"
        given = self.argument.identity, self.selection.identity
        return identity("theta", self.VERSION, f"{self.form}{size}", *given)

    @property
    def monoid(self) -> Objects:
        if self.form == "intersection":
            return Objects("theta sketch", intersected)
        return Objects("theta sketch", united, (self.lg,))

    def lift(self, rows: Rows, slots: Slots, size: int) -> Columns:
        chosen, own = self.selection.chosen(rows, slots)
        values = rows.columns[self.argument.column].take(pa.array(chosen))
        return (self._of_values if self.form == "values" else self._of_sketches)(values, own, size)

    def _of_values(self, values: pa.Array, slots: Slots, size: int) -> Columns:
        some = has_bytes(values)
        first, _ = hashes(values.filter(pa.array(some)))
        hashed, own = first >> np.uint64(1), slots[some]
        order = np.lexsort((hashed, own))
        hashed, own = hashed[order], own[order]
        named, begin = np.unique(own, return_index=True)
        parts = np.split(hashed, begin[1:])
        made = ((s, self._of_hashes(p)) for s, p in zip(named.tolist(), parts, strict=False))
        return self.monoid.gathered(made, size)

    def _of_hashes(self, hashed: Hashed) -> Theta:
        different = np.unique(hashed)
        return sketch_of(different[different > 0], ALL, self.lg)

    def _of_sketches(self, values: pa.Array, slots: Slots, size: int) -> Columns:
        sketches = [read(data) for data in values.to_pylist()]
        if self.form == "union":
            sketches = [united(EMPTY, s, self.lg) for s in sketches]  # no larger than the union
        return self.monoid.gathered(zip(slots.tolist(), sketches, strict=True), size)

    def to_bytes(self, sketch: Theta) -> bytes:
        """A sketch as it is stored: whether it is empty, its bound, its hashes."""
        head = struct.pack("<?q", sketch.is_empty, sketch.bound)
        return head + sketch.hashes.astype("<u8").tobytes()

    def from_bytes(self, data: bytes) -> Theta:
        """The sketch that `to_bytes` wrote."""
        is_empty, bound = struct.unpack_from("<?q", data)
        return Theta(np.frombuffer(data, "<u8", offset=9).astype(np.uint64), bound, is_empty)


def theta_sketch(argument: Argument, where: int | None, lg: int = DEFAULT_LG) -> Bounded:
    """``theta_sketch_agg(x, lgNomEntries)``: of numbers, text, binary or lists of whole numbers."""
    require_hashable(argument.type, "theta_sketch_agg")
    return _theta("values", argument, where, lg, f"theta_sketch_agg(x, {lg})")


def theta_union(argument: Argument, where: int | None, lg: int = DEFAULT_LG) -> Bounded:
    """``theta_union_agg(sketch, lgNomEntries)``."""
    require_sketches(argument, "theta_union_agg")
    return _theta("union", argument, where, lg, f"theta_union_agg(sketch, {lg})")


def theta_intersection(argument: Argument, where: int | None) -> Bounded:
    """``theta_intersection_agg(sketch)``."""
    require_sketches(argument, "theta_intersection_agg")
    return _theta("intersection", argument, where, DEFAULT_LG, "theta_intersection_agg(sketch)")


def _theta(form: Form, argument: Argument, where: int | None, lg: int, asked: str) -> Bounded:
    require_size(lg, asked)
    piece = ThetaPiece(form, lg, argument, Selection((argument.column,), where))

    def lower(partials: Sequence[Columns]) -> pa.Array:
        return pa.array([written(s or EMPTY) for s in partials[0][0]], pa.binary())

    return Bounded((piece,), lower, pa.binary(), "none", stated_error(form, lg))


def require_hashable(kind: pa.DataType, name: str) -> None:
    """Refuse values that have no hash in DataSketches, before the first row."""
    inside = kind.value_type if pa.types.is_list(kind) else kind
    is_whole = pa.types.is_int32(inside) or pa.types.is_int64(inside)
    is_float = pa.types.is_float32(kind) or pa.types.is_float64(kind)
    if not (is_whole or is_float or is_text_or_binary(kind)):
        raise ColumnTypeError(
            f"{name} needs int, bigint, float, double, text, binary, or an array of int "
            f"or bigint, got {kind}",
            hint=f"{name}(CAST(x AS BIGINT))",
        )


def require_size(lg: int, asked: str) -> None:
    """Refuse a size that Spark refuses."""
    if not LEAST_LG <= lg <= GREATEST_LG:
        raise QueryError(
            f"{asked} needs {LEAST_LG} to {GREATEST_LG} as lgNomEntries, got {lg}",
            hint="the default, 12, holds 4,096 hashes and has an error of 1.6 %",
        )


def require_sketches(argument: Argument, name: str) -> None:
    """Refuse what is not even binary."""
    if not is_binary(argument.type):
        raise ColumnTypeError(f"{name} needs sketches, in binary, got {argument.type}")


def stated_error(form: Form, lg: int) -> str:
    """The error of the number of keys, in words."""
    if form == "intersection":
        return "that of the sketches"
    return f"{100 / 2 ** (lg / 2):.2g} % relative standard error"
