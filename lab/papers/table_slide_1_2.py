"""*Knowing When to Slide*, Tables I and II: how evenly windows slide by a remote source's clock.

A source sends a tuple every 2 minutes; each travels 30 to 90 seconds. Two queries slide every 3
and every 5 minutes. Algorithm 2 slides when a tuple comes; the second algorithm runs the source's
clock. Beside them the library's timers, which tuples' timestamps move as progress does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean

import numpy as np

from lab.papers.figure import Claim, Figure, Grid, Measured, Panel, Points
from lab.papers.remote_time import SlideOnArrival, SynchronisedClock
from panes.errors import WrongAnswerError
from panes.progress.timers import Timers
from panes.windows.cut import Edges

PERIOD = 120
DELAYS = (30, 90)
ALPHA = 0.5
ALPHAS = (0.0, 0.5, 0.9)
STREAMS = 200
TUPLES = 100
SHOWN = 6
SHOWN_SEED = 2
FIRST_DELAYS = ((30, 49), (50, 69), (70, 90))
DRIFT = 30
BY_TUPLE, BY_CLOCK, BY_PROGRESS = "Algorithm 2", "using timers", "progress"

Intervals = dict[str, tuple[int, ...]]

# Seconds between slides, as printed.
TABLE_I: Intervals = {
    BY_TUPLE: (234, 223, 258, 242, 231, 234),
    BY_CLOCK: (176, 219, 178, 186, 192, 209),
}
TABLE_II: Intervals = {
    BY_TUPLE: (363, 349, 382, 348, 380, 352),
    BY_CLOCK: (303, 287, 349, 302, 298, 332),
}


@dataclass(frozen=True, slots=True)
class Journey:
    """When a tuple was sent by the source's clock, and when it came by the local one."""

    sent: int
    came: int


@dataclass(frozen=True, slots=True)
class Slid:
    """Seconds between slides by the local clock."""

    intervals: tuple[int, ...]

    @classmethod
    def at(cls, instants: list[int]) -> Slid:
        return cls(tuple(later - earlier for earlier, later in pairwise(instants)))

    @classmethod
    def pooled(cls, runs: list[Slid]) -> Slid:
        """All runs as one; no interval reaches from one into the next."""
        return cls(tuple(interval for run in runs for interval in run.intervals))

    def off_by(self, slide: int) -> float:
        """How far an interval is from the slide, on average."""
        return mean(abs(interval - slide) for interval in self.intervals)


def journeys(tuples: int, *, seed: int) -> list[Journey]:
    """The source's tuples, in order: they are sent further apart than they overtake."""
    delays = np.random.default_rng([7, seed]).integers(DELAYS[0], DELAYS[1] + 1, tuples)
    return [Journey(PERIOD * i, PERIOD * i + delay) for i, delay in enumerate(delays.tolist())]


def measure(
    slide: int,
    *,
    seeds: Iterable[int] = range(STREAMS),
    tuples: int = TUPLES,
    alpha: float = ALPHA,
    delays: tuple[int, int] = DELAYS,
) -> dict[str, Slid]:
    """One query, scheduled in three ways from the same streams; checked before it counts.

    Streams are those whose first tuple was delayed by at least and at most so much.
    """
    streams = [journeys(tuples, seed=seed) for seed in seeds]
    each = [s for s in streams if delays[0] <= s[0].came - s[0].sent <= delays[1]]
    return {
        BY_TUPLE: Slid.pooled([by_tuple(stream, slide) for stream in each]),
        BY_CLOCK: Slid.pooled([by_clock(stream, slide, alpha) for stream in each]),
        BY_PROGRESS: Slid.pooled([by_progress(stream, slide) for stream in each]),
    }


