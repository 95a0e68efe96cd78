"""Figure 7-5: what individual and joint punctuation of a join complete, from a run of Q7-1.

Q7-1 counts pairs of SYN and SYN_ACK by both their timestamps, in a band of two minutes. Individual
punctuation is about one of the two and completes a slab, joint punctuation is about both and
completes a box.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

import panes
from lab.papers.figure import Claim, Figure, Grid, Measured, Panel, Points
from lab.papers.watch import require_same
from panes.join.progress import individual
from panes.join.rule import Progress
from panes.windows.partners import Band

MINUTE = 60_000_000
WIDTH = 2
MINUTES = 6
GROUP = (1.5, 0.5)
_BAND = Band(-WIDTH * MINUTE, WIDTH * MINUTE)
_QUERY = f"""
SELECT {{by}}, count(*) AS n FROM S0, S1
WHERE S0.srcIP = S1.destIP AND S0.destIP = S1.srcIP
  AND S0.srcPort = S1.destPort AND S0.destPort = S1.srcPort
  AND ((S0.ts < S1.ts AND S0.flag = 'SYN' AND S1.flag = 'SYN_ACK') OR
       (S0.ts > S1.ts AND S0.flag = 'SYN_ACK' AND S1.flag = 'SYN'))
  AND S1.ts BETWEEN S0.ts - INTERVAL {WIDTH} MINUTES AND S0.ts + INTERVAL {WIDTH} MINUTES
