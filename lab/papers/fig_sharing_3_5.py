"""*Aggregate Sharing in Stream Databases*, Figures 3 and 5: TimeGram as lookups become rarer.

Naive answers after every row, whoever asks; a TimeGram answers when it is asked. Random rows
(Figure 3) and skewed ones (Figure 5), 8 queries as published, and beyond.
"""

from __future__ import annotations

from collections.abc import Iterator

from lab.papers.figure import Claim, Figure, Grid, Measured, Panel, Points
from lab.papers.sharing_runs import (
    BUCKETS,
    LARGEST,
    ROWS,
    Integers,
    Make,
    Naive,
    NaiveAtOnce,
    Rows,
    compare,
    random_rows,
    skewed_rows,
    timegram_over,
)

RATIOS = (1, 2, 5, 10, 20, 50, 100)
QUERIES = 8
MORE_QUERIES = 1_000
LONG_QUERIES, LONG_WINDOW = 100, 100_000
FEWER_ROWS = 200
NAIVE, ON_DEMAND, AT_ONCE = "Naive", "Naive, on demand", "Naive, on demand, at once"
TIMEGRAM = "TimeGram"

Times = dict[int, dict[str, float]]  # rows per lookup, contender: microseconds per row


def on_demand(rows: Integers) -> dict[str, Make]:
    """Those that answer when asked."""
    return {ON_DEMAND: Naive, AT_ONCE: NaiveAtOnce, TIMEGRAM: timegram_over(rows)}


def always(_: Integers) -> dict[str, Make]:
    """The report's Naive, which answers after every row."""
    return {NAIVE: Naive}


def measure(
    kind: Rows,
    *,
    queries: int = QUERIES,
    largest: int = LARGEST,
    rows: int = ROWS,
    ratios: tuple[int, ...] = RATIOS,
    rounds: int = 3,
) -> Times:
    """Every contender at every ratio. The report's Naive knows no ratio and is timed each time."""
    times: Times = {}
    for ratio in ratios:
        asks = compare(always, kind, queries, largest=largest, rows=rows, rounds=rounds)
        asked = compare(
            on_demand, kind, queries, largest=largest, rows=rows, rounds=rounds, updates=ratio
        )
        times[ratio] = {**asks, **asked}
    return times


def _run(kind: Rows, other: Rows | None) -> Measured:
    times = measure(kind)
    more = measure(kind, queries=MORE_QUERIES, rows=FEWER_ROWS, rounds=1)
    long = measure(kind, queries=LONG_QUERIES, largest=LONG_WINDOW, rows=FEWER_ROWS, rounds=1)
    claims = list(claims_3(times, more, long))
    if other is not None:
        claims.append(claim_5(times, measure(other, ratios=(1, 100))))
    return Measured(_panels(times, more, long), tuple(claims), (_grid(times, more, long),), REMARKS)


def _panels(times: Times, more: Times, long: Times) -> tuple[Panel, ...]:
    titles = {
        f"as published: {QUERIES} queries": times,
        f"beyond: {MORE_QUERIES:,} queries": more,
        f"beyond: {LONG_QUERIES} queries, up to {LONG_WINDOW:,} rows": long,
    }
    return tuple(
        Panel(
            "rows for each lookup", "microseconds per row", _series(of), title,
            x_scale="log", y_scale="linear" if of is times else "log",
        )
        for title, of in titles.items()
    )  # fmt: skip


def _series(times: Times) -> dict[str, Points]:
    names = next(iter(times.values()))
    return {name: tuple((float(ratio), of[name]) for ratio, of in times.items()) for name in names}


def claims_3(times: Times, more: Times, long: Times) -> Iterator[Claim]:
    """What 5.1 says of Figure 3, and 5.3 again of Figure 5."""
    first, last = min(times), max(times)
    naive = [of[NAIVE] for of in times.values()]
    yield Claim(
        "Naive's response time is constant: it answers after every row",
        f"highest / lowest {max(naive) / min(naive):.2f} (bar: 1.25)",
        max(naive) / min(naive) < 1.25,
    )
    fall = times[first][TIMEGRAM] / times[last][TIMEGRAM]
    yield Claim(
        "TimeGram's gradually decreases as lookups become rarer",
        f"{fall:.2f} times from a lookup each row to one in {last}; "
        f"{more[first][TIMEGRAM] / more[last][TIMEGRAM]:.1f} times at {MORE_QUERIES:,} queries "
        "(bar: 1.25)",
        fall > 1.25,
    )
    gaps = [_gains(of) for of in (times, more, long)]
    words = (
        f"{first_gain:.2f} to {last_gain:.1f} times ({case})"
        for (first_gain, last_gain), case in zip(
            gaps,
            (f"{QUERIES} queries", f"{MORE_QUERIES:,} queries", f"{LONG_QUERIES}, long windows"),
            strict=True,
        )
    )
    yield Claim(
        "so the difference between the two becomes greater",
        f"Naive / TimeGram, from a lookup each row to one in {last}: " + ", ".join(words),
        all(last_gain > first_gain for first_gain, last_gain in gaps),
    )
    yield Claim(
        "TimeGram is much faster than Naive",
        f"at {QUERIES} queries {times[first][TIMEGRAM]:.0f} and {times[last][TIMEGRAM]:.0f} "
        f"microseconds a row against {times[first][NAIVE]:.0f}",
        times[first][TIMEGRAM] < times[first][NAIVE],
    )


