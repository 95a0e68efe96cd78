"""Workload smoothing: answers released a few at a time (thesis 8.3.3).

A window over very many groups gives all their answers when it closes. Here they wait in line and
are released with the next batches, so that no batch carries them all:

    slow-flush    the oldest ones, so many with each batch, and those beyond a million
    lazy-flush    those whose key comes up in a batch

and in either case those whose window ended further behind progress than the user allows. Answers
are final before they get in line, and those of one key and window never overtake each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.key_numbers import KeyNumbers
from panes.planning.flush import Flush, SlowFlush, ticks_of

MOST_WAITING = 1_000_000
"""How many answers wait where only their number with each batch is bounded; more are released."""


@dataclass(slots=True)
class ReleaseQueue:
    """Answers that wait to be released, in the order in which they became final.

    `key_columns` are where the keys stand in the answers; `ends` are the ends of their windows.
    """

    flush: Flush
    key_columns: tuple[int, ...]
    _answers: list[pa.Table] = field(default_factory=list)
    _ends: list[NDArray[np.int64]] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(map(len, self._answers))

    @property
    def nbytes(self) -> int:
        """Bytes of the answers in line."""
        return sum(part.nbytes for part in (*self._answers, *self._ends))

    def keys(self) -> list[pa.Array]:
        """The keys of the answers in line."""
        table = self._everything()
        return [table.column(i).combine_chunks() for i in self.key_columns]

    def wait(self, answers: pa.Table, ends: NDArray[np.int64]) -> None:
        """Get in line."""
        self._answers.append(answers)
        self._ends.append(ends)

    def released(self, keys: Sequence[pa.Array], rows: int, progress: int) -> pa.Table:
        """Answers to give now, after a batch with these keys."""
        table = self._everything()
        chosen = _chosen(self, keys, rows)
        if self.flush.within is not None:
            chosen |= self._ends[0] < progress - ticks_of(self.flush.within)
        self._answers = [table.filter(pa.array(~chosen))]
        self._ends = [self._ends[0][~chosen]]
        return table.filter(pa.array(chosen))

    def everybody(self) -> pa.Table:
        """All answers in line, which is then empty."""
        table = self._everything()
        self._answers, self._ends = [table.slice(0, 0)], [self._ends[0][:0]]
        return table

    def _everything(self) -> pa.Table:
        if len(self._answers) > 1:
            self._answers = [pa.concat_tables(self._answers)]
            self._ends = [np.concatenate(self._ends)]
        return self._answers[0]


def _chosen(line: ReleaseQueue, keys: Sequence[pa.Array], rows: int) -> NDArray[np.bool_]:
    """Of the answers in line, those to release after a batch with these keys."""
    flush = line.flush
    if isinstance(flush, SlowFlush):
        return np.arange(len(line)) < max(flush.at_most, len(line) - MOST_WAITING)
    if not keys:
        return np.full(len(line), rows > 0)
    numbers = KeyNumbers([k.type for k in keys])
    numbers.encode(keys, rows)
    known = len(numbers)
    return numbers.encode(line.keys(), len(line)) < known
