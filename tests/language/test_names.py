"""What a name or a literal of a query stands for, and how messages call it."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import panes
from tests.support import answers_to

W = "[TUMBLING 10 WATTR at]"


def test_having_may_ask_for_an_aggregate_that_is_not_selected() -> None:
    t = pa.table({"at": [1, 2, 11], "x": [60, 70, 5]})
    assert answers_to(f"SELECT count(*) AS n FROM t {W} HAVING sum(x) < 100", t=t) == [{"n": 1}]


def test_literals_are_compared_as_written() -> None:
    t = pa.table({"at": [1, 2], "s": ["a", "A"]})
    with pytest.raises(panes.QueryError, match="neither grouped nor aggregated"):
        answers_to(f"SELECT s = 'a' AS f, count(*) AS n FROM t {W} GROUP BY s = 'A'", t=t)


def test_a_column_of_the_stream_comes_before_an_alias() -> None:
    t = pa.table({"at": [1, 2], "item": ["a", "A"], "price": [4.0, 9.0]})
    text = f"SELECT lower(item) AS item, count(*) AS n FROM t {W} GROUP BY item"
    assert answers_to(text, t=t) == [{"item": "a", "n": 1}, {"item": "a", "n": 1}]
    again = f"SELECT max(price) AS price FROM t {W} HAVING max(price) > 5"
    assert answers_to(again, t=t) == [{"price": 9.0}]


def test_a_key_selected_twice_is_there_twice() -> None:
    t = pa.table({"at": [1], "s": ["a"]})
    text = f"SELECT s, s AS again, count(*) AS n FROM t {W} GROUP BY s"
    assert answers_to(text, t=t) == [{"s": "a", "again": "a", "n": 1}]


def test_a_qualifier_is_the_stream_or_a_struct_and_nothing_else() -> None:
    t = pa.table({"at": [1], "x": [200], "p": [{"x": 2}]})
    assert answers_to(f"SELECT max(p.x) AS a, max(b.x) AS c FROM t b {W}", t=t) == [
        {"a": 2, "c": 200}
    ]
    with pytest.raises(panes.PanesError, match="no column `asks` in stream `t`"):
        answers_to(f"SELECT max(asks.x) AS a FROM t {W}", t=t)


def test_columns_may_be_called_as_we_call_ours() -> None:
    t = pa.table(
        {"at": [1, 2, 3], "x": [10, 20, 30], "__row": [2, 2, 0], "__k0": [1, 1, 1], "c0": [5, 5, 5]}
    )
    text = (
        f"SELECT __row, __k0, c0, sum(x) AS s FROM t {W} WHERE __row > 1 GROUP BY __row, __k0, c0"
    )
    assert answers_to(text, t=t) == [{"__row": 2, "__k0": 1, "c0": 5, "s": 30}]
    with pytest.raises(panes.QueryError, match="a column that every answer has"):
        answers_to(f"SELECT max(x) AS window_end FROM t {W}", t=t)


def test_an_error_speaks_of_the_query_and_not_of_our_columns() -> None:
    t = pa.table({"at": [1], "x": pa.array([100], pa.int8())})
    with pytest.raises(panes.PanesError, match=r"cannot evaluate `max\(x\) \* max\(x\)`"):
        answers_to(f"SELECT max(x) * max(x) AS m FROM t {W}", t=t)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"SELECT x + 1 AS y, count(*) AS n FROM t {W} GROUP BY x HAVING 1 % x > 0", "`1 % x > 0`"),
        ("SELECT x[1] AS y FROM t [RANGE 1 RATTR at SLIDE 1 ROW]", r"`x\[1\]` is not translated"),
        (f"SELECT x[1] AS y, count(*) AS n FROM t {W} GROUP BY x", r"`x\[1\]` is not translated"),
        ("SELECT 1 % x AS y FROM t [RANGE 1 RATTR at SLIDE 1 ROW]", "evaluate `1 % x`"),
    ],
)
def test_an_error_speaks_of_keys_and_of_a_row_by_their_own_names(text: str, said: str) -> None:
    with pytest.raises(panes.PanesError, match=said):
        answers_to(text, t=pa.table({"at": [1], "x": [0]}))


ROWS = "[RANGE 1 RATTR at SLIDE 1 ROW]"


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (f"SELECT struct(x, max(s), 1) AS y FROM t {W} GROUP BY x",
         {"x": 5, "col2": "a", "col3": 1}),
        (f"SELECT (t.x, s) AS y FROM t {W} GROUP BY x, s", {"x": 5, "s": "a"}),
        (f"SELECT struct(X + 1, x AS z) AS y FROM t {W} GROUP BY x", {"col1": 6, "z": 5}),
        (f"SELECT struct(window_end, count(*)) AS y FROM t {W}", {"window_end": 10, "col2": 1}),
        (f"SELECT arrays_zip(array(x), collect_list(s)) AS y FROM t {W} GROUP BY x",
         [{"0": 5, "1": "a"}]),
        (f"SELECT struct(struct(max(x)) AS m) AS y FROM t {W}", {"m": {"col1": 5}}),
        (f"SELECT struct(x, t.s) AS y FROM t {ROWS}", {"x": 5, "s": "a"}),
        (f"SELECT arrays_zip(l, array(x)) AS y FROM t {ROWS}", [{"l": 7, "1": 5}]),
        (f"SELECT struct(x).x + 1 AS y FROM t {ROWS}", 6),
    ],
)  # fmt: skip
def test_fields_are_called_as_the_query_calls_what_they_are_made_of(
    text: str, made: object
) -> None:
    """They were called as our own columns are that stand for keys, aggregates and rows."""
    t = pa.table({"at": [1], "x": [5], "s": ["a"], "l": [[7]]})
    assert [row["y"] for row in answers_to(text, t=t)] == [made]
    assert panes.oracle(text, t=t)["y"].to_pylist() == [made]


def test_what_reads_answers_finds_their_fields_by_name() -> None:
    inner = f"SELECT k, struct(k, max(x)) AS y FROM t {W} GROUP BY k"
    text = f"SELECT max(y.k) AS k, max(y.col2) AS m FROM ({inner}) [TUMBLING 20]"
    t = pa.table({"at": [1, 2], "x": [5, 6], "k": [1, 2]})
    assert answers_to(text, t=t) == [{"k": 2, "m": 6}]


DEVICES = pa.table({"at": [1, 2, 9, 12], "k": ["a", "b", "b", "a"]})


def test_a_windows_edges_stand_in_select_and_having() -> None:
    """
    at    0    5    10   15
    a      .         | .
    b       .     .  |
    """
    text = (
        f"SELECT k, window_end - max(at) AS silent FROM t {W} GROUP BY k "
        "HAVING max(at) < window_end - 5 OR window_start >= 10"
    )
    assert answers_to(text, t=DEVICES) == [{"k": "a", "silent": 9}, {"k": "a", "silent": 8}]
    assert panes.oracle(text, t=DEVICES)["silent"].to_pylist() == [9, 8]


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT max(window_end - at) AS m FROM t {W}",
        f"SELECT count(*) AS n FROM t {W} WHERE window_end > 5",
        f"SELECT count(*) FILTER (WHERE at < window_end) AS n FROM t {W}",
        "SELECT at, window_end FROM t [RANGE 5 RATTR at SLIDE 1 ROW]",
    ],
)
@pytest.mark.parametrize("answer", [panes.sql, panes.oracle])
def test_elsewhere_they_are_columns_of_the_stream(text: str, answer: Callable[..., object]) -> None:
    with pytest.raises(panes.PanesError, match="`window_end` of a window is known in SELECT and"):
        answer(text, t=DEVICES)


@pytest.mark.parametrize("answer", [panes.sql, panes.oracle])
def test_rows_around_an_answer_are_looked_up_by_its_window(
    answer: Callable[..., pa.Table],
) -> None:
    """Per-row windows have no edges of their own, so these are columns like any other."""
    minutes = panes.sql(f"SELECT count(*) AS n FROM t {W}", t=DEVICES)
    text = (
        "SELECT window_start, window_end AS until, sum(n) AS n "
        "FROM minutes [RANGE 20 RATTR window_end SLIDE 1 ROW] HAVING window_end > 10"
    )
    assert answer(text, minutes=minutes).to_pylist() == [{"window_start": 10, "until": 20, "n": 4}]
