"""count, sum, avg and the weighted mean.

Integer and decimal sums are exact: a value is split into 32-bit limbs that are added apart, so
no order of addition can overflow, and the answer is checked once, when it is lowered. Float
sums are carried in two doubles.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import (
    CAST,
    Argument,
    Bounded,
    Rows,
    Selection,
    nullable,
    require_numbers,
)
from panes.aggregates.identity import identity
from panes.aggregates.lanes import Op
from panes.aggregates.monoid import Columns, Lanes, Slots
from panes.arrays.columns import without_nulls
from panes.arrays.compiled import compiled
from panes.errors import ArithmeticOverflowError, ColumnTypeError

COUNT = Lanes(Op.ADD, ("count",), (0,))
FLOAT_SUM = Lanes(Op.SUM, ("sum", "carry"), (0.0, 0.0))
Lower: TypeAlias = Callable[[Sequence[Columns]], pa.Array]
_LIMB = 32
_MOST_VALUES = 1 << 31  # as many limbs of 32 bits as 64 bits can add up


@dataclass(frozen=True, slots=True)
class Count:
    """The number of rows in the selection."""

    selection: Selection
    monoid: Lanes = COUNT
    VERSION: ClassVar[int] = 1

    @property
    def identity(self) -> str:
        return identity("count", self.VERSION, self.selection.identity)

    def lift(self, rows: Rows, slots: Slots, size: int) -> Columns:
        ones = np.broadcast_to(np.int64(1), (1, len(rows)))
        return self.monoid.absorb(ones, self.selection.slots(rows, slots), size)


@dataclass(frozen=True, slots=True)
class FloatSum:
    """The sum of a product of columns (usually of one)."""

    factors: tuple[Argument, ...]
    selection: Selection
    monoid: Lanes = FLOAT_SUM
    VERSION: ClassVar[int] = 1

    @property
    def identity(self) -> str:
        factors = " * ".join(f.identity for f in self.factors)
        return identity("float_sum", self.VERSION, factors, self.selection.identity)

    def lift(self, rows: Rows, slots: Slots, size: int) -> Columns:
        product = rows.numbers(self.factors[0])
        for factor in self.factors[1:]:
            product = product * rows.numbers(factor)
        return self.monoid.absorb(product[None, :], self.selection.slots(rows, slots), size)


@dataclass(frozen=True, slots=True)
class LimbSum:
    """The exact sum of integers or decimals, in limbs of 32 bits, the last one signed."""

    argument: Argument
    selection: Selection
    VERSION: ClassVar[int] = 1

    @property
    def identity(self) -> str:
        return identity("limb_sum", self.VERSION, self.argument.identity, self.selection.identity)

    @property
    def monoid(self) -> Lanes:
        limbs = 4 if pa.types.is_decimal(self.argument.type) else 2
        return Lanes(Op.ADD, tuple(f"limb{i}" for i in range(limbs)), (0,) * limbs)

    def lift(self, rows: Rows, slots: Slots, size: int) -> Columns:
        result = self.monoid.empty(size)
        own = self.selection.slots(rows, slots)
        kind = self.argument.type
        for part, few in rows.chunks():
            column = few.columns[self.argument.column]
            if pa.types.is_decimal(kind) or pa.types.is_uint64(kind):
                self.monoid.absorb_into(result, split_limbs(column), own[part])
            else:
                _add_limbs(result, without_nulls(column.cast(pa.int64()), 0), own[part])
        return result


@compiled
def _add_limbs(into, values, slots):  # type: ignore[no-untyped-def]
    """Split integers into two limbs, as `split_limbs` does, and add them where slots say."""
    for k in range(slots.shape[0]):
        i = slots[k]
        if i >= 0:
            into[0, i] += values[k] & 0xFFFFFFFF
            into[1, i] += values[k] >> 32


def count(selection: Selection) -> Bounded:
    """``count(*)``, ``count(x)``, ``count(x, y)``: rows without a NULL among the arguments."""
    return Bounded((Count(selection),), lambda p: pa.array(p[0][0], pa.int64()), pa.int64(), "full")


def sum_(argument: Argument, selection: Selection, *, tries: bool = False) -> Bounded:
    """``sum(x)``: bigint for integers, decimal(p + 10) for decimals, double for floats.

    Where a sum does not fit its type it fails; if it only `tries`, it is NULL.
    """
    kind = argument.type
    if not pa.types.is_decimal(kind):
        integers = partial(_lower_integer_sum, tries=tries)
        return _added(argument, selection, "sum", _lower_float_sum, integers, pa.int64())
    result = pa.decimal128(min(38, kind.precision + 10), kind.scale)

    def lower(partials: Sequence[Columns]) -> pa.Array:
        totals = _totals(_limbs(partials))
        return _decimals(totals, partials[1][0] == 0, result, tries=tries)

    return _added(argument, selection, "sum", _lower_float_sum, lower, result)


def avg(argument: Argument, selection: Selection, *, tries: bool = False) -> Bounded:
    """``avg(x)``: double, or decimal(p + 4, s + 4) for decimals, as in Spark."""
    kind, result = argument.type, pa.float64()
    lower: Lower = _lower_integer_avg
    if pa.types.is_decimal(kind):
        result = pa.decimal128(min(38, kind.precision + 4), min(38, kind.scale + 4))
        lower = partial(_decimal_avg, scale=kind.scale, result=result, tries=tries)
    return _added(argument, selection, "avg", _lower_float_avg, lower, result)


def _added(
    argument: Argument,
    selection: Selection,
    name: str,
    of_floats: Lower,
    of_exact: Lower,
    exact: pa.DataType,
) -> Bounded:
    """What is lowered from a sum and a count: of floats, or of what is summed exactly."""
    kind, count = argument.type, Count(selection)
    if pa.types.is_floating(kind) or pa.types.is_null(kind):
        piece = FloatSum((argument,), selection)
        return Bounded((piece, count), of_floats, pa.float64(), "full")
    if not (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        raise ColumnTypeError(f"{name} needs numbers, got {kind}", hint=CAST)
    return Bounded((LimbSum(argument, selection), count), of_exact, exact, "full")


def weighted_mean(value: Argument, weight: Argument, where: int | None) -> Bounded:
    """``weighted_mean(x, w)``: the centre of mass, sum(x * w) / sum(w); NULL if that is 0."""
    require_numbers((value, weight), what="weighted_mean")
    selection = Selection((value.column, weight.column), where)
    moment = FloatSum((value, weight), selection)
    mass = FloatSum((weight,), selection)

    def lower(partials: Sequence[Columns]) -> pa.Array:
        total, masses = _float_total(partials[0]), _float_total(partials[1])
        with np.errstate(all="ignore"):
            return nullable(total / masses, masses == 0, pa.float64())

    return Bounded((moment, mass), lower, pa.float64(), "full")


def _float_total(partial: Columns) -> NDArray[np.float64]:
    high, low = partial
    total: NDArray[np.float64] = high + low
    is_special = ~np.isfinite(high)
    if is_special.any():
        total[is_special] = high[is_special]
    return total


def _lower_float_sum(partials: Sequence[Columns]) -> pa.Array:
    return nullable(_float_total(partials[0]), partials[1][0] == 0, pa.float64())


def _lower_float_avg(partials: Sequence[Columns]) -> pa.Array:
    counts = partials[1][0]
    total = _float_total(partials[0])
    with np.errstate(all="ignore"):
        np.divide(total, counts, out=total)
    return nullable(total, counts == 0, pa.float64())


def split_limbs(array: pa.Array) -> NDArray[np.int64]:
    """Values as 32-bit limbs, least significant first, the last one signed."""
    if pa.types.is_decimal(array.type):
        array = pa.concat_arrays([array.cast(pa.decimal128(38, array.type.scale))])
        raw = np.frombuffer(array.buffers()[1], dtype="<u4").reshape(-1, 4)
        words = raw[array.offset : array.offset + len(array)]
        limbs = words.T.astype(np.int64)
        limbs[3] = words[:, 3].view(np.int32) if len(words) else 0
        return limbs
    if pa.types.is_uint64(array.type):
        unsigned = without_nulls(array, 0).astype(np.uint64)
        return np.stack([unsigned & 0xFFFFFFFF, unsigned >> np.uint64(_LIMB)]).astype(np.int64)
    values = without_nulls(array.cast(pa.int64()), 0)
    limbs = np.empty((2, len(values)), dtype=np.int64)
    np.bitwise_and(values, 0xFFFFFFFF, out=limbs[0])
    np.right_shift(values, _LIMB, out=limbs[1])
    return limbs


def _limbs(partials: Sequence[Columns]) -> Columns:
    """The limbs of sums, each of so few values that no limb has overflowed."""
    limbs, counts = partials[0], partials[1][0]
    if counts.max(initial=0) > _MOST_VALUES:
        raise ArithmeticOverflowError(
            f"an exact sum of more than {_MOST_VALUES:,} values of one window is not possible",
            hint="sum(CAST(x AS DOUBLE)) has no such limit, and is not exact",
        )
    return limbs


def _lower_integer_sum(partials: Sequence[Columns], *, tries: bool) -> pa.Array:
    low, high = _limbs(partials)
    carried = high + (low >> _LIMB)
    overflows = (carried < -(1 << 31)) | (carried >= 1 << 31)
    if not tries and overflows.any():
        raise ArithmeticOverflowError(
            "a sum of integers does not fit bigint",
            hint="sum(CAST(x AS DECIMAL(38, 0))) is exact beyond 64 bits",
        )
    return nullable((high << _LIMB) + low, (partials[1][0] == 0) | overflows, pa.int64())


def _lower_integer_avg(partials: Sequence[Columns]) -> pa.Array:
    (low, high), counts = _limbs(partials), partials[1][0]
    carried = high + (low >> _LIMB)
    fits = (carried >= -(1 << 31)) & (carried < 1 << 31)
    total = np.where(fits, (high << _LIMB) + low, high.astype(np.float64) * 2.0**_LIMB + low)
    exact = np.where(fits, (high << _LIMB) + low, 0)
    with np.errstate(all="ignore"):
        return nullable(np.where(fits, exact / counts, total / counts), counts == 0, pa.float64())


def _totals(limbs: Columns) -> NDArray[np.object_]:
    """Limbs as Python integers of any length."""
    total = limbs[-1].astype(object)
    for limb in limbs[-2::-1]:
        total = total * (1 << _LIMB) + limb.astype(object)
    return total


def _decimals(
    unscaled: NDArray[np.object_],
    is_null: NDArray[np.bool_],
    result: pa.DecimalType,
    *,
    tries: bool,
) -> pa.Array:
    limit = 10**result.precision
    if tries:
        is_null = is_null | np.array([abs(v) >= limit for v in unscaled], dtype=np.bool_)
    with decimal.localcontext(prec=80):
        values = [
            None if null else decimal.Decimal(int(v)).scaleb(-result.scale)
            for v, null in zip(unscaled, is_null, strict=True)
        ]
    if any(not null and abs(v) >= limit for v, null in zip(unscaled, is_null, strict=True)):
        raise ArithmeticOverflowError(f"an exact decimal answer does not fit {result}")
    return pa.array(values, type=result)


def _decimal_avg(
    partials: Sequence[Columns], scale: int, result: pa.DecimalType, *, tries: bool
) -> pa.Array:
    counts = partials[1][0]
    grown = 10 ** (result.scale - scale)
    halves = [
        _divide_half_up(total * grown, int(n)) if n else 0
        for total, n in zip(_totals(_limbs(partials)), counts, strict=True)
    ]
    return _decimals(np.array(halves, dtype=object), counts == 0, result, tries=tries)


def _divide_half_up(dividend: int, divisor: int) -> int:
    """Integer division rounded half away from zero, as Spark rounds decimals."""
    quotient, rest = divmod(abs(dividend), divisor)
    rounded = quotient + (2 * rest >= divisor)
    return rounded if dividend >= 0 else -rounded
