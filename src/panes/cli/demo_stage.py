"""What every part of the demo works with: a session, streams of files, queries that are watched.

Invariant: whatever was started on a stage is stopped when its part ends, and nothing of the demo
is left on disk.
"""

from __future__ import annotations

import logging
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from panes.cli.interrupts import interrupts
from panes.cli.live_view import LiveReading, LiveView, Report
from panes.cli.show import errors_in, say
from panes.errors import PanesError
from panes.reference.compare import difference

Session = Any  # Spark's session, DataFrame and query: only their methods are used here
Frame = Any
Query = Any

SECONDS_BETWEEN_LOOKS = 0.25


@dataclass(frozen=True, slots=True)
class Stage:
    """A running session of Spark, and a folder that goes when the demo ends."""

    host: ModuleType
    spark: Session
    folder: Path
    interrupted: threading.Event


@dataclass(frozen=True, slots=True)
class Running:
    """A streaming query that was started, and how to read its progress."""

    title: str
    query: Query
    read: Callable[[Sequence[Report]], LiveReading]

    def reading(self) -> LiveReading:
        """How far it has come."""
        return self.read(self.query.recentProgress)

    def require_health(self) -> None:
        """Raise if Spark gave the query up."""
        failure = self.query.exception()
        if failure is not None:
            first = str(failure).strip().splitlines()[0]
            raise PanesError(f"the stream `{self.title}` failed: {first}")


@contextmanager
def staged(host: ModuleType) -> Iterator[Stage]:
    """A stage for as long as the block runs.

    py4j's log is left out: all it has is the traceback of a sink that failed, or was stopped, and
    the query tells that too.
    """
    logging.getLogger("py4j").propagate = False
    say("starting Spark")
    with tempfile.TemporaryDirectory(prefix="panes-demo-", ignore_cleanup_errors=True) as name:
        with errors_in(Path(name) / "spark.log"):
            spark = host.session(spark__ui__enabled="false", spark__driver__memory="2g")
        try:
            yield Stage(host, spark, Path(name), interrupts())
        finally:
            spark.stop()


def start(writer: Any, place: Path) -> Query:
    """A query that reads all files there are, and then ends."""
    placed = writer.option("checkpointLocation", str(place / "checkpoint"))
    return placed.trigger(availableNow=True).start()


def watch(
    stage: Stage,
    running: Sequence[Running],
    batches: int | None = None,
    beside: Mapping[str, LiveReading] | None = None,
) -> dict[str, LiveReading]:
    """Show queries until all have ended, `beside` those that ended before; stop them if we are.

    Returns where each of them ended.
    """
    try:
        with LiveView(batches) as view:
            active = True
            while active:
                active = any(r.query.isActive for r in running)
                readings = {r.title: r.reading() for r in running}
                view.show({**(beside or {}), **readings})
                if stage.interrupted.wait(SECONDS_BETWEEN_LOOKS if active else 0):
                    raise KeyboardInterrupt
                for r in running:
                    r.require_health()
            return readings
    finally:
        for r in running:
            r.query.stop()


def written(spark: Session, folder: Path) -> pa.Table:
    """What a stream wrote, in the order of the oracle: by window, then by key."""
    answers = spark.read.parquet(str(folder)).toArrow().combine_chunks()
    names = [n for n in ("window_end", "srcIP", "item") if n in answers.column_names]
    return answers.sort_by([(name, "ascending") for name in names]) if names else answers


def require_same(title: str, got: pa.Table, want: pa.Table) -> None:
    """Raise, with the first difference, unless two tables have the same answers."""
    if got.equals(want):
        return
    wrong = difference(got, want)
    if wrong is not None:
        raise PanesError(f"the demo's answers are wrong, {title}: {wrong}")


def tell(text: str) -> None:
    """A line of the result, in its place among the lines of the live view."""
    print(text, flush=True)
