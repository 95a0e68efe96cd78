"""Rows of three streams for tests of hosted joins, and the queries that are asked of them."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def stream(seed: int, rows: int = 60, seconds: int = 60) -> pa.Table:
    """Rows at whole seconds, many at the same one, some without a key, a value or a position."""
    rng = np.random.default_rng(seed)

    def holes(values: list[object], share: float = 0.1) -> list[object]:
        missing = rng.random(rows) < share
        return [None if hole else v for v, hole in zip(values, missing, strict=True)]

    at = rng.integers(0, seconds, rows).tolist()
    instants: list[object] = [START + dt.timedelta(seconds=s) for s in at]
    numbers: list[object] = (rng.integers(-8, 8, rows) / 4).tolist()
    floats = [float("nan") if rng.random() < 0.1 else v for v in numbers]
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "ts": pa.array(holes(instants, 0.05), pa.timestamp("us", "UTC")),
            "at": pa.array(holes(list(at), 0.05), pa.int64()),
            "k": pa.array(holes(rng.integers(0, 4, rows).tolist()), pa.int32()),
            "s": pa.array(holes(rng.choice(["a", "b", "é`"], rows).tolist()), pa.string()),
            "x": pa.array(holes(list(floats)), pa.float64()),
        }
    )


L, R, THIRD = stream(1), stream(2), stream(3, rows=30)

BAND = "r.at BETWEEN l.at - 3 AND l.at + 4"
EVERY_KIND = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL OUTER JOIN")
BANDS = (
    "SELECT l.id, r.x FROM l [RANGE 7 seconds WATTR ts], r [RANGE 4 seconds WATTR ts] "
    "WHERE l.k = r.k",
    "SELECT l.id AS i, r.id AS j FROM l, r WHERE r.ts > l.ts - INTERVAL 3 SECONDS "
    "AND r.ts <= l.ts AND l.s = r.s AND l.x > 0 AND r.x IS NOT NULL",
    *(f"SELECT l.id AS i, r.id AS j FROM l {kind} r ON l.k = r.k AND {BAND}"
      for kind in EVERY_KIND),
    *(f"SELECT l.id AS i, r.id AS j, l.x FROM l {kind} r ON l.k = r.k AND l.s = r.s AND {BAND} "
      "AND l.x <= r.x AND l.id % 2 = 0" for kind in EVERY_KIND),
    f"SELECT l.id, l.s FROM l SEMI JOIN r ON l.k = r.k AND {BAND} AND r.x > 0",
    f"SELECT l.id, l.s FROM l ANTI JOIN r ON l.k = r.k AND {BAND} AND r.x > 0",
    "SELECT l.id AS i, r.id AS j FROM l FULL JOIN r ON r.ts = l.ts AND r.x = l.x",
    "SELECT l.id AS i, r.id AS j FROM l JOIN r ON r.at - l.at >= 10 AND r.at <= l.at + 12",
    f"SELECT l.id AS i, r.id AS j FROM l LEFT JOIN r ON l.k = r.k AND {BAND} WHERE r.id IS NULL "
    "OR l.id > 20",
    f"SELECT * FROM l JOIN r USING (k) WHERE {BAND}",
    "SELECT k, l.id, r.s FROM l FULL JOIN r USING (k) [RANGE 9 SLIDE 3 WATTR at]",
    "SELECT l.id AS i, r.id AS j FROM l JOIN r ON l.k = r.x AND r.at <= l.at AND r.at > l.at - 9",
    "SELECT l.id AS i, r.id AS j FROM l LEFT JOIN r ON l.k = r.k AND r.at >= l.at",
    "SELECT a.id AS i, b.id AS j FROM l a [RANGE 5 WATTR at], l b [RANGE 5 WATTR at] "
    "WHERE a.k = b.k AND a.id < b.id",
    "SELECT u.id AS i, r.id AS j FROM (l UNION ALL t) u [RANGE 4 WATTR at], r [RANGE 2 WATTR at] "
    "WHERE u.k = r.k",
    "SELECT d.n AS i, r.id AS j FROM (SELECT at + 1 AS at, k, id * 2 AS n FROM l WHERE x > 0) d "
    "LEFT JOIN r ON d.k = r.k AND r.at BETWEEN d.at - 2 AND d.at + 2",
    "SELECT l.id AS i, r.id AS j, t.id AS m FROM l [RANGE 3 WATTR at], r [RANGE 3 WATTR at], "
    "t [RANGE 5 WATTR at] WHERE l.k = r.k AND r.s = t.s",
    "SELECT l.id AS i, r.id AS j, t.id AS m FROM l LEFT JOIN r ON l.k = r.k AND "
    "r.at BETWEEN l.at - 1 AND l.at + 1 LEFT JOIN t ON r.k = t.k AND t.at BETWEEN r.at AND "
    "r.at + 4",
)  # fmt: skip
ONE_STREAM = (
    "SELECT a.id AS i, b.s AS j, b.id AS m FROM l a LEFT JOIN (SELECT at, k, s AS id, x AS s FROM "
    "l WHERE x > 0) b ON a.k = b.k AND b.at BETWEEN a.at - 3 AND a.at + 4",
    "SELECT a.id AS i, b.id AS j, u.k AS m FROM l a JOIN (SELECT at + 2 AS at, k, CAST(id AS "
    "STRING) AS id FROM l WHERE id % 2 = 0) b ON a.k = b.k AND b.at BETWEEN a.at - 2 AND a.at + 2 "
    "LEFT JOIN (SELECT at, k FROM l WHERE x < 1 UNION ALL SELECT at, k FROM r) u ON u.k = a.k AND "
    "u.at BETWEEN a.at - 1 AND a.at",
    "SELECT L.x, R.id AS j FROM l R JOIN r L ON l.k = r.k AND l.at BETWEEN r.at - 3 AND r.at + 4",
    "SELECT max(a.x) AS m, max(b.x) AS n FROM l a LEFT JOIN (SELECT at, k, id AS x FROM l) b "
    "ON a.k = b.k [TUMBLING 10 WATTR at]",
)
"""One stream on several sides, as something else on each; the first three are plain SQL too."""
WINDOWS = (
    *(f"SELECT l.id AS i, r.id AS j FROM l {kind} r ON l.k = r.k [TUMBLING 5 seconds WATTR ts]"
      for kind in EVERY_KIND),
    *(f"SELECT l.id AS i, r.id AS j FROM l {kind} r ON l.s = r.s AND l.x < r.x "
      "[RANGE 9 SLIDE 4 WATTR at]" for kind in EVERY_KIND),
    "SELECT l.id FROM l SEMI JOIN r ON l.k = r.k [RANGE 9 SLIDE 4 WATTR at]",
    "SELECT l.id FROM l ANTI JOIN r ON l.k = r.k [RANGE 9 SLIDE 4 WATTR at]",
    "SELECT l.id AS i, r.id AS j FROM l FULL JOIN r ON l.k = r.k [RANGE 3 SLIDE 8 WATTR at]",
    "SELECT l.id AS i, r.id AS j FROM l FULL JOIN r ON l.k = r.k AND l.s = r.s "
    "[RANGE ALL SLIDE 20 WATTR at]",
    "SELECT l.id AS i, r.id AS j FROM l, r [TUMBLING 2 WATTR at]",
)  # fmt: skip
AS_OF = (
    "SELECT l.id, r.id AS j, r.x FROM l ASOF JOIN r [RANGE 6 seconds WATTR ts] ON l.k = r.k",
    "SELECT l.id, r.id AS j, r.x FROM l ASOF LEFT JOIN r [RANGE 6 WATTR at] ON l.k = r.k",
    "SELECT l.id, r.x FROM l ASOF LEFT JOIN r [RANGE 3 WATTR at]",
    "SELECT l.id, r.id AS j FROM l ASOF LEFT JOIN r ON l.k = r.k AND r.at <= l.at - 2 "
    "AND r.at >= l.at - 9",
    "SELECT l.id, r.id AS j FROM l ASOF JOIN r ON l.k = r.k AND r.at <= l.at",
    "SELECT l.id, r.id AS j FROM l ASOF LEFT JOIN r [RANGE 6 WATTR at] ON l.k = r.k AND r.x > l.x",
)
CHAINS = (
    "SELECT l.id, r.id AS j, t.id AS m FROM l ASOF LEFT JOIN r [RANGE 6 WATTR at] ON l.k = r.k "
    "ASOF LEFT JOIN t [RANGE 20 WATTR at] ON l.k = t.k",
    "SELECT l.id, r.id AS j, t.id AS m FROM l ASOF JOIN r [RANGE 9 seconds WATTR ts] ON l.k = r.k "
    "ASOF LEFT JOIN t ON l.k = t.k AND t.ts <= l.ts AND t.ts >= l.ts - INTERVAL '0:20' MINUTE TO "
    "SECOND",
)
ABOVE = (
    "SELECT count(*) AS n, sum(r.x) AS t [RANGE 10 SLIDE 5 WATTR l.at] FROM l [RANGE 3 WATTR at], "
    "r [RANGE 3 WATTR at] WHERE l.k = r.k",
    "SELECT l.k, max(r.x) AS top [TUMBLING 10 seconds WATTR r.ts] FROM l [RANGE 3 seconds WATTR "
    "ts], r [RANGE 3 seconds WATTR ts] WHERE l.k = r.k GROUP BY l.k HAVING count(*) > 2",
    "SELECT count(*) AS n [TUMBLING 10 WATTR max(l.at, r.at)] FROM l LEFT JOIN r ON l.k = r.k AND "
    "r.at BETWEEN l.at - 3 AND l.at + 4",
    "SELECT count(*) AS n [TUMBLING 10 WATTR min(l.at, r.at)] FROM l FULL JOIN r ON l.k = r.k AND "
    "r.at BETWEEN l.at - 3 AND l.at + 4",
    "SELECT l.s, count(*) AS n FROM l JOIN r ON l.k = r.k [RANGE 10 SLIDE 5 WATTR at] "
    "GROUP BY l.s",
    "SELECT l.at, count(*) AS n, sum(r.id) AS t FROM l [RANGE 3 WATTR at], r [RANGE 3 WATTR at] "
    "WHERE l.k = r.k GROUP BY l.at",
    "SELECT l.at, r.at AS o, count(*) AS n FROM l [RANGE 3 WATTR at], r [RANGE 3 WATTR at] "
    "WHERE l.k = r.k GROUP BY l.at, r.at",
)  # fmt: skip
NEAR_AT = "FROM l JOIN r ON l.k = r.k AND r.at BETWEEN l.at - 3 AND l.at + 4"
REGISTERED = {
    "pairs": f"SELECT l.id AS i, r.id AS j {NEAR_AT} WHERE l.x > 0",
    "sums": f"SELECT l.s, count(*) AS n, sum(r.x) AS t [RANGE 10 SLIDE 5 WATTR l.at] {NEAR_AT} "
    "GROUP BY l.s HAVING count(*) > 1",
    "later": f"SELECT count(*) AS n [TUMBLING 10 WATTR max(l.at, r.at)] {NEAR_AT}",
    "boxes": f"SELECT l.at, r.at AS o, count(*) AS n {NEAR_AT} GROUP BY l.at, r.at",
    "lone": f"SELECT l.id AS i, r.id AS j {NEAR_AT}".replace("JOIN", "LEFT JOIN"),
    "windows": "SELECT l.s, count(*) AS n FROM l JOIN r ON l.k = r.k [RANGE 10 SLIDE 5 WATTR at] "
    "GROUP BY l.s",
}
"""Queries that are registered together; the first four share a join."""


def batches(table: pa.Table, count: int = 5) -> list[pa.Table]:
    """Rows nearly in order, as batches."""
    order = table.append_column("by", pa.array([v or 0 for v in table["at"].to_pylist()]))
    rows = order.sort_by("by").drop_columns(["by"])
    each = -(-len(rows) // count)
    return [rows.slice(first, each) for first in range(0, len(rows), each)]
