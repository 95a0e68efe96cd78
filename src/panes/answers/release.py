"""Workload smoothing: answers released a few at a time (thesis 8.3.3).

A window over very many groups gives all their answers when it closes. Here they wait in line and
are released with the next batches, so that no batch carries them all:

    slow-flush    the oldest ones, so many with each batch
    lazy-flush    those whose key comes up in a batch

and in either case those whose window ended further behind progress than the user allows. Answers
are final before they get in line, and those of one key and window never overtake each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.key_numbers import KeyNumbers
from panes.axis import Duration, parse_duration
from panes.errors import OptionError


class Flush(Protocol):
    """Which of the answers that wait are released."""

    @property
    def within(self) -> Duration | None:
        """How far behind progress the window of an answer that waits may have ended."""
        ...

    def chosen(self, waiting: Line, keys: Sequence[pa.Array], rows: int) -> NDArray[np.bool_]:
        """Of the answers in line, those to release after a batch with these keys."""
        ...

    def shared_by(self, shards: int) -> Flush:
        """The same for one of several shards."""
        ...


@dataclass(frozen=True, slots=True)
class SlowFlush:
    """At most so many answers with each batch; none later than `within` after its window's end.

    >>> SlowFlush(at_most=1000, within="2 minutes").at_most
    1000
    """

    at_most: int
    within: Duration | None = None

    def __post_init__(self) -> None:
        if self.at_most <= 0:
            raise OptionError(f"a batch needs to release some answers, got {self.at_most}")
        _ticks(self.within)

    def chosen(self, waiting: Line, keys: Sequence[pa.Array], rows: int) -> NDArray[np.bool_]:  # noqa: ARG002
        """The first in line."""
        return np.arange(len(waiting)) < self.at_most

    def shared_by(self, shards: int) -> SlowFlush:
        """Every shard may release its part."""
        return replace(self, at_most=-(-self.at_most // shards))


@dataclass(frozen=True, slots=True)
class LazyFlush:
    """Answers of a key when the key comes up again; none later than `within` after its window."""

    within: Duration

    def __post_init__(self) -> None:
        _ticks(self.within)

    def chosen(self, waiting: Line, keys: Sequence[pa.Array], rows: int) -> NDArray[np.bool_]:
        """Those whose key is among the batch's."""
        if not keys:
            return np.full(len(waiting), rows > 0)
        numbers = KeyNumbers([k.type for k in keys])
        numbers.encode(keys, rows)
        known = len(numbers)
        return numbers.encode(waiting.keys(), len(waiting)) < known

    def shared_by(self, shards: int) -> LazyFlush:  # noqa: ARG002
        """A key is in one shard only."""
        return self


@dataclass(slots=True)
class Line:
    """Answers that wait to be released, in the order in which they became final.

    `key_columns` are where the keys stand in the answers; `ends` are the ends of their windows.
    """

    flush: Flush
    key_columns: tuple[int, ...]
    _answers: list[pa.Table] = field(default_factory=list)
    _ends: list[NDArray[np.int64]] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(map(len, self._answers))

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
        chosen = self.flush.chosen(self, keys, rows)
        if self.flush.within is not None:
            chosen |= self._ends[0] < progress - _ticks(self.flush.within)
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


def _ticks(within: Duration | None) -> int:
    return 0 if within is None else parse_duration(within, option="within")
