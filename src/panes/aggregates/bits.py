"""``bit_and``, ``bit_or`` and ``bit_xor``: whole numbers combined bit by bit.

The answer has the type of the argument, as in Spark: bits above its width are copies of the sign
in 64 bits, and stay so under all three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import pyarrow as pa

from panes.aggregates.aggregate import (
    Argument,
    Bounded,
    Differential,
    Rows,
    Selection,
    nullable,
)
from panes.aggregates.arithmetic import Count
from panes.aggregates.identity import identity
from panes.aggregates.lanes import Op
from panes.aggregates.monoid import Columns, Lanes, Slots
from panes.arrays.columns import without_nulls
from panes.errors import ColumnTypeError

BitOp = Literal[Op.BITS_AND, Op.BITS_OR, Op.BITS_XOR]
_NAMES: dict[Op, str] = {Op.BITS_AND: "and", Op.BITS_OR: "or", Op.BITS_XOR: "xor"}
_NEUTRAL: dict[Op, int] = {Op.BITS_AND: -1, Op.BITS_OR: 0, Op.BITS_XOR: 0}


@dataclass(frozen=True, slots=True)
class Bits:
    """All selected values, combined bit by bit."""

    op: BitOp
    argument: Argument
    selection: Selection
    VERSION: ClassVar[int] = 1

    @property
    def identity(self) -> str:
        given = f"{_NAMES[self.op]} of {self.argument.identity}"
        return identity("bits", self.VERSION, given, self.selection.identity)

    @property
    def monoid(self) -> Lanes:
        return Lanes(self.op, ("bits",), (_NEUTRAL[self.op],))

    def lift(self, rows: Rows, slots: Slots, size: int) -> Columns:
        values = without_nulls(rows.columns[self.argument.column].cast(pa.int64()), 0)
        return self.monoid.absorb(values[None, :], self.selection.slots(rows, slots), size)


def bitwise(argument: Argument, where: int | None, op: BitOp) -> Bounded:
    """``bit_and(x)``, ``bit_or(x)``, ``bit_xor(x)``; NULL without a value."""
    name = f"bit_{_NAMES[op]}"
    if not pa.types.is_integer(argument.type) or pa.types.is_uint64(argument.type):
        raise ColumnTypeError(f"{name} needs whole numbers of at most 64 bits, got {argument.type}")
    selection = Selection((argument.column,), where)

    def lower(partials: Sequence[Columns]) -> pa.Array:
        bits, counts = partials[0][0], partials[1][0]
        return nullable(bits, counts == 0, pa.int64()).cast(argument.type)

    kind: Differential = "full" if op is Op.BITS_XOR else "none"
    return Bounded((Bits(op, argument, selection), Count(selection)), lower, argument.type, kind)
