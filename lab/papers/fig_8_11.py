"""Figure 8-11: memory of a sliding count over three links, one of them late and almost empty.

Q8-5 counts packets of the past five minutes, every minute. In order, all packets of the busy links
wait for the few of the third; in any order they are counted when they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import panes
from lab.papers.figure import Claim, Figure, Measured, Panel
from lab.papers.skew import skewed_links
from lab.papers.unions import Ran, in_any_order, in_order, united
from lab.papers.watch import require_same

QUERY = "SELECT count(*) AS n FROM packets [RANGE 5 minutes, SLIDE 1 minute, WA ts]"
SCALE = 10
RATE = 4_000 // SCALE
SECONDS = 420
DELAYS = (0, 2, 4, 6, 8, 10)
EVERY = 1.0

MERGED, KEPT = "IOP, Merge, then counts", "IOP, Merge, then kept rows"
WAYS: dict[str, Callable[..., Ran]] = {
    MERGED: partial(in_order, store="eager"),
    KEPT: partial(in_order, store="buffered"),
    "OOP, WID": partial(in_any_order, store="eager"),
    "OOP, panes": partial(in_any_order, store="panes"),
}

Found = dict[str, dict[float, Ran]]


def run() -> Measured:
    """Every delay, every way."""
    found = measure(DELAYS, seconds=SECONDS, rate=RATE, every=EVERY)
    return Measured(panels=tuple(_panels(found)), claims=tuple(_claims(found)), remarks=REMARKS)


def measure(delays: Sequence[float], *, seconds: float, rate: float, every: float) -> Found:
    """By way and seconds of delay."""
    few = united(skewed_links(seconds=seconds, delay=0, rate=100 / seconds))
    require_same(panes.sql(QUERY, packets=few), panes.oracle(QUERY, packets=few), of="Q8-5")
    found: Found = {way: {} for way in WAYS}
    for delay in delays:
        links = skewed_links(seconds=seconds, delay=delay, rate=rate, control_rate=0.5)
        right = panes.sql(QUERY, packets=united(links))
        for way, go in WAYS.items():
            found[way][delay] = go(QUERY, links, every=every)
            require_same(found[way][delay].answers, right, of=f"Q8-5, {way}, delay {delay}")
    return found


def _panels(found: Found) -> Iterator[Panel]:
    for title, ways in {
        "counts behind Merge": [way for way in WAYS if way != KEPT],
        "rows kept behind Merge too": list(WAYS),
    }.items():
        series = {
            way: tuple((float(d), ran.peak_bytes / 1e3) for d, ran in found[way].items())
            for way in ways
        }
        yield Panel(
            x="delay of C (seconds)", y="most memory (KB)", series=series, title=title,
            y_scale="linear" if KEPT not in ways else "log",
        )  # fmt: skip


def _claims(found: Found) -> Iterator[Claim]:
    first, last = DELAYS[0], DELAYS[-1]
    bytes_of = {way: [found[way][delay].peak_bytes for delay in DELAYS] for way in WAYS}
    merged, kept = bytes_of[MERGED], bytes_of[KEPT]
    rows = (merged[-1] - merged[0]) / (last - first) / 1e3
    yield Claim(
        "the memory of IOP grows significantly as the delay of C grows",
        f"{merged[0] / 1e3:.1f} KB to {merged[-1] / 1e3:.0f} KB, {rows:.0f} KB for each second of "
        f"delay; with rows kept for the count too, {kept[0] / 1e3:.0f} to {kept[-1] / 1e3:.0f} KB",
        merged[-1] > 10 * merged[0] and kept[-1] > kept[0],
    )
    stable = {way: b for way, b in bytes_of.items() if way.startswith("OOP")}
    told = ", ".join(f"{way[5:]} {b[0]} to {b[-1]} bytes" for way, b in stable.items())
    yield Claim(
        "that of OOP is relatively stable",
        f"{told} (bar: 1.5 times)",
        all(max(b) < 1.5 * min(b) for b in stable.values()),
    )


REMARKS = (
    "The published reason holds to the letter: counts take a few hundred bytes, so what is "
    "measured of IOP is what waits in Merge, all packets of the busy links for as long as C lags.",
    "If the count behind Merge keeps rows as well (store `buffered`), the five minutes of rows "
    "outweigh those that wait ten seconds, and growth is there but small. The text does not say "
    "what the count of IOP-NiagaraST kept.",
)

FIGURE = Figure(
    name="8-11",
    title="memory of a sliding count over three links, one late (Q8-5)",
    source="Thesis, 8.4.2, Experiment 2",
    published=(
        "The most memory of a count over five minutes, every minute, of the union of M1, M2 (4000 "
        "packets/s) and C (less than one), with C delayed by 0 to 10 s. IOP grows significantly "
        "with the delay, OOP is relatively stable, because it reduces packets to aggregates "
        "without buffering and sorting them first."
    ),
    setup=(
        f"M1 and M2 scaled down by {SCALE} to {RATE} packets/s, C at one every two seconds, "
        f"{SECONDS} seconds. Rows come every second, and each link promises what its clock says. "
        "IOP is `Merge` and then the count, with counts per window (store `eager`) or rows (store "
        "`buffered`); OOP is `Meld` with the stores `eager` (WID) and `panes`. Memory is what both "
        "hold, looked at after every push. All answers are those of `panes.sql`, which are those "
        "of the oracle on a few rows."
    ),
    run=run,
)
