"""`panes demo`: Spark's `window()` and panes side by side, then a job beside a live page."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from panes.cli.demo_links import answer_links
from panes.cli.demo_page import page_beside
from panes.cli.demo_race import race
from panes.cli.demo_stage import staged, tell
from panes.cli.options import require_spark

EXAMPLE = "Example: panes demo --bids 100000 --rows 4000"


def demo(
    bids: Annotated[
        int,
        typer.Option(min=1, help="How many bids go through Spark's window() and through panes."),
    ] = 900_000,
    rows: Annotated[
        int, typer.Option(min=1, help="How many packets the three links of the job have.")
    ] = 8_000,
) -> None:
    """Race Spark's window() over one stream, then run a job of three streams out of order.

    Every answer is checked. A live page can be looked at meanwhile; the demo needs no browser and
    ends by itself when nobody looks.
    """
    begin = time.perf_counter()
    with staged(require_spark()) as stage:
        race(stage, bids)
        with page_beside():
            answer_links(stage, rows)
    tell(f"every answer was checked; {time.perf_counter() - begin:.0f} s in all")
