"""Values looked up in panes: DISTINCT and WHERE about a GROUP BY, asked of a register."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes
from panes.asking.look_up import as_look_up
from panes.errors import ColumnTypeError, FailedQueryWarning, QueryError
from panes.language.parse import parse
from tests.support import assert_rows

W = "[RANGE 20 SLIDE 10 WATTR at]"
BIDS = pa.table(
    {"at": [1, 4, 12, 13, 19], "item": [7, 8, 7, None, 9], "price": [1.5, 2.5, 3.5, 4.5, 5.5]}
)


def asked_of(added: str, *questions: str) -> list[pa.Table]:
    register = panes.register("bids", lateness=5)
    register.add("all", added)
    register.push(BIDS)
    return [register.ask(text) for text in questions]


@pytest.mark.parametrize(
    "where", ["item = 7", "item > 7 AND item < 100", "item IS NULL", "item IN (8, 9)", "item < 0"]
)
def test_a_filter_on_the_group_by_is_looked_up_among_all_groups(where: str) -> None:
    counts = f"SELECT item, count(*) AS n, sum(price) AS p FROM bids {W} GROUP BY item"
    text = counts.replace("GROUP BY", f"WHERE {where} GROUP BY")
    once = text.replace("SLIDE 10 ", "")
    (found,) = asked_of(counts, once)
    want = panes.oracle(text, bids=BIDS)
    assert_rows(found, want.filter(pa.compute.equal(want["window_end"], 20)))


def test_distinct_values_are_asked_for_with_and_without_a_filter() -> None:
    texts = [
        "SELECT DISTINCT item FROM bids [RANGE 20 WATTR at]",
        "SELECT DISTINCT item FROM bids [RANGE 10 WATTR at] WHERE item <> 9",
    ]
    every, some = asked_of(f"SELECT DISTINCT item FROM bids {W}", *texts)
    assert sorted(every["item"].to_pylist(), key=str) == [7, 8, 9, None]
    assert some.to_pylist() == [{"window_start": 10, "window_end": 20, "item": 7}]


def test_a_having_of_the_question_still_holds() -> None:
    added = f"SELECT item, count(*) AS n FROM bids {W} GROUP BY item"
    text = "SELECT item, count(*) AS n FROM bids [RANGE 20 WATTR at] WHERE {} GROUP BY item {}"
    more, none = asked_of(
        added,
        text.format("item < 9", "HAVING count(*) > 1"),
        text.format("item = 8", "HAVING n > 1"),
    )
    assert [(r["item"], r["n"]) for r in more.to_pylist()] == [(7, 2)]
    assert len(none) == 0


def test_a_filter_on_another_column_is_no_look_up() -> None:
    added = f"SELECT item, count(*) AS n FROM bids {W} GROUP BY item"
    text = "SELECT item, count(*) AS n FROM bids [RANGE 20 WATTR at] WHERE price > 2 GROUP BY item"
    with pytest.raises(QueryError, match="nothing is stored that answers count"):
        asked_of(added, text)


@pytest.mark.parametrize("first", ["seven", "all"])
def test_of_a_filter_and_a_look_up_that_is_taken_which_reaches_further_back(first: str) -> None:
    register = panes.register("bids", lateness=5)
    seven = f"SELECT item, count(*) AS n FROM bids {W} WHERE item = 7 GROUP BY item"
    texts = {"seven": seven, "all": seven.replace("WHERE item = 7 ", "")}
    register.add(first, texts.pop(first))
    register.push(BIDS)
    for name, text in texts.items():
        register.add(name, text)
    found = register.ask(seven.replace("SLIDE 10 ", ""))
    assert [(r["item"], r["n"]) for r in found.to_pylist()] == [(7, 2)]


def test_a_field_of_a_structure_is_not_the_column_of_its_name() -> None:
    query = parse(f"SELECT item, count(*) AS n FROM s {W} WHERE bid.item = 7 GROUP BY item")
    assert as_look_up(query) is None


def test_questions_for_values_are_refused_in_words_about_values() -> None:
    register = panes.register("bids", lateness=5)
    register.add("n", f"SELECT count(*) AS n FROM bids {W}")
    register.push(BIDS)
    text = "SELECT DISTINCT item FROM bids [RANGE 20 WATTR at]"
    with pytest.raises(QueryError, match="which values of item are there") as refused:
        register.ask(text)
    assert "GROUP BY" not in str(refused.value)
    with pytest.raises(QueryError, match="needs no preparing") as refused:
        register.prepare(text)
    assert "GROUP BY" not in str(refused.value)


def test_an_aggregate_tells_no_rows_apart() -> None:
    for text in (f"SELECT DISTINCT count(*) FROM bids {W}",
                 f"SELECT count(*) AS n FROM bids {W} GROUP BY count(*)"):  # fmt: skip
        with pytest.raises(QueryError, match=r"line 1, column \d+: .* is an aggregate") as refused:
            panes.sql(text, bids=BIDS)
        assert "__" not in str(refused.value)


def test_sets_of_two_types_are_told_to_be_cast() -> None:
    text = f"SELECT item FROM bids {W} INTERSECT SELECT price FROM sales {W}"
    with pytest.raises(ColumnTypeError, match="need one type; cast those of one side") as refused:
        panes.sql(text, bids=BIDS, sales=BIDS)
    assert "union" not in str(refused.value)


@pytest.mark.parametrize("text", ["SELECT y FROM bids [RANGE 9 WATTR at]",
                                  "SELECT max(y) AS y FROM bids [ROWS 5]"])  # fmt: skip
def test_a_prepared_question_with_an_unknown_column_is_named_when_rows_come(text: str) -> None:
    register = panes.register("bids", lateness=5)
    register.add("n", f"SELECT count(*) AS n FROM bids {W}")
    register.prepare(text)
    with pytest.warns(FailedQueryWarning, match="no column `y`"):
        register.push(BIDS)
    assert register.failed[text].startswith(f"the prepared question `{text}`: no column `y`")
    assert register.state["rows"] == 0
    register.forget(text)
    assert register.failed == {}
