"""What a run shows of itself: how many rows, how long windows stay open, what it takes.

It is what the cost model is fed with, and what its estimates are stored against.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc

from panes.admit.gate import Admitted
from panes.language.query import WINDOW_COLUMNS
from panes.pipelines.sliding import Pipeline
from panes.planning.cost import Observed
from panes.stores.adaptive import Durations, Sources
from panes.windows.spec import Sliding


class Watch:
    """Looks on while a query runs."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._durations: Durations | None = None
        self._rows, self._bytes, self._seconds = 0, 0, 0.0
        self._windows, self._answers, self._peak = 0, 0, 0
        self._oldest: int | None = None
        self._newest = 0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """The work of the store is done in here."""
        begin = time.perf_counter()
        yield
        self._seconds += time.perf_counter() - begin

    def saw(self, admitted: Admitted, pipeline: object) -> None:
        """A batch has been let in."""
        if not len(admitted.at):
            return
        low, high = int(admitted.at.min()), int(admitted.at.max())
        self._oldest = low if self._oldest is None else min(low, self._oldest)
        self._newest = max(high, self._newest) if self._rows else high
        self._rows += len(admitted.at)
        self._bytes += 12 * len(admitted.at)
        if isinstance(pipeline, Pipeline) and isinstance(pipeline.spec, Sliding):
            read = pipeline.plan.argument_columns
            self._bytes += sum(admitted.columns[c].nbytes for c in read)
            if self._durations is None:
                self._durations = Durations(pipeline.spec)
            self._durations.saw(low, high, pipeline.first_open)
            self._peak = max(self._peak, pipeline.store.nbytes)

    def closed(self, pipeline: object, lowered: pa.Table) -> None:
        """Windows have been answered."""
        if self._durations is not None and isinstance(pipeline, Pipeline) and len(lowered):
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
            offset=self._sources.offset,
            seconds=self._seconds,
            peak_bytes=self._peak,
        )
