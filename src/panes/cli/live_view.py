"""The live view: how far each streaming query has come, read from Spark's own progress reports.

A report is what `StreamingQuery.recentProgress` holds: a dict per micro-batch, oldest first.
Nothing is measured here, so the view shows what any monitoring of Spark would. On a terminal it is
a table that is redrawn in place; anywhere else, a line per micro-batch.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from panes.axis import BEGINNING
from panes.cli.show import console as stderr

Report = Mapping[str, Any]

COLUMNS = ("micro-batches", "rows in", "stored", "state", "event time", "answers", "late")
CAPTION = "stored: partial results in the state; answers: before HAVING"


@dataclass(frozen=True, slots=True)
class LiveReading:
    """How far a query has come: sums over its micro-batches, and the state after the last one."""

    batches: int = 0
    rows: int = 0
    stored: int = 0
    nbytes: int = 0
    progress: dt.datetime | None = None
    answers: int = 0
    late: int = 0

    def cells(self) -> tuple[str, ...]:
        """The reading in words, in the order of `COLUMNS`."""
        at = "-" if self.progress is None else f"{self.progress:%H:%M:%S}"
        counts = (self.batches, self.rows, self.stored)
        state = f"{self.nbytes / 1_024:,.1f} KiB"
        return (*(f"{n:,}" for n in counts), state, at, f"{self.answers:,}", f"{self.late:,}")


def read_panes(reports: Sequence[Report], name: str) -> LiveReading:
    """What a query of ours says of itself under the `name` of its metrics."""
    observed = [r["observedMetrics"][name] for r in reports if name in r["observedMetrics"]]
    if not observed:
        return LiveReading()
    newest = observed[-1]
    return LiveReading(
        batches=len(observed),
        rows=_rows_in(reports),
        stored=newest["partials"],
        nbytes=newest["bytes"],
        progress=_instant(newest["progress"]),
        answers=sum(metrics["answers"] for metrics in observed),
        late=sum(metrics["late"] for metrics in observed),
    )


def read_spark(reports: Sequence[Report]) -> LiveReading:
    """What Spark says of an aggregation of its own: in append mode, state removed is answered."""
    stateful = [(r, r["stateOperators"][0]) for r in reports if r["stateOperators"]]
    if not stateful:
        return LiveReading()
    report, state = stateful[-1]
    watermark = dt.datetime.fromisoformat(report["eventTime"]["watermark"])
    return LiveReading(
        batches=len(stateful),
        rows=_rows_in(reports),
        stored=state["numRowsTotal"],
        nbytes=state["memoryUsedBytes"],
        progress=watermark if watermark.timestamp() > 0 else None,
        answers=sum(s["numRowsRemoved"] for _, s in stateful),
        late=sum(s["numRowsDroppedByWatermark"] for _, s in stateful),
    )


def _rows_in(reports: Sequence[Report]) -> int:
    """Rows read from files; the row by which a bounded query starts is none of them."""
    sources = (s for r in reports for s in r["sources"] if s["description"].startswith("File"))
    return sum(source["numInputRows"] for source in sources)


def _instant(microseconds: int | None) -> dt.datetime | None:
    if microseconds is None or microseconds <= BEGINNING:
        return None
    return dt.datetime.fromtimestamp(microseconds / 1e6, dt.UTC)


def as_table(readings: Mapping[str, LiveReading], batches: int | None) -> Table:
    """All queries, a row each; `batches` is how many micro-batches each will take."""
    table = Table(title_justify="left", caption=CAPTION, caption_justify="left")
    table.add_column("query")
    for column in COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    for title, reading in readings.items():
        done, *others = reading.cells()
        of = "" if batches is None else f" of {batches}"
        table.add_row(title, done + of, *others)
    return table


def as_line(title: str, reading: LiveReading) -> str:
    """One query, where nothing can be redrawn."""
    done, rows, stored, state, at, answers, late = reading.cells()
    return (
        f"{title}: micro-batch {done}, {rows} rows, {stored} stored in {state}, at {at}, "
        f"{answers} answers, {late} late"
    )


class LiveView:
    """Shows readings as they come, for as long as the block runs."""

    def __init__(self, batches: int | None, console: Console = stderr) -> None:
        self._batches, self._console = batches, console
        self._shown: dict[str, LiveReading] = {}
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> LiveView:
        self._block().__enter__()
        return self

    def __exit__(self, *failure: Any) -> None:
        self._block().__exit__(*failure)

    def show(self, readings: Mapping[str, LiveReading]) -> None:
        """Where all queries are now; what did not change is not said again."""
        news = {t: r for t, r in readings.items() if r != self._shown.get(t, LiveReading())}
        self._shown.update(news)
        if self._live is not None:
            self._live.update(as_table(readings, self._batches), refresh=True)
            return
        for title, reading in news.items():
            self._console.print(as_line(title, reading), markup=False)

    def _block(self) -> AbstractContextManager[Any]:
        return self._live or nullcontext()
