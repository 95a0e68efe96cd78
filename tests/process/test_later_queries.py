"""What a store knows of an expression: since when, and of which rows.

An expression is evaluated only of rows that some query lets through, since it may fail of others::

    rows           5 ───── 15 ───── 25
    f > 0          ■       □        ■
    x + 1          6       NULL     26     while every query has WHERE f > 0

A query or a question that reads it of other rows is answered from where it is there for them.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import panes
from panes.errors import QueryError
from panes.process.register import Register

SCHEMA = pa.schema({"at": pa.int64(), "k": pa.string(), "f": pa.int64(), "x": pa.int64()})
MAX = "SELECT max(x + 1) AS m FROM t [TUMBLING 10 WATTR at]"
CALLS = {
    "a piece": "max(x + 1)",
    "a multiset": "median(x + 1)",
    "an order": "last(x + 1)",
}


def rows(*some: tuple[int, int, int]) -> pa.Table:
    """Position, f and x."""
    found = [{"at": at, "k": str(x % 2), "f": f, "x": x} for at, f, x in some]
    return pa.Table.from_pylist(found, schema=SCHEMA)


FIRST, SECOND, THIRD = rows((1, 1, 3), (2, 0, 4)), rows((11, 1, 5), (12, 0, 6)), rows((21, 0, 7))


def register(*texts: str) -> Register:
    made = panes.register("t", lateness=0, schema=SCHEMA)
    for number, text in enumerate(texts):
        made.add(str(number), text)
    return made


def answers(reg: Register, name: str, *batches: pa.Table) -> list[tuple[object, ...]]:
    """What a query gets from some batches and from the end."""
    given = [*(reg.push(batch) for batch in batches), reg.finish()]
    found = [row for tables in given if name in tables for row in tables[name].to_pylist()]
    return [tuple(v for n, v in row.items() if n != "window_end") for row in found]


def test_a_later_query_is_answered_from_where_its_expression_is_there_for_all_its_rows() -> None:
    reg = register(f"{MAX} WHERE f > 0")
    reg.push(FIRST)
    assert reg.add("all", MAX).exact_from == 10
    assert answers(reg, "all", SECOND, THIRD) == [(10, 7), (20, 8)]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_question_about_rows_of_which_an_expression_was_not_computed_is_refused(
    call: str,
) -> None:
    asked = f"SELECT {call} AS m FROM t [RANGE 10 WATTR at]"
    reg = register(f"SELECT {call} AS m FROM t [TUMBLING 10 WATTR at] WHERE f > 0")
    reg.push(FIRST)
    with pytest.raises(QueryError, match="nothing is stored that answers") as refused:
        reg.ask(asked)
    assert "windows that begin at 3 or later" in str(refused.value)
    assert reg.ask(f"{asked} WHERE f > 0")["m"].to_pylist() == [4]


def test_a_grouping_that_was_not_computed_of_all_rows_gives_no_null_keys() -> None:
    text = "SELECT x % 2 AS odd, count(*) AS n FROM t [TUMBLING 10 WATTR at] {} GROUP BY x % 2"
    reg = register(text.format("WHERE f > 0"))
    reg.push(FIRST)
    asked = text.replace("TUMBLING", "RANGE").format("")
    with pytest.raises(QueryError, match="nothing is stored that answers count"):
        reg.ask(asked)
    assert reg.add("all", text.format("")).exact_from == 10
    assert answers(reg, "all", SECOND) == [(10, 0, 1), (10, 1, 1)]


def test_a_filter_of_one_aggregate_leaves_the_others_without_values() -> None:
    reg = register("SELECT sum(x + 1) FILTER (WHERE f > 0) AS m FROM t [TUMBLING 10 WATTR at]")
    reg.push(FIRST)
    text = "SELECT sum(x + 1) AS m FROM t [TUMBLING 10 WATTR at]"
    assert reg.add("all", text).exact_from == 10
    assert reg.add("some", f"{text} WHERE f > 0").exact_from == 0
    assert answers(reg, "all", SECOND) == [(10, 13)]


def test_a_column_in_having_is_known_of_as_many_rows_as_one_in_select() -> None:
    text = "SELECT count(*) AS n FROM t [TUMBLING 10 WATTR at] {} HAVING max(x + 1) > 4"
    reg = register(text.format("WHERE f > 0"))
    reg.push(FIRST)
    assert reg.add("all", text.format("")).exact_from == 10
    assert answers(reg, "all", SECOND) == [(10, 2)]


def test_of_every_row_implies_of_those_that_a_filter_lets_through() -> None:
    """The filter is known because of another query, which does not read the expression."""
    count = "SELECT count(*) AS n FROM t [TUMBLING 10 WATTR at] WHERE f > 0"
    reg = register(MAX, count)
    reg.push(FIRST)
    assert reg.add("some", f"{MAX} WHERE f > 0").exact_from == 0
    reg.remove("0")
    assert reg.ask(f"{MAX.replace('TUMBLING', 'RANGE')} WHERE f > 0")["m"].to_pylist() == [4]
    reg.push(SECOND)
    assert reg.add("again", MAX).exact_from == 20


def test_what_was_computed_of_every_row_is_computed_of_some_once_its_query_is_gone() -> None:
    """[0, 10) has everything, [10, 20) has what `some` needs, [20, 30) has everything again."""
    reg = register(MAX, f"{MAX} WHERE f > 0")
    reg.push(FIRST)
    reg.remove("0")
    reg.push(SECOND)
    assert reg.add("all", MAX).exact_from == 20
    assert answers(reg, "all", THIRD) == [(20, 8)]


def test_of_two_filters_either_is_known_and_what_both_let_through_together_is_not() -> None:
    reg = register(f"{MAX} WHERE f > 0", f"{MAX} WHERE x > 3")
    reg.push(FIRST)
    asked = MAX.replace("TUMBLING", "RANGE")
    assert reg.add("either", f"{MAX} WHERE f > 0 OR x > 3").exact_from == 10
    assert reg.add("one", f"{MAX} WHERE x > 3").exact_from == 0
    assert reg.ask(f"{asked} WHERE x > 3")["m"].to_pylist() == [5]
    with pytest.raises(QueryError, match="of these rows from 3 on"):
        reg.ask(f"{asked} WHERE f > 0 OR x > 3")


def test_a_query_that_is_removed_and_added_again_knows_nothing_of_rows_between() -> None:
    reg = register(f"{MAX} WHERE f > 0", f"{MAX} WHERE x > 3")
    reg.push(FIRST)
    reg.remove("0")
    reg.push(SECOND)
    assert reg.add("0", f"{MAX} WHERE f > 0").exact_from == 20


def test_a_query_that_is_put_back_after_it_failed_knows_nothing_of_rows_between() -> None:
    """The row at 2 has no x % f; all rows that come before the query is back are read without."""
    text = "SELECT sum(x % f) AS m FROM t [TUMBLING 10 WATTR at]"
    reg = register(text, f"{text} WHERE f > 0")
    with pytest.warns(panes.FailedQueryWarning, match="`0`"):
        reg.push(FIRST)
    assert reg.put_back("0").exact_from == 10
    good = rows((11, 2, 5), (13, 3, 5), (21, 1, 1))
    assert answers(reg, "0", good) == [(10, 3), (20, 0)]


def test_an_expression_that_very_many_filters_let_through_is_computed() -> None:
    reg = register(*(f"{MAX} WHERE f = {n}" for n in range(400)))
    found = reg.push(pa.concat_tables([FIRST, THIRD]))
    assert {name: table["m"].to_pylist() for name, table in found.items()} == {"0": [5], "1": [4]}
    assert not reg.failed


def test_what_is_known_of_which_rows_is_saved(tmp_path: Path) -> None:
    reg = register(f"{MAX} WHERE f > 0")
    reg.push(FIRST)
    reg.save(tmp_path / "register")
    again = panes.register("t", lateness=0, saved=tmp_path / "register")
    longer = MAX.replace("10", "20")
    assert again.add("some", f"{longer} WHERE f > 0").exact_from == 0
    assert again.add("all", MAX).exact_from == 10
    assert answers(again, "all", SECOND) == [(10, 7)]


def test_a_question_says_from_where_on_it_can_be_asked() -> None:
    """Rows up to 12 came when nobody read `x + 1` of rows with f = 0."""
    reg = register(f"{MAX} WHERE f > 0")
    reg.push(FIRST)
    reg.push(SECOND)
    reg.add("all", MAX)
    reg.push(rows((14, 0, 3)))
    with pytest.raises(QueryError, match=r"begins at 10, .* from 13 on") as refused:
        reg.ask(MAX.replace("TUMBLING", "RANGE"))
    assert "3 from now" in str(refused.value)
    reg.push(THIRD)
    assert reg.ask(MAX.replace("TUMBLING", "RANGE"))["m"].to_pylist() == [8]
