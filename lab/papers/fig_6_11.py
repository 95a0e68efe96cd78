"""Figure 6-11: latency and error under band disorder, punctuation against two kinds of slack.

An average over 64 seconds, every 6.4. Rows come up to 3.2 seconds late. With *consistent* slack a
late row counts nowhere, with *generous* slack in the windows that are still open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lab.papers.disorder import Arrivals, band
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
from panes.planning.terms import Late

QUERY = "SELECT avg(len) AS mean FROM packets [RANGE 64 seconds SLIDE 6.4 seconds WATTR ts]"
SECONDS = 320
RATE = 200
BATCH = 20
EVERY, MAX_DISORDER = 6.4, 3.2
SLACKS = (0, 320, 640, 1_280, 2_560, 3_200)
KINDS: dict[str, Late] = {"consistent slack": "drop", "generous slack": "open"}


def run() -> Measured:
    """Punctuation once, and both kinds of slack at every length."""
    arrivals = band(RATE * SECONDS, seconds=SECONDS, max_disorder=MAX_DISORDER, every=EVERY)
    found = measure(arrivals, SLACKS, batch=BATCH)
    return Measured(
        panels=panels(found, x="slack (ms)", error="mean error (%)"),
        claims=tuple(_claims(found)),
        remarks=REMARKS,
    )


def measure(arrivals: Arrivals, slacks: Sequence[int], *, batch: int) -> Tradeoffs:
    """By kind and milliseconds of slack."""
    right = truth(QUERY, arrivals)
    observe(QUERY, arrivals, batch=len(arrivals.rows), store="eager")  # compiles
    punctuated = _tradeoff(observe(QUERY, arrivals, batch=batch, store="eager"), right)
    found: dict[str, dict[float, Tradeoff]] = {PUNCTUATION: dict.fromkeys(slacks, punctuated)}
    for kind, late in KINDS.items():
        found[kind] = {}
        for slack in slacks:
            waits = Slack(f"{slack} milliseconds", late)
            answered = observe(QUERY, arrivals, batch=batch, store="buffered", slack=waits)
            found[kind][slack] = _tradeoff(answered, right)
    return found


def _tradeoff(answered: Sequence[Answered], right: Mapping[int, float]) -> Tradeoff:
    return tradeoff(answered, (abs(a.value - right[a.end]) / right[a.end] for a in answered))


def _claims(found: Tradeoffs) -> Iterator[Claim]:
    punctuated, consistent, generous = (
        list(found[kind].values()) for kind in (PUNCTUATION, *KINDS)
    )
    slack = consistent + generous
    yield Claim(
        "as slack grows, error falls",
        f"consistent {consistent[0].error:.2f} % to {consistent[-1].error:.2f} %, "
        f"generous {generous[0].error:.3f} % to {generous[-1].error:.2f} %",
        consistent[0].error > consistent[-1].error and generous[0].error > generous[-1].error,
    )
    yield Claim(
        "as slack grows, latency grows",
        f"{consistent[0].rows:.0f} to {consistent[-1].rows:.0f} rows after the punctuation; "
        f"on the axis {consistent[0].behind:.2f} to {consistent[-1].behind:.2f} s; wall clock "
        f"{_ms(consistent[0])} to {_ms(consistent[-1])} (consistent), "
        f"{_ms(generous[0])} to {_ms(generous[-1])} (generous)",
        all(p[-1].rows > p[0].rows for p in (consistent, generous))
        and all(p[-1].behind > p[0].behind for p in (consistent, generous)),
    )
    yield Claim(
        "punctuation has better accuracy than either slack",
        f"error {punctuated[0].error:g} %; slack reaches that at {_first_right(found)} ms",
        punctuated[0].error == 0 < min(p[0].error for p in (consistent, generous)),
    )
    fastest = min(slack, key=lambda point: point.seconds)
    soonest = min(point.behind for point in slack if point.error == 0)
    yield Claim(
        "punctuation has better latency than either slack",
        f"{_ms(punctuated[0])} of wall clock, slack {_ms(fastest)} or more; on the axis "
        f"{punctuated[0].behind:.2f} s, slack {soonest:.2f} s or more where it answers without "
        "error",
        punctuated[0].seconds < fastest.seconds and punctuated[0].behind < soonest,
    )
    pairs = list(zip(consistent, generous, strict=True))
    yield Claim(
        "generous slack has significantly better accuracy at comparable latency",
        f"error of consistent / generous slack at 0 ms: {pairs[0][0].error / pairs[0][1].error:.0f}"
        " (bar: 2)",
        all(c.error > 2 * g.error for c, g in pairs if c.error > 0),
    )


def _ms(point: Tradeoff) -> str:
    return f"{1e3 * point.seconds:.1f} ms"


def _first_right(found: Tradeoffs) -> str:
    firsts = (min(s for s, p in found[kind].items() if p.error == 0) for kind in KINDS)
    return " and ".join(f"{first:g}" for first in firsts)


REMARKS = (
    "Wall-clock latency is the time from the source's punctuation to the answer, as in the "
    "thesis, also for slack, which does not hear the punctuation; where slack closes a window "
    "before the punctuation, it is the time of the closing batch alone. So small slack costs "
    "nothing but the answer itself: until slack outlasts the disorder near a window's end, its "
    "latency is flat. Whether latency grows is judged by rows and on the axis, which are the same "
    "in every run.",
    "On the axis a slack shorter than the disorder answers sooner than punctuation can, because "
    "rows of the window are still on their way. Those answers are the wrong ones.",
    "A batch is judged by what was promised before it came, so that rows within one batch are "
    f"never late for each other: with {BATCH} rows in a batch a slack of 0 forgives a tenth of a "
    "second.",
)

FIGURE = Figure(
    name="6-11",
    title="latency and accuracy under band disorder",
    source="Thesis, 6.1.5.2, Experiment 2 (Table 6-1)",
    published=(
        "An average over 64 seconds, every 6.4, of rows up to 3.2 seconds out of order; "
        "punctuation (WID) against buffering with slack of 0 to 3200 ms, consistent and generous. "
        "As slack grows, error falls and latency grows. Punctuation has better latency and "
        "accuracy than either slack; generous slack is significantly more accurate than "
        "consistent slack at comparable latency."
    ),
    setup=(
        f"{RATE * SECONDS:,} packets over {SECONDS} seconds, delays of 3.2 seconds times a "
        f"beta(1, 4) variable, batches of {BATCH} rows (a tenth of a second). WID is the store "
        "`eager` with the source's punctuation, buffering the store `buffered` with a lateness; "
        'consistent slack is `late="drop"`, generous slack `late="open"`. Latency is measured '
        "twice: in wall-clock time from the source's punctuation to the answer, and on the axis, "
        "as how far the newest row lies past the window's end when it is answered. Answers with "
        "punctuation are those of `panes.sql`, which are those of the oracle on a few rows; "
        "answers with consistent slack are those over the rows that were not late."
    ),
    run=run,
)
