"""DISTINCT, INTERSECT and EXCEPT are groups: what they are read as, and what is refused."""

from __future__ import annotations

import pytest

from panes.errors import QueryError
from panes.language.set_query import sets_to_groups
from panes.language.tokens import tokenize
from tests.support import read

W = "[RANGE 10 SLIDE 5 WATTR ts]"


def said(text: str) -> str:
    return " ".join(token.text for token in sets_to_groups(tokenize(text)))


def test_a_query_without_sets_is_left_alone() -> None:
    tokens = tokenize(f"SELECT item, count(*) AS n FROM bids {W} GROUP BY item")
    assert sets_to_groups(tokens) is tokens


def test_distinct_expressions_are_grouped_by() -> None:
    text = f"SELECT DISTINCT lower(item) AS i, price FROM bids {W} WHERE price > 3"
    assert said(text).endswith("WHERE price > 3 GROUP BY lower ( item ) , price")


def test_two_streams_become_a_union_whose_rows_say_their_side() -> None:
    text = (
        "SELECT item FROM bids [RANGE 10 SLIDE 5 WATTR ts] WHERE price > 3 "
        "EXCEPT SELECT thing FROM sales [RANGE 10 SLIDE 5 WATTR sold]"
    )
    assert said(text) == (
        "SELECT item FROM ( SELECT ts AS ts , item AS item , 0 AS __side FROM bids WHERE price > 3 "
        "UNION ALL SELECT sold AS ts , thing AS item , 1 AS __side FROM sales ) "
        "[ RANGE 10 SLIDE 5 WATTR ts ] GROUP BY item HAVING max ( __side ) = 0"
    )


def test_sides_with_several_columns_are_no_join() -> None:
    query = read(f"SELECT a, b FROM x {W} INTERSECT SELECT a, b FROM y {W}")
    assert query.streams == ("x", "y")


@pytest.mark.parametrize(
    ("text", "message"),
    {
        f"SELECT DISTINCT * FROM bids {W}": "named columns or expressions",
        f"SELECT DISTINCT item FROM bids {W} GROUP BY item": "has no GROUP BY",
        "SELECT item FROM a INTERSECT SELECT item FROM b": "has its window",
        f"SELECT item FROM a {W} INTERSECT SELECT item, x FROM b {W}": "as many columns",
        f"SELECT item FROM a {W} INTERSECT SELECT item FROM b [TUMBLING 5 WATTR ts]": "same window",
        f"SELECT item FROM a {W} INTERSECT ALL SELECT item FROM b {W}": "every value once",
        f"SELECT item FROM a {W} INTERSECT SELECT x FROM a {W}": "the same columns",
        f"SELECT item FROM a {W} GROUP BY item EXCEPT SELECT item FROM b {W}": "FROM and WHERE",
        f"SELECT a FROM a {W} EXCEPT SELECT a FROM b {W} EXCEPT SELECT a FROM c {W}": "a third",
        f"SELECT item FROM a {W} EXCEPT": "a set is given by a SELECT",
        "SELECT a FROM x [ROWS 5] INTERSECT SELECT a FROM y [ROWS 5]": "over a column",
    }.items(),
)
def test_what_makes_no_set_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        read(text)
