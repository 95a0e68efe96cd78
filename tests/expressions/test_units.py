"""Units that are written as a word: months are counted as Java counts them."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

import panes

BACKWARDS = [
    ("2021-01-31 00:00", "2020-02-29 12:00", "MONTH", -10),
    ("2020-02-29 00:00", "2020-01-31 00:00", "MONTH", 0),
    ("2000-02-29 00:00", "1900-02-28 05:00", "YEAR", -99),
    ("2000-02-29 00:00", "1900-02-28 05:00", "QUARTER", -399),
    ("2020-01-31 00:00", "2020-02-29 23:00", "MONTH", 0),
    ("2020-01-29 12:00", "2020-02-29 11:00", "MONTH", 0),
]


@pytest.mark.parametrize(("start", "end", "unit", "apart"), BACKWARDS)
def test_a_day_that_is_not_whole_is_left_out_before_months_are_counted(
    start: str, end: str, unit: str, apart: int
) -> None:
    moments = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (start, end)]
    rows = pa.table({"at": [1], "a": moments[:1], "b": moments[1:]})
    text = f"SELECT max(timestampdiff({unit}, a, b)) AS n FROM s [TUMBLING 10 WATTR at]"
    assert panes.sql(text, s=rows)["n"].to_pylist() == [apart]


def test_a_moment_without_a_zone_that_is_moved_has_none() -> None:
    rows = pa.table({"at": [1], "a": [datetime(2020, 1, 31)]})
    text = "SELECT max(timestampadd(MONTH, 1, a)) AS moved FROM s [TUMBLING 10 WATTR at]"
    assert panes.sql(text, s=rows)["moved"].to_pylist() == [datetime(2020, 2, 29)]


def test_the_time_between_two_moments_is_asked_for_in_units_as_the_refusal_says() -> None:
    rows = pa.table({"ts": pa.array([10, 70], pa.timestamp("s", "UTC"))})
    text = "SELECT {} AS silent FROM s [TUMBLING 1 minute WATTR ts]"
    with pytest.raises(panes.QueryError, match=r"Hint: timestampdiff\(SECOND, start, end\) is"):
        panes.sql(text.format("window_end - max(ts)"), s=rows)
    seconds = text.format("timestampdiff(SECOND, max(ts), window_end)")
    assert panes.sql(seconds, s=rows)["silent"].to_pylist() == [50, 50]
