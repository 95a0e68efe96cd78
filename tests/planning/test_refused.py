"""What is refused when a query is planned or opened, before any row has come."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes
from panes.errors import OptionError, QueryError

REFUSED = {
    "SELECT stddev(s) FROM t [TUMBLING 10 WATTR at]": "needs numbers, got string",
    "SELECT sum(s) FROM t [TUMBLING 10 WATTR at]": r"`sum\(s\)`: sum needs .*\n\nHint: .*CAST\(",
    "SELECT avg(x), avg(s) FROM t [TUMBLING 10 WATTR at]": r"`avg\(s\)`: avg needs .*\n\nHint: ",
    "SELECT max(x) FROM t [TUMBLING 10 WATTR abs(at)]": "cannot say.*\n\nHint: windows lie on",
    "WITH p AS (SELECT max(x) AS m FROM t [TUMBLING 10 WATTR at]) "
    "SELECT max(m) FROM q [TUMBLING 30]": "if FROM has the name that WITH gives it",
    "SELECT weighted_mean(x, s) FROM t [TUMBLING 10 WATTR at]": "weighted_mean needs numbers",
    "SELECT count(DISTINCT *) FROM t [TUMBLING 10 WATTR at]": "has no meaning",
    "SELECT count(*) FROM t [TUMBLING 10 WATTR at] GROUP BY 1.5": "GROUP BY 1.5 names no selected",
    "SELECT count(*) FROM t [TUMBLING 99999999999999999999 WATTR at]": "longer than the axis",
    "SELECT count(*) FROM t [RANGE 5 RANGE 6 SLIDE 1 WATTR at]": "says RANGE twice",
    "SELECT approx_top_k(f, 2) FROM t [TUMBLING 10 WATTR at]": "needs integers or text",
    "SELECT max(s IN ('a', 1)) FROM t [TUMBLING 10 WATTR at]": "a list of int, string beside text",
    "SELECT array() AS a, count(*) FROM t [TUMBLING 10 WATTR at]": "cannot be given",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_would_have_failed_later_is_refused_at_once(text: str) -> None:
    t = pa.table({"at": [1], "x": [1], "s": ["a"], "f": [1.0]})
    with pytest.raises(panes.PanesError, match=REFUSED[text]):
        panes.sql(text, t=t)


@pytest.mark.parametrize(
    "options",
    [{"rows_late": "3"}, {"rows_late": 2.5}, {"flush": 5}, {"store": "foo"}],
)
def test_options_of_the_wrong_kind_are_refused_when_the_query_is_opened(
    options: dict[str, object],
) -> None:
    with pytest.raises(OptionError):
        panes.open("SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]", **options)  # type: ignore[arg-type]


def test_lengths_are_measured_as_positions_are() -> None:
    text = "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]"
    table = pa.table({"at": [1]})
    with pytest.raises(OptionError, match="revise_within is a whole number"):
        panes.open(text, late="revise", revise_within="5 minutes").push(s=table)
    with pytest.raises(QueryError, match="EVERY takes a whole number"):
        panes.open(f"{text} EMIT EARLY EVERY 5 minutes").push(s=table)
