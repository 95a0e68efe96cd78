"""Options of a stream: a bare number is never taken for microseconds."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import panes
from panes.axis import Duration
from panes.errors import OptionError
from tests.support import open_query

TIME = "SELECT count(*) AS n FROM s [TUMBLING 1 minute WATTR ts]"
NUMBER = "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]"


@pytest.mark.parametrize(
    "options",
    [
        {"lateness": 10},
        {"lateness": "10 seconds", "late": "revise", "revise_within": 5},
        {"lateness": "10 seconds", "max_ahead": 7},
        {"heartbeat": 3},
        {"flush": panes.LazyFlush(within=30)},
    ],
)
def test_a_length_of_time_needs_a_unit(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="needs a unit") as refused:
        open_query(TIME, **options)
    assert 'seconds"' in str(refused.value)


@pytest.mark.parametrize("lateness", [0, "10 seconds", dt.timedelta(seconds=10)])
def test_none_at_all_needs_no_unit(lateness: Duration) -> None:
    open_query(TIME, lateness=lateness)


def test_numbers_are_measured_in_numbers() -> None:
    assert open_query(NUMBER, lateness=10)._windows.terms.lateness == 10


def test_rows_that_a_time_orders_need_a_unit_once_that_is_known() -> None:
    query = open_query("SELECT count(*) AS n FROM s [ROWS 2 WATTR ts]", lateness=10)
    with pytest.raises(OptionError, match="needs a unit"):
        query.push(s=pa.table({"ts": [dt.datetime(2026, 1, 1)]}))


def test_a_register_needs_a_unit_too() -> None:
    with pytest.raises(OptionError, match="needs a unit"):
        panes.register("s", lateness=10).add("all", TIME)
