"""All stores over disordered streams: the same answers, and what each takes in time and memory.

Streams are those of the papers' experiments: band disorder, block-sorted disorder, and groups of
very different sizes. Memory is the greatest that was held after any batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

import panes
from lab.bench.measure import Report, Timing, timed_in_turns
from lab.papers.disorder import band, block_sorted
from lab.papers.skew import dataset
from panes.language.query_graph import read_graph
from panes.reference.compare import difference

STORES = ("panes", "eager", "buffered", "adaptive", "adaptive-panes")
BATCH = 4_000


@dataclass(frozen=True, slots=True)
class Workload:
    """A query over a stream in the order it arrives."""

    name: str
    text: str
    table: pa.Table
    lateness: str | int

    def run(self, store: str) -> tuple[pa.Table, int]:
        """The answers, and the most bytes that were held."""
        query = panes.open(self.text, lateness=self.lateness, max_ahead=None, store=store)
        (stream,) = read_graph(self.text).streams
        found, most = [], 0
        for begin in range(0, len(self.table), BATCH):
            found.append(query.push(**{stream: self.table.slice(begin, BATCH)}))
            most = max(most, query.state["bytes"])
        return pa.concat_tables([*found, query.finish()]), most


def workloads(rows: int) -> list[Workload]:
    """Streams of so many rows."""
    sliding = "[RANGE 64 seconds SLIDE 6400 milliseconds WATTR ts]"
    skewed = "[RANGE 10 seconds SLIDE 1 second WATTR ts]"
    return [
        Workload(
            "band disorder",
            f"SELECT avg(len) AS a, count(*) AS n FROM s {sliding}",
            band(rows, seconds=rows / 500, max_disorder=3.2, every=6.4).rows,
            "4 seconds",
        ),
        Workload(
            "block-sorted disorder",
            "SELECT max(len) AS m FROM s [RANGE 600 seconds SLIDE 60 seconds WATTR ts]",
            block_sorted(rows, seconds=rows / 50, block=490).rows,
            "490 seconds",
        ),
        *(
            Workload(
                f"{name}, by source",
                f"SELECT srcIP, sum(len) AS total FROM s {skewed} GROUP BY srcIP",
                dataset(name, rows, seconds=rows / 4_000),
                0,
            )
            for name in ("DS1", "DS5")
        ),
    ]


def compared(report: Report, load: Workload, repeat: int, say: Callable[[str], None]) -> None:
    """Check that all stores agree, then time them in turns and hold them to the bars."""
    say(f"checking {load.name}")
    answers = {store: load.run(store) for store in STORES}
    for store in STORES[1:]:
        alike = answers[store][0].equals(answers["panes"][0])
        found = None if alike else difference(answers[store][0], answers["panes"][0])
        if found is not None:
            raise AssertionError(f"{store} disagrees with panes: {found}")
    say(f"timing {load.name}")
    runs = {store: (lambda store=store: load.run(store)) for store in STORES}
    seconds = timed_in_turns(runs, repeat=repeat)
    taken = {s: Timing(s, load.name, t, f"{len(load.table)} rows") for s, t in seconds.items()}
    report.timings += taken.values()
    largest = {store: most for store, (_, most) in answers.items()}
    sizes = ", ".join(f"{store} {most:,}" for store, most in largest.items())
    say(f"most bytes stored: {sizes}")
    for store, other in (("adaptive", "eager"), ("adaptive-panes", "panes")):
        ratio = largest[store] / min(largest[other], largest["buffered"])
        what = f"{load.name}: {store} within 1.1 x the memory of {other} or buffered"
        report.bar(what, f"{ratio:.2f} x", met=ratio <= 1.1)
    ratio = taken["panes"].median / min(t.median for t in taken.values())
    what = f"{load.name}: panes within 1.2 x the time of the fastest"
    report.bar(what, f"{ratio:.2f} x", met=ratio <= 1.2)


STEPS = 12
"""How often `run` says what it does: three times for each workload."""


def run(rows: int, repeat: int, say: Callable[[str], None]) -> Report:
    """All workloads."""
    rows = min(rows, 400_000)
    report = Report("stores", f"panes bench stores --rows {rows} --repeat {repeat}")
    for load in workloads(rows):
        compared(report, load, repeat, say)
    return report
