"""Three minutes of rows, one micro-batch each, and a query over them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from tests.spark.streaming import at_seconds

TEXT = (
    "SELECT k, count(*) AS n, max(x) AS high, median(x) AS mid "
    "FROM s [RANGE 2 minutes SLIDE 1 minute WATTR ts] GROUP BY k"
)


LATENESS = dt.timedelta(seconds=10)


def minute(number: int) -> pa.Table:
    """Rows of one minute, and one of the minute before that is not late yet."""
    seconds = [number * 60 + s for s in (-15, 0, 7, 14, 21, 28, 35, 49)]
    values = range(number * 10, number * 10 + len(seconds))
    return at_seconds(*seconds, k=["abc"[v % 3] for v in values], x=list(values))


MINUTES = [minute(number) for number in range(3)]
