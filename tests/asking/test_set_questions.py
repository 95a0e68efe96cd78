"""INTERSECT and EXCEPT asked of a register, whose panes hold each side's values.

Catches: a set operation that is answered only if it is registered, sides of two moments, NULL and
NaN taken for no value, and a side that is not stored.
"""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panes
from panes.errors import QueryError
from panes.process.register import Register
from tests.support import assert_rows

W = "[RANGE 20 SLIDE 10 WATTR at]"
ONCE = "[RANGE 20 WATTR at]"
BIDS = pa.table({
    "at": [1, 4, 12, 13, 14, 19, 19],
    "item": [7, 8, 7, None, None, 9, 8],
    "a": [2, 2, 0, 2, 0, 2, 0],
    "b": [0, 2, 2, 2, 2, 0, 0],
})  # fmt: skip
SIDES = f"SELECT item FROM bids {ONCE} WHERE a > 1 {{}} SELECT item FROM bids {ONCE} WHERE b > 1"


def opened(*texts: str, rows: pa.Table = BIDS) -> Register:
    register = panes.register("bids", lateness=5, schema=BIDS.schema)
    for number, text in enumerate(texts):
        register.add(f"q{number}", text)
    register.push(rows)
    return register


def values(answers: pa.Table) -> list[object]:
    assert answers.column_names == ["window_start", "window_end", "item"]
    assert set(answers["window_end"].to_pylist()) <= {20}
    return sorted(answers["item"].to_pylist(), key=str)


@pytest.mark.parametrize(
    ("operation", "want"),
    [("INTERSECT", [7, 8, None]), ("EXCEPT", [9]), ("MINUS", [9]), ("intersect distinct", None)],
)
def test_sets_are_compared_where_each_side_is_stored(operation: str, want: list[object]) -> None:
    distinct = "SELECT DISTINCT item FROM bids {} WHERE {} > 1"
    register = opened(distinct.format(W, "a"), distinct.format(W, "b"))
    assert values(register.ask(SIDES.format(operation))) == (want or [7, 8, None])


def test_any_query_with_the_group_by_and_the_filters_will_do() -> None:
    register = opened(
        f"SELECT item, count(*) FILTER (WHERE a > 1) AS n FROM bids {W} GROUP BY item",
        f"SELECT item, max(a) AS most FROM bids {W} WHERE b > 1 GROUP BY item",
    )
    assert values(register.ask(SIDES.format("EXCEPT"))) == [9]


def test_a_side_about_the_values_is_looked_up_among_all() -> None:
    register = opened(f"SELECT DISTINCT item FROM bids {W}")
    text = f"SELECT item FROM bids {ONCE} EXCEPT SELECT item FROM bids {ONCE} WHERE item > 7"
    assert values(register.ask(text)) == [7, None]
    renamed = text.replace("EXCEPT SELECT item", "INTERSECT SELECT item AS other")
    assert values(register.ask(renamed)) == [8, 9]


def test_a_side_that_is_not_stored_is_refused_with_what_to_add() -> None:
    register = opened(f"SELECT DISTINCT item FROM bids {W} WHERE a > 1")
    with pytest.raises(QueryError, match="answers which values of item are there with") as refused:
        register.ask(SIDES.format("INTERSECT"))
    assert "Hint: add a query that needs it" in str(refused.value)
    register.add("other", f"SELECT DISTINCT item FROM bids {W} WHERE b > 1")
    with pytest.raises(QueryError, match="is known of these rows from 20 on"):
        register.ask(SIDES.format("INTERSECT"))
    register.push(BIDS.set_column(0, "at", pa.compute.add(BIDS["at"], 40)))
    found = register.ask(SIDES.format("INTERSECT"))
    assert sorted(found["item"].to_pylist(), key=str) == [7, 8, None]
    assert set(found["window_end"].to_pylist()) == {60}


def test_a_registered_operation_is_asked_as_before() -> None:
    register = opened(SIDES.format("INTERSECT").replace(ONCE, W))
    assert values(register.ask(SIDES.format("INTERSECT"))) == [7, 8, None]


def test_nan_is_one_value_and_so_are_both_zeros() -> None:
    rows = pa.table({
        "at": [1, 2, 3, 4, 5, 6],
        "item": [math.nan, -0.0, 1.0, -math.nan, 0.0, 2.0],
        "side": [0, 0, 0, 1, 1, 1],
    })  # fmt: skip
    register = panes.register("bids", lateness=5)
    for side in (0, 1):
        register.add(f"q{side}", f"SELECT DISTINCT item FROM bids {W} WHERE side = {side}")
    register.push(rows)
    both = f"SELECT item FROM bids {ONCE} WHERE side = 0 {{}} SELECT item FROM bids {ONCE} WHERE "
    found = register.ask(both.format("INTERSECT") + "side = 1")["item"].to_pylist()
    assert len(found) == 2
    assert 0.0 in found
    assert register.ask(both.format("EXCEPT") + "side = 1")["item"].to_pylist() == [1.0]


@given(
    drawn=st.lists(
        st.tuples(st.integers(0, 19), st.sampled_from([7, 8, 9, None]), st.integers(0, 2),
                  st.integers(0, 2)),
        min_size=1, max_size=30,
    ),
    operation=st.sampled_from(["INTERSECT", "EXCEPT"]),
)  # fmt: skip
def test_what_is_asked_is_what_the_standing_query_answers(
    drawn: list[tuple[int, int | None, int, int]], operation: str
) -> None:
    rows = pa.table([list(c) for c in zip(*drawn, strict=True)], schema=BIDS.schema)
    distinct = "SELECT DISTINCT item FROM bids {} WHERE {} > 1"
    register = opened(distinct.format(W, "a"), distinct.format(W, "b"), rows=rows)
    text = SIDES.format(operation)
    standing = panes.oracle(text.replace(ONCE, W), bids=rows)
    end = 10 * (max(rows["at"].to_pylist()) // 10 + 1)
    want = standing.filter(pa.compute.equal(standing["window_end"], end))
    assert_rows(register.ask(text), want)
