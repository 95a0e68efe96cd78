"""Joins in one process: a band join of two Arrow tables, against DuckDB and Polars.

Every contender starts from the same two tables and ends with a table of all pairs. A tenth of the
rows comes out of order by up to a second, and a row has about one partner. Memory is compared with
the two joins that give their pairs in order.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

import panes
from lab.bench.measure import Report, timed_in_turns
from lab.papers.order_preserving import InputBufferedJoin, OutputBufferedJoin
from panes.errors import WrongAnswerError
from panes.join.oa_join import OAJoin
from panes.join.rule import Arrivals, JoinRule, Progress
from panes.windows.partners import Band

KEYS = 100_000
SECOND = 1_000_000
SKEWS = (0, 1, 10, 100)
QUERY = "SELECT l.id, r.x FROM l [RANGE {band} WATTR ts], r [RANGE {band} WATTR ts] WHERE l.k = r.k"
BAND = "SELECT l.id, r.x FROM l JOIN r ON r.ts BETWEEN l.ts - 1000000 AND l.ts + 1000000"


def streams(rows: int, *, keys: int, seed: int = 1) -> tuple[pa.Table, pa.Table, int]:
    """Two streams of a million rows in a thousand seconds, and the band of one partner a row."""
    rng = np.random.default_rng(seed)
    span = rows * 1_000
    sides = []
    for column in ("id", "x"):
        at = np.sort(rng.integers(0, span, rows))
        late = rng.random(rows) < 0.1
        at[late] -= rng.integers(0, 1_000_000, int(late.sum()))
        values = np.arange(rows) if column == "id" else rng.random(rows)
        sides.append(pa.table({"ts": at, "k": rng.integers(0, keys, rows), column: values}))
    return sides[0], sides[1], max(span * keys // rows // 2, 1)


def by_panes(left: pa.Table, right: pa.Table, band: int) -> pa.Table:
    """Our own."""
    return panes.sql(QUERY.format(band=band), l=left, r=right)


def by_duckdb(left: pa.Table, right: pa.Table, band: int) -> pa.Table:
    """DuckDB's join on the key with the band as a condition."""
    connection = duckdb.connect()
    connection.register("l", left)
    connection.register("r", right)
    return connection.sql(
        f"SELECT l.id, r.x FROM l JOIN r ON l.k = r.k AND r.ts >= l.ts - {band} "
        f"AND r.ts < l.ts + {band}"
    ).to_arrow_table()


def by_polars(left: pa.Table, right: pa.Table, band: int) -> pa.Table:
    """Polars: a hash join on the key, then a filter."""
    joined = pl.DataFrame(left).lazy().join(pl.DataFrame(right).lazy(), on="k")
    near = (pl.col("ts_right") >= pl.col("ts") - band) & (pl.col("ts_right") < pl.col("ts") + band)
    return joined.filter(near).select("id", "x").collect().to_arrow()


def band_by_duckdb(left: pa.Table, right: pa.Table) -> pa.Table:
    """DuckDB's join by the band alone."""
    connection = duckdb.connect()
    connection.register("l", left)
    connection.register("r", right)
    return connection.sql(
        "SELECT l.id, r.x FROM l JOIN r ON r.ts BETWEEN l.ts - 1000000 AND l.ts + 1000000"
    ).to_arrow_table()


STEPS = 6
"""How often `run` says what it does."""


