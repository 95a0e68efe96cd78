"""What is killed in the tests and in ``make torture-kills``: one line for each kind of query.

A case is a job and its streams. Whoever adds a kind of query that runs on Spark adds a line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import panes
from lab.crash.jobs import FileSinkJob, JoinRegisterJob, SplitJob
from panes.crash.jobs import Change, Job, QueryJob, RegisterJob, Streams
from tests.sharing.workload import QUERIES, rows

BATCHES = 3
KINDS = "lab.crash.jobs"
"""What drivers are to know beside the jobs of the command."""


@dataclass(frozen=True, slots=True)
class Case:
    """A job and the rows of its streams, batch by batch."""

    job: Job
    streams: Streams


def _numbered(seed: int) -> list[pa.Table]:
    """Rows with positions `at` that lie up to 16 behind, and an order `seq` without ties."""
    rng = np.random.default_rng(seed)
    tables = [rows(seed + n, 30, 30 * n) for n in range(BATCHES)]
    count = sum(map(len, tables))
    seq = 3 * np.argsort(np.arange(count) + rng.uniform(0, 6, count))
    starts = np.cumsum([0, *map(len, tables)])
    return [
        t.append_column("seq", pa.array(seq[a : a + len(t)]))
        for t, a in zip(tables, starts, strict=False)
    ]


STREAM = {"s": _numbered(1)}
TWO = {"s": _numbered(1), "t": _numbered(7)}
ENDS = {"bounded": True, "lateness": 20}
COUNTS = "count(*) AS n, sum(x) AS total"
SLIDING = f"SELECT k, {COUNTS} FROM s [RANGE 12 SLIDE 4 WATTR at] GROUP BY k"
CHANGE = Change(2, add={"middle": QUERIES["middle"]}, remove=["keyed"])
JOINED = "FROM s JOIN t ON s.k = t.k AND t.at BETWEEN s.at - 3 AND s.at + 4"
PAIRS = f"SELECT s.seq AS i, t.seq AS j, s.k {JOINED}"
ABOVE = f"SELECT s.k, count(*) AS n, sum(t.x) AS total [RANGE 12 SLIDE 4 WATTR s.at] {JOINED}"
NESTED = (
    f"SELECT k, {COUNTS} FROM (SELECT a.k AS k, a.total + b.n AS x, a.window_end AS e FROM "
    f"({SLIDING}) a JOIN ({SLIDING.replace('FROM s', 'FROM t')}) b "
    "ON a.k = b.k AND a.window_end = b.window_end) [TUMBLING 20 WATTR e] GROUP BY k"
)
SOME = {name: QUERIES[name] for name in ("all", "keyed", "some")}


def _case(text: str, kind: type[QueryJob] = QueryJob, **options: object) -> Case:
    return Case(kind(text, {**ENDS, **options}), STREAM)


CASES: dict[str, Case] = {
    "sliding": _case(SLIDING),
    "holistic": _case("SELECT median(x) AS mid FROM s [RANGE 15 SLIDE 5 WATTR at]"),
    "landmark": _case(f"SELECT k, {COUNTS} FROM s [RANGE ALL SLIDE 10 WATTR at] GROUP BY k"),
    "rows": _case(f"SELECT {COUNTS} FROM s [RANGE 8 ROWS SLIDE 3 ROWS WATTR seq]"),
    "partitioned rows": _case(
        f"SELECT k, {COUNTS} FROM s [RANGE 5 ROWS SLIDE 2 ROWS WATTR seq PA k]"
    ),
    "per row": _case(f"SELECT seq, k, {COUNTS} FROM s [RANGE 20 RATTR seq SLIDE 1 ROW PA k]"),
    "EMIT EARLY": _case(f"{SLIDING} EMIT EARLY"),
    "late='revise'": _case(SLIDING, late="revise", lateness=3),
    "SlowFlush": _case(SLIDING, flush=panes.SlowFlush(at_most=4)),
    "split": _case(SLIDING, SplitJob, late="drop", lateness=3),
    "Spark's file sink": _case(SLIDING, FileSinkJob),
    "a union": Case(QueryJob(SLIDING.replace("FROM s", "FROM (s UNION ALL t)"), ENDS), TWO),
    "a join": Case(QueryJob(PAIRS, ENDS), TWO),
    "windows above an outer join": Case(
        QueryJob(f"{ABOVE} GROUP BY s.k".replace("JOIN t", "LEFT JOIN t"), ENDS), TWO
    ),
    "windows over a join of windows": Case(QueryJob(NESTED, ENDS), TWO),
    "DISTINCT": _case(
        f"SELECT k, {COUNTS} FROM (SELECT DISTINCT at, k, x FROM s) "
        "[RANGE 12 SLIDE 4 WATTR at] GROUP BY k"
    ),
    "a register over joins": Case(
        JoinRegisterJob({"pairs": PAIRS, "sums": f"{ABOVE} GROUP BY s.k"}, {"lateness": 20}), TWO
    ),
    "a register": Case(RegisterJob("s", SOME, {"lateness": 20}), STREAM),
    "a register that changes": Case(RegisterJob("s", SOME, {"lateness": 20}, CHANGE), STREAM),
}
