"""A query cannot ask for a gigabyte of every row: lengths are written in it, and small."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes
from panes.errors import QueryError

ROWS = pa.table({"at": [1, 2], "s": ["a", "bc"], "x": [3, 4]})
LONG = (
    "repeat(s, 1000000000)",
    "repeat(repeat(s, 1000), 1000)",
    "repeat(upper(concat(s, repeat(s, 1000))), 1000)",
    "lpad(s, 2000000000, 'x')",
    "lpad(repeat(s, 0), 2000000000, 'x')",
    "rpad(s, 2000000000)",
    "space(2000000000)",
    "printf('%1000000000d', x)",
    "format_string('%s %999999999d', s, x)",
    "array_repeat(x, 1000000000)",
    "sequence(1, 10000000000)",
    "sequence(-10000000000, 1)",
)
UNKNOWN = ("repeat(s, x)", "lpad(s, x, 'x')", "space(x + 1)", "sequence(1, x)", "printf(s, x)")
PLACES = (
    "SELECT max({}) AS m FROM s [TUMBLING 10 WATTR at]",
    "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at] WHERE {} IS NOT NULL",
    "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY {}",
    "SELECT count(*) AS n FROM (SELECT at, {} AS y FROM s) AS s [TUMBLING 10 WATTR at]",
)


@pytest.mark.parametrize("expression", LONG)
def test_long_results_are_refused_when_the_text_is_read(expression: str) -> None:
    with pytest.raises(QueryError, match="100,000 is the most"):
        panes.explain(f"SELECT max({expression}) AS m FROM s [TUMBLING 10 WATTR at]")


@pytest.mark.parametrize("expression", UNKNOWN)
def test_lengths_are_written_in_the_query(expression: str) -> None:
    with pytest.raises(QueryError, match="written in the query"):
        panes.explain(f"SELECT max({expression}) AS m FROM s [TUMBLING 10 WATTR at]")


@pytest.mark.parametrize("place", PLACES)
def test_it_does_not_matter_where_it_stands(place: str) -> None:
    with pytest.raises(QueryError, match="is the most"):
        panes.explain(place.format(LONG[0]))


@pytest.mark.parametrize(
    ("expression", "length"),
    [
        ("repeat(s, 3)", 6),
        ("repeat(s, -3)", 0),
        ("repeat(repeat(s, 10), 10)", 200),
        ("lpad(s, 9, 'x')", 9),
        ("rpad(s, 1)", 1),
        ("space(7)", 7),
    ],
)
def test_short_results_are_answered(expression: str, length: int) -> None:
    text = f"SELECT max(length({expression})) AS m FROM s [TUMBLING 10 WATTR at]"
    assert panes.sql(text, s=ROWS)["m"].to_pylist() == [length]