def by_tuple(stream: list[Journey], slide: int) -> Slid:
    """Algorithm 2: the next slide counts from the tuple that set off the last one."""
    groups = SlideOnArrival([slide])
    slid = [one for one in stream if groups.arrive(one.sent)]
    due, plain = stream[0].sent + slide, []
    for one in stream:
        if one.sent >= due:
            plain.append(one)
            due = one.sent + slide
    if slid != plain:
        raise WrongAnswerError("Algorithm 2 slid at other tuples than plain steps do")
    return Slid.at([one.came for one in slid])


def by_clock(stream: list[Journey], slide: int, alpha: float) -> Slid:
    """The second algorithm: a clock set by the first tuple, which waits a little at each tick."""
    clock = SynchronisedClock(slide=slide, alpha=alpha)
    instants = [at for one in stream for at in clock.arrive(one.sent, local=one.came)]
    first = stream[0]
    for number, at in enumerate(instants, start=1):
        if at < first.came + number * slide:
            raise WrongAnswerError(f"the clock slid {number} times before it ticked as often")
    return Slid.at(instants)


def by_progress(stream: list[Journey], slide: int) -> Slid:
    """The library's timers: the edges that timestamps have passed, none of which can drift."""
    timers = Timers(at=stream[0].sent)
    timers.add(Edges(slide, stream[0].sent % slide))
    slid = [one for one in stream if timers.advance(one.sent)]
    crossed = [
        later
        for earlier, later in pairwise(stream)
        if (later.sent - stream[0].sent) // slide > (earlier.sent - stream[0].sent) // slide
    ]
    if slid != crossed:
        raise WrongAnswerError("timers slid at other tuples than those that pass an edge")
    return Slid.at([one.came for one in slid])


def _run(slide: int, table: Intervals) -> Measured:
    found, shown = measure(slide), measure(slide, seeds=[SHOWN_SEED], tuples=TUPLES)
    return Measured(
        panels=(_six(shown, table), _drift(shown, slide)),
        claims=tuple(claims(found, table, slide)),
        grids=(_grid(found, shown, table), _clocks(slide)),
        remarks=REMARKS,
    )


def _six(found: dict[str, Slid], table: Intervals) -> Panel:
    series: dict[str, Points] = {}
    for name, slid in found.items():
        if name in table:
            series[f"{name}, published"] = _minutes(table[name])
        series[f"{name}, here"] = _minutes(slid.intervals[:SHOWN])
    return Panel("interval", "minutes between slides", series, "six intervals")


def _minutes(intervals: tuple[int, ...]) -> Points:
    return tuple((float(i), seconds / 60) for i, seconds in enumerate(intervals, start=1))


def _drift(shown: dict[str, Slid], slide: int) -> Panel:
    series = {}
    for name, slid in shown.items():
        late = np.cumsum(np.array(slid.intervals) - slide) / 60
        series[name] = tuple((float(i), float(m)) for i, m in enumerate(late[:DRIFT], start=1))
    return Panel("slide", "minutes behind schedule", series, "drift")


