"""Figure 6-12: latency and wrong answers under block-sorted disorder, punctuation against slack.

A count over 600 seconds, every 60. A router sends blocks of 490 seconds, in no order inside, and a
punctuation after each: from the first rows of a block on, the newest row is near its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lab.papers.disorder import Arrivals, block_sorted
from lab.papers.figure import Claim, Figure, Measured
from lab.papers.slack import (
    PUNCTUATION,
    Answered,
    Slack,
    Tradeoff,
    Tradeoffs,
    observe,
    panels,
    tradeoff,
    truth,
)

QUERY = "SELECT count(*) AS n FROM packets [RANGE 600 seconds SLIDE 60 seconds WATTR ts]"
BLOCK = 490
BLOCKS = 16
RATE = 5
BATCH = 20
SLACKS = (0, 54.4, 109.1, 218.2, 327.3, 434.2, 490.9, 600)
KIND = "consistent slack"


def run() -> Measured:
    """Punctuation once, and every slack."""
    seconds = BLOCK * BLOCKS
    arrivals = block_sorted(RATE * seconds, seconds=seconds, block=BLOCK)
    found = measure(arrivals, SLACKS, batch=BATCH)
    return Measured(
        panels=panels(found, x="slack (seconds)", error="wrong answers (%)"),
        claims=tuple(_claims(found)),
        remarks=REMARKS,
    )


def measure(arrivals: Arrivals, slacks: Sequence[float], *, batch: int) -> Tradeoffs:
    """By kind and seconds of slack."""
    right = truth(QUERY, arrivals)
    observe(QUERY, arrivals, batch=len(arrivals.rows), store="eager")  # compiles
    punctuated = _tradeoff(observe(QUERY, arrivals, batch=batch, store="eager"), right)
    waiting = {}
    for slack in slacks:
        waits = Slack(f"{round(1_000 * slack)} milliseconds", "drop")
        answered = observe(QUERY, arrivals, batch=batch, store="buffered", slack=waits)
        waiting[slack] = _tradeoff(answered, right)
    return {PUNCTUATION: dict.fromkeys(slacks, punctuated), KIND: waiting}


def _tradeoff(answered: Sequence[Answered], right: Mapping[int, float]) -> Tradeoff:
    return tradeoff(answered, (float(a.value != right[a.end]) for a in answered))


def _claims(found: Tradeoffs) -> Iterator[Claim]:
    punctuated, slack = found[PUNCTUATION][0], found[KIND]
    best = min(s for s, point in slack.items() if point.error == 0)
    yield Claim(
        "the optimal slack, with the best latency at the optimal accuracy, is 491 s",
        f"the least slack without a wrong answer is {best:g} s",
        best == 490.9,
    )
    below = [point for s, point in slack.items() if s < best]
    yield Claim(
        "a slack below it gives wrong answers",
        f"{min(p.error for p in below):.0f} to {max(p.error for p in below):.0f} %",
        min(p.error for p in below) > 0,
    )
    waits = [point.rows for point in below]
    block = RATE * BLOCK
    yield Claim(
        "below the optimum latency is essentially independent of slack",
        f"{min(waits):.0f} to {max(waits):.0f} rows after the punctuation, of {block:,} in a block "
        f"(bar: 5 % of a block); {_ms(below)} of wall clock",
        max(waits) - min(waits) < 0.05 * block,
    )
    at, above = slack[490.9], slack[600]
    yield Claim(
        "above it latency jumps dramatically",
        f"{at.rows:.0f} rows at 490.9 s, {above.rows:.0f} rows at 600 s (bar: 5 times); "
        f"{1e3 * at.seconds:.1f} and {1e3 * above.seconds:.1f} ms of wall clock",
        above.rows > 5 * at.rows,
    )
    yield Claim(
        "punctuation has better latency and accuracy than any slack",
        f"{punctuated.error:g} % wrong, {1e3 * punctuated.seconds:.1f} ms against "
        f"{1e3 * min(p.seconds for p in slack.values()):.1f} ms or more",
        punctuated.error == 0 and punctuated.seconds < min(p.seconds for p in slack.values()),
    )


def _ms(points: Sequence[Tradeoff]) -> str:
    seconds = [point.seconds for point in points]
    return f"{1e3 * min(seconds):.1f} to {1e3 * max(seconds):.1f} ms"


REMARKS = (
    "Rows are read at full speed, so wall-clock latency is the time for the rows that come between "
    "the punctuation and the answer, and for the answer. Where a claim is about slack alone it is "
    "judged by these rows, which are the same in every run.",
    "Every answer is wrong below the optimum: a window is longer than a block, so it always holds "
    "some rows that came late, and consistent slack counts a late row nowhere.",
    "The first rows of a block carry the newest row close to its end. So with a slack of less "
    "than a block a window is closed while its own block comes, or by the first rows of the next "
    "one, right after the punctuation. With 600 s that is so no longer for windows that end in "
    "the last 110 seconds of a block: they wait until the whole next block is in.",
    "On the axis latency grows with slack at once: the newest row lies at least the slack past "
    "the window's end. The steps of the published curve are those of time and rows, not of the "
    "axis.",
)

FIGURE = Figure(
    name="6-12",
    title="latency and accuracy under block-sorted disorder",
    source="Thesis, 6.1.5.2, Experiment 3 (Table 6-1)",
    published=(
        "A count over 600 seconds, every 60, of rows in blocks of 490 seconds without order "
        "inside; punctuation (WID) against buffering with consistent slack of 0 to 600 s. The "
        "optimal slack is 491 s. Below it latency is essentially independent of slack and answers "
        "are wrong; above it latency jumps dramatically. Punctuation has better latency and "
        "accuracy than any slack."
    ),
    setup=(
        f"{BLOCKS} blocks of {BLOCK} seconds at {RATE} packets a second, batches of {BATCH} rows; "
        "stores, slack and both measures of latency as in Figure 6-11."
    ),
    run=run,
)
