"""`panes bench`: measure, after checking that the answers are right."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from lab.bench.measure import Report, Timing, telling
from panes.cli.meter import Meter, short, steps
from panes.cli.show import say
from panes.errors import PanesError

EXAMPLE = "Example: panes bench in-process --rows 1000000 --repeat 3"


def bench(
    name: Annotated[
        Literal[
            "in-process",
            "index",
            "batches",
            "join",
            "live",
            "many",
            "nexmark",
            "rows",
            "stores",
            "spark-batch",
            "spark-join",
            "spark-many",
            "spark-stream",
        ],
        typer.Argument(help="The benchmark to run."),
    ] = "in-process",
    rows: Annotated[
        int, typer.Option(min=1, help="How many rows the main stream has.")
    ] = 5_000_000,
    repeat: Annotated[int, typer.Option(min=1, help="How often each measurement is repeated.")] = 5,
    results: Annotated[
        Path | None, typer.Option(help="Write the raw numbers to this folder, as JSON.")
    ] = None,
) -> None:
    """Measure Panes against other tools. The exit code is 1 if a target is missed."""
    try:
        module = importlib.import_module(f"lab.bench.{name.replace('-', '_')}")
    except ModuleNotFoundError as missing:
        raise PanesError(
            f"the benchmark {name} compares with {missing.name}, which is not installed",
            hint=f"pip install {missing.name}",
        ) from None
    if results is not None:
        results.mkdir(parents=True, exist_ok=True)  # not after hours of work
    with steps("steps", module.STEPS) as bar:
        progress = Measured(bar)
        with telling(progress.timed):
            report: Report = module.run(rows, repeat, progress.step)
    _show(report)
    if results is not None:
        say(f"raw numbers in {report.write(results)}")
    if not all(met for _, _, met in report.bars):
        raise typer.Exit(1)


class Measured:
    """How far a benchmark is: which step, and how many rows have been timed, at which rate."""

    def __init__(self, bar: Meter) -> None:
        self._bar, self._steps, self._rows = bar, 0, 0
        self._words, self._last = "", ""

    def step(self, words: str) -> None:
        """A step begins: a line that stays, and what the bar says meanwhile."""
        if self._steps:
            self._bar.advance(1)
        self._steps, self._words = self._steps + 1, words
        say(words)
        self._show()

    def timed(self, timing: Timing, rows: int) -> None:
        """A contender has been timed, each time over so many rows."""
        self._rows += rows * len(timing.seconds)
        self._last = f"{timing.contender} {short(rows / timing.median)} rows/s"
        self._show()

    def _show(self) -> None:
        timed = f" · {short(self._rows)} rows timed, last {self._last}" if self._rows else ""
        self._bar.say(f"{self._words}{timed}")


def _show(report: Report) -> None:
    console = Console()
    timings = Table("contender", "point", "rows", "median s", "spread s", "M rows/s")
    for t in report.timings:
        rows = int(t.note.split()[0])
        speed = f"{rows / t.median / 1e6:.2f}"
        timings.add_row(
            t.contender, t.point, f"{rows:,}", f"{t.median:.3f}", f"{t.spread:.3f}", speed
        )
    console.print(timings)
    bars = Table("bar", "measured", "met")
    for what, measured, met in report.bars:
        bars.add_row(what, measured, "yes" if met else "NO")
    console.print(bars)
