"""A bar that tells how far a command is: rows, their rate, progress on the axis, late rows.

It is drawn on stderr, on a terminal only, and wiped when it is done. What goes to stdout stays
there, unless that is the same terminal: then it is printed above the bar. Where the end is known,
the bar tells the time that is left.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from panes.axis import BEGINNING, FOREVER, Axis
from panes.cli.files import InputFiles
from panes.cli.show import console as stderr
from panes.process.register import Register
from panes.process.running_query import OpenJoin, OpenQuery, RunningQuery


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a query is: the position its stream has promised, and its late rows."""

    at: int
    axis: Axis | None
    late: int

    def words(self) -> str:
        """As the bar says it.

        >>> import pyarrow as pa
        >>> Reached(1_767_225_900_000_000, Axis("time", "ts", pa.timestamp("us")), 12).words()
        'at 2026-01-01T00:05:00Z · 12 late'
        """
        said = []
        if self.axis is not None and BEGINNING < self.at < FOREVER:
            said.append(f"at {self.axis.format(self.at)}")
        if self.late:
            said.append(f"{self.late:,} late")
        return " · ".join(said)


class Meter:
    """A bar that counts; on anything but a terminal it shows nothing."""

    def __init__(self, progress: Progress, what: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(what, total=total, said="", unit=what)

    def advance(self, count: int, reached: Callable[[], Reached] | None = None) -> None:
        """So many more; `reached` is asked only if anyone sees it."""
        if self._progress.disable:
            return
        self._progress.update(self._task, advance=count)
        if reached is not None:
            self.say(reached().words())

    def say(self, words: str) -> None:
        """What is being done now."""
        self._progress.update(self._task, said=words)


class _Count(ProgressColumn):
    """How many of how many, and what they are."""

    def render(self, task: Task) -> Text:
        done, unit = f"{int(task.completed):,}", task.fields["unit"]
        of = "" if task.total is None else f" of {int(task.total):,}"
        return Text(f"{done}{of} {unit}")


class _Rate(ProgressColumn):
    """How many in a second, of late."""

    def render(self, task: Task) -> Text:
        rate = task.finished_speed or task.speed
        return Text("" if not rate else f"{short(rate)} {task.fields['unit']}/s", style="cyan")


class _Left(ProgressColumn):
    """The time that the steps to come will take, if each takes as long as those that are done.

    Steps may take minutes; a rate of the last seconds would know nothing of them.
    """

    def render(self, task: Task) -> Text:
        return Text(left_words(task.elapsed or 0.0, task.completed, task.total))


def left_words(elapsed: float, done: float, total: float | None) -> str:
    """How long it will take, in words; nothing before a step is done.

    >>> left_words(90.0, 3, 5), left_words(4_000.0, 1, 3), left_words(5.0, 0, 3)
    ('about 1:00 left', 'about 2:13:20 left', '')
    """
    if not done or total is None or done >= total:
        return ""
    seconds = round(elapsed / done * (total - done))
    minutes, hours = seconds // 60, seconds // 3_600
    clock = f"{hours}:{minutes % 60:02}" if hours else f"{minutes}"
    return f"about {clock}:{seconds % 60:02} left"


def short(number: float) -> str:
    """Three digits.

    >>> short(1_234_567.0), short(987.0), short(45_600.0)
    ('1.23M', '987', '45.6k')
    """
    for unit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.3g}{sign}"
    return f"{number:.3g}"


@contextmanager
def meter(what: str, total: int | None, console: Console | None = None) -> Iterator[Meter]:
    """Count for as long as the block runs."""
    columns = (
        SpinnerColumn(),
        BarColumn(bar_width=24),
        _Count(),
        _Rate(),
        TextColumn("{task.fields[said]}", markup=False),
        TimeElapsedColumn() if total is None else TimeRemainingColumn(compact=True),
    )
    with _progress(columns, console) as progress:
        yield Meter(progress, what, total)


def metered(
    batches: Iterable[tuple[str, pa.Table]],
    sources: Iterable[InputFiles],
    query: RunningQuery | Register,
) -> Iterator[tuple[str, pa.Table]]:
    """Batches of files, each with the name of its stream; what has been pushed is counted."""
    counts = [source.rows for source in sources]
    total = None if None in counts else sum(count or 0 for count in counts)
    with meter("rows", total) as bar:
        for name, batch in batches:
            yield name, batch
            bar.advance(len(batch), lambda: reached_by(query))


@contextmanager
def steps(what: str, total: int | None = None, console: Console | None = None) -> Iterator[Meter]:
    """Tell which step of a longer work is being done, how long it has run, and how long it will."""
    columns = (
        SpinnerColumn(),
        *((BarColumn(bar_width=24), _Count()) if total is not None else ()),
        TextColumn("{task.fields[said]}", markup=False),
        TimeElapsedColumn(),
        _Left(),
    )
    with _progress(columns, console) as progress:
        yield Meter(progress, what, total)


def _progress(columns: tuple[ProgressColumn, ...], console: Console | None) -> Progress:
    shown = stderr if console is None else console
    return Progress(
        *columns,
        console=shown,
        transient=True,
        redirect_stdout=sys.stdout.isatty(),
        disable=not shown.is_terminal,
        get_time=time.monotonic,
    )


def reached_by(query: RunningQuery | Register) -> Reached:
    """How far a query of this process is."""
    late = query.state["late_rows"]
    if isinstance(query, OpenJoin):
        return Reached(min(query.progress.values(), default=BEGINNING), None, late)
    if not isinstance(query, OpenQuery | Register):
        return Reached(BEGINNING, None, late)
    at, _ = query.reached
    if isinstance(query, Register):
        return Reached(at, query.axis, late)
    return Reached(at, query.plan.placing, late)
