"""Text is never read as a moment by the clock: `now`, `today`, and `12:34`, which is today's."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes
from panes.errors import PanesError, QueryError
from tests.clock_texts import ERRORS, FINE, NULLS, ROWS, WRITTEN


def _answer(expression: str) -> object:
    query = f"SELECT first({expression}) AS v FROM s [TUMBLING 10 WATTR row]"
    (value,) = panes.sql(query, s=ROWS)["v"].combine_chunks()
    if pa.types.is_timestamp(value.type):
        value = value.cast(pa.int64())
    return value.as_py()


@pytest.mark.parametrize("expression", WRITTEN)
def test_what_is_written_is_refused_when_the_query_is_described(expression: str) -> None:
    query = f"SELECT count({expression}) AS n FROM s [TUMBLING 10 WATTR row]"
    with pytest.raises(QueryError, match="depends on the clock"):
        panes.open(query, schema={"s": ROWS.schema})


@pytest.mark.parametrize("expression", ERRORS)
def test_a_value_that_names_no_day_is_an_error(expression: str) -> None:
    with pytest.raises(PanesError, match="cannot be cast"):
        _answer(expression)


@pytest.mark.parametrize("expression", NULLS)
def test_a_value_that_is_tried_is_null(expression: str) -> None:
    assert _answer(expression) is None


@pytest.mark.parametrize("expression", FINE)
def test_other_text_is_as_it_was(expression: str) -> None:
    assert _answer(expression) == FINE[expression]


@pytest.mark.parametrize(
    "text", ["2021-03-28 02:30:00 Europe/Berlin", "2021-03-28 02:30:00+1", "+12345-01-01"]
)
def test_text_that_only_spark_reads_is_never_null(text: str) -> None:
    with pytest.raises(PanesError, match="not translated"):
        _answer(f"try_cast('{text}' AS TIMESTAMP)")
