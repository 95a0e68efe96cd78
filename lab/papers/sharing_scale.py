"""What a row costs as queries grow in number: the panels that four figures of a report share.

*Aggregate Sharing in Stream Databases* could register 8 queries. Here the same runs up to 8, then
to 10,000, and then over windows that are a hundred times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lab.papers.figure import Grid, Panel, Points
from lab.papers.sharing_runs import (
    LARGEST,
    ROWS,
    Integers,
    Make,
    Naive,
    NaiveAtOnce,
    Rows,
    compare,
)

FEW = (1, 2, 3, 4, 5, 6, 7, 8)
MANY = (100, 1_000, 10_000)
LONG = (1, 2, 4, 8, 100)
LONG_WINDOW = 100_000
FEWER_ROWS = 100

NAIVE, AT_ONCE = "Naive, query by query", "Naive, all at once"
RIVALS: dict[str, Make] = {NAIVE: Naive, AT_ONCE: NaiveAtOnce}

Contenders = Callable[[Integers], Mapping[str, Make]]
Times = dict[int, dict[str, float]]  # queries, contender: microseconds per row


@dataclass(frozen=True, slots=True)
class Scale:
    """As published, with more queries (from the most published on), and over longer windows."""

    few: Times
    many: Times
    long: Times

    def growth(self, name: str) -> tuple[float, float]:
        """Microseconds a row for each query beyond the first few, over short and long windows."""
        return _slope(self.many, name), _slope(self.long, name)


def measure(
    makes: Contenders,
    kind: Rows,
    *,
    few: tuple[int, ...] = FEW,
    many: tuple[int, ...] = MANY,
    long: tuple[int, ...] = LONG,
    long_window: int = LONG_WINDOW,
    rows: int = ROWS,
    fewer_rows: int = FEWER_ROWS,
) -> Scale:
    """All contenders at every number of queries; every answer of theirs is checked before."""
    times = {q: compare(makes, kind, q, rows=rows) for q in few}
    beyond = {
        q: compare(makes, kind, q, rows=rows if q < 1_000 else fewer_rows, rounds=2) for q in many
    }
    longer = {
        q: compare(makes, kind, q, largest=long_window, rows=fewer_rows, rounds=1) for q in long
    }
    return Scale(few=times, many={max(few): times[max(few)], **beyond}, long=longer)


def _slope(times: Times, name: str) -> float:
    fewest, most = min(times), max(queries for queries in times if queries <= 1_000)
    return (times[most][name] - times[fewest][name]) / (most - fewest)


def panels(scale: Scale) -> tuple[Panel, ...]:
    """One panel for each scale."""
    return (
        Panel(
            "queries", "microseconds per row", _series(scale.few),
            f"as published: windows up to {LARGEST:,} rows",
        ),
        Panel(
            "queries", "microseconds per row", _series(scale.many),
            "beyond: more queries", x_scale="log", y_scale="log",
        ),
        Panel(
            "queries", "microseconds per row", _series(scale.long),
            f"beyond: windows up to {LONG_WINDOW:,} rows", x_scale="log", y_scale="log",
        ),
    )  # fmt: skip


def _series(times: Times) -> dict[str, Points]:
    names = next(iter(times.values()))
    return {name: tuple((float(q), of[name]) for q, of in times.items()) for name in names}


def grid(scale: Scale) -> Grid:
    """All numbers of the panels."""
    names = next(iter(scale.few.values()))
    parts = (({**scale.few, **scale.many}, LARGEST), (scale.long, LONG_WINDOW))
    rows = [
        (f"{queries:,}", f"{largest:,}", *(f"{of[name]:,.1f}" for name in names))
        for times, largest in parts
        for queries, of in times.items()
    ]
    return Grid(
        "Microseconds per row, all windows looked up after each.",
        ("queries", "rows in a window, up to", *names),
        tuple(rows),
    )
