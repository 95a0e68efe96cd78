"""A window index against what one would take instead: DuckDB, SQLite, Polars, deques, Redis.

Every contender holds the same window and takes one basic window of rows in at a time, drops those
that leave, and looks values up in between. All of them are first compared with each other, then
timed in turns, step by step, so that a busy moment falls on all.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np
import pyarrow as pa

from lab.bench.index_contenders import (
    BASIC,
    MINUTE,
    SCHEMA,
    ByPanes,
    Contender,
    contenders,
    why_no_redis,
)
from lab.bench.measure import Report, Timing

VALUES = 100_000
ROWS_PER_LOOKUP = 100


class Workload:
    """Basic windows of rows, in order, and the values that are looked up in each."""

    def __init__(self, rows: int, values: int = VALUES, seed: int = 1) -> None:
        self.rows, self.values = rows, values
        self._random = np.random.default_rng(seed)

    def batch(self, number: int) -> pa.Table:
        """The rows of one basic window."""
        first = number * MINUTE
        ts = np.sort(self._random.integers(first, first + MINUTE, self.rows))
        item = self._random.integers(0, 1_000, self.rows)
        price = self._random.integers(0, self.values, self.rows).astype(np.float64)
        return pa.table([pa.array(ts).view(SCHEMA[0].type), item, price], schema=SCHEMA)

    def asked(self, count: int) -> list[float]:
        """Values to look up, most of which are there."""
        return [float(v) for v in self._random.integers(0, self.values + 5, count)]


STEPS = 5
"""How often `run` says what it does."""


def run(rows: int, repeat: int, say: Callable[[str], None]) -> Report:
    """Check, then time, all contenders. The larger window has twice `rows` rows."""
    report = Report("index", f"panes bench index --rows {rows} --repeat {repeat}")
    say(why_no_redis() or "redis runs on a socket of its own")
    say("checking that all contenders find the same rows")
    with ExitStack() as stack:
        check(_made(stack))
    for window in (rows // 5, rows * 2):
        say(f"a window of {window:,} rows")
        _keep(report, window, max(repeat, 3))
    say(f"the mix: one look-up for {ROWS_PER_LOOKUP} rows")
    with ExitStack() as stack:
        _mix(report, rows // 5, repeat, _made(stack))
    return report


def _made(stack: ExitStack) -> list[Contender]:
    """One of each, which are closed with the stack."""
    made = []
    for kind in contenders():
        made.append(kind())
        stack.callback(made[-1].close)
    return made


def check(contenders: Sequence[Contender]) -> None:
    """All contenders hold the same window after every step, and find the same rows in it."""
    work = Workload(40, values=50)
    for number in range(2 * BASIC):
        batch = work.batch(number)
        for contender in contenders:
            contender.slide(contender.given(batch), number)
        for value in work.asked(5):
            found = [c.plain(c.rows(value)) for c in contenders]
            for contender, rows in zip(contenders[1:], found[1:], strict=True):
                if rows != found[0]:
                    raise AssertionError(f"{contender.name} and panes differ at {value}")


def _keep(report: Report, window: int, repeat: int) -> None:
    """How fast rows come and go, what a slide and what questions cost, in a full window."""
    work, ours = Workload(window // BASIC), ByPanes()
    point = f"{window:,} rows"
    for number in range(BASIC):
        ours.slide(work.batch(number), number)
    came, slid, asked = [], [], _Asked(ours, work)
    with _no_collection():
        for number in range(BASIC, BASIC + 4 * repeat):
            batch = work.batch(number)
            begin = time.perf_counter()
            ours.index.add(batch)
            added = time.perf_counter()
            ours.index.advance((number + 1) * MINUTE)
            done = time.perf_counter()
            came.append(done - begin)
            slid.append(done - added)
            asked.ask()
    report.timings.append(Timing("panes in and out", point, tuple(came), f"{work.rows} rows"))
    report.timings.append(Timing("panes slide", point, tuple(slid), f"{work.rows} rows"))
    rate = work.rows / statistics.median(came) / 1e6
    report.bar(f"{point}: in and out 10 M rows/s", f"{rate:.1f} M rows/s", met=rate >= 10)
    slide = statistics.median(slid) * 1e3
    report.bar(f"{point}: a slide at most 5 ms", f"{slide:.2f} ms", met=slide <= 5)
    for what, most, unit, found in asked.medians():
        is_rate = unit.endswith("/s")
        met = found >= most if is_rate else found <= most
        least = "at least" if is_rate else "at most"
        report.bar(f"{point}: {what} {least} {most:g} {unit}", f"{found:.3g} {unit}", met=met)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Python collects no garbage meanwhile, neither inside of the clock nor before it.

    To collect before each slide, of a millisecond or two, would leave nothing in the caches.
    """
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class _Asked:
    """What questions cost, each asked anew after every slide."""

    def __init__(self, ours: ByPanes, work: Workload) -> None:
        self._ours, self._work = ours, work
        self._seconds: dict[str, list[float]] = {}

    def ask(self) -> None:
        index, values = self._ours.index, self._work.asked(500)
        many = np.array(self._work.asked(100_000))
        # The first look at the values in order, after a slide, is the one that costs.
        self._time("DISTINCT", index.values)
        self._time("top-k", lambda: index.top(10))
        self._time("quantile", lambda: index.quantiles([0.5]))
        self._time("a count", lambda: [index.count(v) for v in values])
        self._time("the rows of a value", lambda: [index.rows(v) for v in values])
        self._time("look-ups in a batch", lambda: index.count(many))

    def _time(self, what: str, work: Callable[[], object]) -> None:
        begin = time.perf_counter()
        work()
        self._seconds.setdefault(what, []).append(time.perf_counter() - begin)

    def medians(self) -> Iterator[tuple[str, float, str, float]]:
        """Each question, its bar, the bar's unit, and what was measured."""
        for what, seconds in self._seconds.items():
            median = statistics.median(seconds)
            if what in ("a count", "the rows of a value"):
                yield what, 20.0, "us", median / 500 * 1e6
            elif what == "look-ups in a batch":
                yield what, 5.0, "M/s", 0.1 / median
            else:
                yield what, 1.0, "ms", median * 1e3


def _mix(report: Report, window: int, repeat: int, contenders: Sequence[Contender]) -> None:
    """Rows, evictions and look-ups together, of all contenders in turns."""
    work = Workload(window // BASIC)
    for number in range(BASIC):
        batch = work.batch(number)
        for contender in contenders:
            contender.slide(contender.given(batch), number)
    seconds: dict[str, list[float]] = {c.name: [] for c in contenders}
    for number in range(BASIC, BASIC + repeat):
        batch, asked = work.batch(number), work.asked(work.rows // ROWS_PER_LOOKUP)
        for contender in contenders:
            given = contender.given(batch)
            gc.collect()
            begin = time.perf_counter()
            contender.slide(given, number)
            for value in asked:
                contender.rows(value)
            seconds[contender.name].append(time.perf_counter() - begin)
    for name, took in seconds.items():
        report.timings.append(Timing(name, "the mix", tuple(took), f"{work.rows} rows"))
    ours = statistics.median(seconds["panes"])
    for name, least in (
        ("duckdb", 100),
        ("sqlite", 10),
        ("polars", 1),
        ("deques", 1),
        ("redis", 1),
    ):
        if name not in seconds:
            continue
        ratio = statistics.median(seconds[name]) / ours
        report.bar(f"the mix: at least {least} x {name}", f"{ratio:.1f} x", met=ratio >= least)
