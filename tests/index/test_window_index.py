"""What a window index says, in pictures, for every type of value; and what it refuses."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import panes
from panes.errors import ColumnTypeError, InputError, OptionError, PanesError, UnknownColumnError
from panes.index.kinds import KINDS

SCHEMA = pa.schema([("at", pa.int64()), ("price", pa.float64())])


def window(kind: str | None = None, **options: Any) -> panes.WindowIndex:
    given = {"at": "at", "size": 30, "basic": 10, "on": "price", "kind": kind}
    return panes.window_index(SCHEMA, **{**given, **options})


def bids(*rows: tuple[int | None, float | None]) -> pa.Table:
    at, price = zip(*rows, strict=True)
    return pa.table([pa.array(at, pa.int64()), pa.array(price, pa.float64())], schema=SCHEMA)


def values_of(index: panes.WindowIndex) -> dict[Any, int]:
    return {row["value"]: row["count"] for row in index.values().to_pylist()}


@pytest.mark.parametrize("kind", [None, *KINDS])
def test_the_window_is_the_last_sealed_basic_windows(kind: str | None) -> None:
    """Rows 1 to 5 at 5, 15, 25, 35, 45; three basic windows of ten.

    advance(35)  [1    |2    |3    |4           4 is hidden: its basic window is not sealed
    advance(40)        [2    |3    |4    |5     1 has left
    """
    index = window(kind)
    index.add(bids(*((10 * n - 5, float(n)) for n in range(1, 6))))
    assert values_of(index) == {}
    assert [index.start, index.end] == [None, None]
    index.advance(35)
    assert values_of(index) == {1.0: 1, 2.0: 1, 3.0: 1}
    assert (index.start, index.end) == (0, 30)
    index.advance(40)
    assert values_of(index) == {2.0: 1, 3.0: 1, 4.0: 1}
    assert (index.start, index.end, len(index)) == (10, 40, 3)


def test_a_row_of_a_sealed_basic_window_is_late_and_one_of_an_open_one_is_not() -> None:
    index = window()
    index.advance(25)
    index.add(bids((19, 1.0), (20, 2.0), (None, 3.0)))
    index.advance(30)
    assert values_of(index) == {2.0: 1}
    assert index.late.to_pylist() == [
        {"at": 19, "price": 1.0, "reason": "behind progress 20; its basic window is sealed"}
    ]
    assert index.rejected["reason"].to_pylist() == ["`at` is NULL or outside the axis"]


def test_a_long_silence_empties_the_window_and_going_back_changes_nothing() -> None:
    index = window()
    index.add(bids((5, 1.0), (10**15, 2.0)))
    index.advance(10)
    index.advance(10**15)
    assert values_of(index) == {}
    index.advance(10)
    index.advance(10**15 + 10)
    assert values_of(index) == {2.0: 1}


def test_null_is_no_value_but_its_rows_are_in_the_window() -> None:
    index = window()
    index.add(bids((1, None), (2, 7.5), (3, None)))
    index.advance(10)
    assert values_of(index) == {7.5: 1}
    assert (len(index), index.count(None), len(index.rows(None))) == (3, 0, 0)
    assert index.sorted()["at"].to_pylist() == [1, 3, 2]
    assert index.sorted(descending=True)["at"].to_pylist() == [2, 1, 3]


def test_without_a_position_rows_count_as_they_come() -> None:
    index = window(at=None, size=4, basic=2)
    for n in range(7):
        index.add(bids((0, float(n))))
    assert list(values_of(index)) == [2.0, 3.0, 4.0, 5.0]
    assert (index.start, index.end) == (2, 6)
    with pytest.raises(PanesError, match="advances by itself"):
        index.advance(9)


def test_a_time_axis_takes_instants_and_durations_as_everywhere() -> None:
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("item", pa.string())])
    index = panes.window_index(schema, at="ts", size="1 hour", basic="1 minute", on="item")
    first = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    index.add(pa.table({"ts": [first], "item": ["a"]}, schema=schema))
    index.advance("2026-01-01T01:00:00Z")
    assert index.count("a") == 1
    assert index.end == first + dt.timedelta(hours=1)
    index.advance(first + dt.timedelta(minutes=61))
    assert index.count("a") == 0


def test_frames_of_pandas_and_columns_in_another_order_are_taken() -> None:
    index = window()
    index.add(pd.DataFrame({"price": [2.5], "at": [3]}))
    index.advance(10)
    assert index.rows(2.5).to_pylist() == [{"at": 3, "price": 2.5}]


@pytest.mark.parametrize(
    ("data_type", "values", "absent"),
    [
        (pa.int8(), [3, -3], [200, 2.5]),
        (pa.uint64(), [3, (1 << 64) - 1], [-1, 1 << 70]),
        (pa.float32(), [0.5, 0.1], [7]),
        (pa.date32(), [dt.date(2026, 1, 1), dt.date(1969, 1, 1)], ["2020-01-01"]),
        (pa.timestamp("ms"), [dt.datetime(2026, 1, 1)], ["2026-01-02"]),
        (pa.decimal128(12, 2), [Decimal("7.50"), Decimal("-0.01")], [7.25, Decimal("0.001")]),
        (pa.decimal256(40, 0), [Decimal(10**30), Decimal(-1)], [Decimal(5)]),
        (pa.large_string(), ["ä", ""], ["a"]),
        (pa.binary(2), [b"ab", b"\0\0"], [b"zz"]),
        (pa.bool_(), [True], [False]),
    ],
)
def test_values_of_every_type_are_found(
    data_type: Any, values: list[Any], absent: list[Any]
) -> None:
    schema = pa.schema([("at", pa.int64()), ("v", data_type)])
    index = panes.window_index(schema, at="at", size=10, basic=10, on="v")
    index.add(pa.table([pa.array(range(len(values))), pa.array(values, data_type)], schema=schema))
    index.advance(10)
    for number, value in enumerate(values):
        assert index.count(value) == 1
        assert index.rows(value)["at"].to_pylist() == [number]
    assert [index.count(value) for value in absent] == [0] * len(absent)
    assert index.count([*values, *absent]).to_pylist() == [1] * len(values) + [0] * len(absent)
    assert index.values()["value"].type == data_type


def test_bounds_between_two_values_of_the_type_are_rounded_inwards() -> None:
    schema = pa.schema([("at", pa.int64()), ("n", pa.int64())])
    index = panes.window_index(schema, at="at", size=10, basic=10, on="n")
    top = (1 << 63) - 1
    index.add(pa.table({"at": [1, 2, 3, 4], "n": [5, 6, 9, top]}))
    index.advance(10)
    assert index.between(5.5, 9.9)["n"].to_pylist() == [6, 9]
    assert index.between(-1e30, 1e30)["n"].to_pylist() == [5, 6, 9, top]
    assert index.between(1e30, 1e31)["n"].to_pylist() == []
    assert index.rank(5.5) == 1
    assert index.rank(float("inf")) == 4
    assert index.between(9, 5)["n"].to_pylist() == []
    assert index.between(None, 5)["n"].to_pylist() == []


def test_histograms_count_half_open_ranges() -> None:
    index = window()
    index.add(bids((1, 0.0), (2, 5.0), (3, 9.9), (4, 10.0), (5, None), (6, 99.0)))
    index.advance(10)
    found = index.histogram([0, 5, 10, 50]).to_pylist()
    assert [(r["low"], r["high"], r["count"]) for r in found] == [
        (0.0, 5.0, 1), (5.0, 10.0, 2), (10.0, 50.0, 1),
    ]  # fmt: skip


def test_the_nearest_value_is_the_smaller_of_two_as_near() -> None:
    index = window()
    assert index.nearest(3.0) is None
    index.add(bids((1, 1.0), (2, 5.0), (3, float("nan")), (4, float("inf"))))
    index.advance(10)
    assert index.nearest(3.0) == 1.0
    assert index.nearest(3.1) == 5.0
    assert index.nearest(-9) == 1.0
    assert index.nearest(float("inf")) == float("inf")
    assert index.nearest(np.array([1.0, 4.0])).to_pylist() == [1.0, 5.0]
    assert index.nearest(None) is None


def test_groups_say_in_which_ranges_there_are_rows() -> None:
    one, other = window("group", groups=4), window("group", groups=4)
    one.add(bids(*((n % 10, float(n)) for n in range(100))))
    other.add(bids(*((n % 10, float(n)) for n in range(100)), (11, 3.0), (12, 99.0)))
    for index in (one, other):
        index.advance(10)
    assert one.groups()["count"].to_pylist() == [25, 25, 25, 25]
    assert one.groups()["low"].to_pylist() == [None, 25.0, 50.0, 75.0]
    assert len(one.intersection(other, ranges=True)) == 4
    other.advance(40)
    both = one.intersection(other, ranges=True)
    assert both["low"].to_pylist() == [None, 75.0]
    assert one.difference(other, ranges=True)["low"].to_pylist() == [25.0, 50.0]
    assert one.intersection(other)["value"].to_pylist() == [3.0, 99.0]
    with pytest.raises(OptionError, match='kind="group"'):
        _advanced(window("db")).groups()


def _advanced(index: panes.WindowIndex) -> panes.WindowIndex:
    index.add(bids((1, 1.0)))
    index.advance(10)
    return index


def test_explain_gives_the_reason_and_the_costs() -> None:
    index = window()
    assert "chosen when the first basic window" in index.explain()
    told = _advanced(index).explain()
    assert told.splitlines()[0].endswith("the cheapest for what was seen and is expected")
    for name in ("L-INDEX", "T-INDEX", "H-INDEX", "G-INDEX", "RING", "AUX", "BW", "DB", "no index"):
        assert name in told
    assert "DB over LIST" in _advanced(window("db")).explain().splitlines()[0]
    assert _advanced(window("db")).explain() == _advanced(window("db")).explain()


def test_threads_take_turns() -> None:
    index = window(size=1000)

    def fill(thread: int) -> None:
        for n in range(50):
            index.add(bids((n, float(thread))))
            index.count(1.0)

    threads = [threading.Thread(target=fill, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    index.advance(50)
    assert values_of(index) == {0.0: 50, 1.0: 50, 2.0: 50, 3.0: 50}


def test_a_refused_batch_changes_nothing() -> None:
    index = _advanced(window())
    with pytest.raises(
        InputError, match="`price` of stream `window` is double, and string in this batch"
    ):
        index.add(pa.table({"at": [12], "price": ["x"]}))
    index.advance(20)
    assert values_of(index) == {1.0: 1}
    assert index.state["waiting_rows"] == 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"on": "prise"}, UnknownColumnError, "did you mean `price`"),
        ({"at": "price"}, ColumnTypeError, "cannot order a window"),
        ({"size": 25}, OptionError, "whole number of basic windows"),
        ({"basic": 0}, OptionError, "positive length"),
        ({"size": "1 hour"}, OptionError, "whole numbers"),
        ({"kind": "btree"}, OptionError, "one of list, tree"),
        ({"questions": {"sum": 1}}, OptionError, "questions: count"),
        ({"questions": {"count": -1}}, OptionError, "are a number"),
        ({"groups": 0}, OptionError, "groups must be a number from 1 on"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        window(**options)


def test_questions_that_make_no_sense_are_refused() -> None:
    index = _advanced(window())
    refused: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: index.count("seven"), ColumnTypeError, "cannot be compared"),
        (lambda: index.count(True), ColumnTypeError, "cannot be compared"),
        (lambda: index.quantiles([1.5]), OptionError, "between 0 and 1"),
        (lambda: index.histogram([1]), OptionError, "at least two edges"),
        (lambda: index.histogram([2, 1]), OptionError, "ascend"),
        (lambda: index.rank(None), OptionError, "no value"),
        (lambda: index.top(-1), OptionError, "number of values"),
        (lambda: index.sorted(limit=-1), OptionError, "number of rows"),
        (lambda: index.advance("soon"), OptionError, "whole numbers"),
        (lambda: index.intersection(bids((1, 1.0))), InputError, "two window indexes"),
        (lambda: index.semi_join(pa.table({"x": [1]})), UnknownColumnError, "no column `price`"),
    ]
    for question, error, message in refused:
        with pytest.raises(error, match=message):
            question()
    text = panes.window_index(
        pa.schema([("at", pa.int64()), ("v", pa.string())]), at="at", size=1, basic=1, on="v"
    )
    with pytest.raises(ColumnTypeError, match="no distance"):
        text.nearest("a")
    with pytest.raises(ColumnTypeError, match="not comparable"):
        index.intersection(text)
    nested = pa.schema([("at", pa.int64()), ("v", pa.list_(pa.int64()))])
    with pytest.raises(ColumnTypeError, match="no order"):
        panes.window_index(nested, at="at", size=1, basic=1, on="v")
    with pytest.raises(OptionError, match="schema must be a pyarrow"):
        panes.window_index({"at": "long"}, at="at", size=1, basic=1, on="v")


def whole_numbers(*values: int) -> panes.WindowIndex:
    schema = pa.schema([("at", pa.int64()), ("price", pa.int64())])
    index = panes.window_index(schema, at="at", size=30, basic=10, on="price")
    index.add(pa.table({"at": [1] * len(values), "price": values}, schema=schema))
    index.advance(10)
    return index


def test_no_part_of_a_number_is_cut_off_when_several_are_asked_for() -> None:
    index = whole_numbers(1, 2, 3)
    asked = [1.0, 1.5, Decimal("2.5"), 1e300, float("nan")]
    assert index.count(asked).to_pylist() == [index.count(v) for v in asked] == [1, 0, 0, 0, 0]
    assert index.count(np.array([2.5, 2.0])).to_pylist() == [0, 1]
    assert len(index.rows([1.5, 2.5])) == 0
    assert index.semi_join(pa.table({"price": [1.5, 3.0]})).to_pylist() == [{"price": 3.0}]
    with pytest.raises(OptionError, match=r"no edge at 1\.5"):
        index.histogram([0, 1.5, 3])


def test_the_nearest_value_is_near_to_what_was_asked_and_not_to_its_whole_part() -> None:
    """Among 1 and 3, what is nearer than two ends above or below."""
    index = whole_numbers(1, 3)
    asked = [1.9, 2, 2.1, -(10**30), 10**30, float("inf"), None]
    assert index.nearest(asked).to_pylist() == [1, 1, 3, 1, 3, 3, None]
    assert [index.nearest(v) for v in asked] == [1, 1, 3, 1, 3, 3, None]
    assert index.nearest(np.array([2.1])).to_pylist() == [3]
    assert index.nearest(np.float32(2.1)) == index.nearest(pa.scalar(2.1)) == 3
    assert whole_numbers().nearest(2.1) is None


def test_values_in_other_words_are_understood_or_refused() -> None:
    index = window()
    index.add(bids((1, 7.5)))
    index.advance(10)
    assert index.count(Decimal("7.5")) == 1
    whole = whole_numbers(1, 2)
    assert len(whole.between(pa.scalar(2), pa.scalar(9))) == whole.rank(pa.scalar(2)) == 1
    assert whole.rank(Decimal("NaN")) == 2
    dates = panes.window_index(
        pa.schema([("at", pa.int64()), ("day", pa.date32())]), at="at", size=10, basic=10, on="day"
    )
    texts = panes.window_index(
        pa.schema([("at", pa.int64()), ("day", pa.string())]), at="at", size=10, basic=10, on="day"
    )
    assert texts.count("\ud800") == 0
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: dates.count("junk"), "cannot be compared"),
        (lambda: index.quantiles(0.5), "several shares"),  # type: ignore[arg-type]
        (lambda: index.histogram(5), "at least two edges"),  # type: ignore[arg-type]
        (lambda: window(questions=5), "questions must be a mapping"),
        (lambda: window(on=["price"]), "on must be the name of a column"),
    ]
    for ask, match in refused:
        with pytest.raises(PanesError, match=match):
            ask()


def test_standing_questions_are_answered_after_every_basic_window_or_every_few() -> None:
    """Rows at 3 14 17 31, basic windows of ten: behind by four of them, asked at each or at two.

    0  3    10  14 17  20       30 31    40
    [--------|----------|--------|--------)
    """
    schema = pa.schema([("at", pa.int64()), ("x", pa.int64())])
    nothing = panes.window_index(schema, at="at", size=20, basic=10, on="x")
    assert list(nothing.slides(45)) == [], "no row has come"
    seen = {}
    for every in (1, 2, 3, 9):
        w = panes.window_index(schema, at="at", size=20, basic=10, on="x")
        w.add(pa.table({"at": [3, 14, 17, 31], "x": [7, 8, 8, 9]}))
        seen[every] = [(end, w.values()["value"].to_pylist()) for end in w.slides(45, every=every)]
        assert list(w.slides(45)) == [], "it is there"
        assert w.end == 40
    assert seen[1] == [(10, [7]), (20, [7, 8]), (30, [8]), (40, [9])]
    assert seen[2] == [(20, [7, 8]), (40, [9])]
    assert seen[3] == [(30, [8]), (40, [9])]
    assert seen[9] == [(40, [9])]


def test_steps_and_one_advance_lead_to_the_same_window() -> None:
    schema = pa.schema([("at", pa.int64()), ("x", pa.int64())])
    stepped, at_once = (
        panes.window_index(schema, at="at", size=6, basic=2, on="x") for _ in range(2)
    )
    for begin in range(0, 60, 7):
        rows = pa.table({"at": [begin, begin + 5, begin + 2], "x": [begin % 3, 1, 2]})
        for w in (stepped, at_once):
            w.add(rows)
        ends = list(stepped.slides(begin + 6))
        at_once.advance(begin + 6)
        assert ends[-1:] in ([at_once.end], [])
        assert stepped.sorted() == at_once.sorted()
        assert stepped.late.num_rows == at_once.late.num_rows


@pytest.mark.parametrize("every", [0, -1, 1.5, True, "2"])
def test_steps_are_whole_numbers_of_basic_windows(every: object) -> None:
    w = panes.window_index(pa.schema([("at", pa.int64())]), at="at", size=6, basic=2, on="at")
    with pytest.raises(panes.PanesError, match="every is a number of basic windows"):
        w.slides(4, every=every)  # type: ignore[arg-type]
