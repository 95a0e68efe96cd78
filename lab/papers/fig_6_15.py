"""Figure 6-15 (*No Pane, No Gain*, Figure 3): what panes cost as a part of what WID costs.

A sliding max over rows. WID puts a row into every window that holds it, panes into one pane, from
which windows are rolled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from statistics import median

import pyarrow as pa

import panes
from lab.bench.measure import timed_in_turns
from lab.papers.figure import Claim, Figure, Grid, Measured, Panel
from lab.papers.watch import ask, require_same
from panes.sample_streams import bids

ROWS = 200_000
BATCH = 50_000
RUNS = 3
FEW = 200
TUPLES_PER_PANE = (1, 5, 10, 20, 100)
PANES_PER_WINDOW = (2, 5, 10, 20, 40)
PUBLISHED = (20, 5)
STORES = {"panes": "panes", "WID": "eager"}

Cell = tuple[int, int]
Seconds = dict[str, float]


def run() -> Measured:
    """Every number of tuples per pane and panes per window."""
    rows = bids(ROWS)
    cells = measure(rows, TUPLES_PER_PANE, PANES_PER_WINDOW, batch=BATCH, runs=RUNS)
    ratios = {cell: ratio_of(seconds) for cell, seconds in cells.items()}
    return Measured(
        panels=(_panel(ratios),),
        claims=tuple(_claims(ratios)),
        grids=(_grid(cells),),
        remarks=REMARKS,
    )


def measure(
    rows: pa.Table,
    tuples_per_pane: Sequence[int],
    panes_per_window: Sequence[int],
    *,
    batch: int,
    runs: int,
) -> dict[Cell, Seconds]:
    """Median seconds of panes, of WID and of the scan, for every cell."""
    return {
        (tuples, number): _measure_cell(rows, tuples, number, batch=batch, runs=runs)
        for tuples in tuples_per_pane
        for number in panes_per_window
    }


def ratio_of(seconds: Seconds) -> float:
    """Panes over WID, both without the scan."""
    scan = seconds["scan"]
    return (seconds["panes"] - scan) / (seconds["WID"] - scan)


def _measure_cell(rows: pa.Table, tuples: int, number: int, *, batch: int, runs: int) -> Seconds:
    text = _text("max(price) AS high", size=tuples * number, slide=tuples)
    _require_right(text, rows, batch=batch)
    works = {
        name: partial(ask, text, rows, batch=batch, store=store) for name, store in STORES.items()
    }
    scan = _text("count(*) AS n", size=len(rows), slide=len(rows))
    works["scan"] = partial(ask, scan, rows, batch=batch, store="panes")
    return {name: median(s) for name, s in timed_in_turns(works, repeat=runs).items()}


def _require_right(text: str, rows: pa.Table, *, batch: int) -> None:
    """Both stores as the oracle on a few rows, and alike on all."""
    few = rows.slice(0, FEW)
    want = panes.oracle(text, bids=few)
    for store in STORES.values():
        require_same(ask(text, few, batch=37, store=store), want, of=text)
    plain, tagged = (ask(text, rows, batch=batch, store=store) for store in STORES.values())
    require_same(tagged, plain, of=text)


def _text(call: str, *, size: int, slide: int) -> str:
    return f"SELECT {call} FROM bids [RANGE {size} ROWS SLIDE {slide} ROWS]"


def _panel(ratios: dict[Cell, float]) -> Panel:
    series = {
        f"{number} panes per window": tuple(
            (float(tuples), ratio) for (tuples, n), ratio in ratios.items() if n == number
        )
        for number in dict.fromkeys(number for _, number in ratios)
    }
    return Panel(
        x="tuples per pane", y="time with panes / time with WID", series=series, kind="bars"
    )


def _claims(ratios: dict[Cell, float]) -> Iterator[Claim]:
    at = ratios[PUBLISHED]
    yield Claim(
        "at 20 tuples per pane and 5 panes per window panes take about 30 % of the time of WID",
        f"{at:.0%} (bar: 20 to 40 %)",
        0.2 <= at <= 0.4,
    )
    better = sum(ratio < 1 for ratio in ratios.values())
    yield Claim(
        "panes are faster in most cases",
        f"in {better} of {len(ratios)}",
        better > len(ratios) / 2,
    )


def _grid(cells: dict[Cell, Seconds]) -> Grid:
    tuples_per_pane = dict.fromkeys(tuples for tuples, _ in cells)
    panes_per_window = dict.fromkeys(number for _, number in cells)
    rows = []
    for tuples in tuples_per_pane:
        found = (cells[tuples, number] for number in panes_per_window)
        shown = (f"{1e3 * s['panes']:.0f} / {1e3 * s['WID']:.0f}" for s in found)
        rows.append((str(tuples), *shown))
    scan = 1e3 * median(seconds["scan"] for seconds in cells.values())
    return Grid(
        f"Milliseconds, panes / WID, with the scan, which takes {scan:.1f}.",
        ("tuples per pane", *(f"{number} panes" for number in panes_per_window)),
        tuple(rows),
    )


REMARKS = (
    "With one tuple per pane and few panes per window panes gain little. There are then about as "
    "many partials as tuples, and a profile shows that two thirds of the time of both go to "
    "merging the partials of a batch with those that are held.",
    "With few rows in a batch what every push costs, some 0.5 ms, hides the difference too, so "
    "batches are large.",
)

FIGURE = Figure(
    name="6-15",
    title="execution time of panes over that of WID",
    source="No Pane, No Gain, section 4 (Fig. 3); thesis, 6.2.5 (Fig. 6-15)",
    published=(
        "The time of a sliding max with panes as a part of the time without, for numbers of "
        "tuples per pane and panes per window; the cost of scanning the input is taken off both. "
        "Panes are faster in most cases."
    ),
    setup=(
        f"A max over {ROWS:,} rows, windows of rows, batches of {BATCH:,}; WID is the store "
        f"`eager`. The median of {RUNS} runs, in turns. Of both is taken off what the same "
        "batches cost a query that counts all rows in one window: the scan, and what every push "
        "costs. The text gives neither axis, so the numbers of tuples and panes are ours, around "
        "the one cell it names. Answers are those of the oracle on a few rows, and the same for "
        "both stores on all."
    ),
    run=run,
)