def claims(found: dict[str, Slid], table: Intervals, slide: int) -> Iterator[Claim]:
    """What the tables show, and what VII concludes."""
    waits = -(-slide // PERIOD) * PERIOD
    published, here = mean(table[BY_TUPLE]), mean(found[BY_TUPLE].intervals)
    yield Claim(
        f"Algorithm 2 slides late: every {_clock(published)} on average instead of {_clock(slide)}",
        f"every {_clock(here)} (bar: within 15 seconds of {_clock(waits)}, the next tuple)",
        abs(here - waits) < 15,
    )
    published, here = mean(table[BY_CLOCK]), mean(found[BY_CLOCK].intervals)
    yield Claim(
        f"using timers, every {_clock(published)} on average",
        f"every {_clock(here)} (bar: within 15 seconds of {_clock(slide)})",
        abs(here - slide) < 15,
    )
    off = {n: mean(abs(i - slide) for i in intervals) for n, intervals in table.items()}
    measured = {name: slid.off_by(slide) for name, slid in found.items()}
    yield Claim(
        "timers slide at more accurate times: off by "
        f"{off[BY_CLOCK]:.0f} seconds on average against {off[BY_TUPLE]:.0f}",
        f"off by {measured[BY_CLOCK]:.0f} seconds against {measured[BY_TUPLE]:.0f}",
        measured[BY_CLOCK] < measured[BY_TUPLE],
    )


def _grid(found: dict[str, Slid], shown: dict[str, Slid], table: Intervals) -> Grid:
    rows = []
    for name, slid in found.items():
        if name in table:
            published = table[name]
            rows.append((f"{name}, published", *map(_clock, published), _clock(mean(published))))
        few = shown[name].intervals[:SHOWN]
        rows.append((f"{name}, here", *map(_clock, few), _clock(mean(slid.intervals))))
    numbers = (str(i) for i in range(1, SHOWN + 1))
    return Grid(
        f"Time between slides: {SHOWN} intervals of one stream, and the mean over all streams.",
        ("", *numbers, "mean"),
        tuple(rows),
    )


def _clocks(slide: int) -> Grid:
    rows = []
    for alpha in ALPHAS:
        slid = [measure(slide, alpha=alpha, delays=delays)[BY_CLOCK] for delays in FIRST_DELAYS]
        rows.append((f"{alpha:g}", *(f"{of.off_by(slide):.1f}" for of in slid)))
    heads = (f"first tuple took {low} to {high} s" for low, high in FIRST_DELAYS)
    return Grid(
        "Using timers: seconds off on average, by the weight of the old delay in Eq. 1, which the "
        "paper does not give, and by how long the tuple took that set the clock.",
        ("alpha", *heads),
        tuple(rows),
    )


def _clock(seconds: float) -> str:
    """Minutes and seconds as the tables print them.

    >>> _clock(234)
    '03:54'
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:02}:{rest:02}"


REMARKS = (
    "Algorithm 2 can only slide with a tuple, and counts the next slide from there: tuples come "
    "every 2 minutes, so 3 minutes become 4 and 5 become 6, plus or minus how much the travel "
    "times of two tuples differ.",
    "The clock ticks at the delay of the tuple that set it. If that was slow, later tuples are "
    "ahead of the clock, nobody is waited for, and slides are exact; if it was fast, waits go up "
    "and down with the delays (last table). No row comes too late for it here: rows are sent a "
    "minute or more before the end of their window.",
    "The six printed intervals of the timers add up to 80 (Table I) and 71 seconds (Table II) more "
    "than six slides. Waits lie between 0 and 60 seconds with these delays, and ticks are a slide "
    "apart, so the algorithm as printed cannot be more than 60 late: the authors' ticks came late "
    "too. So our intervals are nearer to the slide.",
    "Progress is what the library's answers wait for. Its timers stand at the edges themselves, so "
    "intervals even out exactly and no tuple is missed; between two tuples they too must wait for "
    "the next.",
)


def _figure(number: str, minutes: int, table: Intervals) -> Figure:
    return Figure(
        name=f"slide-{number}",
        title=f"time between slides by a remote clock, slide of {minutes} minutes",
        source=f"Knowing When to Slide, VI-D and VII, Table {number}",
        published=(
            f"Six intervals between slides of a query that slides every {minutes} minutes by the "
            "clock of a source which sends a tuple every 2 minutes, each delayed by 30 to 90 "
            "seconds. Algorithm 2 must wait for tuples; an own timer that is synchronised with the "
            "source slides at more accurate times."
        ),
        setup=(
            f"The same source, simulated {STREAMS} times for {TUPLES} tuples, delays uniform; "
            f"both algorithms as printed, alpha = {ALPHA:g}. Beside them the library's timers, "
            "which the timestamps of tuples move on. Intervals are by the local clock. The stream "
            "that is shown is one whose first tuple was fast, so that its clock waits."
        ),
        run=lambda: _run(60 * minutes, table),
    )


TABLE_1 = _figure("I", 3, TABLE_I)
TABLE_2 = _figure("II", 5, TABLE_II)
