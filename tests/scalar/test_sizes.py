"""Each function says how its result and its time grow; what multiplies is measured before."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes
from panes.errors import PanesError, QueryError
from panes.language.functions import SCALARS
from panes.scalar.sizes import ADDING, LOOKING, MAKING, PATTERNS, STATED

LONG = pa.table({"at": [1], "s": ["a" * 100_000], "t": ["b" * 20_000], "words": [["a"] * 20_000]})
SHORT = pa.table({"at": [1], "s": ["aaab" * 500], "t": ["c" * 2000], "words": [["a", "b"]]})
BOMBS = (
    "replace(s, 'a', t)",
    "replace(replace(replace(s, 'a', repeat('b', 90)), 'b', repeat('a', 90)), 'a', 'bb')",
    "levenshtein(s, t)",
    f"array_join(words, '{'b' * 1000}')",
    "array_distinct(words)",
    "array_except(words, words)",
    "instr(s, t)",
)
WRITTEN = (
    "replace(repeat('a', 100000), 'a', repeat('b', 20000))",
    "levenshtein(repeat('a', 100000), repeat('b', 100000))",
    "array_union(sequence(1, 100000), sequence(1, 100000))",
    "regexp_replace(repeat(s, 1000), 'a', repeat('b', 20000))",
    "replace(replace(repeat('a', 1000), 'a', repeat('b', 1000)), 'b', repeat('c', 1000))",
)
PLAIN = (
    "replace(s, 'a', 'b')", "replace(s, 'aa', t)", "regexp_replace(s, 'a', '')", "instr(s, 'aab')",
    "levenshtein(left(s, 5000), left(t, 5000))", "array_distinct(array(1, 2))",
    "concat_ws(',', words)", "contains(s, t)",
)  # fmt: skip


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


EXPLODING = ("(.*a){20}b", "(a+)+b", "(a|ab)*c", "([a-z]+,?)*;", "(a?){30}a{30}")


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
