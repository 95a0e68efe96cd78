"""A TimeGram over a column as SQL sees it: what is known of an aggregate, as an interval.

NULL is passed over. NaN and the infinities lie in no bucket with two edges, so the newest of each
is remembered by its position: a window that holds one has the sum that floats have. In the order in
which NaN is the greatest, ``low <= truth <= high`` always holds. Bounds are rounded outwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.axis import BEGINNING
from panes.stores.nested.buckets import Number
from panes.stores.nested.timegram import Aggregate, TimeGram


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """The middle of an interval, and its ends. NULL where nothing is known, or nothing there."""

    value: Number | None
    low: Number | None
    high: Number | None


NOTHING_THERE = IntervalEstimate(None, None, None)


def has_buckets(data_type: pa.DataType) -> bool:
    """Whether values of a type lie in buckets: numbers that 64 bits hold with a sign."""
    is_whole = pa.types.is_integer(data_type) and not pa.types.is_uint64(data_type)
    return bool(is_whole or pa.types.is_floating(data_type))


class BoundedColumn:
    """Count, sum, avg, min and max of a column, for any window up to a largest size.

    >>> prices = BoundedColumn(width=10, max_size=100)
    >>> prices.add(np.array([3, 1]), pa.array([12.5, 31.0]))
    >>> prices.ask("sum", 100)
    IntervalEstimate(value=50.0, low=40.0, high=60.0)
    """

    def __init__(self, *, width: Number, max_size: int) -> None:
        self._gram = TimeGram(width=width, max_size=max_size)
        self._nan = self._infinite = self._negative = BEGINNING

    @property
    def nbytes(self) -> int:
        """Bytes that the remembered rows take."""
        return self._gram.nbytes

    def add(self, at: NDArray[np.int64], values: pa.Array) -> None:
        """Take in rows in any order, none of them NULL. What has no bucket is only counted."""
        if not has_buckets(values.type):
            self._gram.merge(at, np.zeros(len(at), dtype=np.int64))
            return
        numbers = values.to_numpy(zero_copy_only=False)
        if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
            numbers = self._without_nan(at, numbers)
        self._gram.merge(at, numbers)

    def _without_nan(
        self, at: NDArray[np.int64], numbers: NDArray[np.generic]
    ) -> NDArray[np.generic]:
        """Note where NaN and the infinities are; NaN goes where the greatest numbers are."""
        floats = numbers.astype(np.float64)
        is_nan = np.isnan(floats)
        self._nan = _newest(at, is_nan, self._nan)
        self._infinite = _newest(at, floats == np.inf, self._infinite)
        self._negative = _newest(at, floats == -np.inf, self._negative)
        floats[is_nan] = np.inf
        return floats

    def advance(self, end: int) -> None:
        """Move the end of all windows on."""
        self._gram.advance(end)

    def resize(self, max_size: int) -> None:
        """Let another window be the largest."""
        self._gram.resize(max_size)

    def ask(self, aggregate: Aggregate, size: int) -> IntervalEstimate:
        """What is known of an aggregate over the last `size` positions."""
        found = self._gram.ask(aggregate, size)
        if aggregate == "count":
            return _exactly(0 if found is None else found.low)
        if found is None:
            return NOTHING_THERE
        odd = self._odd_values(self._gram.end - size)
        has_nan = any(map(math.isnan, odd))
        if aggregate == "max" and has_nan:
            return _exactly(math.nan)
        if aggregate in ("sum", "avg") and odd:
            return _exactly(sum(odd))
        low, high = _at_most(found.low), -_at_most(-found.high)
        if aggregate == "min" and has_nan and high == math.inf:
            high = math.nan  # every value may be NaN
        return IntervalEstimate(_middle(low, high), low, high)

    def _odd_values(self, start: int) -> list[float]:
        """Of NaN and the infinities, those that a window holds."""
        newest = {math.nan: self._nan, math.inf: self._infinite, -math.inf: self._negative}
        return [value for value, at in newest.items() if at >= start]


def _newest(at: NDArray[np.int64], which: NDArray[np.bool_], before: int) -> int:
    return max(before, int(at[which].max(initial=BEGINNING)))


def _exactly(value: Number) -> IntervalEstimate:
    return IntervalEstimate(value, value, value)


def _middle(low: float, high: float) -> float | None:
    """Half way between two bounds; None where both sides are open."""
    middle = low / 2 + high / 2
    return None if math.isnan(middle) else middle


def _at_most(number: Number) -> float:
    """The nearest float that is not greater."""
    try:
        rounded = float(number)
    except OverflowError:
        rounded = math.inf if number > 0 else -math.inf
    return rounded if rounded <= number else math.nextafter(rounded, -math.inf)
