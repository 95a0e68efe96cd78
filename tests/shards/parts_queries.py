"""Queries of every kind for shards that hold parts, and the rows and answers of their streams."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import panes

LATENESS = 12
WINDOWS = {
    "sums": "SELECT k, sum(x) AS a FROM s [RANGE 20 SLIDE 5 WATTR at] GROUP BY k",
    "large": "SELECT k, max(x + 1) AS a FROM s [TUMBLING 15 WATTR at] WHERE x > 3 GROUP BY k",
    "other": "SELECT max(x) AS a, count(*) AS n FROM s [RANGE 20 SLIDE 10 WATTR b]",
    "twice": "SELECT sum(x) AS a FROM (s UNION ALL s) [TUMBLING 10 WATTR at]",
    "early": "SELECT k, sum(x) AS a FROM s [TUMBLING 20 WATTR at] GROUP BY k EMIT EARLY EVERY 5",
    "per row": "SELECT i, at, k, sum(x) AS a FROM s [RANGE 10 RATTR at SLIDE 1 ROW PA k]",
}
COUNTED = {
    "all": "SELECT k, count(*) AS n, sum(x) AS a FROM s [RANGE ALL SLIDE 20 WATTR at] GROUP BY k",
    "rows": "SELECT sum(x) AS a FROM s [RANGE 20 ROWS SLIDE 5 ROWS WATTR i]",
    "partitioned": "SELECT k, sum(x) AS a FROM s [RANGE 6 ROWS SLIDE 2 ROWS WATTR i PA k] "
    "GROUP BY k",
}
"""Queries that count from the first row on, so they cannot come later."""
NEAR = "FROM s JOIN r ON s.k = r.k AND r.at BETWEEN s.at - 3 AND s.at"
OVER_SEVERAL = {
    "pairs": f"SELECT s.i, r.i AS j {NEAR}",
    "per k": f"SELECT s.k, count(*) AS n [TUMBLING 10 WATTR s.at] {NEAR} GROUP BY s.k",
    "both": "SELECT count(*) AS n, sum(x) AS a FROM (s UNION ALL r) [RANGE 20 SLIDE 5 WATTR at]",
    "of r": "SELECT k, sum(x) AS a FROM r [RANGE 30 SLIDE 10 WATTR at] GROUP BY k",
    "r by b": "SELECT sum(x) AS a FROM r [TUMBLING 20 WATTR b]",
}


def rows(seed: int, count: int = 300) -> pa.Table:
    """Rows in some disorder, but none of them late; `i` numbers them by their position."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.integers(0, 150, count))
    table = pa.table(
        {
            "at": at,
            "b": 2 * at + rng.integers(0, 3, count),
            "i": np.arange(count),
            "k": rng.integers(0, 4, count),
            "x": rng.integers(0, 9, count),
        }
    )
    return table.take(pa.array(np.argsort(at + rng.integers(0, 2, count), kind="stable")))


def batches(table: pa.Table, count: int) -> list[pa.Table]:
    size = -(-len(table) // count)
    return [table.slice(i * size, size) for i in range(count)]


def wanted_of(text: str, exact: object, streams: dict[str, pa.Table]) -> pa.Table:
    """What the oracle gives of windows from a position on."""
    plain = text.split(" EMIT")[0]
    asked = {name: table for name, table in streams.items() if f" {name} " in f"{plain} ".replace(
        "(", " ").replace(")", " ")}  # fmt: skip
    want = panes.oracle(plain, **asked)
    if exact is None:
        return want
    if "window_start" in want.schema.names:
        return want.filter(pc.greater_equal(want.column("window_start"), exact))
    assert "SLIDE 1 ROW" in text
    return want.filter(pc.greater_equal(want.column("at"), int(str(exact)) + 10 - 1))


def final(tables: list[pa.Table]) -> pa.Table:
    table = pa.concat_tables(tables)
    if "status" in table.column_names:
        table = table.filter(pc.equal(table.column("status"), "final")).drop_columns(["status"])
    return table
