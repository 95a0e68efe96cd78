"""In-process: sliding windows over an Arrow table, against Polars, DuckDB and a naive recompute.

Every contender starts from the same Arrow table and ends with a table of all answers. The naive
recompute and DuckDB do work in proportion to the overlap, so they run on fewer rows, and their
times are compared per row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

import panes
from lab.bench.measure import Report
from panes.reference.compare import difference
from panes.sample_streams import bids

QUERY = (
    "SELECT item, max(price) AS high, count(*) AS n, avg(price) AS mean "
    "FROM bids [RANGE {size} seconds SLIDE {slide} seconds WATTR ts] GROUP BY item"
)
COLUMNS = ["window_start", "window_end", "item", "high", "n", "mean"]
ORDER = [("window_end", "ascending"), ("item", "ascending")]


def by_panes(table: pa.Table, *, size: int, slide: int) -> pa.Table:
    """Our own."""
    return panes.sql(QUERY.format(size=size, slide=slide), bids=table)


def by_polars(table: pa.Table, *, size: int, slide: int) -> pa.Table:
    """Polars `group_by_dynamic`, its own way to say overlapping windows per key."""
    frame = pl.DataFrame(table)
    grouped = frame.group_by_dynamic(
        "ts", every=f"{slide}s", period=f"{size}s", group_by="item", closed="left"
    )
    answers = grouped.agg(
        pl.col("price").max().alias("high"),
        pl.len().cast(pl.Int64).alias("n"),
        pl.col("price").mean().alias("mean"),
    )
    return answers.to_arrow()


def by_duckdb(table: pa.Table, *, size: int, slide: int) -> pa.Table:
    """DuckDB: every row once per window it falls into, then GROUP BY."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("bids", table)
    return connection.sql(
        f"""
        SELECT make_timestamp((w + 1) * {slide}000000 - {size}000000) AS window_start,
               make_timestamp((w + 1) * {slide}000000) AS window_end,
               item, max(price) AS high, count(*) AS n, avg(price) AS mean
        FROM (
            SELECT item, price, unnest(generate_series(
                epoch_us(ts) // {slide}000000, (epoch_us(ts) + {size}000000) // {slide}000000 - 1
            )) AS w
            FROM bids
        )
        GROUP BY w, item
        """
    ).to_arrow_table()


def by_recompute(table: pa.Table, *, size: int, slide: int) -> pa.Table:
    """Every window from its rows, one after the other: slice by time, group, aggregate."""
    at = table.column("ts").cast(pa.int64()).to_numpy()
    first = at[0] // (slide * 10**6)
    last = (at[-1] + size * 10**6) // (slide * 10**6)
    answers = []
    for w in range(first, last):
        end = (w + 1) * slide * 10**6
        low, high = at.searchsorted([end - size * 10**6, end])
        inside = table.slice(low, high - low)
        if len(inside):
            group = inside.group_by("item").aggregate(
                [("price", "max"), ("price", "count"), ("price", "mean")]
            )
            edges = [
                pa.array([e] * len(group), table.schema.field("ts").type)
                for e in (end - size * 10**6, end)
            ]
            answers.append(pa.table([*edges, *group.columns], names=COLUMNS))
    return pa.concat_tables(answers)


def normal(answers: pa.Table) -> pa.Table:
    """Answers of any contender in one shape and order."""
    utc = pa.timestamp("us", "UTC")
    columns = [answers.column(c).cast(utc) for c in COLUMNS[:2]]
    columns += [answers.column("item").cast(pa.int64()), *(answers.column(c) for c in COLUMNS[3:])]
    return pa.table(columns, names=COLUMNS).sort_by(ORDER)


STEPS = 4
"""How often `run` says what it does."""


