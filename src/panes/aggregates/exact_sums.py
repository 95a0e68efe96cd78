"""Sums of doubles that no order of addition reaches: kept exactly, and rounded once.

A sum is kept as its parts: doubles that do not overlap, the least one first, whose exact sum it is
(Shewchuk 1997, grow-expansion and compress). Most sums have one or two parts. Values from 2^960 on
are summed apart and divided by 2^200, so that nothing overflows on the way. Infinities and NaN are
remembered as flags.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

PLUS, MINUS, NAN, MINUS_ZERO = 1, 2, 4, 8
"""The special values that a sum has met: an infinity, NaN, or a single value that is -0.0."""
_NANS = np.array([0x7FF8 << 48, 0xFFF8 << 48], np.uint64).view(np.float64)
"""NaN as Java writes it: one that was given, and the difference of infinities."""
_HUGE, _DIVISOR = 2.0**960, 2.0**200
_MOST_PARTS = 64
_TOGETHER = 8_192  # sums, so that their parts stay in the processor's cache


@dataclass(frozen=True, slots=True, eq=False)
class ExactSums:
    """Sums, one per row: their parts, the parts of huge values, and what else they have met."""

    parts: Floats
    huge: Floats
    met: NDArray[np.uint8]

    @classmethod
    def of(cls, values: Floats) -> ExactSums:
        """Sums of one value each, which remember -0.0."""
        is_finite, is_huge = np.isfinite(values), np.abs(values) >= _HUGE
        parts = np.where(is_finite & ~is_huge, values, 0.0)[:, None]
        huge = np.where(is_finite & is_huge, values, 0.0)[:, None] / _DIVISOR
        met = PLUS * (values == math.inf) + MINUS * (values == -math.inf)
        met += MINUS_ZERO * ((values == 0) & np.signbit(values))
        is_nan = np.isnan(values)
        met += np.where(np.signbit(values), PLUS | MINUS, NAN) * is_nan
        return cls(_trimmed(parts), _trimmed(huge), met.astype(np.uint8))

    def __len__(self) -> int:
        return len(self.met)

    def take(self, rows: Index) -> ExactSums:
        """Some of the sums."""
        return ExactSums(_trimmed(self.parts[rows]), _trimmed(self.huge[rows]), self.met[rows])

    def joined(self, other: ExactSums) -> ExactSums:
        """These sums, and then the others."""
        return ExactSums(
            _stacked(self.parts, other.parts),
            _stacked(self.huge, other.huge),
            np.concatenate([self.met, other.met]),
        )

    def added(self, begin: Index, meet: NDArray[np.bool_] | None = None) -> ExactSums:
        """The sum of each run of sums; a run ends where the next one begins.

        Where the runs that `meet` are given, all others are as before, and may be -0.0.
        """
        groups = np.repeat(np.arange(len(begin)), np.diff(np.append(begin, len(self))))
        met = np.bitwise_or.reduceat(self.met, begin) if len(begin) else self.met
        met = np.where(True if meet is None else meet, met & ~np.uint8(MINUS_ZERO), met)
        return ExactSums(
            _summed(self.parts, groups, len(begin)), _summed(self.huge, groups, len(begin)), met
        )

    def rounded(self) -> Floats:
        """Each sum as the double that is nearest to it."""
        width = self.parts.shape[1]
        result = self.parts[:, :2].sum(axis=1)  # the double that is nearest to two is their sum
        for row in np.flatnonzero(self.parts[:, 2]) if width > 2 else ():
            result[row] = math.fsum(self.parts[row])
        for row in np.flatnonzero(self.huge.any(axis=1)):
            result[row] = _nearest(self.parts[row], self.huge[row])
        result[(self.met & MINUS_ZERO) > 0] = -0.0
        for flags, value in ((PLUS, math.inf), (MINUS, -math.inf)):
            result[(self.met & flags) > 0] = value
        result[(self.met & (PLUS | MINUS)) == PLUS | MINUS] = _NANS[1]
        result[(self.met & NAN) > 0] = _NANS[0]
        return result

    def to_bytes(self) -> bytes:
        """The sums as they are stored."""
        widths = struct.pack("<2B", self.parts.shape[1], self.huge.shape[1])
        numbers = (p.astype("<f8").tobytes() for p in (self.parts, self.huge))
        return widths + self.met.tobytes() + b"".join(numbers)

    @classmethod
    def from_bytes(cls, data: bytes, count: int) -> ExactSums:
        """So many sums that `to_bytes` wrote."""
        width, huge_width = data[:2]
        met = np.frombuffer(data, np.uint8, count, 2).copy()
        numbers = np.frombuffer(data, "<f8", offset=2 + count).astype(np.float64)
        parts, huge = np.split(numbers, [count * width])
        return cls(parts.reshape(count, width), huge.reshape(count, huge_width), met)


def _nearest(parts: Floats, huge: Floats) -> float:
    total = sum(map(Fraction, parts.tolist()), Fraction(0))
    total += sum(map(Fraction, huge.tolist()), Fraction(0)) * int(_DIVISOR)
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def _trimmed(parts: Floats) -> Floats:
    """The parts without the columns behind the last one that is in use."""
    used = np.flatnonzero(parts.any(axis=0))
    return np.ascontiguousarray(parts[:, : used[-1] + 1 if len(used) else 0])


def _stacked(one: Floats, other: Floats) -> Floats:
    width = max(one.shape[1], other.shape[1])
    return np.concatenate([np.pad(p, ((0, 0), (0, width - p.shape[1]))) for p in (one, other)])


def _summed(parts: Floats, groups: Index, count: int) -> Floats:
    """The parts of the sum of each group; groups ascend."""
    found = np.empty((0, 0))
    for first in range(0, count, _TOGETHER):
        size = min(_TOGETHER, count - first)
        begin, end = np.searchsorted(groups, [first, first + size])
        sums, held = np.zeros((size, _MOST_PARTS)), np.zeros(size, np.int64)
        _grow(parts[begin:end], groups[begin:end] - first, sums, held)
        found = _stacked(found, sums[:, : held.max(initial=0)])
    return found


@compiled
def _grow(parts, groups, sums, held):  # type: ignore[no-untyped-def]
    for k in range(parts.shape[0]):
        group = groups[k]
        for part in parts[k]:
            if part == 0:
                continue
            if held[group] == sums.shape[1]:
                held[group] = _compress(sums[group])
            carry, kept = part, 0
            for i in range(held[group]):
                carry, error = _both(carry, sums[group, i])
                if error != 0:
                    sums[group, kept] = error
                    kept += 1
            if carry != 0:
                sums[group, kept] = carry
                kept += 1
            sums[group, kept : held[group]] = 0
            held[group] = kept


@compiled
def _compress(parts):  # type: ignore[no-untyped-def]
    """Write the same sum with as few parts as can be: each but the first has all its bits."""
    bottom = parts.shape[0] - 1
    carry = parts[bottom]
    for i in range(parts.shape[0] - 2, -1, -1):
        carry, error = _both(carry, parts[i])
        if error != 0:
            parts[bottom] = carry
            bottom -= 1
            carry = error
    parts[bottom] = carry
    kept = 0
    for i in range(bottom + 1, parts.shape[0]):
        carry, error = _both(parts[i], carry)
        if error != 0:
            parts[kept] = error
            kept += 1
    parts[kept] = carry
    parts[kept + 1 :] = 0
    return kept + 1


@compiled
def _both(a, b):  # type: ignore[no-untyped-def]
    """A sum of two doubles as a double, and what rounding took from it (Knuth)."""
    total = a + b
    rest = total - a
    return total, (a - (total - rest)) + (b - rest)
