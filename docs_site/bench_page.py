"""The benchmarks in pictures: a page made from the raw numbers in `benchmarks/results/`.

Invariant: bars that stand together are times of the same work. Where contenders of one point were
given different numbers of rows, times are per row.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from docs_site.places import ROOT, raw_numbers

HEAD = """\
# Benchmarks in pictures

Every picture is drawn from the raw numbers of one run: a bar is the median of all runs of a
contender, the thin line reaches from the fastest to the slowest. Shorter is faster. What is
measured, and how, is in [benchmarks](index.md). Ratios within one picture travel between machines;
seconds do not.
"""
POINTS = {  # how the points of a benchmark are named
    "in-process": "Points are size/slide of the windows, in seconds.",
    "nexmark": "Queries are numbered as in Nexmark: q5 hot items, q7 highest bids, q8 new users, "
    "q9 winning bids, q12 bids per user. Each reads some of the three streams.",
    "many": "q0 to q9 are single queries of the mix, each alone in its register.",
    "spark-batch": "Points are keys/overlap: in how many windows each row counts.",
    "spark-many": "q0 to q2 are single queries of the mix, each alone.",
    "spark-stream": "Points are keys/overlap: in how many windows each row counts. "
    "Times are those of one micro-batch.",
}
ALONE = "points with one contender"
LABEL, BAR, NUMBER, LINE = 220, 330, 90, 24
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


@dataclass(frozen=True, slots=True)
class Bar:
    """One contender at one point: fastest, median and slowest, in seconds."""

    contender: str
    low: float
    median: float
    high: float


def bench_page() -> str:
    """The whole page."""
    kept = [json.loads((ROOT / path).read_text()) for path in raw_numbers()]
    return HEAD + "".join(_section(benchmark) for benchmark in kept)


def _section(benchmark: dict[str, Any]) -> str:
    name = benchmark["name"]
    machine = benchmark["machine"]
    drawn = "".join(_point(title, bars) for title, bars in points(benchmark["timings"]))
    lines = [
        f"\n## {name}\n",
        f"`{benchmark['command']}`, {machine['cpus']} cores, Python {machine['python']}; "
        f"[raw numbers](results/{name}.json). {POINTS.get(name, '')}\n",
        f'<figure class="panels" role="group" aria-label="{escape(name)}">{drawn}</figure>\n',
    ]
    if benchmark["bars"]:
        rows = (f"| {what} | {said} | {'yes' if met else '**no**'} |"
                for what, said, met in benchmark["bars"])  # fmt: skip
        lines += ["| bar | measured | met |\n|---|---|---|\n" + "\n".join(rows) + "\n"]
    return "\n".join(lines)


def points(timings: list[dict[str, Any]]) -> Iterator[tuple[str, list[Bar]]]:
    """The contenders that stand together, by the name of their point; then those without a rival.

    >>> unequal = [{"contender": c, "point": "p", "seconds": [s], "note": f"{n} rows"}
    ...            for c, s, n in (("fast", 2.0, 10), ("slow", 1.0, 2))]
    >>> [(title, [b.median for b in bars]) for title, bars in points(unequal)]
    [('p, per row', [0.2, 0.5])]
    """
    by_point: dict[str, dict[str, dict[str, Any]]] = {}
    for timing in timings:
        pushes = re.match(r"\d+ rows(, .*)", timing["note"])
        together = by_point.setdefault(timing["point"] + (pushes[1] if pushes else ""), {})
        earlier = together.get(timing["contender"], {"seconds": []})["seconds"]
        together[timing["contender"]] = {**timing, "seconds": [*earlier, *timing["seconds"]]}
    alone = []
    for point, contenders in by_point.items():
        if len(contenders) == 1 and len(by_point) > 1:
            [timing] = contenders.values()
            alone.append(replace(_bar(timing, 1), contender=_label(timing["contender"], point)))
            continue
        rows = [_rows(timing["note"]) for timing in contenders.values()]
        per_row = len(set(rows)) > 1 and all(rows)
        each = zip(contenders.values(), rows, strict=True)
        bars = [_bar(t, n or 1 if per_row else 1) for t, n in each]
        yield f"{point}, per row" if per_row else point, bars
    if alone:
        yield ALONE, alone


def _label(contender: str, point: str) -> str:
    """A contender and its point, which it may have in its name.

    >>> _label("panes", "10/10"), _label("one query, q1", "q1, 20 pushes")
    ('panes, 10/10', 'one query, q1, 20 pushes')
    """
    name, comma, rest = point.partition(", ")
    return contender + comma + rest if contender.endswith(name) else f"{contender}, {point}"


def _rows(note: str) -> int | None:
    found = re.match(r"(\d+) rows", note)
    return int(found[1]) if found else None


def _bar(timing: dict[str, Any], rows: int) -> Bar:
    seconds = [s / rows for s in timing["seconds"]]
    return Bar(timing["contender"], min(seconds), statistics.median(seconds), max(seconds))


def _point(title: str, bars: list[Bar]) -> str:
    """One panel: a line for each contender."""
    height = 30 + LINE * len(bars)
    longest = max(bar.high for bar in bars)
    lines = "".join(_line(n, bar, longest) for n, bar in enumerate(bars))
    return (
        f'<svg class="panel wide" viewBox="0 0 {LABEL + BAR + NUMBER} {height}" role="img" '
        f'aria-label="{escape(title)}"><text class="title" x="0" y="16">{escape(title)}</text>'
        f"{lines}</svg>"
    )


def _line(number: int, bar: Bar, longest: float) -> str:
    top = 28 + LINE * number
    middle = top + 8
    low, median, high = (LABEL + BAR * s / longest for s in (bar.low, bar.median, bar.high))
    ours = 0 if bar.contender.startswith("panes") else 6
    return (
        f'<text class="tick" x="{LABEL - 8}" y="{middle + 4}" text-anchor="end">'
        f"{escape(bar.contender)}</text>"
        f'<rect class="bar s{ours}" x="{LABEL}" y="{top}" width="{max(median - LABEL, 1):.1f}" '
        f'height="16"/><line class="spread" x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" '
        f'y2="{middle}"/><text class="tick" x="{high + 6:.1f}" y="{middle + 4}">'
        f"{in_unit(bar.median)}</text>"
    )


def in_unit(seconds: float) -> str:
    """Seconds in the unit that makes them readable.

    >>> [in_unit(s) for s in (64.91, 0.2441, 0.0000021, 4.8e-8)]
    ['64.9 s', '244 ms', '2.1 µs', '48 ns']
    """
    size, unit = next((u for u in UNITS if seconds >= u[0]), UNITS[-1])
    return f"{seconds / size:.3g} {unit}"
