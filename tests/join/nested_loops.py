"""Joins by nested loops over a history: what must be given in every step, and what may be stored.

Nothing of the library is used here. A history is a list of steps; in each, rows of both sides come,
or a side promises that no row before a position will come. The rules, as the contract has them:

    a pair               in the step that brings the later of its rows
    a row alone          in the first step after which no partner can come any more
    stored               while a partner may still come
    late                 behind what its own side had promised before its step

A late row meets only rows that are not forgotten by what was promised when it came, and is never
given as a row without partner where its partners may be forgotten.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

How: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti"]
Key: TypeAlias = "tuple[object, ...]"
EVER = 10**15


@dataclass(frozen=True)
class Row:
    """A row of a side: where it lies, its key, and a number that no other row of the side has."""

    at: int
    key: Key
    id: int


@dataclass(frozen=True)
class Step:
    """What happens at once: rows of both sides come, then promises are made."""

    left: tuple[Row, ...] = ()
    right: tuple[Row, ...] = ()
    left_promise: int | None = None
    right_promise: int | None = None


Joined: TypeAlias = "tuple[int | None, int | None, int | None]"
"""The number of the left row, of the right row, and where their window ends."""


def equal(one: object, other: object) -> bool:
    """Whether two values of a key are equal, as Spark's SQL says."""
    if one is None or other is None:
        return False
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return one == other


def same_key(left: Row, right: Row) -> bool:
    """Whether all values of both keys are equal; without any, they are."""
    return all(equal(a, b) for a, b in zip(left.key, right.key, strict=True))


@dataclass(frozen=True)
class InBand:
    """Pairs with ``low <= right - left <= high``."""

    low: int
    high: int

    def of(self, left: Row, right: Row) -> list[int | None]:
        """One None for a pair that is joined."""
        return [None] if self.low <= right.at - left.at <= self.high else []

    def held(self, _: Row) -> list[int | None]:
        """One None: a row is alone once."""
        return [None]

    def passed_left(self, left: Row, _: int | None, promised: int) -> bool:
        """Whether no row on the right to come can be a partner."""
        return left.at + self.high < promised

    def passed_right(self, right: Row, _: int | None, promised: int) -> bool:
        """Whether no row on the left to come can be a partner."""
        return right.at - self.low < promised

    def ended(self, _: int | None, promised: int) -> bool:
        """A band has no windows that end."""
        return False


@dataclass(frozen=True)
class InWindows:
    """Pairs in windows of a size, whose ends lie a slide apart; they are named by their ends."""

    size: int
    slide: int
    origin: int = 0

    def held(self, row: Row) -> list[int | None]:
        """The ends of the windows that hold a row, found by trying."""
        first = self.origin + (row.at - self.origin) // self.slide * self.slide
        tried = range(first - self.slide, row.at + self.size + self.slide + 1, self.slide)
        return [end for end in tried if end - self.size <= row.at < end]

    def of(self, left: Row, right: Row) -> list[int | None]:
        """The ends of the windows that hold both."""
        other = set(self.held(right))
        return [end for end in self.held(left) if end in other]

    def passed_left(self, _: Row, end: int | None, promised: int) -> bool:
        """Whether the window has ended on the right."""
        assert end is not None
        return end <= promised

    passed_right = passed_left

    def ended(self, end: int | None, promised: int) -> bool:
        """Whether a window has ended by what is promised."""
        return end is not None and end <= promised


Partners: TypeAlias = InBand | InWindows