def run(rows: int, repeat: int, say: Callable[[str], None]) -> Report:
    """Check, then time, all contenders."""
    report = Report("join", f"panes bench join --rows {rows} --repeat {repeat}")
    say("checking that all contenders give the same pairs")
    small = streams(min(rows, 200_000), keys=KEYS // 25)
    for rival in (by_duckdb, by_polars):
        _require_same(rival.__name__, rival(*small), by_panes(*small))
    _keyed(report, rows, repeat, say)
    _pure_band(report, rows, repeat, say)
    _hot_key(report, min(rows, 500_000), repeat, say)
    _promises(report, say)
    _memory(report, say)
    return report


def _keyed(report: Report, rows: int, repeat: int, say: Callable[[str], None]) -> None:
    say(f"timing {rows:,} rows a side, {KEYS:,} keys")
    both = streams(rows, keys=KEYS)
    seconds = _in_turns(
        report,
        f"{KEYS:,} keys",
        2 * rows,
        {
            "panes": lambda: by_panes(*both),
            "duckdb": lambda: by_duckdb(*both),
            "polars": lambda: by_polars(*both),
        },
        repeat,
    )
    rate, ratio = 2 * rows / seconds["panes"] / 1e6, seconds["duckdb"] / seconds["panes"]
    report.bar("keyed band: at least 8 M input rows/s", f"{rate:.1f} M rows/s", met=rate >= 8)
    report.bar("keyed band: at least 4 x DuckDB", f"{ratio:.1f} x", met=ratio >= 4)


def _pure_band(report: Report, rows: int, repeat: int, say: Callable[[str], None]) -> None:
    many, few = min(rows, 500_000), min(rows, 500_000) // 5
    say(f"timing a pure band of {many:,} x {few:,} rows, one second to both sides")
    rng = np.random.default_rng(2)
    span = many * 200_000
    left = pa.table({"ts": rng.integers(0, span, many), "id": np.arange(many)})
    right = pa.table({"ts": rng.integers(0, span, few), "x": rng.random(few)})
    _require_same("duckdb", band_by_duckdb(left, right), panes.sql(BAND, l=left, r=right))
    seconds = _in_turns(
        report,
        "pure band",
        many + few,
        {
            "panes": lambda: panes.sql(BAND, l=left, r=right),
            "duckdb": lambda: band_by_duckdb(left, right),
        },
        repeat,
    )
    ratio = seconds["duckdb"] / seconds["panes"]
    report.bar("pure band: at least 5 x DuckDB", f"{ratio:.1f} x", met=ratio >= 5)


def _hot_key(report: Report, rows: int, repeat: int, say: Callable[[str], None]) -> None:
    say("timing one hot key against many, with about ten partners a row")
    costs = {}
    for keys in (1, 10_000):
        left, right, band = streams(rows, keys=keys)
        pairs = len(by_panes(left, right, 10 * band))
        point = f"{keys:,} key{'s' * (keys > 1)}"
        work = partial(by_panes, left, right, 10 * band)
        costs[keys] = _in_turns(report, point, 2 * rows, {"panes": work}, repeat)["panes"] / pairs
    ratio = costs[1] / costs[10_000]
    report.bar("one hot key costs no more per pair than many", f"{ratio:.2f} x", met=ratio <= 1.05)


def _promises(report: Report, say: Callable[[str], None]) -> None:
    say("timing promises that purge nothing")
    worst = 0.0
    for rows in (100_000, 3_000_000):
        left, right, _ = streams(rows, keys=KEYS)
        query = panes.open(QUERY.format(band=10**12))
        query.push(l=left, r=right.slice(0, 0))
        query.punctuate(r=-2_000_000)
        seconds: list[float] = []
        for at in range(200):
            begin = time.perf_counter()
            query.punctuate(r=-1_000_000 + at)
            seconds.append(time.perf_counter() - begin)
        worst = max(
            worst, report.add("panes", f"a promise over {rows:,} rows", tuple(seconds), rows)
        )
    report.bar("a promise that purges nothing: at most 1 ms", f"{worst * 1e3:.2f} ms",
               met=worst <= 1e-3)  # fmt: skip


def _memory(report: Report, say: Callable[[str], None]) -> None:
    say("comparing the memory of joins in any order and in order, one side up to 100 s behind")
    worst = 0.0
    for skew in SKEWS:
        peaks, pairs = {}, set()
        for join in (OAJoin, OutputBufferedJoin, InputBufferedJoin):
            peaks[join], found = _peak(join(JoinRule(Band(-SECOND, SECOND))), skew)
            pairs.add(found)
        if len(pairs) > 1:
            raise WrongAnswerError(f"joins give {pairs} pairs at a skew of {skew} s")
        ratio = peaks[OAJoin] / min(peaks[OutputBufferedJoin], peaks[InputBufferedJoin])
        worst = max(worst, ratio)
    report.bar(
        f"memory at most that of both ordered joins, skews of {SKEWS[0]} to {SKEWS[-1]} s",
        f"{worst:.2f} x the smaller at the worst",
        met=worst <= 1,
    )


def _peak(join: OAJoin | OutputBufferedJoin | InputBufferedJoin, skew: int) -> tuple[int, int]:
    """The most bytes that a join stores between its steps of a second, and how many pairs it gives.

    The right side comes `skew` seconds after the left one.
    """
    sides = [side.sort_by("ts") for side in streams(200_000, keys=1_000)[:2]]
    peak, pairs, before = 0, 0, Progress()
    for second in range(-1, 201 + skew):
        rows, promised = [], []
        for side, behind in zip(sides, (0, skew), strict=True):
            begin, end = ((second + more - behind) * SECOND for more in (0, 1))
            at = side["ts"].to_numpy()
            first, last = np.searchsorted(at, [begin, end])
            part = side.slice(first, last - first).combine_chunks()
            columns = tuple(part[name].combine_chunks() for name in part.column_names)
            rows.append(Arrivals(at[first:last], (columns[1],), columns))
            promised.append(end)
        after = Progress(*promised)
        pairs += sum(len(joined) for joined in join.step(rows[0], rows[1], before, after))
        peak, before = max(peak, join.nbytes), after
    return peak, pairs


def _in_turns(
    report: Report, point: str, rows: int, work: dict[str, Callable[[], object]], repeat: int
) -> dict[str, float]:
    """Time contenders in turns; gives the median of each."""
    found = {}
    for name, seconds in timed_in_turns(work, repeat=repeat).items():
        found[name] = report.add(name, point, seconds, rows)
    return found


def _require_same(rival: str, theirs: pa.Table, ours: pa.Table) -> None:
    order = [("id", "ascending"), ("x", "ascending")]
    if not theirs.sort_by(order).equals(ours.sort_by(order)):
        raise WrongAnswerError(f"{rival} gives other pairs: {len(theirs)} and {len(ours)}")
