"""Timing that can be trusted: warm, repeated, median and spread, ratios from one run."""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of repeated runs of one contender at one point of a benchmark."""

    contender: str
    point: str
    seconds: tuple[float, ...]
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        return max(self.seconds) - min(self.seconds)


Told = Callable[[Timing, int], None]
"""What is called with a timing and its rows."""
_told: ContextVar[Told | None] = ContextVar("told", default=None)


@contextmanager
def telling(told: Told) -> Iterator[None]:
    """Tell of every timing as it is recorded, for as long as the block runs."""
    token = _told.set(told)
    try:
        yield
    finally:
        _told.reset(token)


@dataclass(slots=True)
class Report:
    """What one benchmark measured, and the bars it was held against."""

    name: str
    command: str
    timings: list[Timing] = field(default_factory=list)
    bars: list[tuple[str, str, bool]] = field(default_factory=list)

    def time(
        self, contender: str, point: str, work: Callable[[], object], repeat: int, rows: int
    ) -> float:
        """Time a contender's work on so many rows; gives the median."""
        return self.add(contender, point, timed(work, repeat=repeat), rows)

    def add(self, contender: str, point: str, seconds: tuple[float, ...], rows: int) -> float:
        """Record what was timed elsewhere; gives the median."""
        timing = Timing(contender, point, seconds, f"{rows} rows")
        self.timings.append(timing)
        told = _told.get()
        if told is not None:
            told(timing, rows)
        return timing.median

    def bar(self, what: str, measured: str, *, met: bool) -> None:
        """Record a bar, what was measured, and whether it was met."""
        self.bars.append((what, measured, met))

    def write(self, folder: Path) -> Path:
        """Keep the raw numbers."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        machine = {"cpus": os.cpu_count(), "python": platform.python_version()}
        document: dict[str, Any] = {"machine": machine, **asdict(self)}
        path.write_text(json.dumps(document, indent=1) + "\n")
        return path


def timed(run: Callable[[], object], *, repeat: int = 5) -> tuple[float, ...]:
    """Seconds of `repeat` runs after one that warms everything up."""
    return timed_in_turns({"": run}, repeat=repeat)[""]


def timed_in_turns(
    runs: Mapping[str, Callable[[], object]], *, repeat: int = 5
) -> dict[str, tuple[float, ...]]:
    """The same for several, one after the other, so that a busy moment falls on all of them."""
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeat):
        for name, run in runs.items():
            gc.collect()
            begin = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begin)
    return {name: tuple(s) for name, s in seconds.items()}
