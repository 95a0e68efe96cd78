"""Intervals as they are written: what Spark says each is, and what is refused.

`tests/spark/functions/test_intervals.py` asks Spark again.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes
from panes.errors import QueryError
from tests.expressions.written_intervals import INTERVALS, REFUSED


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
