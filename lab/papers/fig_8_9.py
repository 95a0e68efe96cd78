"""Figure 8-9: memory of a join of two unions, of which one link each lags, in order and not.

Q8-3 joins packets of one flow in windows of ten seconds. In order, the packets of the early links
wait in `Merge`; in any order they wait in the join.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import panes
from lab.papers.figure import Claim, Figure, Measured, Panel
from lab.papers.flows import SAME_FLOW, Traffic, flow_links
from lab.papers.joined_unions import (
    Joined,
    in_one_order,
    join_in_any_order,
    join_in_order,
    sources,
)
from lab.papers.skew import Link
from lab.papers.watch import require_same

QUERY = f"""
SELECT M1.srcIP, M1.destIP, M1.ts
FROM {{sources}} [RANGE TUMBLING 10 seconds, WA ts]
WHERE {SAME_FLOW.format(l="M1", r="M2")}
"""
SIDES = {"M1": ("A", "B"), "M2": ("C", "D")}
SCALE = 200
RATE = 10_000 // SCALE
FLOWS = 500
SECONDS = 140
SKEWS = (0, 20, 40, 60, 80, 100)
EVERY = 2.0
IOP, OOP = "IOP (Merge)", "OOP"

Found = dict[str, dict[float, Joined]]


def run() -> Measured:
    """Every skew, both ways."""
    found = measure(SKEWS, seconds=SECONDS, rate=RATE, flows=FLOWS)
    return Measured(panels=tuple(_panels(found)), claims=tuple(_claims(found)), remarks=REMARKS)


def measure(skews: Sequence[float], *, seconds: float, rate: float, flows: int) -> Found:
    """By way and seconds of skew."""
    text = QUERY.format(sources=sources(SIDES))
    few = {n: link.rows for n, link in links_of(seconds=30, rate=1, flows=3, skew=0).items()}
    asked, told = (in_one_order(ask(text, **few)) for ask in (panes.sql, panes.oracle))
    require_same(asked, told, of="Q8-3")
    found: Found = {IOP: {}, OOP: {}}
    for skew in skews:
        links = links_of(seconds=seconds, rate=rate, flows=flows, skew=skew)
        right = in_one_order(panes.sql(text, **{name: link.rows for name, link in links.items()}))
        found[IOP][skew] = join_in_order(QUERY, SIDES, links, every=EVERY, together=True)
        found[OOP][skew] = join_in_any_order(QUERY, SIDES, links, every=EVERY)
        for way in (IOP, OOP):
            require_same(found[way][skew].answers, right, of=f"Q8-3, {way}, skew {skew}")
    return found


def links_of(*, seconds: float, rate: float, flows: int, skew: float) -> dict[str, Link]:
    """A and C on time, B and D so many seconds late."""
    return flow_links(
        {
            "A": Traffic(rate),
            "B": Traffic(rate, skew),
            "C": Traffic(rate, is_answer=True),
            "D": Traffic(rate, skew, is_answer=True),
        },
        seconds=seconds,
        flows=flows,
    )


def _panels(found: Found) -> Iterator[Panel]:
    of_bytes = {
        way: tuple((float(s), ran.peak_bytes / 1e3) for s, ran in by.items())
        for way, by in found.items()
    }
    yield Panel(x="arrival skew (seconds)", y="most memory (KB)", series=of_bytes, title="bytes")
    rows = {
        way: tuple((float(s), float(ran.peak_rows)) for s, ran in by.items())
        for way, by in found.items()
    }
    yield Panel(x="arrival skew (seconds)", y="most rows held", series=rows, title="rows")


def _claims(found: Found) -> Iterator[Claim]:
    iop, oop = ([found[way][skew] for skew in SKEWS] for way in (IOP, OOP))
    rows = [b.peak_rows / a.peak_rows for a, b in zip(iop, oop, strict=True)]
    yield Claim(
        "IOP and OOP maintain the same number of rows",
        f"OOP / IOP {min(rows):.3f} to {max(rows):.3f} (bar: 5 %)",
        0.95 < min(rows) <= max(rows) < 1.05,
    )
    more = [b.peak_bytes / a.peak_bytes for a, b in zip(iop, oop, strict=True)]
    yield Claim(
        "below a skew of 20 s the overhead of OOP is inconsequential",
        f"OOP / IOP {more[0]:.2f} without skew, {more[1]:.2f} at {SKEWS[1]} s (bar: 1.05 at both)",
        max(more[:2]) < 1.05,
    )
    yield Claim(
        "OOP uses at most 20 % more memory than IOP",
        f"OOP / IOP up to {max(more):.2f}, at {SKEWS[more.index(max(more))]} s",
        max(more) <= 1.2,
    )


REMARKS = (
    "Both hold the same rows, and OOP takes more bytes for each. A row in `Merge` is its columns "
    "and its position; a row in the join is its columns, the columns of its key once more, the "
    "position, a code of the key and its place. That is the overhead the text speaks of, and here "
    "it is larger, as packets are short (five numbers) and a row in `Merge` has no structure.",
    "IOP here brings both sides into one order before the join. As both lag equally, letting each "
    "side come in its own order gives the same bytes.",
)

FIGURE = Figure(
    name="8-9",
    title="memory of a tumbling join of unions with arrival skew (Q8-3)",
    source="Thesis, 8.4.1, Experiment 3",
    published=(
        "The most memory of a join in windows of 10 s of A union B with C union D, 10K packets/s "
        "each, arrival skew of A to B and of C to D 0 to 100 s. Both maintain the same rows, IOP "
        "in the buffers of merge, OOP in the hash tables of the join. Below a skew of 20 s the "
        "overhead of OOP is inconsequential, and it uses at most 20 % more memory than IOP."
    ),
    setup=(
        f"Rates scaled down by {SCALE} to {RATE} packets/s on each link, {FLOWS} flows, {SECONDS} "
        f"seconds. Rows come every {EVERY:g} seconds, and each link promises what its clock says. "
        "IOP is `Merge` and then the join in order, OOP the join of the unions as "
        "`panes.open` runs it. Memory is what both hold, looked at after every push. All answers "
        "are those of `panes.sql`, which are those of the oracle on a few rows."
    ),
    run=run,
)