@dataclass
class NestedLoops:
    """A join while it runs, with every row that ever came."""

    partners: Partners
    how: How = "inner"
    condition: Callable[[Row, Row], bool] = same_key
    left: list[Row] = field(default_factory=list)
    right: list[Row] = field(default_factory=list)
    promised: tuple[int, int] = (-EVER, -EVER)
    joined: set[Joined] = field(default_factory=set)
    given: set[Joined] = field(default_factory=set)
    came: dict[tuple[str, int], int] = field(default_factory=dict)
    late: set[tuple[str, int]] = field(default_factory=set)

    def step(self, step: Step) -> list[Joined]:
        """What is given in a step, each once."""
        before = self.promised
        for side, rows, own in (("left", step.left, before[0]), ("right", step.right, before[1])):
            self.late |= {(side, row.id) for row in rows if row.at < own}
            self.came |= {(side, row.id): own for row in rows}
        new = list(self._new_pairs(step, before))
        self.left += step.left
        self.right += step.right
        self.joined |= set(new)
        promises = (step.left_promise, step.right_promise)
        self.promised = tuple(
            old if new_one is None else max(old, new_one)
            for old, new_one in zip(before, promises, strict=True)
        )  # type: ignore[assignment]
        due = [*self._pairs(new), *self._alone()]
        fresh = [one for one in due if one not in self.given]
        self.given |= set(fresh)
        return fresh

    def _new_pairs(self, step: Step, before: tuple[int, int]) -> Iterator[Joined]:
        met = [(a, b) for a in step.left for b in (*self.right, *step.right)]
        met += [(a, b) for b in step.right for a in self.left]
        for a, b in met:
            a_is_new, b_is_new = a in step.left, b in step.right
            if not self.condition(a, b):
                continue
            for end in self.partners.of(a, b):
                # A late row does not meet what was forgotten, nor windows that had ended.
                if a_is_new and (
                    self.partners.passed_right(b, end, before[0])
                    or self.partners.ended(end, before[0])
                ):
                    continue
                if b_is_new and (
                    self.partners.passed_left(a, end, before[1])
                    or self.partners.ended(end, before[1])
                ):
                    continue
                yield a.id, b.id, end

    def _pairs(self, new: Sequence[Joined]) -> list[Joined]:
        if self.how == "semi":
            return [(a, None, end) for a, end in dict.fromkeys((a, end) for a, _, end in new)]
        return [] if self.how == "anti" else list(new)

    def _alone(self) -> Iterator[Joined]:
        with_partner = {(a, end) for a, _, end in self.joined}
        other_with_partner = {(b, end) for _, b, end in self.joined}
        if self.how in ("left", "full", "anti"):
            for row in self.left:
                for end in self._answerable("left", row):
                    over = self.partners.passed_left(row, end, self.promised[1])
                    if (over or None in row.key) and (row.id, end) not in with_partner:
                        yield row.id, None, end
        if self.how in ("right", "full"):
            for row in self.right:
                for end in self._answerable("right", row):
                    over = self.partners.passed_right(row, end, self.promised[0])
                    if (over or None in row.key) and (row.id, end) not in other_with_partner:
                        yield None, row.id, end

    def _answerable(self, side: str, row: Row) -> list[int | None]:
        """Where a row may be given as one without partner: nowhere that partners are forgotten."""
        held = self.partners.held(row)
        if (side, row.id) not in self.late or (None in row.key and None in held):
            return held
        own = self.came[side, row.id]
        return [end for end in held if end is not None and end > own]

    def stored(self) -> tuple[int, int]:
        """How many rows of each side may still find a partner, and so must be stored."""
        partners = self.partners
        left = [
            row for row in self.left
            if None not in row.key
            and any(not partners.passed_left(row, e, self.promised[1]) for e in partners.held(row))
        ]  # fmt: skip
        right = [
            row for row in self.right
            if None not in row.key
            and any(not partners.passed_right(row, e, self.promised[0]) for e in partners.held(row))
        ]  # fmt: skip
        return len(left), len(right)


@dataclass
class LastRows:
    """An as-of join while it runs: each row on the left with the last row on the right.

    A row on the left is answered in the first step after which the right side has promised that
    nothing up to it is to come. `rank` orders rows of the right side at one position.
    """

    range: int
    how: Literal["inner", "left"] = "inner"
    rank: Callable[[Row], object] = lambda row: row.id
    waiting: list[tuple[Row, int, bool]] = field(default_factory=list)
    right: list[Row] = field(default_factory=list)
    kept: list[Row] = field(default_factory=list)
    promised: tuple[int, int] = (-EVER, -EVER)

    def step(self, step: Step) -> list[Joined]:
        """What is given in a step."""
        before = self.promised
        given: list[Joined] = []
        self.right += step.right
        for row in step.left:
            is_late = row.at < before[0]
            floor = before[0] - self.range if is_late else -EVER
            if None not in row.key:
                self.waiting.append((row, floor, is_late))
            elif self.how == "left":
                given.append((row.id, None, None))
        promises = (step.left_promise, step.right_promise)
        self.promised = tuple(
            old if new is None else max(old, new) for old, new in zip(before, promises, strict=True)
        )  # type: ignore[assignment]
        due = [one for one in self.waiting if one[0].at < self.promised[1]]
        self.waiting = [one for one in self.waiting if one[0].at >= self.promised[1]]
        for row, floor, is_late in due:
            partner = self._last(row, floor)
            if partner is not None:
                given.append((row.id, partner.id, None))
            elif self.how == "left" and not is_late:
                given.append((row.id, None, None))
        oldest = min([self.promised[0], *(row.at for row, _, _ in self.waiting)])
        here = [*self.kept, *(r for r in step.right if None not in r.key)]
        self.kept = [r for r in here if r.at + self.range >= oldest]
        return given

    def _last(self, row: Row, floor: int) -> Row | None:
        first = max(row.at - self.range, floor)
        found = [r for r in self.right if first <= r.at <= row.at and same_key(row, r)]
        return max(found, key=lambda r: (r.at, self.rank(r)), default=None)

    def stored(self) -> tuple[int, int]:
        """How many rows of each side are stored."""
        return len(self.waiting), len(self.kept)
