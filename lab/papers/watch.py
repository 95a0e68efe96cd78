"""A query that is watched while it runs: its answers, the most it held, and how long it took.

Bytes are those of the store (partials, and rows where it keeps any), looked at after every push,
which is when most is held.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import fmean

import pyarrow as pa

import panes
from panes.axis import Duration
from panes.errors import WrongAnswerError
from panes.planning.terms import Late
from panes.reference.compare import difference


class Watch:
    """An open query and what was seen of it."""

    def __init__(
        self,
        text: str,
        *,
        store: str | None = None,
        lateness: Duration | None = None,
        late: Late = "open",
    ) -> None:
        self.query = panes.open(text, store=store, lateness=lateness, late=late, max_ahead=None)
        self.seconds = 0.0
        self.peak_bytes = 0
        self._given: list[pa.Table] = []
        self._closings: list[float] = []

    def push(self, **batches: pa.Table) -> pa.Table:
        """As `OpenQuery.push`."""
        answers = self._timed(lambda: self.query.push(**batches))
        self.peak_bytes = max(self.peak_bytes, self.query.state["bytes"])
        return answers

    def punctuate(self, **promised: int) -> pa.Table:
        """As `OpenQuery.punctuate`."""
        return self._timed(lambda: self.query.punctuate(key=None, **promised))

    def finish(self) -> pa.Table:
        """As `OpenQuery.finish`, but not timed: a stream has no end."""
        self._given.append(self.query.finish())
        return self._given[-1]

    @property
    def answers(self) -> pa.Table:
        """All answers so far."""
        return pa.concat_tables([table for table in self._given if table.num_columns])

    @property
    def latency(self) -> float:
        """Seconds from a call that closes windows to their answers, on average."""
        return fmean(self._closings) if self._closings else 0.0

    def _timed(self, work: Callable[[], pa.Table]) -> pa.Table:
        begin = time.perf_counter()
        answers = work()
        took = time.perf_counter() - begin
        self.seconds += took
        if len(answers):
            self._closings.append(took)
            self._given.append(answers)
        return answers


def ask(text: str, rows: pa.Table, *, batch: int, store: str | None = None) -> pa.Table:
    """All answers to a query over a stream named `bids` that comes in batches, in order."""
    query = panes.open(text, store=store)
    given = [query.push(bids=rows.slice(0, 0))]
    given += [query.push(bids=piece) for piece in batches_of(rows, batch)]
    return pa.concat_tables([*given, query.finish()])


def batches_of(rows: pa.Table, size: int) -> Iterator[pa.Table]:
    """So many rows at a time, in their order."""
    return (rows.slice(begin, size) for begin in range(0, len(rows), size))


def require_same(got: pa.Table, want: pa.Table, *, of: str) -> None:
    """Nothing is measured of answers that are wrong."""
    wrong = None if got.equals(want) else difference(got, want)
    if wrong is not None:
        raise WrongAnswerError(f"{of}: {wrong}")
