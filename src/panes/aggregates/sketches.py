"""Approximate aggregates on Apache DataSketches, each with a stated error.

Partials are sketches, a few kilobytes whatever the data: where an exact holistic aggregate would
keep every value, these keep a bounded summary. They are asked for by name, never substituted.
"""

from __future__ import annotations

import bisect
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import datasketches as ds
import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import Argument, Bounded, Rows, Selection
from panes.aggregates.arithmetic import Count
from panes.aggregates.identity import identity
from panes.aggregates.monoid import Columns, Objects, Slots
from panes.arrays import order_keys
from panes.errors import ColumnTypeError, QueryError

LOG2_BUCKETS = 12
QUANTILE_K = 200
TRACKED_ITEMS = 10_000
"""As many different items as Spark's own `approx_top_k` counts exactly."""
LOG2_ITEMS = 14
_FILLED = 0.75  # a table of items is never fuller

Family = Literal["hll", "kll", "frequent"]
_FAMILIES: dict[Family, tuple[Any, int]] = {
    "hll": (ds.hll_sketch, LOG2_BUCKETS),
    "kll": (ds.kll_doubles_sketch, QUANTILE_K),
    "frequent": (ds.frequent_items_sketch, LOG2_ITEMS),
}
"""The sketches of each family, and their usual size."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """One sketch per slot, of the argument's values."""

    family: Family
    argument: Argument
    selection: Selection
    own_size: int | None = None
    VERSION: ClassVar[int] = 1

    @property
    def size(self) -> int:
        """Its size, which sets the error: the logarithm of its buckets or items, or KLL's k."""
        return _FAMILIES[self.family][1] if self.own_size is None else self.own_size

    @property
    def identity(self) -> str:
        form = f"{self.family} {self.size}"
        given = self.argument.identity, self.selection.identity
        return identity("sketch", self.VERSION, form, *given)

    @property
    def monoid(self) -> Objects:
        return Objects(f"{self.family} sketch", _united, (self.family, self.size))

    def to_bytes(self, sketch: Any) -> bytes:
        """A sketch in DataSketches' own portable form."""
        if self.family == "hll":
            return bytes(sketch.serialize_compact())
        return bytes(sketch.serialize(*self._item_form()))

    def from_bytes(self, data: bytes) -> Any:
        """The sketch that `to_bytes` wrote."""
        return _FAMILIES[self.family][0].deserialize(data, *self._item_form())

    def _item_form(self) -> tuple[Any, ...]:
        if self.family != "frequent":
            return ()
        if pa.types.is_integer(self.argument.type):
            return (ds.PyLongsSerDe(),)
        return (TextForm(),)

    def lift(self, rows: Rows, slots: Slots, size: int) -> Columns:
        own = self.selection.slots(rows, slots)
        order = np.argsort(own, kind="stable")
        order = order[np.searchsorted(own[order], 0) :]
        if not len(order):
            return self.monoid.empty(size)
        named, begin = np.unique(own[order], return_index=True)
        values = rows.columns[self.argument.column].take(pa.array(order))
        result = self.monoid.empty(size)
        for slot, start, stop in zip(named, begin, np.r_[begin[1:], len(order)], strict=True):
            few = values.slice(start, stop - start)
            result[0, slot] = _sketch_of(few, self.family, self.size)
        return result


class TextForm(ds.PyObjectSerDe):  # type: ignore[misc]
    """Text as its length in bytes and its UTF-8 bytes: the library's own form miscounts accents."""

    def get_size(self, item: str) -> int:
        return 4 + len(item.encode())

    def to_bytes(self, item: str) -> bytes:
        data = item.encode()
        return struct.pack("<i", len(data)) + data

    def from_bytes(self, data: bytes, offset: int) -> tuple[str, int]:
        (size,) = struct.unpack_from("<i", data, offset)
        return data[offset + 4 : offset + 4 + size].decode(), 4 + size


def approx_count_distinct(
    argument: Argument, where: int | None, deviation: float | None = None
) -> Bounded:
    """``approx_count_distinct(x)``: HyperLogLog with 4,096 buckets, or as many as are needed.

    `deviation` is the greatest relative standard error that is allowed.
    """
    order_keys.require_orderable(argument.type, what="approx_count_distinct")
    size = LOG2_BUCKETS if deviation is None else _log2_buckets(deviation)

    def lower(partials: Sequence[Columns]) -> pa.Array:
        return pa.array(
            [0 if s is None else round(s.get_estimate()) for s in partials[0][0]], pa.int64()
        )

    error = f"{104 / 2 ** (size / 2):.1f} % relative standard error"
    return _sketched("hll", argument, where, lower, pa.int64(), error, size)


