"""Rows asked of a register: filtered, sorted and cut off, of the window up to the newest row."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import panes
from panes.errors import InputError, OptionError, PanesError, QueryError

ASKED = "SELECT * FROM bids [RANGE 10 WATTR at] WHERE item = 7 ORDER BY price LIMIT 10"


def bids(*rows: tuple[int, int, float | None]) -> pa.Table:
    at, item, price = zip(*rows, strict=True)
    return pa.table({"at": at, "item": item, "price": pa.array(price, pa.float64())})


def shown(answers: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in answers.to_pylist()]


def test_rows_of_the_live_window_are_filtered_and_sorted() -> None:
    """Rows at 3 5 9 12: the window of ten ends at 13 and begins at 3.

    3   5     9     12
    [--------------------)
    """
    register = panes.register("bids", lateness=5)
    register.prepare(ASKED)
    register.push(bids((2, 7, 1.0), (3, 7, 9.0), (12, 7, 4.0), (9, 8, 1.0), (5, 7, None)))
    answers = register.ask(ASKED)
    assert answers.column_names == ["window_start", "window_end", "at", "item", "price"]
    assert shown(answers) == [(3, 13, 5, 7, None), (3, 13, 12, 7, 4.0), (3, 13, 3, 7, 9.0)]
    assert register.state["rows"] == 5
    assert register.prepared() == [(ASKED, None)]


def test_a_shorter_window_is_answered_from_the_rows_of_a_longer_one() -> None:
    register = panes.register("bids", lateness=0)
    register.prepare(ASKED)
    register.push(bids((1, 7, 1.0), (8, 8, 2.0), (9, 7, 3.0)))
    text = "SELECT b.price * 2 AS twice FROM bids b [RANGE 2 WATTR at] ORDER BY twice DESC"
    assert shown(register.ask(text)) == [(8, 10, 6.0), (8, 10, 4.0)]


def test_rows_come_in_any_order_and_leave_when_they_are_too_old() -> None:
    register = panes.register("bids", lateness=100)
    every = "SELECT at FROM bids [RANGE 10 WATTR at]"
    register.prepare(every)
    seen: list[int] = []
    for batch in ((5, 3), (20,), (12, 11, 10), (29, 19, 21)):
        register.push(bids(*((at, 1, 0.0) for at in batch)))
        seen += batch
        want = sorted(at for at in seen if at > max(seen) - 10)
        assert [row[2] for row in shown(register.ask(every))] == want
    assert register.state["rows"] < len(seen)


def test_nan_is_the_greatest_and_null_comes_first_unless_said() -> None:
    register = panes.register("bids", keep_rows=10, lateness=0)
    register.add("n", "SELECT count(*) AS n FROM bids [TUMBLING 5 WATTR at]")
    register.push(bids((1, 1, math.nan), (2, 1, None), (3, 1, -0.0), (4, 1, math.inf)))
    order = {
        "price": [2, 3, 4, 1],
        "price DESC": [1, 4, 3, 2],
        "price NULLS LAST": [3, 4, 1, 2],
        "price DESC NULLS FIRST": [2, 1, 4, 3],
    }
    for by, want in order.items():
        text = f"SELECT at FROM bids [RANGE 50 WATTR at] ORDER BY {by}"
        assert [row[2] for row in shown(register.ask(text))] == want, by


def test_the_last_rows_as_they_came_are_asked_by_number() -> None:
    register = panes.register("bids", keep_rows=2, lateness=0)
    register.add("n", "SELECT count(*) AS n FROM bids [TUMBLING 5 WATTR at]")
    register.push(bids((9, 1, 1.0), (9, 2, 2.0), (9, 3, 3.0)))
    assert shown(register.ask("SELECT item FROM bids [ROWS 2]")) == [(1, 3, 2), (1, 3, 3)]
    with pytest.raises(QueryError, match="keep_rows=3"):
        register.ask("SELECT item FROM bids [ROWS 3]")


def test_before_anything_came_there_is_nothing() -> None:
    register = panes.register("bids", schema=bids((1, 1, 1.0)).schema, lateness=0)
    register.prepare(ASKED)
    assert shown(register.ask(ASKED)) == []


def test_a_question_prepared_late_waits_until_its_window_is_known() -> None:
    register = panes.register("bids", lateness=0)
    register.add("n", "SELECT count(*) AS n FROM bids [TUMBLING 5 WATTR at]")
    register.push(bids((1, 7, 1.0)))
    register.prepare(ASKED)
    register.push(bids((5, 7, 2.0)))
    with pytest.raises(QueryError, match="knows rows from 2 on"):
        register.ask(ASKED)
    register.push(bids((11, 7, 3.0)))
    assert [row[2] for row in shown(register.ask(ASKED))] == [5, 11]


def test_a_forgotten_question_frees_its_rows() -> None:
    register = panes.register("bids", lateness=0)
    register.prepare(ASKED)
    register.push(bids((1, 7, 1.0)))
    register.forget(ASKED)
    assert register.state["rows"] == 0
    with pytest.raises(QueryError, match="no rows are kept"):
        register.ask(ASKED)


@pytest.mark.parametrize(
    ("text", "message"),
    {
        "SELECT nope FROM bids [RANGE 10 WATTR at]": "no column `nope`",
        "SELECT * FROM bids [RANGE 10 WATTR at] WHERE rand() > 0": "rand",
        "SELECT * FROM bids [RANGE 10 WATTR at] LIMIT 'x'": "whole number of rows",
        "SELECT * FROM bids [RANGE 10 WATTR item]": "the register on",
        "SELECT at, * FROM bids [RANGE 10 WATTR at]": "stands alone",
        "SELECT at, item AS at FROM bids [RANGE 10 WATTR at]": "another column named",
        "SELECT * FROM bids [RANGE 10 WATTR at] ORDER BY 1": "no numbers of columns",
        "SELECT * FROM sales [RANGE 10 WATTR at]": "only rows of `bids`",
    }.items(),
)
def test_what_cannot_be_asked_is_refused(text: str, message: str) -> None:
    register = panes.register("bids", lateness=0)
    register.prepare(ASKED)
    register.push(bids((1, 7, 1.0)))
    with pytest.raises(PanesError, match=message):
        register.ask(text)


def test_a_bad_question_is_refused_when_it_is_prepared_and_changes_nothing() -> None:
    register = panes.register("bids", lateness=0)
    with pytest.raises(OptionError, match="within"):
        register.prepare(ASKED, within=3)
    with pytest.raises(QueryError, match="keep_rows=5"):
        register.prepare("SELECT * FROM bids [ROWS 5]")
    assert register.prepared() == []
    with pytest.raises(InputError, match="no query yet"):
        register.push(bids((1, 7, 1.0)))


def test_columns_may_be_named_with_their_stream() -> None:
    register = panes.register("bids", lateness=5, keep_rows=10)
    register.add("q", "SELECT count(*) AS n FROM bids [TUMBLING 10 WATTR at]")
    register.push(bids((1, 3, 1.0), (2, 1, 1.0), (3, 2, 1.0)))
    asked = "SELECT b.item FROM bids b [RANGE 10 WATTR at] WHERE b.item > 1 ORDER BY b.item"
    assert register.ask(asked).column("item").to_pylist() == [2, 3]
