"""Buckets over values: which one a value lies in, and what that says about it.

Bucket `b` reaches from ``origin + b * width`` up to the next edge. The numbers end at 32 bits: the
first bucket also holds everything below it and the last everything above, so every value has a
bucket. A value never lies outside its bucket, to the last bit: whole buckets are cut in integers,
the others by comparing with the very edges that are reported. (*Aggregate Sharing* 3.2.2)
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.errors import ColumnTypeError, InputError, OptionError

Number: TypeAlias = int | float

LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1
_EXACT = 1 << 53
# A float edge o + b * w is rounded twice, each time by 2**-53 of something below 2**33 widths:
# by less than one part in so many of a width.
_ROUNDING = 1 << 19


@dataclass(frozen=True, slots=True)
class AnswerBounds:
    """Where an answer lies: ``low <= answer <= high``.

    >>> 7 in AnswerBounds(6, 10), 11 in AnswerBounds(6, 10)
    (True, False)
    """

    low: Number
    high: Number

    def __contains__(self, value: Number | Fraction) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """Buckets of one width, one of which begins at the origin.

    >>> by_four = Buckets(width=4, origin=-10)
    >>> [by_four.interval(b) for b in by_four.numbers(np.array([7, -10, 5.5])).tolist()]
    [AnswerBounds(low=6, high=10), AnswerBounds(low=-10, high=-6), AnswerBounds(low=2, high=6)]
    """

    width: Number
    origin: Number = 0

    def __post_init__(self) -> None:
        if not 0 < self.width <= sys.float_info.max:
            raise OptionError(f"a bucket needs a positive width, got {self.width}")
        if not abs(self.origin) <= self.width * (1 << 31):
            raise OptionError(
                f"buckets of width {self.width} cannot begin as far out as {self.origin}",
                hint="origin=0, or wider buckets",
            )

    @property
    def is_whole(self) -> bool:
        """True if all edges are whole numbers, of few enough bits for exact integers."""
        whole = isinstance(self.width, int) and isinstance(self.origin, int)
        return whole and self.width <= 1 << 31

    def numbers(self, values: NDArray[np.generic]) -> NDArray[np.int64]:
        """The bucket of each value."""
        numbers = np.empty(len(values), dtype=np.int64)
        if self.is_whole:
            first, begin = divmod(self.origin, self.width)
            _whole_numbers(_floors(values), self.width, begin, first, numbers)
        else:
            _float_numbers(_floats(values), float(self.width), float(self.origin), numbers)
        return numbers

    def edge(self, number: int) -> Number:
        """Where a bucket begins; beyond the first and the last, infinity."""
        if not LOWEST < number <= HIGHEST:
            return math.copysign(math.inf, number)
        if self.is_whole:
            return self.origin + number * self.width
        return float(self.origin) + float(number) * float(self.width)

    def interval(self, number: int) -> AnswerBounds:
        """The bounds of a value in a bucket."""
        return AnswerBounds(self.edge(number), self.edge(number + 1))

    def units(self) -> Units:
        """Width and origin as whole multiples of one unit, for exact sums."""
        numbers = (self.width, self.origin)
        exact = [Fraction(n if self.is_whole else float(n)) for n in numbers]
        per_one = max(n.denominator for n in exact)
        width, origin = (int(n * per_one) for n in exact)
        # Edges below 2**53 units are not rounded: all are multiples of one power of two.
        if self.is_whole or abs(origin) + (width << 31) <= _EXACT:
            return Units(width, origin, 0, per_one)
        return Units(width * _ROUNDING, origin * _ROUNDING, width, per_one * _ROUNDING)


@dataclass(frozen=True, slots=True)
class Units:
    """Buckets measured in integers, so many of which make one.

    `slack` is how far an edge may lie from where it would lie unrounded.
    """

    width: int
    origin: int
    slack: int
    per_one: int

    def sum_of(self, count: int, total: int) -> tuple[int, int]:
        """Between what the sum of `count` values lies whose bucket numbers add up to `total`.

        The unbounded sides of the first and the last bucket are not looked at.
        """
        low = self.origin * count + self.width * total
        slack = self.slack * count
        return low - slack, low + self.width * count + slack


def _floors(values: NDArray[np.generic]) -> NDArray[np.int64]:
    """The whole numbers at or below; those beyond 64 bits become the nearest inside."""
    if values.dtype.kind != "f":
        return _integers(values)
    floats = _floats(values)
    floors = np.empty(len(floats), dtype=np.int64)
    _floor_all(floats, floors)
    return floors


def _floats(values: NDArray[np.generic]) -> NDArray[np.float64]:
    if values.dtype.kind != "f":
        integers = _integers(values)
        if len(integers) and not (integers.min() >= -_EXACT and integers.max() <= _EXACT):
            raise InputError(
                "whole numbers beyond 2**53 do not fit buckets with fractional edges",
                hint="width=1, or any other whole width up to 2**31",
            )
        return integers.astype(np.float64)
    if values.dtype.itemsize > 8:
        raise ColumnTypeError(f"values must be 64-bit numbers, got {values.dtype}")
    floats = values.astype(np.float64, copy=False)
    if np.isnan(floats).any():
        raise InputError("NaN lies in no bucket", hint="leave such rows out")
    return floats


def _integers(values: NDArray[np.generic]) -> NDArray[np.int64]:
    if values.dtype.kind not in "iu" or not np.can_cast(values.dtype, np.int64):
        raise ColumnTypeError(f"values must be 64-bit numbers, got {values.dtype}")
    return values.astype(np.int64, copy=False)


@compiled
def _floor_all(values, floors):  # type: ignore[no-untyped-def]
    for i in range(values.shape[0]):
        if values[i] >= 9223372036854775808.0:
            floors[i] = 9223372036854775807
        elif values[i] < -9223372036854775808.0:
            floors[i] = -9223372036854775807 - 1
        else:
            floors[i] = np.int64(np.floor(values[i]))


@compiled
def _whole_numbers(values, width, begin, first, numbers):  # type: ignore[no-untyped-def]
    """Buckets counted from the origin, which is `first` whole widths and `begin` from zero."""
    for i in range(values.shape[0]):
        whole = values[i] // width
        if values[i] - whole * width < begin:
            whole -= 1
        # Both terms stay far from 64 bits' ends once a number too far out is cut off.
        whole = min(max(whole, np.int64(-(1 << 33))), np.int64(1 << 33))
        numbers[i] = min(max(whole - first, LOWEST), HIGHEST)


@compiled
def _float_numbers(values, width, origin, numbers):  # type: ignore[no-untyped-def]
    """A guess that is wrong by one at most, put right by comparing with the edges."""
    for i in range(values.shape[0]):
        guess = values[i] / width - origin / width
        number = np.int64(np.floor(min(max(guess, float(LOWEST)), float(HIGHEST))))
        if number > LOWEST and values[i] < origin + number * width:
            number -= 1
        elif number < HIGHEST and values[i] >= origin + (number + 1) * width:
            number += 1
        numbers[i] = number
