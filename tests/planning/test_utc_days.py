"""Windows of days over a column with a zone: said once that days begin at midnight UTC."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest

import panes

SAID = r"days begin at midnight UTC, and `ts` shows the time of Europe/Berlin; days of that zone: "
DAYS = "SELECT count(*) AS n FROM s [{} WATTR ts]"


def rows(zone: str | None) -> pa.Table:
    return pa.table({"ts": pa.array([0, 80_000_000_000, 90_000_000_000], pa.timestamp("us", zone))})


@pytest.mark.parametrize(
    "clause",
    ["TUMBLING 1 day", "RANGE 30 days SLIDE 1 day", "TUMBLING 1 week", "RANGE 2 days SLIDE 2 days"],
)
def test_it_is_said_in_every_way_to_ask(clause: str) -> None:
    text = DAYS.format(clause)
    with pytest.warns(panes.UtcDaysWarning, match=SAID):
        panes.sql(text, s=rows("Europe/Berlin"))
    with pytest.warns(panes.UtcDaysWarning, match=SAID):
        panes.open(text).push(s=rows("Europe/Berlin"))
    register = panes.register("s")
    register.add("days", text)
    with pytest.warns(panes.UtcDaysWarning, match=SAID):
        register.push(rows("Europe/Berlin"))
    assert SAID.partition(";")[0] in panes.explain(text, s=rows("Europe/Berlin"))
    assert SAID.partition(";")[0] in panes.explain(text, details=True, s=rows("Europe/Berlin"))


def test_what_it_says_to_write_has_days_of_that_zone() -> None:
    """Of 22:13 and 1:00 the next day in UTC: both are past midnight in Helsinki, an hour apart."""
    with pytest.warns(panes.UtcDaysWarning) as said:
        panes.sql(DAYS.format("TUMBLING 1 day"), s=rows("Europe/Helsinki"))
    local = str(said[0].message).partition("FROM (SELECT ")[2].partition(", ...)")[0]
    text = f"SELECT count(*) AS n FROM (SELECT {local} FROM s) [TUMBLING 1 day WATTR local]"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert panes.sql(text, s=rows("Europe/Helsinki"))["n"].to_pylist() == [1, 2]


def test_it_is_said_once_for_a_line_that_asks_often() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(3):
            panes.sql(DAYS.format("TUMBLING 1 day"), s=rows("Europe/Berlin"))
    assert [one.category for one in said] == [panes.UtcDaysWarning]
    assert said[0].filename == __file__


def test_where_warnings_are_errors_the_query_is_answered() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = panes.sql(DAYS.format("TUMBLING 1 day"), s=rows("Europe/Berlin"))
    assert got["n"].to_pylist() == [2, 1]


@pytest.mark.parametrize(
    ("clause", "zone"),
    [
        ("TUMBLING 1 day", None),
        ("TUMBLING 1 day", "UTC"),
        ("TUMBLING 1 day", "Etc/UTC"),
        ("TUMBLING 1 day", "+00:00"),
        ("TUMBLING 1 hour", "Europe/Berlin"),
        ("RANGE 1 day SLIDE 1 hour", "Europe/Berlin"),
        ("RANGE 1 day SLIDE 1 ROW", "Europe/Berlin"),
        ("TUMBLING 1 day ORIGIN '2026-01-01T00:00:00+01:00'", "Europe/Berlin"),
    ],
)
def test_nothing_is_said_where_it_says_nothing(clause: str, zone: str | None) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        panes.sql(DAYS.format(clause), s=rows(zone))
    assert not said
    assert "midnight" not in panes.explain(DAYS.format(clause), s=rows(zone))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) AS n FROM l JOIN r ON true [TUMBLING 1 day WATTR ts]",
        "SELECT count(*) AS n [TUMBLING 1 day WATTR l.ts] FROM l JOIN r "
        "ON r.ts BETWEEN l.ts AND l.ts",
        "SELECT count(*) AS n [TUMBLING 1 day WATTR max(l.ts, r.ts)] FROM l JOIN r "
        "ON r.ts BETWEEN l.ts AND l.ts",
    ],
)
def test_it_is_said_of_joins(text: str) -> None:
    streams = {"l": rows("Europe/Berlin"), "r": rows("Europe/Berlin")}
    with pytest.warns(panes.UtcDaysWarning, match="shows the time of Europe/Berlin"):
        panes.sql(text, **streams)
    assert "shows the time of Europe/Berlin" in panes.explain(text, **streams)
