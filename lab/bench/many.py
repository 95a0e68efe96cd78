"""Many queries over one stream: what ten thousand cost against one.

A register reads the stream once, keeps panes once, and answers all due windows together. The mix:
ranges up to an hour, slides of 10 seconds to 5 minutes (half of them from 10, 15, 30, 60 and 300
seconds, half any whole second), ten aggregates, five filters; seeded. The stream comes in one push
and then ends, as a table does, or in twenty, as a stream does; every answer is collected, as a push
gives it and, in a run of its own, cut out query by query. One query is what one of the mix costs in
a register of its own, on average over the first ten, with the stream in as many pushes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

import panes
from lab.bench.measure import Report, Timing, timed_in_turns
from lab.papers.plain_scan import PlainScan
from panes.axis import SECOND
from panes.progress.timers import Timers
from panes.reference.compare import difference
from panes.sample_streams import bids
from panes.windows.cut import Edges

AGGREGATES = (
    "count(*)",
    "sum(price)",
    "avg(price)",
    "min(price)",
    "max(price)",
    "var_pop(price)",
    "stddev(price)",
    "sum(quantity)",
    "max(quantity)",
    "avg(quantity)",
)
FILTERS = (
    "",
    "WHERE price > 100",
    "WHERE price <= 40",
    "WHERE quantity > 5",
    "WHERE quantity > 2 AND price > 60",
)
COMMON_SLIDES = (10, 15, 30, 60, 300)
COUNTS = (1, 10, 100, 1_000, 10_000)
PUSHES = (1, 20)
SINGLES = 10
LATENESS = "10 seconds"
TICK = SECOND // 10


def queries(count: int, *, seed: int = 5) -> dict[str, str]:
    """The mix, by name; the first ones are the same whatever the count."""
    rng = np.random.default_rng(seed)
    return {f"q{i}": _query(rng) for i in range(count)}


def _query(rng: np.random.Generator) -> str:
    common = int(rng.choice(COMMON_SLIDES))
    slide = common if rng.random() < 0.5 else int(rng.integers(10, 301))
    size = int(rng.integers(slide, 3_601))
    aggregate = AGGREGATES[int(rng.integers(len(AGGREGATES)))]
    where = FILTERS[int(rng.integers(len(FILTERS)))]
    return (
        f"SELECT item, {aggregate} AS a FROM bids [RANGE {size} seconds SLIDE {slide} seconds "
        f"WATTR ts] {where} GROUP BY item"
    )


def stream(rows: int, *, keys: int) -> pa.Table:
    """An hour of bids with a quantity."""
    table = bids(rows, keys=keys, hours=1)
    quantity = np.random.default_rng(3).integers(1, 9, rows)
    return table.append_column("quantity", pa.array(quantity))


def registered(asked: dict[str, str], schema: pa.Schema) -> panes.Register:
    """A register with these queries, ready for the first batch."""
    reg = panes.register("bids", lateness=LATENESS, max_ahead=None, schema=schema)
    for name, text in asked.items():
        reg.add(name, text)
    return reg


def run_through(
    reg: panes.Register, table: pa.Table, *, pushes: int = 1
) -> list[Mapping[str, pa.Table]]:
    """All answers, as each push gave them."""
    length = -(-len(table) // pushes)
    batches = (table.slice(begin, length) for begin in range(0, len(table), length))
    return [*map(reg.push, batches), reg.finish()]


def check(table: pa.Table, asked: dict[str, str], sample: Sequence[str], *, pushes: int = 1) -> int:
    """Some queries of a register against each of them alone; gives the number of all answers."""
    found = run_through(registered(asked, table.schema), table, pushes=pushes)
    for name in sample:
        want = panes.sql(asked[name], bids=table)
        given = (answers[name] for answers in found if name in answers)
        got = pa.concat_tables([want.schema.empty_table(), *given])
        said = difference(got, want)
        if said is not None:
            raise AssertionError(f"{asked[name]} differs from itself alone: {said}")
    return sum(len(t) for answers in found for t in answers.values())


STEPS = 3 + len(PUSHES)
"""How often `run` says what it does."""


def run(rows: int, repeat: int, say: Callable[[str], None]) -> Report:
    """Check, then time, registers of one to ten thousand queries."""
    report = Report("many", f"panes bench many --rows {rows} --repeat {repeat}")
    table = stream(rows, keys=10)
    say("checking answers against each query alone")
    small = stream(min(rows, 200_000), keys=10)
    for pushes in PUSHES:
        for count in COUNTS[:3]:
            check(small, queries(count), list(queries(count)), pushes=pushes)
        check(table, queries(COUNTS[-1]), list(queries(5)), pushes=pushes)
    for pushes in PUSHES:
        _compare(report, table, repeat, pushes, say)
    say("timing 100 queries over 1,000 keys")
    wide, asked = stream(rows, keys=1_000), queries(100)
    answers = check(wide, asked, list(asked)[:3])
    seconds = _time(report, wide, {"100 queries, 1,000 keys": asked}, repeat)
    rate = answers / min(seconds.values()) / 1e6
    what = f"1,000 keys, {answers / 1e6:.1f} M answers: at least 10 M answers/s"
    report.bar(what, f"{rate:.1f} M answers/s", met=rate >= 10)
    say("timing due windows among 10,000 sliding groups")
    faster = _due_windows(report, repeat)
    report.bar("due windows at least 10 x the plain scan", f"{faster:.0f} x", met=faster >= 10)
    return report


def _compare(
    report: Report, table: pa.Table, repeat: int, pushes: int, say: Callable[[str], None]
) -> None:
    """Time registers of one to ten thousand queries, with the stream in so many pushes."""
    how = "one push" if pushes == 1 else f"{pushes} pushes"
    say(f"timing 1 to 10,000 queries over one stream in {how}")
    contenders = {f"{n:,} queries": queries(n) for n in COUNTS[1:]}
    singles = {f"one query, {name}": {name: text} for name, text in queries(SINGLES).items()}
    cut_out = {f"{COUNTS[-1]:,} queries, cut out": queries(COUNTS[-1])}
    seconds = _time(report, table, contenders | singles | cut_out, repeat, pushes, cut_out)
    one = float(np.mean([seconds[label] for label in singles]))
    for count, most in ((1_000, 3), (10_000, 12)):
        ratio = seconds[f"{count:,} queries"] / one
        what = f"{count:,} queries at most {most} x one, {how}"
        report.bar(what, f"{ratio:.1f} x", met=ratio <= most)


def _time(
    report: Report,
    table: pa.Table,
    contenders: Mapping[str, dict[str, str]],
    repeat: int,
    pushes: int = 1,
    cut_out: Container[str] = (),
) -> dict[str, float]:
    """The least seconds from the first row to the last answer, of registers that run in turns.

    Queries are added before. Those that are `cut_out` give each query its own table too.
    """

    def runs(label: str) -> Callable[[], None]:
        waiting = [registered(contenders[label], table.schema) for _ in range(repeat + 1)]

        def run() -> None:
            found = run_through(waiting.pop(), table, pushes=pushes)
            if label in cut_out:
                [dict(answers) for answers in found]

        return run

    timed = timed_in_turns({label: runs(label) for label in contenders}, repeat=repeat)
    note = f"{len(table)} rows, {pushes} push{'es' * (pushes > 1)}"
    for label, seconds in timed.items():
        report.timings.append(Timing(label, next(iter(contenders[label])), seconds, note))
    return {label: min(seconds) for label, seconds in timed.items()}


def _due_windows(report: Report, repeat: int, groups: int = 10_000, steps: int = 3_600) -> float:
    """How much faster timers find due groups than testing every group, ten steps a second."""
    rng = np.random.default_rng(2)
    families = list(_families(rng, groups))
    scan = PlainScan(families)

    timers = Timers(at=0)
    for family in families:
        timers.add(family)

    def by_timers() -> int:
        first = timers.at
        return sum(len(timers.ring(first + step * TICK)) for step in range(1, steps + 1))

    def by_scan() -> int:
        return sum(len(scan.find(a, b)) for a, b in pairwise(range(0, (steps + 1) * TICK, TICK)))

    if by_timers() != by_scan():
        raise AssertionError("timers and the plain scan name different groups")
    seconds = timed_in_turns({"timers": by_timers, "plain scan": by_scan}, repeat=repeat)
    for name, taken in seconds.items():
        report.timings.append(Timing(name, f"{groups:,} groups", taken, f"{steps} rows"))
    return min(seconds["plain scan"]) / min(seconds["timers"])


def _families(rng: np.random.Generator, groups: int) -> Iterator[Edges]:
    """Different slides and phases, so that no two groups are one."""
    seen: set[Edges] = set()
    while len(seen) < groups:
        slide = int(rng.integers(10_000, 300_001)) * 1_000
        family = Edges(slide, int(rng.integers(slide)))
        if family not in seen:
            seen.add(family)
            yield family
