"""Queries of every kind that can be kept in a folder, and a stream of rows for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import panes


class Kind(NamedTuple):
    """A query and its options."""

    text: str
    options: Mapping[str, Any]


def _sums(window: str, of: str = "t") -> str:
    return f"SELECT k, sum(x) AS a, count(*) AS n FROM {of} {window} GROUP BY k"


_OVERLAPPING = "[RANGE 10 SLIDE 5 WATTR ts]"
_LATE: Mapping[str, Any] = {"lateness": 3}
_WITHIN_5 = "a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + 5"
_HOURLY = f"({_sums('[TUMBLING 5 WATTR ts]')})"

KINDS: dict[str, Kind] = {
    "panes": Kind(_sums(_OVERLAPPING), _LATE),
    "holistic": Kind(
        "SELECT k, median(x) AS m, count(DISTINCT s) AS d, max_by(s, x) AS b "
        f"FROM t {_OVERLAPPING} GROUP BY k",
        _LATE,
    ),
    "sketches": Kind(
        f"SELECT k, approx_count_distinct(s) AS d, approx_quantile(x, 0.5) AS q FROM t "
        f"{_OVERLAPPING} GROUP BY k",
        _LATE,
    ),
    "your own": Kind(
        f"SELECT k, spread(x) AS w, middle(x) AS m FROM t {_OVERLAPPING} GROUP BY k",
        {
            **_LATE,
            "aggregates": [
                panes.CustomAggregate(
                    name="spread",
                    lift=lambda x: np.stack([x, -x]),
                    combine=np.maximum,
                    lower=lambda partial: partial[0] + partial[1],
                    empty=(-np.inf, -np.inf),
                    type=pa.float64(),
                ),
                panes.WindowFunction(
                    name="middle",
                    function=lambda values: values[len(values) // 2].as_py(),
                    type=pa.float64(),
                ),
            ],
        },
    ),
    "keys of text": Kind(f"SELECT s, k, max(x) AS m FROM t {_OVERLAPPING} GROUP BY s, k", _LATE),
    **{
        store: Kind(_sums(_OVERLAPPING), {**_LATE, "store": store})
        for store in ("eager", "buffered", "adaptive", "adaptive-panes")
    },
    "so many rows late": Kind(_sums(_OVERLAPPING), {"rows_late": 7}),
    "late rows dropped": Kind(_sums(_OVERLAPPING), {**_LATE, "late": "drop", "why": True}),
    "revised": Kind(_sums(_OVERLAPPING), {**_LATE, "late": "revise", "revise_within": 20}),
    "early": Kind(_sums(_OVERLAPPING) + " EMIT EARLY EVERY 7", _LATE),
    "slow flush": Kind(_sums(_OVERLAPPING), {**_LATE, "flush": panes.SlowFlush(2)}),
    "lazy flush": Kind(_sums(_OVERLAPPING), {**_LATE, "flush": panes.LazyFlush(9)}),
    "punctuation in a column": Kind(_sums(_OVERLAPPING), {"punctuation": "low"}),
    "far ahead": Kind(_sums(_OVERLAPPING), {**_LATE, "max_ahead": 60}),
    "per row": Kind("SELECT k, ts, sum(x) AS a FROM t [RANGE 5 SLIDE 1 ROW PA k WATTR ts]", _LATE),
    "per third row": Kind("SELECT ts, sum(x) AS a FROM t [RANGE 5 SLIDE 3 ROWS WATTR ts]", _LATE),
    "bins": Kind(
        "SELECT ts, sum(x) AS a FROM t [RANGE 5 SLIDE 1 ROW WATTR ts]", {**_LATE, "store": "bins"}
    ),
    "rows": Kind(_sums("[ROWS 8 SLIDE 3 ROWS]"), {}),
    "partitioned rows": Kind(_sums("[RANGE 5 ROWS SLIDE 2 ROWS PA k]"), {}),
    "rows by a column": Kind(_sums("[ROWS 8 SLIDE 3 ROWS WATTR ts]"), _LATE),
    "landmark": Kind(_sums("[RANGE ALL SLIDE 10 WATTR ts]"), _LATE),
    "origin first": Kind(_sums("[RANGE 10 SLIDE 5 ORIGIN FIRST WATTR ts]"), _LATE),
    "distinct": Kind(_sums(_OVERLAPPING, "(SELECT DISTINCT ts, k, x FROM t)"), _LATE),
    "computed": Kind(_sums(_OVERLAPPING, "(SELECT ts + 3 AS ts, k, x FROM t WHERE x > 1)"), _LATE),
    "union": Kind(_sums(_OVERLAPPING, "t UNION ALL u"), _LATE),
    "join": Kind(f"SELECT a.k, b.x FROM t a JOIN u b ON {_WITHIN_5}", _LATE),
    "left join": Kind(f"SELECT a.k, b.x FROM t a LEFT JOIN u b ON {_WITHIN_5}", _LATE),
    "keys of text joined": Kind(
        "SELECT a.k, b.x FROM t a FULL JOIN u b ON a.s = b.s AND b.ts BETWEEN a.ts AND a.ts + 2",
        _LATE,
    ),
    "join in windows": Kind(
        "SELECT a.k, b.x FROM t a JOIN u b ON a.k = b.k [TUMBLING 5 WATTR ts]", _LATE
    ),
    "as of": Kind(
        "SELECT a.k, b.x FROM t a ASOF JOIN u b ON a.k = b.k AND b.ts BETWEEN a.ts - 9 AND a.ts",
        _LATE,
    ),
    "fold": Kind(
        f"SELECT a.k, a.ts, sum(b.x) AS z FROM t a LEFT JOIN u b ON {_WITHIN_5} GROUP BY a.k, a.ts",
        _LATE,
    ),
    "windows above a join": Kind(
        f"SELECT a.k, sum(b.x) AS z {_OVERLAPPING.replace('ts', 'a.ts')} FROM t a JOIN u b "
        f"ON {_WITHIN_5} GROUP BY a.k",
        _LATE,
    ),
    "windows over windows": Kind(
        f"SELECT k, max(a) AS z FROM {_HOURLY} [TUMBLING 10 WATTR window_time] GROUP BY k", _LATE
    ),
    "join of windows": Kind(
        f"SELECT a.k, a.a, b.n FROM {_HOURLY} a JOIN {_HOURLY.replace('FROM t', 'FROM u')} b "
        "ON a.k = b.k AND a.window_end = b.window_end",
        _LATE,
    ),
}
STREAMS = ("t", "u")


def rows(first: int, last: int, step: int = 7) -> pa.Table:
    """Rows of a stretch, not quite in order, with a promise now and then."""
    ts = list(range(first, last))
    ts = [at for begin in range(0, len(ts), step) for at in reversed(ts[begin : begin + step])]
    return pa.table(
        {
            "ts": ts,
            "k": [at % 3 for at in ts],
            "x": [at * 37 % 11 / 7 for at in ts],
            "s": [f"s{at % 5}" for at in ts],
            "low": pa.array([at - 10 if at % 10 == 0 else None for at in ts], pa.int64()),
        }
    )


def batches(streams: tuple[str, ...]) -> Iterator[dict[str, pa.Table]]:
    """What is pushed: a stream that comes later, late rows, an empty batch, a row far ahead."""
    for number in range(6):
        begin = 20 * number
        given = {"t": rows(begin, begin + 20)}
        if "u" in streams and number > 0:
            given["u"] = rows(begin - 5, begin + 15, step=4)
        if number == 3:
            given["t"] = pa.concat_tables([given["t"], rows(2, 6)])
        if number == 4:
            given["t"] = given["t"].slice(0, 0)
        yield given
