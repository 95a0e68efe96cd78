"""Intervals as they are written: what Spark 4 says each is, in microseconds, and what is refused.

The numbers are Spark's own; `tests/spark/functions/test_intervals.py` asks it again.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes
from panes.errors import QueryError

INTERVALS = {
    "INTERVAL '3:30' MINUTE TO SECOND": 210_000_000,
    "INTERVAL '-3:30' MINUTE TO SECOND": -210_000_000,
    "INTERVAL -'3:30' MINUTE TO SECOND": -210_000_000,
    "INTERVAL -'-3:30' MINUTE TO SECOND": 210_000_000,
    "INTERVAL '+3:30' MINUTE TO SECOND": 210_000_000,
    "INTERVAL ' 3:30 ' MINUTE TO SECOND": 210_000_000,
    "INTERVAL '3:30.5' MINUTE TO SECOND": 210_500_000,
    "INTERVAL '3:30.123456789' MINUTE TO SECOND": 210_123_456,
    "INTERVAL '12345:3' MINUTE TO SECOND": 740_703_000_000,
    "INTERVAL '25:10' HOUR TO MINUTE": 90_600_000_000,
    "INTERVAL '123:10:05' HOUR TO SECOND": 443_405_000_000,
    "INTERVAL '1:2:3.4' HOUR TO SECOND": 3_723_400_000,
    "INTERVAL '1 2' DAY TO HOUR": 93_600_000_000,
    "INTERVAL '-1 2' DAY TO HOUR": -93_600_000_000,
    "INTERVAL '1 2:3' DAY TO MINUTE": 93_780_000_000,
    "INTERVAL '100 2:3:4.000001' DAY TO SECOND": 8_647_384_000_001,
    "INTERVAL -'5' MINUTE": -300_000_000,
    "INTERVAL -5 MINUTE": -300_000_000,
    "INTERVAL '1.1234567' SECOND": 1_123_456,
    "INTERVAL '1.5 seconds'": 1_500_000,
    "INTERVAL 1 HOUR 30 MINUTES": 5_400_000_000,
    "INTERVAL '-1 hour 30 minutes'": -1_800_000_000,
}
REFUSED = (
    "INTERVAL '3:30.1234567891' MINUTE TO SECOND",
    "INTERVAL '3:60' MINUTE TO SECOND",
    "INTERVAL '3 :30' MINUTE TO SECOND",
    "INTERVAL '1 24' DAY TO HOUR",
    "INTERVAL '1  2:3:4' DAY TO SECOND",
    "INTERVAL '3:30' HOUR TO SECOND",
)


def rows(*seconds: float) -> pa.Table:
    at = pa.array([round(s * 1_000_000) for s in seconds], pa.timestamp("us", "UTC"))
    return pa.table({"ts": at, "k": [1] * len(seconds)})


@pytest.mark.parametrize("written", INTERVALS)
def test_an_interval_is_what_spark_says_in_expressions_and_in_bands(written: str) -> None:
    """In SELECT, in WHERE, and as the distance of a join, which it meets to the microsecond."""
    micros = INTERVALS[written]
    text = f"SELECT max(ts + {written}) AS m FROM t [TUMBLING 1 day WATTR ts] WHERE ts + {written} "
    for sign, count in (("<=", 1), ("<", 0)):
        moved = panes.sql(f"{text} {sign} timestamp_micros({micros})", t=rows(0))
        assert moved["m"].cast(pa.int64()).to_pylist() == [micros] * count
    text = f"SELECT l.k FROM l JOIN r ON r.ts BETWEEN l.ts + {written} AND l.ts + {written}"
    for off, pairs in ((0, 1), (1, 0), (-1, 0)):
        right = rows((micros + off) / 1_000_000)
        assert len(panes.sql(text, l=rows(0), r=right)) == pairs
        assert len(panes.oracle(text, l=rows(0), r=right)) == pairs


@pytest.mark.parametrize("written", REFUSED)
def test_what_is_no_interval_is_refused_with_the_form_it_should_have(written: str) -> None:
    form = written.rpartition("' ")[2]
    for text, streams in (
        (f"SELECT max(ts + {written}) AS m FROM l [TUMBLING 1 day WATTR ts]", "l"),
        (f"SELECT l.k FROM l JOIN r ON r.ts BETWEEN l.ts - {written} AND l.ts", "lr"),
    ):
        given = {name: rows(0) for name in streams}
        with pytest.raises(
            QueryError, match=rf"the interval '.*' from .*\n\n.*' {form}$"
        ) as refused:
            panes.sql(text, **given)
        hint = str(refused.value).rpartition("write it as ")[2]
        panes.sql(text.replace(written, hint), **given)
