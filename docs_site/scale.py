"""From numbers to places on an axis, and the ticks that are written beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from `low` to `high`, drawn from `begin` to `end`; a log one is above zero."""

    low: float
    high: float
    begin: float
    end: float
    kind: Literal["linear", "log"] = "linear"

    def __call__(self, value: float) -> float:
        """Where a value stands; what is not positive stands at the foot of a log axis.

        >>> Scale(0, 10, 100, 200)(5), Scale(1, 100, 0, 1, "log")(10)
        (150.0, 0.5)
        """
        if self.kind == "log":
            low, high = math.log10(self.low), math.log10(self.high)
            share = (math.log10(max(value, self.low)) - low) / (high - low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Round numbers along the axis, four to eight of them where that is possible."""
        if self.kind == "log":
            return log_ticks(self.low, self.high)
        step = round_step((self.high - self.low) / 5)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(n * step, 12) for n in range(first, last + 1)]


def scale_for(
    values: Sequence[float], begin: float, end: float, kind: Literal["linear", "log"], *, zero: bool
) -> Scale:
    """An axis with room for all values, from zero if asked for and linear."""
    if kind == "log":
        positive = [v for v in values if v > 0]
        low, high = min(positive), max(positive)
        return Scale(low / 1.25, high * 1.25, begin, end, "log")
    low = min(0.0, *values) if zero else min(values)
    high = max(values)
    room = (high - low) * 0.05 or 1.0
    return Scale(low if zero else low - room, high + room, begin, end)


def round_step(about: float) -> float:
    """1, 2 or 5 times a power of ten, at least as large as asked.

    >>> round_step(0.13), round_step(3.0), round_step(70)
    (0.2, 5.0, 100.0)
    """
    power = 10.0 ** math.floor(math.log10(about))
    return next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= about * (1 - 1e-9))


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten, with 2 and 5 times them where there are few.

    >>> log_ticks(8, 1200), log_ticks(3, 60)
    ([10.0, 100.0, 1000.0], [5.0, 10.0, 20.0, 50.0])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    tens = [10.0**p for p in powers if low <= 10.0**p <= high]
    if len(tens) >= 3:
        return tens
    return [m * 10.0**p for p in powers for m in (1, 2, 5) if low <= m * 10.0**p <= high]


def short(x: float) -> str:
    """A number as an axis shows it.

    >>> [short(x) for x in (0.5, 12, 1_000, 66_000, 2_500_000)]
    ['0.5', '12', '1000', '66K', '2.5M']
    """
    if abs(x) >= 1e6:
        return f"{x / 1e6:.3g}M"
    return f"{x / 1e3:.3g}K" if abs(x) >= 1e4 else f"{x:.4g}"
