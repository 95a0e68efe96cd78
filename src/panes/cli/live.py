"""`panes live`: replay files as streams, at a speed one can watch, and show it in the browser."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Annotated, Literal

import pyarrow as pa
import typer

from panes.axis import BEGINNING
from panes.cli.files import InputFiles
from panes.cli.live_option import STAY, LiveStay, live_page
from panes.cli.meter import metered
from panes.cli.options import Inputs, QueryFile, TimestampFormat, read_lateness, read_query
from panes.cli.show import say
from panes.language.query import Query
from panes.language.query_graph import read_graph
from panes.planning.terms import StreamOptions
from panes.process.opened import opened
from panes.process.running_query import OpenQuery, RunningQuery

EXAMPLE = "Example: panes live busy.sql --input bids=bids.parquet --speed 600"

_ROWS = 2_000
_LATENESS = "10 seconds"
_BETWEEN = 0.25
"""Seconds between two batches where the axis is no time."""


def live(
    query: QueryFile,
    inputs: Inputs,
    timestamp_format: TimestampFormat = None,
    lateness: Annotated[
        str | None,
        typer.Option(
            help="A row may be this far behind the newest row. Default: 10 seconds; 0 on an axis "
            "without time, where it is a whole number."
        ),
    ] = None,
    late: Annotated[
        Literal["open", "drop", "revise"],
        typer.Option(help="What to do with a row that comes later than that."),
    ] = "open",
    speed: Annotated[
        float, typer.Option(min=0.001, help="How many seconds of the stream pass in one second.")
    ] = 60.0,
    batch_rows: Annotated[int, typer.Option(min=1, help="How many rows one batch has.")] = _ROWS,
    live_stay: LiveStay = STAY,
) -> None:
    """Replay files as streams and watch a query in the browser. Answers are shown, not written.

    The address of the page is printed to stderr.
    """
    text = read_query(query)
    promised = _usual_lateness(text) if lateness is None else read_lateness(lateness)
    asked = opened(text, StreamOptions(lateness=promised, late=late, max_ahead=None))
    sources = InputFiles.parse_all(inputs, timestamp_format, read=asked.query.streams)
    with live_page(asked, wanted=True, stay=live_stay):
        answers = _replay(asked, sources, batch_rows, ReplayPace(speed))
        say(f"{answers:,} answers")


def _usual_lateness(text: str) -> str | int:
    """What is promised unless somebody says otherwise."""
    asked = read_graph(text).asked
    window = asked.window if isinstance(asked, Query) else None
    return _LATENESS if window is None or window.measure == "time" else 0


def _replay(
    asked: RunningQuery, sources: list[InputFiles], batch_rows: int, pace: ReplayPace
) -> int:
    """Push batches of all streams in turns, none before its time; gives how many answers came."""
    answers = 0
    for name, batch in metered(_in_turns(sources, batch_rows), sources, asked):
        answers += len(asked.push(**{name: batch}))
        pace.keep(_instant(asked))
    return answers + len(asked.finish())


def _instant(asked: RunningQuery) -> int | None:
    """Where the stream is in time, if its axis is time and anything is promised of it."""
    if not isinstance(asked, OpenQuery) or asked.plan.placing.kind != "time":
        return None
    at, _ = asked.reached
    return at if at > BEGINNING else None


def _in_turns(sources: list[InputFiles], batch_rows: int) -> Iterator[tuple[str, pa.Table]]:
    """A batch of each source, then the next of each, until all have ended."""
    waiting = [(s.name, iter(s.batches(batch_rows))) for s in sources]
    while waiting:
        going = []
        for name, batches in waiting:
            batch = next(batches, None)
            if batch is not None:
                yield name, batch
                going.append((name, batches))
        waiting = going


class ReplayPace:
    """Lets time of a stream pass so much faster than the clock.

    >>> slept = []
    >>> pace = ReplayPace(60, now=lambda: 0.0, sleep=slept.append)
    >>> pace.keep(0); pace.keep(90_000_000); pace.keep(None)
    >>> slept
    [1.5, 0.25]
    """

    def __init__(
        self,
        speed: float,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._speed, self._now, self._sleep = speed, now, sleep
        self._begun: tuple[float, int] | None = None

    def keep(self, at: int | None) -> None:
        """Wait until the stream may be at this instant; None: it has no time."""
        if at is None:
            self._sleep(_BETWEEN)
            return
        if self._begun is None:
            self._begun = self._now(), at
        begun, first = self._begun
        wait = begun + (at - first) / 1e6 / self._speed - self._now()
        if wait > 0:
            self._sleep(wait)