def _gains(times: Times) -> tuple[float, float]:
    first, *_, last = times.values()
    return first[NAIVE] / first[TIMEGRAM], last[NAIVE] / last[TIMEGRAM]


def claim_5(skewed: Times, random: Times) -> Claim:
    """What 5.3 says of Figure 5 against Figure 3."""
    here, before = _gains(skewed), _gains(random)
    return Claim(
        "on skewed rows the relative performance is about the same as on random ones",
        f"Naive / TimeGram from {here[0]:.2f} to {here[1]:.2f} on skewed, from {before[0]:.2f} to "
        f"{before[1]:.2f} on random rows (bar: within a quarter)",
        all(0.75 < a / b < 1.33 for a, b in zip(here, before, strict=True)),
    )


def _grid(times: Times, more: Times, long: Times) -> Grid:
    cases = (
        (times, QUERIES, LARGEST),
        (more, MORE_QUERIES, LARGEST),
        (long, LONG_QUERIES, LONG_WINDOW),
    )
    rows = [
        (f"{queries:,}", f"{largest:,}", str(ratio), *(f"{took:,.1f}" for took in found.values()))
        for of, queries, largest in cases
        for ratio, found in of.items()
    ]
    names = next(iter(times.values()))
    return Grid(
        "Microseconds per row.",
        ("queries", "rows in a window, up to", "rows for each lookup", *names),
        tuple(rows),
    )


REMARKS = (
    "A row taken in by a TimeGram is one call into the library, which costs more than NumPy needs "
    "to go through 8 windows of up to 1,000 rows. So at the published scale Naive is faster here; "
    "with more queries or longer windows it is not.",
    "What makes Naive constant is that it answers when nobody asks. Asked on demand it falls as "
    "TimeGram does, and all at once with NumPy it is the faster of the two over short windows "
    "whatever the ratio; over long ones sharing wins while lookups are frequent.",
)

_SETUP = (
    f"{ROWS:,} rows as published, {{data}}; {QUERIES} queries, the most that STREAM could run. The "
    f"report gives no sizes: each is random up to {LARGEST:,} rows, the aggregate is max, a "
    f"TimeGram has {BUCKETS} buckets. Windows are full when the clock starts; rows come one by one "
    "and a lookup asks all windows. Naive has a queue for each query and goes through it with "
    "NumPy after every row; beside it the same on demand, query by query and all in one call. "
    f"Beyond: {MORE_QUERIES:,} queries, and windows of up to {LONG_WINDOW:,} rows. Every interval "
    "of a TimeGram holds its answer. CPU time, the fastest of 3 rounds (beyond: of one)."
)

FIGURE_3 = Figure(
    name="sharing-3",
    title="TimeGram: response time and update-lookup ratio",
    source="Aggregate Sharing in Stream Databases, 5.1, Figure 3",
    published=(
        "Response time of Naive and TimeGram for 1,000 random rows as lookups become rarer. Naive "
        "is constant, since it answers after every row; TimeGram decreases gradually, so that the "
        "difference becomes greater. TimeGram is much faster."
    ),
    setup=_SETUP.format(data="whole numbers in [-1,000, 1,000]"),
    run=lambda: _run(random_rows, None),
)
FIGURE_5 = Figure(
    name="sharing-5",
    title="TimeGram: response time and update-lookup ratio, skewed rows",
    source="Aggregate Sharing in Stream Databases, 5.3, Figure 5",
    published=(
        "As Figure 3 with 1,000 Gaussian rows, most of them in [-20, 20]. The relative "
        "performance is about the same as before."
    ),
    setup=_SETUP.format(data="Gaussian with deviation 10 and rounded"),
    run=lambda: _run(skewed_rows, random_rows),
)
