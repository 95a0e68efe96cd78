"""What a run shows of itself: how many rows, how long windows stay open, time and memory.

The cost model is fed with it, and its estimates are shown beside it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc

from panes.language.query import WINDOW_COLUMNS
from panes.nodes.closing import Closed
from panes.nodes.gate import Admitted
from panes.nodes.pipeline import Pipeline
from panes.planning.cost import Observed
from panes.stores.durations import ArrivalSkew, Durations

_POSITION_AND_GROUP = 12
"""Bytes that a row takes beside its columns."""


class RunObserver:
    """What was seen of a query while it ran.

    Durations, windows and answers are noted where windows close at their ends: for other kinds the
    cost model has no formula.
    """

    def __init__(self, skew: ArrivalSkew) -> None:
        self._skew = skew
        self._durations: Durations | None = None
        self._rows, self._bytes, self._seconds = 0, 0, 0.0
        self._windows, self._answers, self._peak = 0, 0, 0
        self._oldest: int | None = None
        self._newest = 0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure what is done in here: the work of the store."""
        begin = time.perf_counter()
        yield
        self._seconds += time.perf_counter() - begin

    def timing(self, closing: Iterator[Closed]) -> Iterator[Closed]:
        """The same, and the work behind each is measured."""
        while True:
            with self.timed():
                closed = next(closing, None)
            if closed is None:
                return
            yield closed

    def saw(self, admitted: Admitted, pipeline: Pipeline) -> None:
        """Note a batch that a pipeline has taken in."""
        at, columns = admitted.arrival.passing_at, admitted.arrival.columns
        if len(admitted.placed):
            self._skew.hear(admitted.stream, int(admitted.placed.max()), len(at))
        if not len(at):
            return
        low, high = int(at.min()), int(at.max())
        self._oldest = low if self._oldest is None else min(low, self._oldest)
        self._newest = max(high, self._newest) if self._rows else high
        self._rows += len(at)
        self._bytes += _POSITION_AND_GROUP * len(at)
        windows = pipeline.closing_at_ends
        if windows is not None:
            self._bytes += sum(columns[c].nbytes for c in pipeline.plan.argument_columns)
            if self._durations is None:
                self._durations = Durations(windows)
            self._durations.saw(low, high, pipeline.first_open)
            self._peak = max(self._peak, pipeline.stored()["bytes"])

    def closed(self, pipeline: Pipeline, lowered: pa.Table) -> None:
        """Note windows that have been answered."""
        if self._durations is not None and len(lowered):
            ends = lowered.column(WINDOW_COLUMNS[1])
            self._windows += pc.count_distinct(ends).as_py()
            self._answers += len(lowered)
            self._durations.closed(pipeline.first_open)

    def observed(self) -> Observed:
        """All that was seen."""
        span = 0 if self._oldest is None else self._newest - self._oldest
        return Observed(
            rows=self._rows,
            span=span,
            windows=self._windows,
            groups=self._answers / self._windows if self._windows else 0.0,
            row_bytes=self._bytes / self._rows if self._rows else 0.0,
            duration=0.0 if self._durations is None else float(self._durations.longest),
            offset=self._skew.offset,
            seconds=self._seconds,
            peak_bytes=self._peak,
        )
