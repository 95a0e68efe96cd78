"""Spark's ``tuple_sketch_agg_*``, ``tuple_union_agg_*`` and ``tuple_intersection_agg_*``.

A partial is a `panes.aggregates.tuples.Tuples`, which is the same in any order of rows. A group
that has seen nothing is neutral; a sketch that is empty is not, where sketches are intersected.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Argument, Bounded, Rows, Selection
from panes.aggregates.identity import identity
from panes.aggregates.monoid import Columns, Objects, Slots
from panes.aggregates.murmur128 import has_bytes, hashes
from panes.aggregates.theta import ALL, DEFAULT_LG
from panes.aggregates.theta_sketches import (
    Form,
    require_hashable,
    require_size,
    require_sketches,
    stated_error,
)
from panes.aggregates.tuple_bytes import read, written
from panes.aggregates.tuple_summaries import Folding, Summaries, SummaryMode
from panes.aggregates.tuple_tables import (
    most_held,
    order_of_intersection,
    order_of_union,
    order_of_values,
)
from panes.aggregates.tuples import Tuples, cut, empty, intersected, of_keys, united
from panes.errors import ArithmeticOverflowError, ColumnTypeError, QueryError

_LEAST_INT, _GREATEST_INT = -(1 << 31), (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class TuplePiece:
    """A sketch per slot: of keys and their numbers, or of all or the common keys of sketches."""

    form: Form
    folding: Folding
    lg: int
    arguments: tuple[Argument, ...]
    selection: Selection
    VERSION: ClassVar[int] = 1

    @property
    def identity(self) -> str:
        size = "" if self.form == "intersection" else f" 2^{self.lg}"
        how = f"{self.form} {self.folding.kind} {self.folding.mode.name.lower()}{size}"
        given = (a.identity for a in self.arguments)
        return identity("tuple", self.VERSION, how, *given, self.selection.identity)

    @property
    def monoid(self) -> Objects:
        if self.form == "intersection":
            return Objects("tuple sketch", intersected)
        return Objects("tuple sketch", united, (most_held(self.lg),))

    def lift(self, rows: Rows, slots: Slots, size: int) -> Columns:
        chosen, own = self.selection.chosen(rows, slots)
        given = [rows.columns[a.column].take(pa.array(chosen)) for a in self.arguments]
        if self.form == "values":
            return self._of_values(given[0], given[1], own, size)
        sketches = [read(data, self.folding) for data in given[0].to_pylist()]
        if self.form == "union":
            sketches = [cut(s, most_held(self.lg)) for s in sketches]
        return self.monoid.gathered(zip(own.tolist(), sketches, strict=True), size)

    def _of_values(self, keys: pa.Array, numbers: pa.Array, slots: Slots, size: int) -> Columns:
        if _is_small(keys.type):
            keys = keys.cast(pa.float64())
        some = has_bytes(keys)
        first, _ = hashes(keys.filter(pa.array(some)))
        hashed, own = first >> np.uint64(1), slots[some]
        order = np.lexsort((hashed, own))
        order = order[hashed[order] > 0]
        hashed, own = hashed[order], own[order]
        values = _as_numbers(numbers.filter(pa.array(some)), self.folding)
        modes = np.full(len(order), self.folding.mode, np.uint8)
        summaries = self.folding.of(values[order], modes)
        named, begin = np.unique(own, return_index=True)
        bounds = pairwise([*begin.tolist(), len(own)])
        made = (
            (slot, of_keys(hashed[a:b], summaries.take(np.arange(a, b)), most_held(self.lg)))
            for slot, (a, b) in zip(named.tolist(), bounds, strict=True)
        )
        return self.monoid.gathered(made, size)

    def answer(self, sketch: Tuples | None) -> bytes:
        """A sketch in Spark's bytes."""
        if sketch is None:
            sketch = empty(self.folding)
        held, bound = sketch.hashes, sketch.bound
        if self.form == "intersection":
            return written(sketch, order_of_intersection(held), bound)
        if not len(held) and bound == ALL:
            return written(empty(self.folding), np.empty(0, np.int64), bound)
        order = order_of_values if self.form == "values" else order_of_union
        bound = int(held[1 << self.lg]) if len(held) > 1 << self.lg else bound
        return written(sketch, order(held, self.lg), bound)

    def to_bytes(self, sketch: Tuples) -> bytes:
        """A sketch as it is stored: whether it is empty, its bound, its hashes, its numbers."""
        head = struct.pack("<?qq", sketch.is_empty, sketch.bound, len(sketch.hashes))
        return head + sketch.hashes.astype("<u8").tobytes() + sketch.summaries.to_bytes()

    def from_bytes(self, data: bytes) -> Tuples:
        """The sketch that `to_bytes` wrote."""
        is_empty, bound, count = struct.unpack_from("<?qq", data)
        hashed = np.frombuffer(data, "<u8", count, 17).astype(np.uint64)
        summaries = Summaries.from_bytes(self.folding, count, data[17 + 8 * count :])
        return Tuples(hashed, summaries, bound, is_empty)


