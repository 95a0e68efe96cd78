"""The commands of the lab: ``python -m lab bench``, ``python -m lab papers``."""

from __future__ import annotations

import typer

from lab.bench import command as bench
from lab.papers import command as papers
from panes.cli.main import run_app

app = typer.Typer(
    name="lab",
    help="Benchmarks, and the experiments of the papers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(epilog=bench.EXAMPLE)(bench.bench)
app.command(epilog=papers.EXAMPLE)(papers.papers)


if __name__ == "__main__":
    run_app(app)
