"""Figure 8-10: memory of a join of which one side has late rows, in order and in any order.

Q8-4 joins M1 with the union of M2 and C, in windows of a minute; C is almost empty and late. In
order, M2 waits for C; in any order M2 is joined at once, and forgotten when M1 has passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

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
FROM {{sources}} [RANGE TUMBLING 1 minute, WA ts]
WHERE {SAME_FLOW.format(l="M1", r="M3")}
"""
SIDES = {"M1": ("M1",), "M3": ("M2", "C")}
SCALE = 20
RATE = 4_000 // SCALE
LATE_RATE = 0.5
FLOWS = 6_000
SECONDS = 150
DELAYS = (0, 2.5, 5, 7.5, 10)
EVERY = 2.5
IOP, APART, OOP = "IOP, one order", "IOP, each side its own order", "OOP"
WAYS: dict[str, Callable[..., Joined]] = {
    IOP: partial(join_in_order, together=True),
    APART: partial(join_in_order, together=False),
    OOP: join_in_any_order,
}

Found = dict[str, dict[float, Joined]]


def run() -> Measured:
    """Every delay, every way."""
    found = measure(DELAYS, seconds=SECONDS, rate=RATE, flows=FLOWS, every=EVERY)
    return Measured(panels=tuple(_panels(found)), claims=tuple(_claims(found)), remarks=REMARKS)


def measure(
    delays: Sequence[float], *, seconds: float, rate: float, flows: int, every: float
) -> Found:
    """By way and seconds of delay."""
    text = QUERY.format(sources=sources(SIDES))
    few = {n: link.rows for n, link in links_of(seconds=90, rate=0.4, flows=3, delay=0).items()}
    asked, told = (in_one_order(ask(text, **few)) for ask in (panes.sql, panes.oracle))
    require_same(asked, told, of="Q8-4")
    found: Found = {way: {} for way in WAYS}
    for delay in delays:
        links = links_of(seconds=seconds, rate=rate, flows=flows, delay=delay)
        right = in_one_order(panes.sql(text, **{name: link.rows for name, link in links.items()}))
        for way, go in WAYS.items():
            found[way][delay] = go(QUERY, SIDES, links, every=every)
            require_same(found[way][delay].answers, right, of=f"Q8-4, {way}, delay {delay}")
    return found


def links_of(*, seconds: float, rate: float, flows: int, delay: float) -> dict[str, Link]:
    """M1 and M2 on time, C almost empty and so many seconds late."""
    return flow_links(
        {
            "M1": Traffic(rate),
            "M2": Traffic(rate, is_answer=True),
            "C": Traffic(LATE_RATE, delay, is_answer=True),
        },
        seconds=seconds,
        flows=flows,
    )


def _panels(found: Found) -> Iterator[Panel]:
    of_bytes = {
        way: tuple((float(d), ran.peak_bytes / 1e6) for d, ran in by.items())
        for way, by in found.items()
    }
    yield Panel(x="delay of C (seconds)", y="most memory (MB)", series=of_bytes, title="bytes")
    rows = {
        way: tuple((float(d), ran.peak_rows / 1e3) for d, ran in by.items())
        for way, by in found.items()
    }
    yield Panel(x="delay of C (seconds)", y="most rows held (thousands)", series=rows, title="rows")


def _claims(found: Found) -> Iterator[Claim]:
    iop, apart, oop = ([found[way][delay].peak_bytes for delay in DELAYS] for way in WAYS)
    told = ", ".join(
        f"{way} {held[0] / 1e3:.0f} to {held[-1] / 1e3:.0f} KB"
        for way, held in ((IOP, iop), (APART, apart), (OOP, oop))
    )
    yield Claim(
        "as the delay grows from 0 to 10 s, the memory of OOP grows more slowly than that of IOP",
        f"{told} (bar: OOP grows by less than half as much as IOP in one order)",
        iop[-1] > iop[0] and oop[-1] - oop[0] < (iop[-1] - iop[0]) / 2,
    )
    rows = {way: [found[way][delay].peak_rows for delay in DELAYS] for way in WAYS}
    yield Claim(
        "the advantage comes from purging rows of M2 sooner",
        f"rows held at {DELAYS[-1]} s: {rows[IOP][-1]:,} with IOP in one order, "
        f"{rows[OOP][-1]:,} with OOP, which holds {rows[OOP][0]:,} without delay",
        rows[OOP][-1] < rows[IOP][-1],
    )


REMARKS = (
    "A join that takes both sides in one order sees M1 as late as C, so that a minute of M2 is "
    "forgotten only when C has passed its end. OOP forgets it when M1 has, and stores of the next "
    "minute no more than came.",
    "The advantage is one of the one order that the join of an in-order system works in. If only "
    "M2 and C are merged and M1 goes to the join at once (*each side its own order*), M2 is "
    "forgotten as soon as in OOP, and a row that waits in `Merge` takes fewer bytes than one in "
    "the join. The text does not say how IOP-NiagaraST took in M1; its reason, that OOP purges M2 "
    "sooner, is that of one order.",
)

FIGURE = Figure(
    name="8-10",
    title="memory of a tumbling join with late rows on one side (Q8-4)",
    source="Thesis, 8.4.2, Experiment 1",
    published=(
        "The most memory of a join in windows of a minute of M1 with the union of M2 (4000 "
        "packets/s each) and C (less than one), with C delayed by 0 to 10 s. The memory of OOP "
        "increases more slowly than that of IOP, as its join purges rows of M2 sooner."
    ),
    setup=(
        f"M1 and M2 scaled down by {SCALE} to {RATE} packets/s, C at one every two seconds, "
        f"{FLOWS:,} flows, {SECONDS} seconds. Rows come every {EVERY:g} seconds, and each link "
        "promises what its clock says. IOP is `Merge` and then the join, in two ways: with both "
        "sides brought into one order, and with M2 and C merged alone. OOP is the join as "
        "`panes.open` runs it. Memory is what both hold, looked at after every push. All answers "
        "are those of `panes.sql`, which are those of the oracle on a few rows."
    ),
    run=run,
)