def run(rows: int, repeat: int, say: Callable[[str], None]) -> Report:
    """Check, then time, all contenders."""
    report = Report("in-process", f"panes bench in-process --rows {rows} --repeat {repeat}")
    table = bids(rows)
    small = bids(min(rows, 200_000))
    say("checking that all contenders give the same answers")
    _check(small)
    say("timing the main point: 1 h / 10 s")
    main = {"size": 3_600, "slide": 10}
    ours = report.time("panes", "3600/10", lambda: by_panes(table, **main), repeat, rows)
    polars = report.time(
        "polars", "3600/10", lambda: by_polars(table, **main), max(repeat // 2, 1), rows
    )
    small_rows = len(small)
    report.time("duckdb", "3600/10", lambda: by_duckdb(small, **main), 1, small_rows)
    report.time("recompute", "3600/10", lambda: by_recompute(small, **main), 1, small_rows)
    say("timing the overlap from 10 to 360")
    flat = [
        report.time(
            "panes",
            f"{10 * k}/10",
            partial(by_panes, table, size=10 * k, slide=10),
            repeat,
            rows,
        )
        for k in (1, 10, 60, 360)
    ]
    rate, ratio = rows / ours / 1e6, polars / ours
    report.bar("1 h / 10 s: at least 20 M rows/s", f"{rate:.1f} M rows/s", met=rate >= 20)
    report.bar("at least 8 x Polars group_by_dynamic", f"{ratio:.1f} x", met=ratio >= 8)
    growth = flat[3] / flat[1]
    report.bar("overlap 10 to 360 costs at most 1.5 x", f"{growth:.2f} x", met=growth <= 1.5)
    say("counting what is kept")
    _memory(report)
    return report


def _check(table: pa.Table) -> None:
    """All contenders give the same answers, at an even and at an odd overlap."""
    for size, slide in ((600, 60), (70, 30)):
        ours = by_panes(table, size=size, slide=slide)
        for rival in (by_duckdb, by_recompute):
            _require_same(rival.__name__, rival(table, size=size, slide=slide), ours)
    ours = by_panes(table, size=600, slide=60)
    theirs = by_polars(table, size=600, slide=60)
    length = pa.scalar(600 * 10**6, pa.duration("us"))
    edges = {"window_start": theirs["ts"], "window_end": pc.add(theirs["ts"], length)}
    named = pa.table({**edges, **{c: theirs[c] for c in COLUMNS[2:]}})
    _require_same("by_polars", named, _from_first_row_on(ours, table, 60))


def _from_first_row_on(answers: pa.Table, table: pa.Table, slide: int) -> pa.Table:
    """Without windows that begin before a key's first row, which Polars does not give."""
    firsts = table.group_by("item").aggregate([("ts", "min")])
    floors = pc.floor_temporal(firsts["ts_min"], multiple=slide, unit="second")
    known = pa.table({"item": firsts["item"], "floor": floors})
    joined = answers.join(known, "item")
    complete = joined.filter(pc.greater_equal(joined["window_start"], joined["floor"]))
    return complete.select(COLUMNS)


def _require_same(rival: str, theirs: pa.Table, ours: pa.Table) -> None:
    found = difference(normal(theirs), normal(ours))
    if found is not None:
        raise AssertionError(f"{rival} disagrees with panes: {found}")


def _memory(report: Report) -> None:
    """State after the same panes and keys, filled by ten times the rows."""
    sizes = []
    for rows in (200_000, 2_000_000):
        query = panes.open(QUERY.format(size=3_600, slide=10))
        table = bids(rows, keys=100, hours=1)
        for batch in table.to_batches(max_chunksize=100_000):
            query.push(bids=batch)
        query.punctuate(bids=0)
        sizes.append(query.state["bytes"])
        query.finish()
    growth = sizes[1] / sizes[0]
    what = "memory follows panes x keys: 10 x the rows, the same panes and keys"
    report.bar(what, f"{growth:.2f} x the bytes ({sizes[0]:,} to {sizes[1]:,})", met=growth <= 1.5)