def _log2_buckets(deviation: float) -> int:
    """The fewest buckets whose relative standard error is not above this."""
    for size in range(4, 22):
        if 1.04 / 2 ** (size / 2) <= deviation:
            return size
    raise QueryError(
        f"approx_count_distinct(x, rsd) has a standard error of at least 0.0007, got {deviation}",
        hint="count(DISTINCT x) is exact",
    )


def approx_quantile(argument: Argument, where: int | None, fraction: float) -> Bounded:
    """``approx_quantile(x, p)``: KLL with k = 200; gives a value that occurred, as double."""
    if not 0 <= fraction <= 1:
        raise QueryError(f"a quantile lies between 0 and 1, got {fraction}")
    if not (pa.types.is_integer(argument.type) or pa.types.is_floating(argument.type)):
        raise ColumnTypeError(f"approx_quantile needs numbers, got {argument.type}")

    def lower(partials: Sequence[Columns]) -> pa.Array:
        answers = [
            None if s is None or s.is_empty() else s.get_quantile(fraction, inclusive=True)
            for s in partials[0][0]
        ]
        return pa.array(answers, pa.float64())

    return _sketched("kll", argument, where, lower, pa.float64(), "1.33 % normalised rank error")


def approx_top_k(
    argument: Argument, where: int | None, k: int, tracked: int = TRACKED_ITEMS
) -> Bounded:
    """``approx_top_k(x, k, tracked)``: frequent items; exact up to `tracked` different ones.

    Above that, counts are never too low. NULL is an item, as in Spark; among items that are as
    frequent it is the last.
    """
    kind = argument.type
    if not (pa.types.is_integer(kind) or _is_text(kind)):
        raise ColumnTypeError(f"approx_top_k needs integers or text, got {kind}")
    result = pa.list_(pa.struct([("item", argument.type), ("count", pa.int64())]))

    def lower(partials: Sequence[Columns]) -> pa.Array:
        sketches, rows, present = (partial[0] for partial in partials)
        missing = (rows - present).tolist()
        return pa.array(
            [_top_items(s, n, k) for s, n in zip(sketches, missing, strict=True)], result
        )

    size = max(3, math.ceil(math.log2(tracked / _FILLED)))
    error = f"counts high by at most {350 / 2**size:.2g} % of the rows"
    known = Selection((argument.column,), where)
    piece = Sketch("frequent", argument, known, size)
    counts = Count(Selection((), where)), Count(known)
    return Bounded((piece, *counts), lower, result, "none", error)


def _sketched(
    family: Family,
    argument: Argument,
    where: int | None,
    lower: Callable[[Sequence[Columns]], pa.Array],
    result: pa.DataType,
    error: str,
    size: int | None = None,
) -> Bounded:
    piece = Sketch(family, argument, Selection((argument.column,), where), size)
    return Bounded((piece,), lower, result, "none", error)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _top_items(sketch: Any, missing: int, k: int) -> list[dict[str, object]]:
    ranked: list[tuple[int, Any]] = []
    if sketch is not None:
        found = sketch.get_frequent_items(ds.frequent_items_error_type.NO_FALSE_NEGATIVES)
        ranked = sorted((-estimate, item) for item, estimate, *_ in found)
    if missing:
        bisect.insort_right(ranked, (-missing, None), key=lambda pair: pair[0])
    return [{"item": item, "count": -estimate} for estimate, item in ranked[:k]]


_NO_TEXT = -1
"""Stands for the empty text, which a sketch passes over: its bytes are those of no other text."""


def _sketch_of(values: pa.Array, family: Family, size: int) -> Any:
    sketch = _FAMILIES[family][0](size)
    if family == "kll":
        sketch.update(np.array(values.cast(pa.float64(), safe=False)))
    elif family == "frequent":
        for entry in values.value_counts().to_pylist():
            sketch.update(entry["values"], entry["counts"])
    else:
        for value in _as_numbers(values.unique()).to_pylist():
            item = value if isinstance(value, int | float | str) else str(value)
            sketch.update(_NO_TEXT if item == "" else item)
    return sketch


def _as_numbers(values: pa.Array) -> pa.Array:
    """Dates and times as numbers, since Python has none of most years."""
    if not pa.types.is_temporal(values.type):
        return values
    return values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())


def _united(older: Any, newer: Any, family: Family, size: int) -> Any:
    """A new sketch of both, so that a stored one never changes."""
    if family == "hll":
        union = ds.hll_union(size)
        union.update(older)
        union.update(newer)
        return union.get_result()
    merged = _FAMILIES[family][0](size)
    merged.merge(older)
    merged.merge(newer)
    return merged
