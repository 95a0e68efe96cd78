"""A monoid over columns: many partials become one, a whole column at a time.

A partial is a 2-D array, one row per *lane* and one column per group, so that one `combine`
serves a million groups. Laws, checked for every monoid in ``tests/aggregates``: `empty` is neutral
on both sides, `combine` is associative and commutative. (Commutative, because rows of one pane
arrive in any order.)

Two kinds exist. `Lanes` are numbers combined by compiled code, so any kernel may run them;
anything else (text, sketches, a user's own columns) is a `Monoid` and is combined by NumPy.
A kernel asks for the weaker of the two that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from panes.aggregates import lanes
from panes.aggregates.lanes import Op

Columns: TypeAlias = NDArray[np.generic]
Slots: TypeAlias = NDArray[np.signedinteger]
"""The partial that each row belongs to; -1 for a row that is passed over."""


class Monoid(Protocol):
    """An associative, commutative `combine` with a neutral `empty`, on columns of partials."""

    @property
    def names(self) -> tuple[str, ...]:
        """The content of each lane, in words for people."""
        ...

    @property
    def dtype(self) -> np.dtype[np.generic]: ...

    def empty(self, n: int) -> Columns:
        """`n` neutral partials."""
        ...

    def combine(self, older: Columns, newer: Columns) -> Columns:
        """Partials of the union, column by column."""
        ...


@dataclass(frozen=True, slots=True)
class Lanes:
    """A monoid of numbers: an operation of `panes.aggregates.lanes` and its neutral element."""

    op: Op
    names: tuple[str, ...]
    neutral: tuple[int | float, ...]

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return np.dtype(np.int64 if self.op in lanes.INTEGER_OPS else np.float64)

    def empty(self, n: int) -> Columns:
        result = np.empty((len(self.neutral), n), dtype=self.dtype)
        for lane, neutral in zip(result, self.neutral, strict=True):
            lane.fill(neutral)
        return result

    def combine(self, older: Columns, newer: Columns) -> Columns:
        result = np.empty_like(older)
        lanes.combine_pairs(int(self.op), len(self.names))(older, newer, result)
        return result

    def absorb(self, values: Columns, slots: Slots, size: int) -> Columns:
        """Fold one value per row into `size` partials, each row into the one its slot names."""
        result = self.empty(size)
        self.absorb_into(result, values, slots)
        return result

    def absorb_into(self, partials: Columns, values: Columns, slots: Slots) -> None:
        """Fold one value per row into partials that are already there."""
        lanes.absorb_rows(int(self.op), len(self.names), len(values))(partials, values, slots)


@dataclass(frozen=True, slots=True)
class Objects:
    """A monoid of objects that never change; `merge` gives a new one, None is neutral.

    `given` are further arguments of `merge`, as the size of a sketch.
    """

    name: str
    merge: Callable[..., Any]
    given: tuple[Any, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return np.dtype(object)

    def empty(self, n: int) -> Columns:
        return np.full((1, n), None, dtype=object)

    def combine(self, older: Columns, newer: Columns) -> Columns:
        result = np.empty_like(older)
        for i, (a, b) in enumerate(zip(older[0], newer[0], strict=True)):
            result[0, i] = self._merged(a, b)
        return result

    def gathered(self, objects: Iterable[tuple[int, Any]], size: int) -> Columns:
        """`size` partials, each merged from the objects that name its slot."""
        result: NDArray[Any] = self.empty(size)
        for slot, one in objects:
            result[0, slot] = self._merged(result[0, slot], one)
        return result

    def _merged(self, a: Any, b: Any) -> Any:
        return b if a is None else a if b is None else self.merge(a, b, *self.given)


def merge_slots(monoid: Monoid, partials: Columns, slots: NDArray[np.int64], size: int) -> Columns:
    """Combine partials that name the same slot. Compiled for `Lanes`; by steps otherwise."""
    if isinstance(monoid, Lanes):
        result = monoid.empty(size)
        lanes.combine_slots(int(monoid.op), len(monoid.names))(result, partials, slots)
        return result
    order = np.argsort(slots, kind="stable")
    ranked = slots[order]
    begin = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(ranked) else order
    length = np.diff(np.r_[begin, len(ranked)])
    merged = partials[:, order[begin]]
    for step in range(1, int(length.max(initial=0))):
        longer = np.flatnonzero(length > step)
        merged[:, longer] = monoid.combine(
            merged[:, longer], partials[:, order[begin[longer] + step]]
        )
    result = monoid.empty(size)
    result[:, ranked[begin]] = merged
    return result