def tuple_sketch(
    key: Argument, number: Argument, where: int | None, folding: Folding, lg: int = DEFAULT_LG
) -> Bounded:
    """``tuple_sketch_agg_double(key, summary, lgNomEntries, mode)`` and ``_integer``."""
    name = f"tuple_sketch_agg_{folding.kind}"
    if not _is_small(key.type):
        require_hashable(key.type, name)
    kind, wanted = number.type, ("numbers", "DOUBLE")
    if folding.kind == "integer":
        wanted = "whole numbers", "INT"
    is_double = folding.kind == "double" and pa.types.is_floating(kind)
    if not (is_double or pa.types.is_signed_integer(kind)):
        raise ColumnTypeError(
            f"{name}(key, summary) needs {wanted[0]} as its summary, got {kind}",
            hint=f"{name}(key, CAST(summary AS {wanted[1]}))",
        )
    return _tuples("values", folding, (key, number), where, lg, f"{name}(key, summary, {lg})")


def tuple_union(
    argument: Argument, where: int | None, folding: Folding, lg: int = DEFAULT_LG
) -> Bounded:
    """``tuple_union_agg_double(sketch, lgNomEntries, mode)`` and ``_integer``."""
    name = f"tuple_union_agg_{folding.kind}"
    require_sketches(argument, name)
    return _tuples("union", folding, (argument,), where, lg, f"{name}(sketch, {lg})")


def tuple_intersection(argument: Argument, where: int | None, folding: Folding) -> Bounded:
    """``tuple_intersection_agg_double(sketch, mode)`` and ``_integer``."""
    name = f"tuple_intersection_agg_{folding.kind}"
    require_sketches(argument, name)
    return _tuples("intersection", folding, (argument,), where, DEFAULT_LG, name)


def _tuples(
    form: Form,
    folding: Folding,
    arguments: tuple[Argument, ...],
    where: int | None,
    lg: int,
    name: str,
) -> Bounded:
    require_size(lg, name)
    selection = Selection(tuple(a.column for a in arguments), where)
    piece = TuplePiece(form, folding, lg, arguments, selection)

    def lower(partials: Sequence[Columns]) -> pa.Array:
        return pa.array([piece.answer(s) for s in partials[0][0]], pa.binary())

    return Bounded((piece,), lower, pa.binary(), "none", stated_error(form, lg))


def mode_named(text: object, asked: str) -> SummaryMode:
    """The mode that a call names, in letters of any case."""
    names = [mode.name.lower() for mode in SummaryMode]
    if not isinstance(text, str) or text.lower() not in names:
        raise QueryError(
            f"{asked} needs {', '.join(names[:-1])} or {names[-1]} as its mode, got {text!r}"
        )
    return SummaryMode[text.upper()]


def _is_small(kind: pa.DataType) -> bool:
    """True if keys are whole numbers that Spark makes doubles of, and hashes as such."""
    return bool(pa.types.is_int8(kind) or pa.types.is_int16(kind))


def _as_numbers(numbers: pa.Array, folding: Folding) -> NDArray[np.generic]:
    """Summaries as they are folded: doubles, or whole numbers that fit an int."""
    if folding.kind == "double":
        doubles: NDArray[np.generic] = numbers.cast(pa.float64(), safe=False).to_numpy(
            zero_copy_only=False
        )
        return doubles
    whole: NDArray[np.generic] = numbers.cast(pa.int64()).to_numpy(zero_copy_only=False)
    if len(whole) and not (whole.min() >= _LEAST_INT and whole.max() <= _GREATEST_INT):
        raise ArithmeticOverflowError(
            "a summary of tuple_sketch_agg_integer does not fit int",
            hint="tuple_sketch_agg_double takes any number",
        )
    return whole
