"""``hll_sketch_agg`` and ``hll_union_agg``: Spark's HLL sketches, of values and of sketches.

A partial is a `panes.aggregates.hll.Hll`, which is the same in any order of rows. Only when an
answer leaves is it said whether sketches of different sizes may be united: a pane may hold some
that no window unites.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import Argument, Bounded, Rows, Selection
from panes.aggregates.hll import (
    DEFAULT_LG,
    GREATEST_LG,
    LEAST_LG,
    NO_COUPONS,
    Hll,
    coupons_of,
    sketch_of,
    united,
)
from panes.aggregates.hll_bytes import read, written
from panes.aggregates.identity import identity
from panes.aggregates.monoid import Columns, Objects, Slots
from panes.aggregates.murmur128 import has_bytes, hashes, is_binary, is_text_or_binary
from panes.errors import ColumnTypeError, PanesError, QueryError


@dataclass(frozen=True, slots=True)
class HllPiece:
    """A sketch per slot: of the argument's values with ``2 ** lg`` registers, or of its sketches.

    The argument holds sketches where `lg` is None.
    """

    lg: int | None
    argument: Argument
    selection: Selection
    VERSION: ClassVar[int] = 1

    @property
    def identity(self) -> str:
        form = "union" if self.lg is None else f"2^{self.lg}"
        return identity("hll", self.VERSION, form, self.argument.identity, self.selection.identity)

    @property
    def monoid(self) -> Objects:
        return Objects("HLL sketch", united)

    def lift(self, rows: Rows, slots: Slots, size: int) -> Columns:
        chosen, own = self.selection.chosen(rows, slots)
        values = rows.columns[self.argument.column].take(pa.array(chosen))
        if self.lg is None:
            sketches = map(read, values.to_pylist())
            return self.monoid.gathered(zip(own.tolist(), sketches, strict=True), size)
        some = has_bytes(values)
        coupons = coupons_of(*hashes(values.filter(pa.array(some))))
        keys = np.unique(own[some].astype(np.uint64) << np.uint64(32) | coupons)
        named, begin = np.unique(keys >> np.uint64(32), return_index=True)
        parts = np.split(keys.astype(np.uint32), begin[1:])
        made = ((s, sketch_of(self.lg, p)) for s, p in zip(named.tolist(), parts, strict=False))
        return self.monoid.gathered(made, size)

    def to_bytes(self, sketch: Hll) -> bytes:
        """A sketch as it is stored: how wide the widest one was, and Spark's bytes."""
        return bytes([sketch.widest]) + written(sketch)

    def from_bytes(self, data: bytes) -> Hll:
        """The sketch that `to_bytes` wrote."""
        sketch = read(data[1:])
        return Hll(sketch.lg, data[0], sketch.coupons, sketch.registers)


def hll_sketch(argument: Argument, where: int | None, lg: int = DEFAULT_LG) -> Bounded:
    """``hll_sketch_agg(x, lgConfigK)``: of whole numbers, text or binary."""
    kind = argument.type
    if not (pa.types.is_int32(kind) or pa.types.is_int64(kind) or is_text_or_binary(kind)):
        raise ColumnTypeError(
            f"hll_sketch_agg needs int, bigint, text or binary, got {kind}",
            hint="hll_sketch_agg(CAST(x AS BIGINT))",
        )
    if not LEAST_LG <= lg <= GREATEST_LG:
        raise QueryError(
            f"hll_sketch_agg(x, lgConfigK) needs {LEAST_LG} to {GREATEST_LG}, got {lg}",
            hint="the default, 12, has 4,096 registers and an error of 1.6 %",
        )
    piece = HllPiece(lg, argument, Selection((argument.column,), where))

    def lower(partials: Sequence[Columns]) -> pa.Array:
        nothing = Hll(lg, lg, NO_COUPONS)
        return pa.array([written(s or nothing) for s in partials[0][0]], pa.binary())

    return Bounded((piece,), lower, pa.binary(), "none", _error(lg))


def hll_union(argument: Argument, where: int | None, *, any_size: bool = False) -> Bounded:
    """``hll_union_agg(sketch, allowDifferentLgConfigK)``: as narrow as the narrowest sketch."""
    if not is_binary(argument.type):
        raise ColumnTypeError(f"hll_union_agg needs sketches, in binary, got {argument.type}")
    piece = HllPiece(None, argument, Selection((argument.column,), where))

    def lower(partials: Sequence[Columns]) -> pa.Array:
        nothing = Hll(DEFAULT_LG, DEFAULT_LG, NO_COUPONS)
        sketches: list[Hll] = [s or nothing for s in partials[0][0]]
        for sketch in sketches:
            if sketch.lg != sketch.widest and not any_size:
                raise PanesError(
                    "hll_union_agg was given sketches of different sizes: lgConfigK is "
                    f"{sketch.lg} and {sketch.widest}",
                    hint="hll_union_agg(sketch, true) unites them, as the smallest one is",
                )
        return pa.array([written(s) for s in sketches], pa.binary())

    return Bounded((piece,), lower, pa.binary(), "none", "that of the sketches")


def _error(lg: int) -> str:
    return f"{104 / 2 ** (lg / 2):.2g} % relative standard error"
