"""`panes papers`: run the papers' experiments and show published and measured side by side."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lab.papers.catalog import FIGURES, named
from lab.papers.draw import draw
from lab.papers.figure import Figure
from lab.papers.page import write_page
from lab.papers.record import Record, write
from panes.cli.meter import steps
from panes.cli.show import say

EXAMPLE = "Example: panes papers 8-7 --output docs/papers"


def papers(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Figures to run, such as 8-7. Without any, all are listed."),
    ] = None,
    run_all: Annotated[bool, typer.Option("--all", help="Run every figure.")] = False,
    output: Annotated[
        Path,
        typer.Option(help="A folder for drawings and raw numbers. The page goes next to it."),
    ] = Path("docs/papers"),
) -> None:
    """Run the experiments of the papers again, and show published and measured results."""
    figures = list(FIGURES.values()) if run_all else [named(name) for name in names or []]
    if not figures:
        _list()
        return
    with steps("figures", len(figures)) as bar:
        for figure in figures:
            bar.say(f"figure {figure.name}: {figure.title}")
            _measure(figure, output)
            bar.advance(1)
    say(f"page: {write_page(output)}")


def _measure(figure: Figure, output: Path) -> None:
    """Run a figure again, draw it, write it, and show what was published beside it."""
    say(f"figure {figure.name}: {figure.title}")
    record = _run(figure)
    title = f"Figure {figure.name}: {figure.title}"
    drawing = draw(record.measured, title, output / f"{figure.name}.png")
    say(f"{record.seconds:.0f} seconds; {drawing}, {write(record, output)}")
    _show(record)


def _run(figure: Figure) -> Record:
    begin = time.perf_counter()
    measured = figure.run()
    return Record.of(figure, measured, seconds=time.perf_counter() - begin)


def _list() -> None:
    listed = Table("figure", "title", "source")
    for figure in FIGURES.values():
        listed.add_row(figure.name, figure.title, figure.source)
    Console().print(listed)


def _show(record: Record) -> None:
    shown = Table(f"published, figure {record.name}", "measured here", "holds", show_lines=True)
    for claim in record.measured.claims:
        shown.add_row(claim.published, claim.measured, "yes" if claim.holds else "DIFFERS")
    Console().print(shown)
