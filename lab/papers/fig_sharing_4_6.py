"""*Aggregate Sharing in Stream Databases*, Figures 4 and 6: TimeGram as queries grow in number.

Random rows (Figure 4) and skewed ones (Figure 6), 1 to 8 queries as published, and beyond.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from fractions import Fraction

from lab.papers.figure import Claim, Figure, Grid, Measured
from lab.papers.sharing_runs import (
    BUCKETS,
    LARGEST,
    ROWS,
    Integers,
    Make,
    Rows,
    bucket_width,
    compare,
    random_rows,
    skewed_rows,
    timegram_over,
    window_sizes,
)
from lab.papers.sharing_scale import AT_ONCE, NAIVE, RIVALS, Scale, grid, measure, panels
from panes.errors import WrongAnswerError
from panes.stores.nested.timegram import Aggregate, TimeGram

TIMEGRAM = "TimeGram"
PLAIN: dict[Aggregate, Callable[[Integers], int | Fraction]] = {
    "count": len,
    "sum": lambda rows: int(rows.sum()),
    "avg": lambda rows: Fraction(int(rows.sum()), len(rows)),
    "min": lambda rows: int(rows.min()),
    "max": lambda rows: int(rows.max()),
}


def contenders(rows: Integers) -> dict[str, Make]:
    """Naive in both ways, and one TimeGram over the range of these rows."""
    return {**RIVALS, TIMEGRAM: timegram_over(rows)}


def run_4() -> Measured:
    """Random rows."""
    scale = measure(contenders, random_rows)
    grids = (grid(scale), other_aggregates(random_rows))
    return Measured(panels(scale), tuple(claims_4(scale)), grids, REMARKS)


def run_6() -> Measured:
    """Skewed rows, compared with random ones."""
    scale = measure(contenders, skewed_rows)
    random = compare(contenders, random_rows, 8)
    claims = (*claims_4(scale), claim_6(scale.few[8], random))
    return Measured(panels(scale), claims, (grid(scale), other_aggregates(skewed_rows)), REMARKS)


def claims_4(scale: Scale) -> Iterator[Claim]:
    """What 5.2 says of Figure 4, and 5.3 again of Figure 6."""
    naive, at_once, shared = (scale.growth(name) for name in (NAIVE, AT_ONCE, TIMEGRAM))
    yield Claim(
        "response time grows with the number of queries, for Naive much faster than for TimeGram",
        f"each further query costs Naive {naive[0]:.2f} microseconds a row ({at_once[0]:.2f} all "
        f"at once), TimeGram {shared[0]:.2f}; over long windows {naive[1]:.1f} ({at_once[1]:.1f}) "
        f"and {shared[1]:.2f} (bar: 5 times, query by query)",
        naive[0] > 5 * shared[0] and naive[1] > 5 * shared[1],
    )
    most = max(scale.few)
    yield Claim(
        "TimeGram has a better response time than Naive",
        f"at {most} queries Naive {scale.few[most][NAIVE]:.0f} microseconds "
        f"({scale.few[most][AT_ONCE]:.0f} all at once), TimeGram {scale.few[most][TIMEGRAM]:.0f}; "
        + _beyond(scale),
        scale.few[most][TIMEGRAM] < min(scale.few[most][NAIVE], scale.few[most][AT_ONCE]),
    )
    most = max(scale.many)
    ratio = scale.many[most][NAIVE] / scale.many[most][TIMEGRAM]
    yield Claim(
        "it scales well with a large number of queries (8 were possible)",
        f"at {most:,} queries TimeGram is {ratio:.0f} times as fast as Naive query by query "
        "(bar: 5)",
        ratio > 5,
    )


def _beyond(scale: Scale) -> str:
    cases = {
        f"at {max(scale.many):,}": scale.many[max(scale.many)],
        f"at {max(scale.long)} over long windows": scale.long[max(scale.long)],
    }
    return "; ".join(
        f"{case} {times[NAIVE]:,.0f} ({times[AT_ONCE]:,.0f}), {times[TIMEGRAM]:,.0f}"
        for case, times in cases.items()
    )


def claim_6(skewed: dict[str, float], random: dict[str, float]) -> Claim:
    """What 5.3 says of Figure 6 against Figure 4."""
    here, before = (times[NAIVE] / times[TIMEGRAM] for times in (skewed, random))
    return Claim(
        "on skewed rows the relative performance is about the same as on random ones",
        f"Naive / TimeGram at 8 queries: {here:.2f} on skewed, {before:.2f} on random rows "
        "(bar: within a quarter)",
        0.75 < here / before < 1.33,
    )


def other_aggregates(kind: Rows, *, queries: int = 1_000, lookups: int = 10) -> Grid:
    """What an answer of each aggregate costs, once it is known to lie in its interval."""
    sizes = window_sizes(queries)
    rows = kind(int(sizes.max()), seed=0)
    gram = TimeGram(width=bucket_width(rows), origin=int(rows.min()), max_size=int(sizes.max()))
    gram.add_rows(rows)
    cells = []
    for aggregate, plain in PLAIN.items():
        for size, answer in zip(sizes, gram.ask_each(aggregate, sizes.tolist()), strict=True):
            if answer is None or plain(rows[-size:]) not in answer:
                raise WrongAnswerError(f"TimeGram: {aggregate} of {size} rows is not {answer}")
        took = [_seconds(gram, aggregate, sizes) for _ in range(lookups)]
        cells.append(f"{min(took) / queries * 1e6:.2f}")
    return Grid(
        f"TimeGram, other aggregates: microseconds for each answer, {queries:,} at a time.",
        tuple(PLAIN),
        (tuple(cells),),
    )


def _seconds(gram: TimeGram, aggregate: Aggregate, sizes: Integers) -> float:
    begin = time.thread_time()
    gram.ask_each(aggregate, sizes.tolist())
    return time.thread_time() - begin


REMARKS = (
    "A row and a lookup in a TimeGram are two calls into the library, which cost more than NumPy "
    "needs to go through 8 windows of up to 1,000 rows. So at the published scale Naive is faster "
    "here. What a further query costs is what the report is about, and there TimeGram is far ahead "
    "of Naive as printed.",
    "All at once, Naive reads several rows in a nanosecond, and a window of 500 rows costs as much "
    "as an answer of TimeGram, which is three binary searches and a Python object: both grow "
    "alike. With windows a hundred times as long Naive has to read a hundred times as much, "
    "TimeGram does not.",
    "Count, sum and avg cost more than max (last table): every answer is an interval of its own, "
    "and the bounds of sums are worked out exactly, one by one.",
)

_SETUP = (
    f"{ROWS:,} rows as published, {{data}}; all windows are looked up after every row. The report "
    f"gives no sizes: each is random up to {LARGEST:,} rows, the aggregate is max, a TimeGram has "
    f"{BUCKETS} buckets. Windows are full when the clock starts. Naive has a queue for each query "
    "and goes through it with NumPy, query by query as printed, or all queues in one call. Beyond: "
    "up to 10,000 queries, and windows of up to 100,000 rows. Exact answers equal the plain ones, "
    "and every interval of a TimeGram holds its answer. CPU time, the fastest of 3 rounds (beyond: "
    "of 2, and of 1)."
)

FIGURE_4 = Figure(
    name="sharing-4",
    title="TimeGram: response time and number of queries",
    source="Aggregate Sharing in Stream Databases, 5.2, Figure 4",
    published=(
        "Response time of Naive and TimeGram for 1,000 random rows and up to 8 queries, more than "
        "which STREAM could not run. Naive grows sharply, TimeGram is relatively flat."
    ),
    setup=_SETUP.format(data="whole numbers in [-1,000, 1,000]"),
    run=run_4,
)
FIGURE_6 = Figure(
    name="sharing-6",
    title="TimeGram: response time and number of queries, skewed rows",
    source="Aggregate Sharing in Stream Databases, 5.3, Figure 6",
    published=(
        "As Figure 4 with 1,000 Gaussian rows, most of them in [-20, 20]. The relative "
        "performance is about the same as before."
    ),
    setup=_SETUP.format(data="Gaussian with deviation 10 and rounded"),
    run=run_6,
)
