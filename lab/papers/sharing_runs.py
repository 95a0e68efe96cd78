"""Many windows over one stream of rows, answered with and without sharing.

`Naive` is what *Aggregate Sharing* 2 says of STREAM: each query has its own queue, every row goes
into every queue, and each answer goes through the rows of its window, one query after the other.
`NaiveAtOnce` does the same work for all queries in one NumPy call. The others share one store.
`compare` checks every contender against rows that are kept plainly, and then times it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lab.papers.ordered_sharing import OrderedSharing
from panes.errors import WrongAnswerError
from panes.stores.nested.buckets import AnswerBounds
from panes.stores.nested.nested_windows import StaircaseSharing
from panes.stores.nested.timegram import TimeGram

Integers = NDArray[np.int64]
Answers = Sequence[int | None] | Sequence[AnswerBounds | None]

ROWS = 1_000
LARGEST = 1_000
SPREAD = 1_000
DEVIATION = 10
BUCKETS = 100
ROUNDS = 3


class Contender(Protocol):
    """Answers the maximum over the newest rows, for the window sizes it was made with."""

    def add(self, rows: Integers) -> None:
        """Take in rows, oldest first."""

    def ask(self) -> Answers:
        """The answer of every window, or an interval it lies in."""


Make = Callable[[Integers], Contender]


def random_rows(count: int, *, seed: int) -> Integers:
    """Whole numbers, all equally likely."""
    return np.random.default_rng([seed, 1]).integers(-SPREAD, SPREAD + 1, count)


def skewed_rows(count: int, *, seed: int) -> Integers:
    """Whole numbers, Gaussian: most, 95 of 100, lie in [-20, 20]."""
    rng = np.random.default_rng([seed, 2])
    return np.rint(rng.normal(0, DEVIATION, count)).astype(np.int64)


Rows = Callable[..., Integers]


def window_sizes(queries: int, *, largest: int = LARGEST, seed: int = 0) -> Integers:
    """The sizes of that many windows, each as likely as any up to the largest."""
    return np.random.default_rng([seed, queries, largest]).integers(1, largest + 1, queries)


class Naive:
    """A queue of its own for every query, one query after the other (report, Figure 1).

    >>> naive = Naive(np.array([1, 3]))
    >>> naive.add(np.array([7, 5, 2, 1]))
    >>> naive.ask()
    [1, 5]
    """

    def __init__(self, sizes: Integers) -> None:
        self._queues = [np.full(size, np.iinfo(np.int64).min) for size in sizes.tolist()]
        self._seen = 0

    def add(self, rows: Integers) -> None:
        """Each row into the oldest place of every queue."""
        if len(rows) == 1:
            for queue in self._queues:
                queue[self._seen % len(queue)] = rows[0]
        else:
            for queue in self._queues:
                _store(queue, rows, self._seen)
        self._seen += len(rows)

    def ask(self) -> list[int | None]:
        """The maximum of each queue."""
        return [int(queue.max()) for queue in self._queues]


class NaiveAtOnce:
    """The same queues side by side, so that one call stores a row and one answers all.

    >>> naive = NaiveAtOnce(np.array([1, 3]))
    >>> naive.add(np.array([7, 5, 2, 1]))
    >>> naive.ask()
    [1, 5]
    """

    def __init__(self, sizes: Integers) -> None:
        self._sizes = sizes
        self._begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self._queues = np.full(int(sizes.sum()), np.iinfo(np.int64).min)
        self._seen = 0

    def add(self, rows: Integers) -> None:
        """Each row into the oldest place of every queue."""
        if len(rows) == 1:
            self._queues[self._begins + self._seen % self._sizes] = rows[0]
        else:
            for begin, size in zip(self._begins.tolist(), self._sizes.tolist(), strict=True):
                _store(self._queues[begin : begin + size], rows, self._seen)
        self._seen += len(rows)

    def ask(self) -> list[int | None]:
        """The maximum of each queue."""
        answers: list[int | None] = np.maximum.reduceat(self._queues, self._begins).tolist()
        return answers


def _store(queue: Integers, rows: Integers, seen: int) -> None:
    """Many rows at once: those that would be overwritten again are left out."""
    newest = rows[-len(queue) :]
    end = seen + len(rows)
    queue[np.arange(end - len(newest), end) % len(queue)] = newest


class SharedTimeGram:
    """One TimeGram for all queries: its answers are buckets."""

    def __init__(self, sizes: Integers, *, width: int, origin: int) -> None:
        self._sizes = sizes.tolist()
        self._gram = TimeGram(width=width, origin=origin, max_size=int(sizes.max()))

    def add(self, rows: Integers) -> None:
        self._gram.add_rows(rows)

    def ask(self) -> list[AnswerBounds | None]:
        return self._gram.ask_each("max", self._sizes)


class SharedOrder:
    """One OrderedSharing for all queries, which are registered with it."""

    def __init__(self, sizes: Integers) -> None:
        self._sizes = sizes
        self.store = OrderedSharing("max", max_size=int(sizes.max()), sizes=sizes.tolist())

    def add(self, rows: Integers) -> None:
        self.store.add_rows(rows)

    def ask(self) -> list[int | None]:
        answers: list[int | None] = self.store.ask_each(self._sizes).to_pylist()
        return answers


class SharedStaircase:
    """One StaircaseSharing for all queries; none is registered."""

    def __init__(self, sizes: Integers) -> None:
        self._sizes = sizes
        self._store = StaircaseSharing("max", max_size=int(sizes.max()))

    def add(self, rows: Integers) -> None:
        self._store.add_rows(rows)

    def ask(self) -> list[int | None]:
        answers: list[int | None] = self._store.ask_each(self._sizes).to_pylist()
        return answers


def timegram_over(rows: Integers, *, buckets: int = BUCKETS) -> Make:
    """A TimeGram whose buckets divide the range of these rows, as step c of 3.2.2 has it."""
    width, origin = bucket_width(rows, buckets=buckets), int(rows.min())
    return lambda sizes: SharedTimeGram(sizes, width=width, origin=origin)


def bucket_width(rows: Integers, *, buckets: int = BUCKETS) -> int:
    """The least whole width at which so many buckets hold all these rows."""
    return -(-(int(rows.max()) + 1 - int(rows.min())) // buckets)


def compare(
    makes: Callable[[Integers], Mapping[str, Make]],
    kind: Rows,
    queries: int,
    *,
    largest: int = LARGEST,
    rows: int = ROWS,
    rounds: int = ROUNDS,
    updates: int = 1,
) -> dict[str, float]:
    """Microseconds per row of every contender, the fastest of some rounds on new rows.

    Each is checked first, at a dozen moments of the stream.
    """
    best: dict[str, float] = {}
    for seed in range(rounds):
        sizes = window_sizes(queries, largest=largest, seed=seed)
        stream = kind(int(sizes.max()) + rows, seed=seed)
        for name, make in makes(stream).items():
            same_answers(make, sizes, stream, every=-(-len(stream) // 12))
            took = response(make, sizes, stream, updates=updates) / rows * 1e6
            best[name] = min(took, best.get(name, took))
    return best


def same_answers(make: Make, sizes: Integers, rows: Integers, *, every: int) -> None:
    """Check every so many rows, before and after windows are full."""
    contender = make(sizes)
    for begin in range(0, len(rows), every):
        contender.add(rows[begin : begin + every])
        end = min(begin + every, len(rows))
        newest_first = np.maximum.accumulate(rows[:end][::-1])
        truth = newest_first[np.minimum(sizes, end) - 1].tolist()
        for answer, true, size in zip(contender.ask(), truth, sizes.tolist(), strict=True):
            is_right = true in answer if isinstance(answer, AnswerBounds) else answer == true
            if not is_right:
                raise WrongAnswerError(
                    f"{type(contender).__name__}: the maximum of the newest {size} of {end} rows "
                    f"is {true}, not {answer}"
                )


def response(make: Make, sizes: Integers, rows: Integers, *, updates: int = 1) -> float:
    """Seconds of CPU time to add rows one by one and ask all windows after each so many.

    As many rows as the largest window come first and are not timed, so that windows are full.
    """
    contender = make(sizes)
    full = int(sizes.max())
    contender.add(rows[:full])
    contender.ask()
    timed = rows[full:]
    begin = time.thread_time()
    for end in range(1, len(timed) + 1):
        contender.add(timed[end - 1 : end])
        if end % updates == 0:
            contender.ask()
    return time.thread_time() - begin
