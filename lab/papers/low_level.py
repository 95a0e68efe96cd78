"""Low-level aggregation: counts per group in a hash table of fixed size, in front of a high level.

*(thesis 8.3.3, Fig. 8-6)* A slot of the table holds one aggregate: a window, a group and a count.
A packet whose slot holds another aggregate sends that one to the high level, which adds up what it
gets; so a (window, group) may be sent in several parts, and their sum is its count. Windows
tumble. When one ends, its aggregates are old and have to leave:

- in order: one slot a packet is looked at and flushed (slow-flush), but before an aggregate of the
  new window may leave, every old one must have left, in one surge;
- in any order: whatever collides leaves (lazy-flush), or also one old aggregate every so many
  packets (slow-flush); no aggregate stays longer than `delay` windows after its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled

BLOCK = 64
_EMPTY = -1
_WINDOW, _GROUP, _COUNT = 0, 1, 2
_NEVER = 1 << 62

Aggregates = NDArray[np.int64]
Groups = NDArray[np.int32]


class LowLevel(Protocol):
    """A table that absorbs packets. Aggregates that leave are written to `out`, from its start."""

    table: Aggregates

    def begin(self, window: int, out: Aggregates) -> int:
        """Begin a window; how many aggregates left."""

    def absorb(self, groups: Groups, window: int, out: Aggregates, left: Groups) -> int:
        """Absorb packets of the window; how many aggregates left, and in `left`, by block."""


def room_for(packets: int, size: int) -> Aggregates:
    """Enough room for all aggregates that so many packets can make leave a table of that size."""
    return np.empty((2 * packets + size, 3), dtype=np.int64)


def empty_table(size: int) -> Aggregates:
    """A table of so many slots, a power of two."""
    return np.full((size, 3), _EMPTY, dtype=np.int64)


@dataclass(slots=True)
class InOrder:
    """Aggregates leave in the order of their windows (IOP, slow-flush)."""

    table: Aggregates
    _flushed: int = 0

    def begin(self, window: int, out: Aggregates) -> int:
        """Flush what is left of the window before the last; the last one becomes old."""
        count = int(flush_before(self.table, self._flushed, window - 1, out, 0))
        self._flushed = 0
        return count

    def absorb(self, groups: Groups, window: int, out: Aggregates, left: Groups) -> int:
        """Absorb packets of the window."""
        count, self._flushed = _absorb_in_order(
            self.table, self._flushed, groups, window, out, left
        )
        return int(count)


@dataclass(slots=True)
class InAnyOrder:
    """Aggregates leave as they must (OOP): lazy-flush, or slow-flush every so many packets."""

    table: Aggregates
    delay: int
    every: int = _NEVER
    _flushed: int = 0
    _held: dict[int, int] = field(default_factory=dict)

    def begin(self, window: int, out: Aggregates) -> int:
        """Flush what would stay too long; a table that holds nothing so old is not looked at."""
        self._flushed = 0
        overdue = [w for w, held in self._held.items() if w < window - self.delay and held]
        if not overdue:
            return 0
        for old in overdue:
            del self._held[old]
        return int(flush_before(self.table, 0, window - self.delay, out, 0))

    def absorb(self, groups: Groups, window: int, out: Aggregates, left: Groups) -> int:
        """Absorb packets of the window."""
        oldest = window - self.delay
        held = np.array([self._held.get(w, 0) for w in range(oldest, window + 1)], dtype=np.int64)
        count, self._flushed = _absorb_in_any_order(
            self.table, self._flushed, self.every, groups, window, held, out, left
        )
        self._held = {oldest + i: n for i, n in enumerate(held.tolist())}
        return int(count)


def roll_up(left: Aggregates, counts: NDArray[np.int64]) -> None:
    """The high level: add aggregates to the counts per window and group."""
    _roll_up(left, counts)


@compiled
def flush_before(table, begin, window, out, count):  # type: ignore[no-untyped-def]
    """Send every aggregate of windows before `window` from slot `begin` on; the new count."""
    for slot in range(begin, table.shape[0]):
        if _EMPTY < table[slot, _WINDOW] < window:
            count = _send(table, slot, out, count)
    return count


@compiled
def _send(table, slot, out, count):  # type: ignore[no-untyped-def]
    out[count, _WINDOW] = table[slot, _WINDOW]
    out[count, _GROUP] = table[slot, _GROUP]
    out[count, _COUNT] = table[slot, _COUNT]
    table[slot, _WINDOW] = _EMPTY
    return count + 1


@compiled
def _put(table, slot, window, group):  # type: ignore[no-untyped-def]
    table[slot, _WINDOW] = window
    table[slot, _GROUP] = group
    table[slot, _COUNT] = 1


@compiled
def _slot_of(group, size):  # type: ignore[no-untyped-def]
    mixed = np.uint64(group) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((mixed ^ (mixed >> np.uint64(31))) & np.uint64(size - 1))


@compiled
def _absorb_in_order(table, flushed, groups, window, out, left):  # type: ignore[no-untyped-def]
    size = table.shape[0]
    count = 0
    for i in range(groups.shape[0]):
        before = count
        if flushed < size:
            if _EMPTY < table[flushed, _WINDOW] < window:
                count = _send(table, flushed, out, count)
            flushed += 1
        slot = _slot_of(groups[i], size)
        held = table[slot, _WINDOW]
        if held == window and table[slot, _GROUP] == groups[i]:
            table[slot, _COUNT] += 1
        else:
            if held == window and flushed < size:
                count = flush_before(table, flushed, window, out, count)
                flushed = size
            if held != _EMPTY:
                count = _send(table, slot, out, count)
            _put(table, slot, window, groups[i])
        left[i // BLOCK] += count - before
    return count, flushed


@compiled
def _absorb_in_any_order(table, flushed, every, groups, window, held_of, out, left):  # type: ignore[no-untyped-def]
    size = table.shape[0]
    oldest = window + 1 - held_of.shape[0]
    count = 0
    wait = every
    for i in range(groups.shape[0]):
        before = count
        wait -= 1
        if wait == 0:
            wait = every
            while flushed < size and not _EMPTY < table[flushed, _WINDOW] < window:
                flushed += 1
            if flushed < size:
                held_of[table[flushed, _WINDOW] - oldest] -= 1
                count = _send(table, flushed, out, count)
        slot = _slot_of(groups[i], size)
        held = table[slot, _WINDOW]
        if held == window and table[slot, _GROUP] == groups[i]:
            table[slot, _COUNT] += 1
        else:
            if held != window:
                held_of[window - oldest] += 1
                if held != _EMPTY:
                    held_of[held - oldest] -= 1
            if held != _EMPTY:
                count = _send(table, slot, out, count)
            _put(table, slot, window, groups[i])
        left[i // BLOCK] += count - before
    return count, flushed


@compiled
def _roll_up(left, counts):  # type: ignore[no-untyped-def]
    for i in range(left.shape[0]):
        counts[left[i, _WINDOW], left[i, _GROUP]] += left[i, _COUNT]
