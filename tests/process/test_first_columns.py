"""Queries that wait for the columns of their stream: the first batch tells which can be answered.

add("good")   add("typo")          push ──► answers of "good"
                                     └────► "typo" is set aside: failed, FailedQueryWarning
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes
from panes.errors import FailedQueryWarning, InputError, QueryError, UnknownColumnError
from panes.process.register import Register

GOOD = "SELECT count(*) AS n FROM t [TUMBLING 10 WATTR at]"
BAD = {
    "typo": "SELECT sum(y) AS s FROM t [TUMBLING 10 WATTR at]",
    "key": "SELECT y, count(*) AS n FROM t [TUMBLING 10 WATTR at] GROUP BY y",
    "type": "SELECT sum(word) AS s FROM t [TUMBLING 10 WATTR at]",
    "filter": "SELECT count(*) AS n FROM t [TUMBLING 10 WATTR at] WHERE word + at > 1 AND nope",
    "text as time": "SELECT count(*) AS n FROM t [TUMBLING 1 minute WATTR at]",
}
QUESTIONS = (
    "SELECT max(y) AS m FROM t [ROWS 5]",
    "SELECT max(word) AS m FROM t [ROWS 5]",
    "SELECT * FROM t [RANGE 5 WATTR at] WHERE y > 1",
)
ROWS = pa.table({"at": [1, 2, 12], "x": [1, 2, 3], "word": ["a", "b", "c"]})


def opened() -> Register:
    return panes.register("t", lateness=0)


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("order", ["first", "last"])
def test_one_bad_query_does_not_stop_the_others(name: str, order: str) -> None:
    register = opened()
    texts = {"good": GOOD, name: BAD[name]}
    for each in sorted(texts, key=lambda n: (n == "good") == (order == "first")):
        register.add(each, texts[each])
    with pytest.warns(FailedQueryWarning, match=f"query `{name}` failed and is set aside"):
        answers = register.push(ROWS)
    assert {n: t["n"].to_pylist() for n, t in answers.items()} == {"good": [2]}
    assert list(register.failed) == [name]
    assert list(register.queries()) == ["good"]
    assert register.finish()["good"]["n"].to_pylist() == [1]


def test_all_bad_ones_are_named_together() -> None:
    register = opened()
    for name, text in {**BAD, "good": GOOD}.items():
        register.add(name, text)
    for text in QUESTIONS:
        register.prepare(text)
    with pytest.warns(FailedQueryWarning):
        register.push(ROWS)
    assert set(register.failed) == {*BAD, *QUESTIONS}
    assert "no column `y` in stream `t`" in register.failed["typo"]


def test_a_batch_that_no_query_can_read_is_refused() -> None:
    """It is rather the batch that is wrong: nothing is set aside, and the right one can come."""
    register = opened()
    register.add("a", GOOD)
    register.add("b", GOOD.replace("count(*)", "max(x)"))
    register.prepare(QUESTIONS[0].replace("y", "x"))
    for _ in range(2):
        with pytest.raises(UnknownColumnError, match="query `a`: no column `at` in stream `t`"):
            register.push(pa.table({"time": [1], "z": [2]}))
    assert register.failed == {}
    assert set(register.push(ROWS)) == {"a", "b"}


def test_a_fault_of_the_batch_still_refuses_the_batch() -> None:
    register = opened()
    register.add("good", GOOD)
    register.add("typo", BAD["typo"])
    with pytest.raises(InputError):
        register.push("no table")
    assert register.failed == {}


def test_a_query_that_was_set_aside_can_be_put_right() -> None:
    register = opened()
    register.add("good", GOOD)
    register.add("typo", BAD["typo"])
    with pytest.warns(FailedQueryWarning):
        register.push(ROWS.slice(0, 1))
    register.add("typo", BAD["typo"].replace("sum(y)", "sum(x)"))
    assert register.failed == {}
    assert set(register.push(ROWS.slice(1))) >= {"good"}


def test_the_first_query_says_which_column_orders_the_rows_for_questions() -> None:
    """Queries over another column have windows of their own."""
    register = opened()
    register.add("good", GOOD)
    register.add("other", GOOD.replace("at]", "x]"))
    with pytest.raises(QueryError, match="the question runs on `x`, and the register on `at`"):
        register.prepare("SELECT * FROM t [RANGE 5 WATTR x]")
    with pytest.raises(QueryError, match="the question runs on `x`, and the register on `at`"):
        register.prepare("SELECT max(x) AS m FROM t [RANGE 5 WATTR x]", within=1)
    register.add("same", GOOD.replace("at]", "AT]"))
    assert set(register.push(ROWS)) == {"good", "same"}
    assert register.finish()["other"]["n"].to_pylist() == [3]


def test_a_bad_query_does_not_say_which_column_orders_the_rows() -> None:
    register = opened()
    register.add("typo", BAD["typo"].replace("WATTR at", "WATTR nope"))
    register.add("good", GOOD)
    with pytest.warns(FailedQueryWarning, match="query `typo` failed and is set aside"):
        assert set(register.push(ROWS)) == {"good"}
    assert register.progress == 12


def test_an_added_query_that_cannot_be_answered_is_refused_with_its_name() -> None:
    register = panes.register("t", lateness=0, schema=ROWS.schema)
    for name, text in BAD.items():
        if name != "text as time":
            with pytest.raises(panes.PanesError, match=f"query `{name}`: "):
                register.add(name, text)
    assert register.queries() == {}
    register.add("good", GOOD)
    assert set(register.push(ROWS)) == {"good"}
