"""The run over time, in a bounded number of samples.

Samples come at least `every` seconds apart. When there is no room, two neighbours become one and
samples come half as often: the whole run stays in sight, however long it takes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from panes.live.snapshot import Samples

MOST = 480
FIRST_EVERY = 0.1


@dataclass(frozen=True, slots=True)
class Sample:
    """A stretch of the run that ended at an instant `at` of the clock."""

    at: float
    seconds: float
    rows: int
    batch: float
    nbytes: int
    stored: int
    progress: int | None
    newest: int | None


class Timeline:
    """Samples of one run, oldest first."""

    def __init__(self, begun: float) -> None:
        self._samples: list[Sample] = []
        self._every = FIRST_EVERY
        self._last = begun
        self._rows, self._batch = 0, 0.0

    def note(self, rows: int, seconds: float) -> None:
        """A batch of so many rows took so long."""
        self._rows += rows
        self._batch = max(self._batch, seconds)

    def is_due(self, now: float) -> bool:
        """Whether it is time for another sample."""
        return now - self._last >= self._every

    def sample(
        self, now: float, *, nbytes: int, stored: int, progress: int | None, newest: int | None
    ) -> None:
        """Everything noted since the last sample becomes one more."""
        seconds = max(now - self._last, 1e-6)
        one = Sample(now, seconds, self._rows, self._batch, nbytes, stored, progress, newest)
        self._samples = [*self._samples, one]
        self._last, self._rows, self._batch = now, 0, 0.0
        if len(self._samples) >= MOST:
            self._samples = _halved(self._samples)
            self._every *= 2

    def shown(self) -> Samples:
        """All samples, as columns."""
        samples = self._samples
        return Samples(
            at=[round(s.at, 3) for s in samples],
            rows=[round(s.rows / s.seconds, 1) for s in samples],
            batch=[round(s.batch, 6) for s in samples],
            nbytes=[s.nbytes for s in samples],
            stored=[s.stored for s in samples],
            progress=[s.progress for s in samples],
            newest=[s.newest for s in samples],
        )


def _halved(samples: list[Sample]) -> list[Sample]:
    pairs = zip(samples[::2], samples[1::2], strict=False)
    return [
        replace(
            newer,
            seconds=older.seconds + newer.seconds,
            rows=older.rows + newer.rows,
            batch=max(older.batch, newer.batch),
        )
        for older, newer in pairs
    ]
