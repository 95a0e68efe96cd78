"""The summary of a key in a tuple sketch: a number, and the mode in which it was made.

A number that has met no other of its key is as it was given, with its own mode. Where several
meet, they are folded in the mode of the sketch, as Spark does: Java's int wraps around, NaN is
neither least nor greatest, and of 0.0 and -0.0 the latter is less. Sums of doubles are exact, and
are rounded when they are written (`panes.aggregates.exact_sums`). So no order reaches a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from panes.aggregates.exact_sums import ExactSums, Index

Kind = Literal["double", "integer"]
Modes = NDArray[np.uint8]
Meet = NDArray[np.bool_]


class SummaryMode(IntEnum):
    """The ways in which numbers of one key become one; numbered as DataSketches writes them."""

    SUM = 0
    MIN = 1
    MAX = 2
    ALWAYSONE = 3


@dataclass(frozen=True, slots=True)
class Folding:
    """The kind of a sketch's numbers, and the mode in which they are folded."""

    kind: Kind
    mode: SummaryMode

    @property
    def is_exact_sum(self) -> bool:
        return self.kind == "double" and self.mode is SummaryMode.SUM

    def of(self, numbers: NDArray[np.generic], modes: Modes) -> Summaries:
        """Numbers as they were given."""
        if self.is_exact_sum:
            return Summaries(self, modes, Sums(ExactSums.of(numbers.astype(np.float64))))
        keys = ordered(numbers) if self.kind == "double" else numbers.astype(np.int64)
        return Summaries(self, modes, Keys(self, keys))


class SummaryNumbers(Protocol):
    """Numbers of one folding, in whatever form no order reaches."""

    def take(self, rows: Index) -> SummaryNumbers: ...

    def joined(self, other: SummaryNumbers) -> SummaryNumbers: ...

    def folded(self, begin: Index, meet: Meet) -> SummaryNumbers:
        """One number for each run, folded where several meet, and as it was elsewhere."""
        ...

    def written(self) -> NDArray[np.generic]: ...

    def to_bytes(self) -> bytes: ...


@dataclass(frozen=True, slots=True, eq=False)
class Summaries:
    """A number and a mode per key."""

    folding: Folding
    modes: Modes
    numbers: SummaryNumbers

    def take(self, rows: Index) -> Summaries:
        """Some of them."""
        return Summaries(self.folding, self.modes[rows], self.numbers.take(rows))

    def joined(self, other: Summaries) -> Summaries:
        """These, and then the others."""
        modes = np.concatenate([self.modes, other.modes])
        return Summaries(self.folding, modes, self.numbers.joined(other.numbers))

    def folded(self, begin: Index, *, even_one: bool) -> Summaries:
        """One number for each run; a run of one is folded too if `even_one`, as rows are."""
        meet = np.diff(np.append(begin, len(self.modes))) > 1
        if even_one:
            meet[:] = True
        if not meet.any():
            return self
        modes = np.where(meet, np.uint8(self.folding.mode), self.modes[begin])
        return Summaries(self.folding, modes, self.numbers.folded(begin, meet))

    def to_bytes(self) -> bytes:
        """The state of all numbers."""
        return self.modes.tobytes() + self.numbers.to_bytes()

    @classmethod
    def from_bytes(cls, folding: Folding, count: int, data: bytes) -> Summaries:
        """The numbers that `to_bytes` wrote."""
        modes, rest = np.frombuffer(data, np.uint8, count).copy(), data[count:]
        if folding.is_exact_sum:
            return cls(folding, modes, Sums(ExactSums.from_bytes(rest, count)))
        return cls(folding, modes, Keys(folding, np.frombuffer(rest, "<i8").astype(np.int64)))


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums of doubles."""

    exact: ExactSums

    def take(self, rows: Index) -> Sums:
        return Sums(self.exact.take(rows))

    def joined(self, other: SummaryNumbers) -> Sums:
        assert isinstance(other, Sums)
        return Sums(self.exact.joined(other.exact))

    def folded(self, begin: Index, meet: Meet) -> Sums:
        return Sums(self.exact.added(begin, meet))

    def written(self) -> NDArray[np.generic]:
        return self.exact.rounded()

    def to_bytes(self) -> bytes:
        return self.exact.to_bytes()


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """Whole numbers: ints, or doubles as whole numbers in the same order."""

    folding: Folding
    keys: NDArray[np.int64]

    def take(self, rows: Index) -> Keys:
        return Keys(self.folding, self.keys[rows])

    def joined(self, other: SummaryNumbers) -> Keys:
        assert isinstance(other, Keys)
        return Keys(self.folding, np.concatenate([self.keys, other.keys]))

    def folded(self, begin: Index, meet: Meet) -> Keys:
        return Keys(self.folding, np.where(meet, self._folded(begin), self.keys[begin]))

    def _folded(self, begin: Index) -> NDArray[np.int64]:
        mode, is_double, keys = self.folding.mode, self.folding.kind == "double", self.keys
        if mode is SummaryMode.ALWAYSONE:
            return np.full(len(begin), _ONE if is_double else 1, np.int64)
        if mode is SummaryMode.SUM:
            total: NDArray[np.int64] = np.add.reduceat(keys, begin)
            return total.astype(np.int32).astype(np.int64)
        if is_double:
            neutral = _INFINITY if mode is SummaryMode.MIN else _MINUS_INFINITY
            keys = np.where((keys > _INFINITY) | (keys < _MINUS_INFINITY), neutral, keys)
        fold = np.minimum if mode is SummaryMode.MIN else np.maximum
        found: NDArray[np.int64] = fold.reduceat(keys, begin)
        return found

    def written(self) -> NDArray[np.generic]:
        if self.folding.kind == "integer":
            return self.keys.astype(np.int32)
        return _in_order(self.keys).view(np.float64)

    def to_bytes(self) -> bytes:
        return self.keys.astype("<i8").tobytes()


def ordered(numbers: NDArray[np.generic]) -> NDArray[np.int64]:
    """Doubles as whole numbers in the same order: -0.0 is below 0.0, NaN beyond the infinities."""
    return _in_order(np.ascontiguousarray(numbers, np.float64).view(np.int64))


def _in_order(bits: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bits of doubles as ordered numbers; applied twice, they are as before."""
    return bits ^ ((bits >> np.int64(63)) & np.int64((1 << 63) - 1))


_ONE, _INFINITY, _MINUS_INFINITY = ordered(np.array([1.0, np.inf, -np.inf])).tolist()
