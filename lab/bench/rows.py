"""Windows that count rows, over rows in no order: one per row, and partitioned rows.

Polars and DuckDB sort before they can answer, and that is part of their time as the numbering of
rows is part of ours. DuckDB runs on fewer rows; compare rows per second.
"""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

import panes
from lab.bench.measure import Report, Timing, timed_in_turns
from panes.reference.compare import difference
from panes.sample_streams import bids

PER_ROW = (
    "SELECT item, ts, max(price) AS high, count(*) AS n, sum(price) AS total "
    "FROM bids [RANGE 5 minutes RATTR ts SLIDE 1 ROW PA item]"
)
PARTITIONED = (
    "SELECT item, max(price) AS high, count(*) AS n, sum(price) AS total "
    "FROM bids [RANGE 1000 ROWS SLIDE 10 ROWS PA item]"
)
FEWER = 500_000


def unsorted_bids(rows: int) -> pa.Table:
    """Bids in no order."""
    order = np.random.default_rng(3).permutation(rows)
    return bids(rows).take(pa.array(order)).combine_chunks()


def per_row_by_polars(table: pa.Table) -> pa.Table:
    """Sort, then `rolling` for every item."""
    frame = pl.DataFrame(table).sort("item", "ts")
    rolled = frame.rolling(index_column="ts", period="5m", group_by="item").agg(
        pl.col("price").max().alias("high"),
        pl.len().cast(pl.Int64).alias("n"),
        pl.col("price").sum().alias("total"),
    )
    return rolled.to_arrow()


def per_row_by_duckdb(table: pa.Table) -> pa.Table:
    """A window function over the positions of each item."""
    return _duckdb(
        table,
        """SELECT item, ts, max(price) OVER w AS high, count(*) OVER w AS n,
                  sum(price) OVER w AS total
           FROM bids WINDOW w AS (PARTITION BY item ORDER BY epoch_us(ts)
                                  RANGE BETWEEN 299999999 PRECEDING AND CURRENT ROW)""",
    )


def partitioned_by_duckdb(table: pa.Table) -> pa.Table:
    """Number the rows of each item, aggregate a thousand at every row, keep every tenth."""
    numbered = table.append_column("seq", pa.array(np.arange(len(table))))
    return _duckdb(
        numbered,
        """SELECT rank - 1000 AS window_start, rank AS window_end, item, high, n, total FROM (
               SELECT item, row_number() OVER (PARTITION BY item ORDER BY seq) AS rank,
                      max(price) OVER w AS high, count(*) OVER w AS n, sum(price) OVER w AS total
               FROM bids WINDOW w AS (PARTITION BY item ORDER BY seq
                                      ROWS BETWEEN 999 PRECEDING AND CURRENT ROW))
           WHERE rank % 10 = 0""",
    )


STEPS = 3
"""How often `run` says what it does."""


def run(rows: int, repeat: int, say: Callable[[str], None]) -> Report:
    """Check, then time, all contenders."""
    report = Report("rows", f"panes bench rows --rows {rows} --repeat {repeat}")
    say("checking that all contenders give the same answers")
    small = unsorted_bids(min(rows, FEWER))
    _require_same(per_row_by_polars(small), panes.sql(PER_ROW, bids=small))
    _require_same(per_row_by_duckdb(small), panes.sql(PER_ROW, bids=small))
    _require_same(partitioned_by_duckdb(small), panes.sql(PARTITIONED, bids=small))
    table = unsorted_bids(rows)
    say("timing one window per row, 5 minutes")
    one = "5 minutes, per row"
    seconds = timed_in_turns(
        {
            "panes": lambda: panes.sql(PER_ROW, bids=table),
            "polars": lambda: per_row_by_polars(table),
        },
        repeat=repeat,
    )
    taken = {name: Timing(name, one, s, f"{rows} rows") for name, s in seconds.items()}
    report.timings += taken.values()
    ours, polars = taken["panes"].median, taken["polars"].median
    report.time("duckdb", one, lambda: per_row_by_duckdb(small), 1, len(small))
    say("timing partitioned rows, 1000/10")
    many = "1000/10 rows, by item"
    ranked = report.time("panes", many, lambda: panes.sql(PARTITIONED, bids=table), repeat, rows)
    report.time("duckdb", many, lambda: partitioned_by_duckdb(small), 1, len(small))
    rate, ratio = rows / ours / 1e6, polars / ours
    report.bar("per row: at least as fast as Polars", f"{ratio:.2f} x", met=ratio >= 1)
    report.bar("per row: at least 5 M rows/s", f"{rate:.1f} M rows/s", met=rate >= 5)
    rate = rows / ranked / 1e6
    report.bar("partitioned: at least 10 M rows/s", f"{rate:.1f} M rows/s", met=rate >= 10)
    return report


def _duckdb(table: pa.Table, text: str) -> pa.Table:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("bids", table)
    return connection.sql(text).to_arrow_table()


def _require_same(theirs: pa.Table, ours: pa.Table) -> None:
    names = ours.column_names
    columns = [theirs.column(n).cast(ours.schema.field(n).type) for n in names]
    by = [(n, "ascending") for n in names]
    found = difference(pa.table(columns, names=names).sort_by(by), ours.sort_by(by))
    if found is not None:
        raise AssertionError(f"a rival disagrees with panes: {found}")
