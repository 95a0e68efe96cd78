"""TimeGram: one histogram over time that answers every window up to a largest size.

A row is remembered only as its position and the bucket of its value, so every answer is an
interval; the truth always lies in it, and the width of the buckets is how exact it is. All
windows and all five aggregates share the one store. (*Aggregate Sharing in Stream Databases* 3)

The report keeps a list of timestamps per bucket. Here the same pairs stand in order of arrival,
with running totals of the bucket numbers. A sum over buckets of one width needs no more::

    sum of low edges  =  origin * count + width * (sum of bucket numbers)

and both are differences of integers at the window's two ends, so exact. For min and max, a search
from the last bucket down stops at a bucket that no higher one follows in time: at a step of the
staircase of bucket numbers. So a row costs amortised constant time, and a lookup two binary
searches, whatever the number of buckets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from panes.errors import InputError, OptionError
from panes.stores.nested.buckets import HIGHEST, LOWEST, AnswerBounds, Buckets, Number
from panes.stores.nested.reach import NestedReach
from panes.stores.nested.staircase import Staircase
from panes.stores.nested.tail import Columns, Tail, in_axis_order, merged

Aggregate: TypeAlias = Literal["count", "sum", "avg", "min", "max"]
AGGREGATES: tuple[Aggregate, ...] = ("count", "sum", "avg", "min", "max")


@dataclass(frozen=True, slots=True)
class Bucket:
    """The positions of the rows whose values lie in an interval (report, Figure 2)."""

    values: AnswerBounds
    at: tuple[int, ...]


class TimeGram:
    """Approximate answers over the last N rows or ticks, for any N asked for.

    >>> gram = TimeGram(width=4, origin=-10, max_size=4)
    >>> gram.add(np.arange(1, 8), np.array([3, -10, -9, 5, 2, 7, -3]))
    >>> gram.ask("max", 3)
    AnswerBounds(low=6, high=10)
    >>> gram.ask("sum", 4)
    AnswerBounds(low=4, high=20)

    Parameters
    ----------
    width, origin
        The buckets. Whole numbers give whole answers for sum, min and max.
    max_size
        The largest window that will be asked for; older rows are evicted.
    """

    RECOMPUTED = frozenset({"buckets_of", "_units"})

    def __init__(self, *, width: Number, origin: Number = 0, max_size: int) -> None:
        self.buckets_of = Buckets(width=width, origin=origin)
        self._units = self.buckets_of.units()
        self._reach = NestedReach(max_size)
        self._rows = Tail()  # each with the total of bucket numbers before it
        self._total = np.zeros(1, dtype=np.int64)
        self._highest = Staircase()
        self._lowest = Staircase()  # of complements, which order the other way round

    def __len__(self) -> int:
        """The number of rows that are remembered."""
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        """Bytes that the remembered rows take."""
        return 16 * (len(self._rows) + len(self._highest) + len(self._lowest))

    def resize(self, max_size: int) -> None:
        """Let another window be the largest; rows that are evicted by now stay so."""
        self._reach.resize(max_size)
        self._evict()

    @property
    def end(self) -> int:
        """Where all windows end: just after the newest row, or at the newest promise."""
        return self._reach.end

    def add(self, at: NDArray[np.int64], values: NDArray[np.generic]) -> None:
        """Take in rows in axis order."""
        if len(at) != len(values):
            raise InputError(f"{len(at)} positions came with {len(values)} values")
        numbers = self.buckets_of.numbers(values)
        self._reach.follow(at)
        self._append(at, numbers)
        self._highest.push(at, numbers)
        self._lowest.push(at, ~numbers)
        self._evict()

    def merge(self, at: NDArray[np.int64], values: NDArray[np.generic]) -> None:
        """Take in rows in any order; each costs as much as the rows that it lies behind.

        >>> gram = TimeGram(width=1, max_size=10)
        >>> gram.merge(np.array([5, 2]), np.array([7, 3]))
        >>> gram.merge(np.array([4]), np.array([1]))
        >>> gram.ask("sum", 2), gram.ask("min", 4)
        (AnswerBounds(low=8, high=10), AnswerBounds(low=1, high=2))
        """
        if len(at) != len(values):
            raise InputError(f"{len(at)} positions came with {len(values)} values")
        numbers = self.buckets_of.numbers(values)
        self._reach.include(at)
        if len(at):
            at, numbers = in_axis_order(at, numbers)
            self._highest.merge(at, numbers)
            self._lowest.merge(at, ~numbers)
            self._append(*merged(self._cut_after(int(at[0])), (at, numbers)))
        self._evict()

    def _append(self, at: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        # Totals may wrap around 64 bits in a long stream; differences over a window do not.
        totals = np.cumsum(np.concatenate([self._total, numbers]))
        self._rows.append(at, totals[:-1])
        self._total = totals[-1:]

    def _cut_after(self, at: int) -> Columns:
        """Take out the rows behind a position, with their bucket numbers."""
        later, totals = self._rows.cut_after(at)
        numbers = np.diff(totals, append=self._total)
        self._total = totals[:1] if len(totals) else self._total
        return later, numbers

    def add_rows(self, values: NDArray[np.generic]) -> None:
        """Take in rows whose positions are their arrival numbers, from 0."""
        self.add(self._reach.arrivals(len(values)), values)

    def advance(self, progress: int) -> None:
        """Move all windows on to a promise: no later row lies before `progress`."""
        self._reach.advance(progress)
        self._evict()

    def ask(self, aggregate: Aggregate, size: int) -> AnswerBounds | None:
        """Where the answer over ``[end - size, end)`` lies; None if no row does."""
        return self.ask_each(aggregate, [size])[0]

    def ask_each(self, aggregate: Aggregate, sizes: Sequence[int]) -> list[AnswerBounds | None]:
        """The same for many windows at once."""
        if aggregate not in AGGREGATES:
            raise OptionError(
                f"a TimeGram answers {', '.join(AGGREGATES)}; asked for {aggregate!r}"
            )
        starts = self._reach.starts(np.array(sizes, dtype=np.int64))
        count = len(self) - np.searchsorted(self._rows.at, starts)
        low = ~self._lowest.greatest(starts)[0]
        high = self._highest.greatest(starts)[0]
        if aggregate in ("min", "max"):
            found = (low if aggregate == "min" else high).tolist()
            interval = {b: self.buckets_of.interval(b) for b in set(found)}
            stored = (count > 0).tolist()
            return [interval[b] if h else None for b, h in zip(found, stored, strict=True)]
        if aggregate == "count":
            return [AnswerBounds(n, n) if n else None for n in count.tolist()]
        total = self._totals_of(count)
        columns = (c.tolist() for c in (count, total, low, high))
        is_avg = aggregate == "avg"
        return [
            self._sum(n, t, l, h, divisor=n if is_avg else 1) if n else None
            for n, t, l, h in zip(*columns, strict=True)
        ]

    def buckets(self) -> list[Bucket]:
        """The rows that are remembered, bucket by bucket, empty ones left out."""
        numbers = np.diff(self._rows.keys, append=self._total)
        order = np.argsort(numbers, kind="stable")
        names, begins = np.unique(numbers[order], return_index=True)
        runs = np.split(self._rows.at[order], begins[1:])
        return [
            Bucket(self.buckets_of.interval(b), tuple(run.tolist()))
            for b, run in zip(names.tolist(), runs, strict=False)
        ]

    def _totals_of(self, count: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum of bucket numbers of the newest so many rows."""
        first = np.minimum(len(self) - count, len(self) - 1)
        return self._total - self._rows.keys[first] if len(self) else count

    def _sum(self, count: int, total: int, lowest: int, highest: int, divisor: int) -> AnswerBounds:
        low, high = self._units.sum_of(count, total)
        parts = divisor * self._units.per_one
        return AnswerBounds(
            -math.inf if lowest == LOWEST else _at_most(low, parts),
            math.inf if highest == HIGHEST else -_at_most(-high, parts),
        )

    def _evict(self) -> None:
        for column in (self._rows, self._highest, self._lowest):
            column.evict_before(self._reach.oldest)


def _at_most(amount: int, parts: int) -> Number:
    """A quotient as it is if it is whole, otherwise as the nearest float that is not greater."""
    whole, rest = divmod(amount, parts)
    if not rest:
        return whole
    try:
        rounded = amount / parts
    except OverflowError:
        rounded = math.inf if amount > 0 else -math.inf
    if math.isfinite(rounded):
        above, below = rounded.as_integer_ratio()
        if above * parts <= amount * below:
            return rounded
    return math.nextafter(rounded, -math.inf)
