"""Figure 7-7: memory of a join that lets pairs pass against one that holds rows back.

Q7-2 counts pairs of packets by the minute. OPIB-Join keeps order by joining a packet of M1 only
when all its partners are there, so it stores packets longer than OA-Join, but no pairs.
"""

from __future__ import annotations

from collections.abc import Iterator

from lab.papers.fig_7_6 import Found, measure, memory_panel
from lab.papers.figure import Claim, Figure, Measured
from lab.papers.joined_counts import BANDS, EVERY, FLOWS, OA, OPIB, OPOB, RATE, SCALE, SECONDS

JOINS = (OA, OPIB, OPOB)


def run() -> Measured:
    """Every band, all joins: memory is the same in every run, so one is enough."""
    found = measure(BANDS, JOINS, seconds=SECONDS, rate=RATE, flows=FLOWS, runs=1)
    panels = (
        memory_panel(found, (OA, OPIB)),
        memory_panel(found, JOINS),
    )
    return Measured(panels=panels, claims=tuple(_claims(found)), remarks=REMARKS)


def _claims(found: Found) -> Iterator[Claim]:
    held = {join: [by[join].peak_bytes for by in found.values()] for join in JOINS}
    more = [b / a for a, b in zip(held[OA], held[OPIB], strict=True)]
    yield Claim(
        "OA-Join uses slightly less memory than OPIB-Join for all bands",
        f"OPIB / OA {min(more):.2f} to {max(more):.2f} (bar: between 1 and 2 at every band)",
        1 < min(more) <= max(more) < 2,
    )
    less = [b / a for a, b in zip(held[OPIB], held[OPOB], strict=True)]
    yield Claim(
        "OPIB-Join uses much less memory than OPOB-Join",
        f"OPOB / OPIB {less[0]:.2f} at {BANDS[0]} s, {less[-1]:.2f} at {BANDS[-1]} s (bar: more at "
        "every band, twice at the widest)",
        min(less) > 1 and less[-1] > 2,
    )
    late = [by[OPIB].latency / by[OA].latency for by in found.values()]
    yield Claim(
        "OPIB-Join delays results more",
        f"latency of a closing promise OPIB / OA {min(late):.0f} to {max(late):.0f}, one run each "
        "(bar: more at every band)",
        min(late) > 1,
    )


REMARKS = (
    "A band of n seconds lets OA-Join store n seconds of each side. OPIB-Join stores n seconds of "
    "M1, which wait, and 2n of M2, from the first partner of what waits to the last: half as much "
    "again, less what both store until a block of time has passed.",
)

FIGURE = Figure(
    name="7-7",
    title="memory of OA-Join and input-buffered join (OPIB) by band (Q7-2)",
    source="Thesis, 7.3, Experiment 2",
    published=(
        "The most memory of Q7-2 with OA-Join and OPIB-Join, bands of 1 to 9 s, the streams of "
        "Figure 7-6. OA-Join uses slightly less for all bands; OPIB-Join uses much less than "
        "OPOB-Join, as the join gives more than it takes in, but may give it later."
    ),
    setup=(
        f"As Figure 7-6: {RATE} packets/s (scaled down by {SCALE}), {SECONDS} seconds, {FLOWS:,} "
        f"flows, rows and promises every {EVERY:g} second. Memory is what join and count hold, "
        "looked at after every step. All answers are those of `panes.sql`, which are those of the "
        "oracle on a few rows."
    ),
    run=run,
)
