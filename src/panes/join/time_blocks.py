"""The rows of one side that may still be joined, in blocks of time.

A block holds the rows of one stretch of positions, as a few runs, each sorted by key and position.
A probe meets the runs of the blocks that it reaches and no others, and forgetting drops blocks.
Runs of a block are merged when they are of like size, so that there are never more than a few, and
a row is moved as often as its block has doubled. Where rows would lie in very many blocks, blocks
become twice as long: nothing moves then, since two neighbours are one block from there on.

Rows that have passed are dropped with their block. In the block where the promise lies they stay
until half of it has passed, or until they are looked for; whoever probes leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from panes.axis import BEGINNING, FOREVER
from panes.join.sorted_rows import SortedRows

_FEW = 4_096
_BLOCKS_WITHIN_REACH = 8
_MOST_BLOCKS = 64


class TimeBlocks:
    """Rows by position, newest and oldest apart.

    >>> blocks = TimeBlocks(reach=80)
    >>> at = np.array([5, 25, 6])
    >>> blocks.add(SortedRows.of(np.array([1, 1, 2]), at, ()))
    >>> len(blocks), [len(run) for run in blocks.runs(0, 9)]
    (3, [2])
    >>> blocks.drop_before(20)
    >>> len(blocks)
    1
    """

    def __init__(self, reach: int) -> None:
        self._width = max(reach // _BLOCKS_WITHIN_REACH, 1)
        self._blocks: dict[int, tuple[SortedRows, ...]] = {}

    def __len__(self) -> int:
        return sum(len(run) for runs in self._blocks.values() for run in runs)

    @property
    def nbytes(self) -> int:
        """Bytes of memory of all rows."""
        return sum(run.nbytes for runs in self._blocks.values() for run in runs)

    @property
    def oldest(self) -> int:
        """No row lies before."""
        runs = (run for runs in self._blocks.values() for run in runs)
        return min((int(run.at.min()) for run in runs), default=FOREVER)

    def add(self, rows: SortedRows) -> None:
        """Take in rows."""
        if not len(rows):
            return
        blocks, which = _blocks(rows.at, self._width)
        while len({*blocks, *self._numbers()}) > _MOST_BLOCKS:
            self._widen()
            blocks, which = _blocks(rows.at, self._width)
        if len(blocks) == 1:
            self._append(blocks[0], rows)
            return
        by_block = np.argsort(which, kind="stable")
        ends = np.cumsum(np.bincount(which)).tolist()
        for block, begin, end in zip(blocks, [0, *ends], ends, strict=False):
            self._append(block, rows.picked(by_block[begin:end]))

    def runs(self, first: int, last: int) -> Iterator[SortedRows]:
        """The runs that may have rows at ``first <= at <= last``, oldest blocks first."""
        for block in sorted(self._blocks):
            if block * self._width <= last and first < (block + 1) * self._width:
                yield from self._blocks[block]

    def everything(self) -> Iterator[SortedRows]:
        """All runs."""
        for block in sorted(self._blocks):
            yield from self._blocks[block]

    def replace(self, old: SortedRows, new: SortedRows) -> None:
        """Put other rows in the place of a run; without rows, it is gone."""
        for block, runs in self._blocks.items():
            if any(run is old for run in runs):
                kept = tuple(new if run is old else run for run in runs)
                self._set(block, tuple(run for run in kept if len(run)))
                return

    def drop_before(self, at: int, *, exactly: bool = False) -> None:
        """Forget rows before a position: all of them, or as many as is little work."""
        if at <= BEGINNING:
            return
        for block in [b for b in self._blocks if b * self._width < at]:
            if (block + 1) * self._width <= at:
                del self._blocks[block]
            else:
                runs = (self._trimmed(run, block, at, exactly=exactly)
                        for run in self._blocks[block])  # fmt: skip
                self._set(block, tuple(run for run in runs if len(run)))

    def _trimmed(self, run: SortedRows, block: int, at: int, *, exactly: bool) -> SortedRows:
        half = block * self._width + self._width // 2
        if not exactly and len(run) > _FEW and at < half:
            return run
        kept: NDArray[np.bool_] = run.at >= at
        return run if kept.all() else run.where(kept)

    def _append(self, block: int, rows: SortedRows) -> None:
        runs = [*self._blocks.get(block, ()), rows]
        while len(runs) > 1 and 2 * len(runs[-1]) >= len(runs[-2]):
            newer = runs.pop()
            runs[-1] = runs[-1].merged(newer)
        self._blocks[block] = tuple(runs)

    def _numbers(self) -> Iterator[int]:
        """The blocks that there are."""
        yield from self._blocks

    def _widen(self) -> None:
        """Let blocks be twice as long."""
        self._width *= 2
        wider: dict[int, tuple[SortedRows, ...]] = {}
        for block in sorted(self._blocks):
            wider[block // 2] = (*wider.get(block // 2, ()), *self._blocks[block])
        self._blocks = wider

    def _set(self, block: int, runs: tuple[SortedRows, ...]) -> None:
        if runs:
            self._blocks[block] = runs
        else:
            self._blocks.pop(block, None)


def _blocks(at: NDArray[np.int64], width: int) -> tuple[list[int], NDArray[np.int64]]:
    """The blocks that positions lie in, and for each position which of them."""
    number = at // width
    low, high = int(number.min()), int(number.max())
    if high - low < len(at):
        there = np.zeros(high - low + 1, dtype=np.bool_)
        there[number - low] = True
        blocks = np.flatnonzero(there)
        return (blocks + low).tolist(), (np.cumsum(there) - 1)[number - low]
    found, which = np.unique(number, return_inverse=True)
    return found.tolist(), which