GROUP BY {{by}}
"""
BOTH, OF_S0, OF_S1 = (_QUERY.format(by=by) for by in ("S0.ts, S1.ts", "S0.ts", "S1.ts"))

Place = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Seen:
    """Of each group, in minutes, the number of the promise that completed it; and all promises."""

    joint: dict[Place, int]
    slabs: dict[Place, int]
    promised: tuple[Progress, ...]


def run() -> Measured:
    """One run over a few minutes."""
    seen = observe(MINUTES)
    return Measured(
        panels=tuple(_panels(seen)), claims=tuple(_claims(seen)), grids=(_grid(seen),),
        remarks=REMARKS,
    )  # fmt: skip


def observe(minutes: int) -> Seen:
    """Packets in the middle of each minute; then S0 and S1 promise each minute, by turns."""
    rows = handshakes(minutes)
    for text in (BOTH, OF_S0, OF_S1):
        require_same(
            panes.sql(text, S0=rows, S1=rows), panes.oracle(text, S0=rows, S1=rows), of="Q7-1"
        )
    queries = [panes.open(text, max_ahead=None) for text in (BOTH, OF_S0, OF_S1)]
    for query in queries:
        query.push(S0=rows, S1=rows)
    closed: list[dict[tuple[float, ...], int]] = [{}, {}, {}]
    promised = []
    for number in range(1, 2 * (minutes + WIDTH) + 1):
        stream, at = ("S0", (number + 1) // 2) if number % 2 else ("S1", number // 2)
        for query, found in zip(queries, closed, strict=True):
            for place in _places(query.punctuate(**{stream: at * MINUTE})):
                found[place] = number
        progress = queries[0].progress
        promised.append(Progress(progress["S0"], progress["S1"]))
    both, of_s0, of_s1 = closed
    joint = {(place[0], place[1]): number for place, number in both.items()}
    slabs = {(a, b): min(of_s0[a,], of_s1[b,]) for a, b in joint}
    return Seen(joint, slabs, tuple(promised))


def handshakes(minutes: int) -> pa.Table:
    """A SYN and a SYN_ACK of one flow with itself in the middle of each minute."""
    at = [m * MINUTE + MINUTE // 2 for m in range(minutes) for _ in range(2)]
    return pa.table(
        {
            "ts": pa.array(at, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "srcIP": pa.array([1] * len(at)),
            "destIP": pa.array([1] * len(at)),
            "srcPort": pa.array([80] * len(at)),
            "destPort": pa.array([80] * len(at)),
            "flag": pa.array(["SYN", "SYN_ACK"] * minutes),
        }
    )


def _places(answers: pa.Table) -> Iterator[tuple[float, ...]]:
    """The timestamps of groups, in minutes."""
    if len(answers):
        times = [answers.column(i).cast(pa.int64()) for i in range(answers.num_columns - 1)]
        yield from zip(*([t / MINUTE for t in c.to_pylist()] for c in times), strict=True)


def _panels(seen: Seen) -> Iterator[Panel]:
    for title, closed, outlines in (
        ("individual: slabs", seen.slabs, _slab_lines(seen)),
        ("joint: boxes", seen.joint, _box_lines(seen)),
    ):
        numbers = sorted(set(closed.values()))
        yield Panel(
            x="S0.ts (minutes)", y="S1.ts (minutes)", kind="labels",
            title=f"{title}; a group by the promise that completes it",
            series={str(k): tuple(p for p, n in sorted(closed.items()) if n == k) for k in numbers},
            outlines={**_band_lines(), **outlines},
        )  # fmt: skip
    yield Panel(
        x="promise, by S0 and S1 in turns", y="groups complete",
        title="groups that have been given",
        series={
            name: tuple((float(k), float(sum(n <= k for n in closed.values())))
                        for k in range(len(seen.promised) + 1))
            for name, closed in (("individual", seen.slabs), ("joint", seen.joint))
        },
    )  # fmt: skip


def _band_lines() -> dict[str, Points]:
    return {
        "band, low": ((WIDTH, 0.0), (MINUTES, MINUTES - WIDTH)),
        "band, high": ((0.0, WIDTH), (MINUTES - WIDTH, MINUTES)),
    }


def _slab_lines(seen: Seen) -> dict[str, Points]:
    """The edge of each slab, where it crosses the band."""
    lines: dict[str, Points] = {}
    for promised in seen.promised:
        u = individual(_BAND, promised, "left") / MINUTE
        v = individual(_BAND, promised, "right") / MINUTE
        if 0 < u < MINUTES:
            lines.setdefault(
                f"({u:g},*)", ((u, max(u - WIDTH, 0.0)), (u, min(u + WIDTH, MINUTES)))
            )  # fmt: skip
        if 0 < v < MINUTES:
            lines.setdefault(
                f"(*,{v:g})", ((max(v - WIDTH, 0.0), v), (min(v + WIDTH, MINUTES), v))
            )  # fmt: skip
    return {f"slab, {name}": points for name, points in lines.items()}


def _box_lines(seen: Seen) -> dict[str, Points]:
    """The upper and right edge of each box, as far as they lie in the band."""
    lines: dict[str, Points] = {}
    for promised in seen.promised:
        u, v = promised.left / MINUTE, promised.right / MINUTE
        if 0 < v <= u < MINUTES and u - v <= WIDTH:
            corner = ((max(v - WIDTH, 0.0), v), (u, v), (u, max(u - WIDTH, 0.0)))
            lines[f"box, ({u:g},{v:g})"] = corner
    return lines


def _claims(seen: Seen) -> Iterator[Claim]:
    joint, slab = seen.joint[GROUP], seen.slabs[GROUP]
    yield Claim(
        "a group with S0.ts before 2 and S1.ts before 1 is complete by (2,1), with p3; by "
        "individual punctuation it waits for (*,1), with p5, one minute later",
        f"group {GROUP}: p{joint} by joint, p{slab} by individual punctuation",
        (joint, slab) == (3, 5),
    )
    sooner = [seen.slabs[place] - number for place, number in seen.joint.items()]
    yield Claim(
        "joint punctuation completes groups earlier than individual",
        f"of {len(sooner)} groups {sum(d > 0 for d in sooner)} are given earlier, by "
        f"{min(sooner) / 2:g} to {max(sooner) / 2:g} minutes (bar: none later, most earlier)",
        min(sooner) >= 0 and sum(d > 0 for d in sooner) > len(sooner) / 2,
    )


def _grid(seen: Seen) -> Grid:
    rows = tuple(
        (f"({a:g}, {b:g})", f"p{number}", f"p{seen.slabs[a, b]}")
        for (a, b), number in sorted(seen.joint.items(), key=lambda each: (each[1], each[0]))
        if a < 3 and b < 3
    )
    return Grid("Groups of the first three minutes.", ("(S0.ts, S1.ts)", "joint", "slabs"), rows)


REMARKS = (
    "The thesis speaks of the group with S1.ts of exactly 1. A promise of 1 says that nothing "
    "*before* 1 will come, so that group is complete one promise of S1 later, by joint and by "
    "individual punctuation alike. Here packets lie in the middle of minutes, between promises.",
    "A group of Q7-1 has different timestamps, as a SYN comes before its SYN_ACK.",
)

FIGURE = Figure(
    name="7-5",
    title="individual and joint punctuation of a join (Q7-1)",
    source="Thesis, 7.2",
    published=(
        "Promises of S0 and S1 in turns, each a minute on, and what the join can promise from "
        "them. Individual punctuation covers a slab, joint punctuation a box; a slab is finished "
        "later than most of the boxes that cover the same region. A group that (2,1) covers with "
        "p3 waits for (*,1) and p5 with individual punctuation, a minute longer."
    ),
    setup=(
        "Q7-1 as printed, with its band as the text gives it, 2 minutes to both sides. A SYN and a "
        f"SYN_ACK come on both links in the middle of each of {MINUTES} minutes; then S0 promises "
        "1, S1 promises 1, S0 promises 2 and so on. Joint is `GROUP BY S0.ts, S1.ts`; individual "
        "are `GROUP BY S0.ts` and `GROUP BY S1.ts`, of which the first to be given completes a "
        "group. Written at each group is the number of the promise after which it was given. "
        "Answers are those of the oracle."
    ),
    run=run,
)
