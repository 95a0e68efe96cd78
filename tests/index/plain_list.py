"""A live window as a plain list: what every index must agree with.

It shares nothing with the indexes. Rows are tuples (position, value, name); values compare as in
GROUP BY: NaN is one value and the greatest, -0.0 is 0.0, NULL is none.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

Row = tuple[int | None, Any, str | None]


def normal(value: Any) -> Any:
    """A value that equals all that are the same value."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def rank(value: Any) -> tuple[bool, Any]:
    """What values sort by."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan, 0 if is_nan else value


@dataclass
class PlainWindow:
    """All rows that ever came in time, and how far the window has come."""

    basic: int
    length: int
    rows: list[Row] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)
    rejected: list[Row] = field(default_factory=list)
    open_from: int | None = None

    def add(self, rows: list[Row]) -> None:
        for row in rows:
            if row[0] is None:
                self.rejected.append(row)
            elif self.open_from is not None and row[0] // self.basic < self.open_from:
                self.late.append(row)
            else:
                self.rows.append(row)

    def advance(self, to: int) -> None:
        if self.open_from is None or to // self.basic > self.open_from:
            self.open_from = to // self.basic

    @property
    def window(self) -> list[Row]:
        """The rows of the window, by position and then as they came."""
        if self.open_from is None:
            return []
        first = self.open_from - self.length
        inside = [r for r in self.rows if first <= (r[0] or 0) // self.basic < self.open_from]
        return sorted(inside, key=lambda r: r[0] or 0)

    @property
    def valued(self) -> list[Row]:
        """Those of them that have a value."""
        return [r for r in self.window if r[1] is not None]

    def values(self) -> list[tuple[Any, int]]:
        """Different values and their counts, ascending."""
        counts = Counter(normal(r[1]) for r in self.valued)
        firsts = {normal(r[1]): r[1] for r in self.valued}
        ordered = sorted(firsts, key=lambda v: rank(firsts[v]))
        return [(v, counts[v]) for v in ordered]

    def with_value(self, value: Any) -> list[Row]:
        return [r for r in self.valued if normal(r[1]) == normal(value)]

    def between(self, low: Any, high: Any) -> list[Row]:
        return [r for r in self.valued if rank(low) <= rank(r[1]) <= rank(high)]

    def smaller(self, value: Any) -> int:
        return sum(rank(r[1]) < rank(value) for r in self.valued)

    def sorted(self, *, descending: bool = False) -> list[Row]:
        """By value; rows without one first, or last if descending."""
        nulls = [r for r in self.window if r[1] is None]
        if not descending:
            return nulls + sorted(self.valued, key=lambda r: rank(r[1]))
        falling = sorted({rank(r[1]) for r in self.valued}, reverse=True)
        return [r for v in falling for r in self.valued if rank(r[1]) == v] + nulls

    def quantile(self, share: float) -> Any:
        """The smallest value that so much of the rows do not exceed."""
        ordered = sorted(self.valued, key=lambda r: rank(r[1]))
        for place, row in enumerate(ordered, 1):
            if place >= share * len(ordered):
                return normal(row[1])
        return None
