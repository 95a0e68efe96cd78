"""Each function says how its result and its time grow; what multiplies is measured before."""

from __future__ import annotations

import pytest

import panes
from panes.errors import PanesError, QueryError
from panes.expressions.sizes import ADDING, LOOKING, MAKING, PATTERNS, STATED
from panes.language.functions import SCALARS
from tests.expressions.long_values import BOMBS, EXPLODING, LONG, PLAIN, SHORT, WRITTEN


def test_each_function_is_in_one_list() -> None:
    lists = [STATED, ADDING, {*MAKING}, {*LOOKING}, {*PATTERNS} - {*MAKING}]
    assert set().union(*lists) == SCALARS
    assert sum(len(names) for names in lists) == len(SCALARS)


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_multiplies_stops_at_a_limit_and_says_its_name(bomb: str) -> None:
    with pytest.raises(PanesError, match="of values that are so long"):
        panes.sql(f"SELECT count({bomb}) AS n FROM r [TUMBLING 10 WATTR at]", r=LONG)


@pytest.mark.parametrize("bomb", WRITTEN)
def test_what_multiplies_as_it_is_written_is_refused_when_it_is_read(bomb: str) -> None:
    with pytest.raises(QueryError, match=r"steps; .* is the most"):
        panes.explain(f"SELECT count({bomb}) AS n FROM r [TUMBLING 10 WATTR at]")


@pytest.mark.parametrize("call", PLAIN)
def test_what_does_not_is_answered(call: str) -> None:
    answer = panes.sql(f"SELECT count({call}) AS n FROM r [TUMBLING 10 WATTR at]", r=SHORT)
    assert answer["n"].to_pylist() == [1]


@pytest.mark.parametrize("pattern", EXPLODING)
@pytest.mark.parametrize(
    "call",
    ["s RLIKE '{}'", "regexp_replace(s, '{}', '')", "split(s, '{}')", "regexp_like(s, r'{}')"],
)
def test_patterns_whose_search_explodes_are_refused(pattern: str, call: str) -> None:
    query = f"SELECT count({call.format(pattern)}) AS n FROM r [TUMBLING 10 WATTR at]"
    with pytest.raises(QueryError, match="may take for ever"):
        panes.explain(query)


def test_patterns_are_written_in_the_query() -> None:
    with pytest.raises(QueryError, match="written in the query"):
        panes.explain("SELECT count(*) AS n FROM r [TUMBLING 10 WATTR at] WHERE s RLIKE t")
