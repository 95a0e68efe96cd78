"""Figure 7-6: a join that lets pairs pass at once against one that holds them back for their order.

Q7-2 counts pairs of packets by the minute. OA-Join gives pairs as they are found, OPOB-Join sorts
them first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from lab.papers.figure import Claim, Figure, Measured, Panel
from lab.papers.joined_counts import (
    BANDS,
    EVERY,
    FLOWS,
    OA,
    OPOB,
    RATE,
    SCALE,
    SECONDS,
    Counted,
    count_pairs,
    require_oracle,
    require_right,
    two_links,
)

RUNS = 2
Found = dict[float, dict[str, Counted]]


def run() -> Measured:
    """Every band, both joins in turns."""
    found = measure(
        BANDS, (OA, OPOB), seconds=SECONDS, rate=RATE, flows=FLOWS, runs=RUNS
    )  # fmt: skip
    return Measured(
        panels=tuple(_panels(found)), claims=tuple(_claims(found)), remarks=_remarks(found)
    )


def measure(
    bands: Sequence[float],
    joins: Sequence[str],
    *,
    seconds: float,
    rate: float,
    flows: int,
    runs: int,
) -> Found:
    """By band and join; of times the medians of the runs."""
    links = two_links(seconds=seconds, rate=rate, flows=flows)
    few = two_links(seconds=5, rate=20, flows=5)
    found: Found = {}
    for band in bands:
        require_oracle(band)
        taken: dict[str, list[Counted]] = {join: [] for join in joins}
        for join in joins:
            count_pairs(join, few, band, every=EVERY)
        for _ in range(runs):
            for join in joins:
                taken[join].append(count_pairs(join, links, band, every=EVERY))
            require_right(links, band, {join: those[-1] for join, those in taken.items()})
        found[band] = {
            join: replace(
                those[0],
                seconds=median(one.seconds for one in those),
                latency=median(one.latency for one in those),
            )
            for join, those in taken.items()
        }
    return found


def memory_panel(found: Found, joins: Sequence[str]) -> Panel:
    """The most memory by band."""
    series = {
        join: tuple((float(band), by[join].peak_bytes / 1e6) for band, by in found.items())
        for join in joins
    }
    return Panel(x="band (seconds)", y="most memory (MB)", series=series, title="memory")


def _panels(found: Found) -> Iterator[Panel]:
    yield memory_panel(found, (OA, OPOB))
    latency = {
        join: tuple((float(band), by[join].latency * 1e3) for band, by in found.items())
        for join in (OA, OPOB)
    }
    yield Panel(x="band (seconds)", y="median latency (ms)", series=latency, title="latency")
    seconds = {
        join: tuple((float(band), by[join].seconds) for band, by in found.items())
        for join in (OA, OPOB)
    }
    yield Panel(
        x="band (seconds)", y="execution time (seconds)", series=seconds, title="execution time"
    )


def _claims(found: Found) -> Iterator[Claim]:
    first, last = BANDS[0], BANDS[-1]
    memory = [by[OPOB].peak_bytes / by[OA].peak_bytes for by in found.values()]
    yield Claim(
        "OA-Join significantly outperforms OPOB-Join on memory",
        f"OPOB / OA {memory[0]:.1f} at a band of {first} s, {memory[-1]:.1f} at {last} s "
        "(bar: more at every band, twice at the widest)",
        min(memory) > 1 and memory[-1] > 2,
    )
    latency = [by[OPOB].latency / by[OA].latency for by in found.values()]
    yield Claim(
        "and on latency",
        f"OPOB / OA {min(latency):.0f} to {max(latency):.0f} (bar: twice at every band)",
        min(latency) > 2,
    )
    time = [by[OPOB].seconds / by[OA].seconds for by in found.values()]
    more = sum(ratio > 1 for ratio in time)
    yield Claim(
        "and takes less time",
        f"OPOB / OA {min(time):.2f} to {max(time):.2f}, {time[-1]:.2f} at {last} s; more at {more} "
        f"of {len(BANDS)} bands (bar: at all)",
        more == len(BANDS),
    )
    yield Claim(
        "especially on memory and latency, more than on time",
        f"at {last} s {memory[-1]:.1f} times the memory, {latency[-1]:.0f} times the latency, "
        f"{time[-1]:.1f} times the time",
        min(memory[-1], latency[-1]) > time[-1],
    )


def _remarks(found: Found) -> tuple[str, ...]:
    last = BANDS[-1]
    widest = found[last][OPOB]
    return (
        f"At {last} s, {widest.peak_waiting:,} pairs wait in OPOB-Join at once, of "
        f"{widest.pairs:,} in all. A pair that waits counts with the keys of both its packets and "
        "two numbers that say where they are.",
        "OPOB-Join is an OA-Join with an output buffer, so it never stores less. It puts pairs in "
        "order a whole step at a time; sorting pair by pair would take longer.",
        "The text does not say how many packets of M2 a packet of M1 is joined with. Here they are "
        f"one at {BANDS[0]} s and nine at {last} s; with fewer, both joins come closer.",
    )


FIGURE = Figure(
    name="7-6",
    title="OA-Join and output-buffered join (OPOB) by band (Q7-2)",
    source="Thesis, 7.3, Experiment 1",
    published=(
        "The most memory, median latency and execution time of Q7-2, a count per minute of packet "
        "pairs of one flow in opposite directions, over M1 and M2 (4000 packets/s, in order and "
        "synchronised), with bands of 1 to 9 s. OA-Join significantly outperforms OPOB-Join, "
        "especially on memory and latency, as it avoids sorting the output of the join before "
        "aggregating."
    ),
    setup=(
        f"M1 and M2 scaled down by {SCALE} to {RATE} packets/s, {SECONDS} seconds, {FLOWS:,} flows "
        f"equally likely. Rows come every {EVERY:g} second, then both links promise what their "
        "clock says. Joined pairs go to the same count (store `eager`). Memory is what join and "
        "count hold, looked at after every step; latency is that of the promise that closes a "
        f"minute, from its arrival to the answer. Times are medians of {RUNS} runs, in turns, "
        "after a short one that is not counted. All answers are those of `panes.sql`, which are "
        "those of the oracle on a few rows."
    ),
    run=run,
)
