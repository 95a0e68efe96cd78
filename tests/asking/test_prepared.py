"""What preparing a question does, one behaviour at a time: sharing, intervals, refusals.

That answers are the oracle's, or intervals around them, is proved in
``tests/reference/test_prepared.py``.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import panes
from panes.axis import SECOND
from panes.errors import FailedQueryWarning, QueryError

HIGH = "SELECT max(x) AS h FROM t [ROWS {}]"
SUM = "SELECT sum(x) AS s FROM t [RANGE {} WATTR at]"
AXIS = "SELECT count(*) AS n FROM t [TUMBLING 10 WATTR at]"


def rows(*pairs: tuple[int, Any], kind: pa.DataType | None = None) -> pa.Table:
    at, x = zip(*pairs, strict=True)
    return pa.table({"at": pa.array(at, pa.int64()), "x": pa.array(x, kind or pa.int64())})


def register(**options: Any) -> panes.Register:
    reg = panes.register("t", **options)
    reg.add("axis", AXIS)
    return reg


def low_high(reg: panes.Register, text: str, within: float) -> list[tuple[Any, Any]]:
    table = reg.ask(text, within=within)
    name = table.column_names[2]
    return list(
        zip(table[f"low_{name}"].to_pylist(), table[f"high_{name}"].to_pylist(), strict=True)
    )


def test_min_and_max_of_the_last_rows_need_no_kept_rows() -> None:
    reg = register()
    reg.prepare("SELECT max(x) AS h, min(x) AS l FROM t [ROWS 3]")
    reg.push(rows((1, 9), (2, 4), (3, 6), (2, 5)))
    asked = reg.ask("SELECT max(x) AS h, min(x) AS l FROM t [ROWS 3]")
    assert asked.to_pylist() == [{"window_start": 1, "window_end": 4, "h": 6, "l": 4}]
    assert reg.state["rows"] == 0
    smaller = reg.ask("SELECT max(x) - min(x) AS spread FROM t [ROWS 2]")
    assert smaller["spread"].to_pylist() == [1], "any smaller size, and any expression around them"


def test_rows_are_counted_before_where() -> None:
    """::

    x     9  1  2  3        the last three are 1, 2, 3, of which WHERE leaves 2 and 3
    """
    reg = register()
    text = "SELECT max(x) AS h, min(x) AS l FROM t [ROWS 3] WHERE x <> 1"
    reg.prepare(text)
    reg.push(rows((1, 9), (1, 1), (1, 2), (1, 3)))
    assert reg.ask(text).to_pylist() == [{"window_start": 1, "window_end": 4, "h": 3, "l": 2}]
    reg.push(rows((1, 1), (1, 1), (1, 1)))
    assert reg.ask(text).to_pylist() == [], "WHERE leaves nothing in the window"


def test_a_null_is_no_answer_and_yet_a_row() -> None:
    reg = register()
    reg.prepare(HIGH.format(2))
    reg.push(rows((1, 9), (2, None), (3, None)))
    assert reg.ask(HIGH.format(2))["h"].to_pylist() == [None]


def test_types_stay_what_they_are() -> None:
    stamps = pa.array([5, 7, None], pa.timestamp("ms", "Europe/Paris"))
    days = pa.array([dt.date(2026, 1, 2), dt.date(2026, 1, 1), None], pa.date32())
    table = pa.table(
        {"at": [1, 2, 3], "x": stamps, "d": days, "u": pa.array([1, 2, 3], pa.uint64())}
    )
    reg = register(keep_rows=10)
    text = "SELECT max(x) AS h, min(d) AS l, max(u) AS u FROM t [ROWS 3]"
    reg.push(table)
    from_rows = reg.ask(text)
    reg.prepare(text)
    assert reg.ask(text).equals(from_rows)
    assert reg.ask(text).schema.field("h").type == stamps.type


def test_questions_share_a_structure_whatever_their_sizes() -> None:
    reg = register(schema=rows((0, 0)).schema)
    for size in (5, 50, 500):
        reg.prepare(HIGH.format(size))
    reg.prepare("SELECT max(x) AS h FROM t [ROWS 7] WHERE x > 2")
    reg.prepare("SELECT sum(x) AS s, count(x) AS n FROM t [RANGE 60 WATTR at]", within=10)
    assert reg.explain().endswith(
        "\n"
        "prepared   rows that can be max of `x`; ROWS up to 500, 3 questions\n"
        "           rows that can be max of `x` where `x` > 2; ROWS up to 7, 1 question\n"
        "           TimeGram of `x`, within 10; RANGE up to 60, 1 question\n"
    )
    assert reg.state["prepared"] == 5


# rows     0  1  2  3  4  5
#          9  8  7 | 6  5  4         prepared after three rows
#                   [     )          [ROWS 2]: all of it is known
#             [           )          [ROWS 4]: 8 came before


def test_what_came_before_is_not_invented() -> None:
    reg = register()
    reg.push(rows((1, 9), (2, 8), (3, 7)))
    reg.prepare(HIGH.format(4))
    with pytest.raises(panes.QueryError, match=r"begins at -1, and .* rows from 3 on"):
        reg.ask(HIGH.format(4))
    reg.push(rows((4, 6), (5, 5)))
    assert reg.ask(HIGH.format(2))["h"].to_pylist() == [6]
    with pytest.raises(panes.QueryError, match=r"begins at 1, .*\n\n.*: 2 rows from now"):
        reg.ask(HIGH.format(4))
    reg.push(rows((6, 4), (7, 3)))
    assert reg.ask(HIGH.format(4))["h"].to_pylist() == [6]


def test_a_larger_size_is_answered_from_the_rows_to_come() -> None:
    reg = register()
    reg.prepare(HIGH.format(2))
    reg.push(rows(*((i, 100 - i) for i in range(10))))
    with pytest.raises(panes.QueryError, match="up to 2 rows are prepared, and one of 4 rows"):
        reg.ask(HIGH.format(4))
    reg.prepare(HIGH.format(4))
    with pytest.raises(panes.QueryError, match="knows rows from 8 on"):
        reg.ask(HIGH.format(4))
    assert reg.ask(HIGH.format(2))["h"].to_pylist() == [92]
    reg.push(rows((10, 0), (11, 0)))
    assert reg.ask(HIGH.format(4))["h"].to_pylist() == [92]


def test_kept_rows_are_known_from_the_start() -> None:
    """Five are kept; three of them make a window that was never prepared before."""
    reg = register(keep_rows=5)
    reg.push(rows(*((i, 100 - i) for i in range(10))))
    reg.prepare(HIGH.format(8))
    assert reg.ask(HIGH.format(3))["h"].to_pylist() == [93]
    with pytest.raises(panes.QueryError, match="knows rows from 5 on"):
        reg.ask(HIGH.format(8))
    reg.push(rows((10, 0), (11, 0), (12, 0)))
    assert reg.ask(HIGH.format(8))["h"].to_pylist() == [95]


def test_what_no_question_needs_is_forgotten() -> None:
    reg = register()
    reg.prepare(HIGH.format(1_000))
    reg.prepare(HIGH.format(5))
    reg.prepare(SUM.format(100), within=4)
    reg.push(rows(*((i, 1_000 - i) for i in range(900))))
    before = reg.state["prepared_bytes"]
    reg.forget(HIGH.format(1_000))
    assert before - reg.state["prepared_bytes"] == 16 * (900 - 5)
    assert reg.ask(HIGH.format(5))["h"].to_pylist() == [105]
    reg.forget(HIGH.format(5))
    reg.forget(SUM.format(100), within=4.0)
    assert reg.prepared() == []
    assert reg.state["prepared_bytes"] == 0
    with pytest.raises(
        panes.QueryError, match=r"ROWS 5\]` is not prepared\n\nHint: prepared: none"
    ):
        reg.forget(HIGH.format(5))


def test_preparing_twice_is_preparing_once() -> None:
    reg = register()
    reg.prepare(HIGH.format(5))
    reg.prepare(HIGH.format(5))
    assert reg.prepared() == [(HIGH.format(5), None)]
    reg.forget(HIGH.format(5))
    assert reg.state["prepared"] == 0


def test_sharing_3_2_4_the_report_s_queries_by_a_register() -> None:
    """Values of T1 ... T7; buckets of width 4 begin at 0 here, and at -10 in the report."""
    reg = register()
    asked = {"sum(x)": (4, 11), "max(x)": (3, 7), "avg(x)": (2, 2)}
    for what, (size, _) in asked.items():
        reg.prepare(f"SELECT {what} AS a FROM t [ROWS {size}]", within=4)
    reg.push(rows(*zip(range(1, 8), [3, -10, -9, 5, 2, 7, -3], strict=True)))
    found = {}
    for what, (size, truth) in asked.items():
        ((low, high),) = low_high(reg, f"SELECT {what} AS a FROM t [ROWS {size}]", 4)
        assert low <= truth <= high
        found[what] = low, high
    assert found == {"sum(x)": (4, 20), "max(x)": (4, 8), "avg(x)": (0, 4)}


# at      0         10        20
#         x  x  x  x  x  x  x  |        panes of 10, newest row 18
#                 [          )          RANGE 11 begins inside a pane
#                    ^ comes last


def test_a_window_that_begins_inside_a_pane_is_known_by_an_interval() -> None:
    reg = register()
    reg.add("sum", "SELECT sum(x) AS s FROM t [TUMBLING 10 WATTR at]")
    reg.prepare(SUM.format(11), within=10)
    reg.push(rows(*((i, i) for i in range(0, 19, 3))))
    with pytest.raises(panes.QueryError, match=r"inside a pane\n\nHint: RANGE 10 or 20 .*within"):
        reg.ask(SUM.format(11))
    reg.push(rows((8, -7)))
    assert reg.ask(SUM.format(11), within=10).to_pylist() == [
        {"window_start": 8, "window_end": 19, "s": 45.0, "low_s": 20.0, "high_s": 70.0}
    ]


def test_a_prepared_question_may_be_all_that_a_register_has() -> None:
    reg = panes.register("t", lateness="0 seconds", max_ahead=None)
    text = "SELECT count(*) AS n, max(x) AS h FROM t [RANGE 1 minute WATTR at]"
    reg.prepare(text, within=0.5)
    at = pa.array([60 * SECOND, 90 * SECOND, 119 * SECOND], pa.timestamp("us", "UTC"))
    reg.push(pa.table({"at": at, "x": [1.25, 2.25, 3.0]}))
    (answer,) = reg.ask(text, within=0.5).to_pylist()
    assert answer["window_start"] == dt.datetime(1970, 1, 1, 0, 0, 59, 1, tzinfo=dt.UTC)
    assert (answer["n"], answer["low_h"], answer["high_h"]) == (3, 3.0, 3.5)
    with pytest.raises(panes.QueryError, match="up to 1 minute are prepared, and one of 2 minutes"):
        reg.ask(text.replace("1 minute", "2 minutes"), within=0.5)


def test_nan_and_infinities_are_what_they_are_in_sql() -> None:
    reg = register()
    text = "SELECT sum(x) AS s, min(x) AS l, max(x) AS h, count(x) AS n FROM t [ROWS {}]"
    reg.prepare(text.format(9), within=1)
    floats = [math.nan, math.inf, -math.inf, 1e300, 2.5]
    reg.push(rows(*enumerate(floats), kind=pa.float64()))

    def ends(size: int) -> list[float]:
        (row,) = reg.ask(text.format(size), within=1).to_pylist()
        assert row["n"] == size
        return [row[c] for c in ("low_s", "high_s", "low_l", "high_l", "low_h", "high_h")]

    far = float(2**31 - 1)
    assert ends(1) == [2, 3, 2, 3, 2, 3]
    assert ends(2) == [far + 2, math.inf, 2, 3, far, math.inf]
    assert ends(3) == [-math.inf, -math.inf, -math.inf, -far, far, math.inf]
    assert np.isnan(ends(4)[:2]).all()
    assert np.isnan(ends(5)[-2:]).all()


def test_a_batch_that_is_refused_changes_nothing_prepared() -> None:
    reg = register()
    reg.prepare(HIGH.format(3))
    reg.push(rows((1, 1)))
    with pytest.raises(panes.PanesError, match="has no column `x`"):
        reg.push(pa.table({"at": [2], "other": [2]}))
    assert reg.ask(HIGH.format(3)).to_pylist() == [{"window_start": -2, "window_end": 1, "h": 1}]


def test_a_group_by_is_answered_from_kept_rows_as_before() -> None:
    reg = register(keep_rows=3)
    reg.prepare(HIGH.format(3))
    reg.push(rows((1, 1), (2, 2), (3, 3)))
    grouped = reg.ask("SELECT x, count(*) AS n FROM t [ROWS 3] GROUP BY x")
    assert grouped["n"].to_pylist() == [1, 1, 1]
    assert reg.ask("SELECT median(x) AS m FROM t [ROWS 3]")["m"].to_pylist() == [2.0]


def test_names_are_in_any_case_and_an_aggregate_of_one_s_own_is_not_taken_for_ours() -> None:
    reg = register()
    reg.prepare("select MAX(X) as h from t [rows 2]")
    reg.push(rows((1, 1), (2, 2)))
    assert reg.ask("SELECT Max(x) AS h FROM t [ROWS 2]")["h"].to_pylist() == [2]
    own = panes.CustomAggregate(
        name="max",
        lift=lambda x: np.ones((1, len(x))),
        combine=np.add,
        lower=lambda partial: partial[0],
        empty=(0.0,),
        type=pa.float64(),
    )
    reg = register(aggregates=[own], keep_rows=2)
    with pytest.raises(panes.QueryError, match="of your own"):
        reg.prepare(HIGH.format(2))
    reg.push(rows((1, 1), (2, 9)))
    assert reg.ask(HIGH.format(2))["h"].to_pylist() == [2.0]


@pytest.mark.parametrize(
    ("text", "within", "said"),
    [
        (
            "SELECT x, max(at) AS h FROM t [ROWS 5] GROUP BY x",
            None,
            "no GROUP BY.*\n\n.*keep_rows=5",
        ),
        (AXIS + " GROUP BY x", 1, "no GROUP BY.*\n\n.*add a query with that GROUP BY"),
        ("SELECT sum(x) AS s FROM t [ROWS 5]", None, "sum.x. cannot be prepared.*\n\n.*within=10"),
        (
            "SELECT median(x) AS s FROM t [ROWS 5]",
            None,
            "only min and max can\n\n.*=5.$",
        ),
        ("SELECT max(s) AS h FROM t [ROWS 5]", None, "for numbers and times, got string"),
        (SUM.format(5), None, "read from panes"),
        ("SELECT median(x) AS m FROM t [ROWS 5]", 1, "no interval is known of median"),
        ("SELECT sum(DISTINCT x) AS m FROM t [ROWS 5]", 1, "no interval is known of sum"),
        ("SELECT sum(x) / 2 AS half FROM t [ROWS 5]", 1, "not of an expression such as half"),
        ("SELECT sum(x) AS s FROM t [ROWS 5] HAVING sum(x) > 1", 1, "HAVING cannot decide"),
        ("SELECT sum(x) AS s, max(x) AS low_s FROM t [ROWS 5]", 1, "are named `low_s`"),
        ("SELECT sum(d) AS s FROM t [ROWS 5]", 1, "got decimal.*\n\nHint: sum.CAST.d AS DOUBLE.."),
        (SUM.format(5), 0.5, "over whole numbers, so within is a whole number"),
        (SUM.format(5), 0, "positive width"),
        (SUM.format(5), "10 seconds", "a width of values, a number, got '10 seconds'"),
        ("SELECT sum(x) AS s FROM u [ROWS 5]", 1, "over `t` alone"),
        ("SELECT sum(x) AS s FROM t [RANGE ALL SLIDE 5 ROWS]", 1, "one window over a column, or"),
        ("SELECT sum(x) AS s FROM t [ROWS 5 WATTR x]", 1, "one window over a column, or"),
        ("SELECT sum(x) AS s FROM t [RANGE 5 WATTR x]", 1, "runs on `x`, and the register on `at`"),
        ("SELECT sum(y) AS s FROM t [ROWS 5]", 1, "no column `y`"),
    ],
)
def test_what_cannot_be_prepared_is_refused_at_once(text: str, within: Any, said: str) -> None:
    kinds = {"at": pa.int64(), "x": pa.int64(), "s": pa.string(), "d": pa.decimal128(9, 2)}
    reg = register(schema=pa.schema(kinds))
    with pytest.raises(panes.PanesError, match=said):
        reg.prepare(text, within=within)
    assert reg.prepared() == []
    assert reg.state["prepared_bytes"] == 0


def test_questions_that_wait_are_checked_with_the_first_batch() -> None:
    reg = register()
    reg.prepare(HIGH.format(5))
    reg.prepare("SELECT max(y) AS h FROM t [ROWS 5]")
    with pytest.warns(panes.FailedQueryWarning, match="no column `y`"):
        reg.push(rows((1, 1)))
    assert list(reg.failed) == ["SELECT max(y) AS h FROM t [ROWS 5]"]
    assert reg.ask(HIGH.format(5))["h"].to_pylist() == [1]


def test_asking_for_what_is_not_prepared_says_what_to_do() -> None:
    reg = register()
    reg.prepare(SUM.format(5), within=4)
    reg.push(rows((1, 1)))
    with pytest.raises(panes.QueryError, match=r"keep_rows=5\), or reg.prepare"):
        reg.ask(HIGH.format(5))
    with pytest.raises(panes.QueryError, match=r"it is prepared within 4\n\nHint: reg.prepare"):
        reg.ask(SUM.format(5), within=2)
    with pytest.raises(panes.QueryError, match="nothing is prepared that answers"):
        reg.ask("SELECT sum(x) AS s FROM t [RANGE 5 WATTR at] WHERE x > 0", within=4)
    with pytest.raises(panes.QueryError, match="runs on `x`"):
        reg.ask("SELECT sum(x) AS s FROM t [RANGE 5 WATTR x]", within=4)
    alone = panes.register("t")
    alone.prepare(HIGH.format(5))
    with pytest.raises(panes.PanesError, match="has no query yet"):
        alone.push(rows((1, 1)))


def test_a_question_that_fails_is_set_aside_and_the_batch_is_taken_in() -> None:
    good = "SELECT max(x) AS high FROM s [ROWS 3]"
    bad = "SELECT max(w * 9223372036854775807) AS high FROM s [ROWS 3]"
    reg = panes.register("s", lateness=0)
    reg.add("n", "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]")
    reg.prepare(good)
    reg.prepare(bad)
    table = pa.table({"at": [1, 2, 11, 12], "x": [1, 7, 3, 4], "w": [1, 2, 0, 0]})
    with pytest.warns(FailedQueryWarning, match="max.*the others go on") as warned:
        answers = reg.push(table.slice(0, 3))
    assert warned[0].filename == __file__
    assert answers["n"].to_pylist() == [{"window_start": 0, "window_end": 10, "n": 2}]
    assert reg.ask(good).column("high").to_pylist() == [7]
    assert list(reg.failed) == [bad]
    assert reg.state["failed"] == 1
    assert [text for text, _ in reg.prepared()] == [good]
    with pytest.raises(QueryError, match="has failed"):
        reg.ask(bad)
    reg.prepare(bad)
    assert not reg.failed
    reg.push(table.slice(3))
    assert reg.ask(bad.replace("ROWS 3", "ROWS 1")).column("high").to_pylist() == [0]
    reg.forget(bad)
    assert [text for text, _ in reg.prepared()] == [good]


def test_a_set_aside_question_can_be_forgotten() -> None:
    bad = "SELECT max(w * 9223372036854775807) AS high FROM s [ROWS 3]"
    reg = panes.register("s", lateness=0)
    reg.add("n", "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]")
    reg.prepare(bad)
    with pytest.warns(FailedQueryWarning):
        reg.push(pa.table({"at": [1], "w": [2]}))
    reg.forget(bad)
    assert not reg.failed
    with pytest.raises(QueryError, match="not prepared"):
        reg.forget(bad)
