"""TimeGram: the truth lies in every interval, whatever the values, the buckets and the window.

Catches: a value put one bucket too far by a rounded division, a window one row too long or short,
a running total that forgets an evicted row, an edge that is told but was not compared with.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from panes.errors import ColumnTypeError, InputError, OptionError
from panes.stores.nested.buckets import AnswerBounds, Buckets
from panes.stores.nested.timegram import AGGREGATES, Aggregate, Bucket, TimeGram

# *Aggregate Sharing* 3.2.4: values of T1 ... T7, whose timestamps are 1 ... 7. The range [-10, 10]
# is divided uniformly into 5 buckets, as step c of 3.2.2 has it.
AT = np.arange(1, 8)
A = np.array([3, -10, -9, 5, 2, 7, -3])


def report_example() -> TimeGram:
    gram = TimeGram(width=4, origin=-10, max_size=4)
    for i in range(len(AT)):
        gram.add(AT[i : i + 1], A[i : i + 1])
    return gram


def test_sharing_3_2_4_figure_2_the_buckets_hold_the_last_four_timestamps() -> None:
    """The text prints bucket 3 as [-2, 4]; uniform buckets put T5 (A = 2) where it puts it.

    ::

        [-10, -6]   [-6, -2]   [-2, 2]   [2, 6]   [6, 10]
                        7                  4 5       6
    """
    assert report_example().buckets() == [
        Bucket(AnswerBounds(-6, -2), (7,)),
        Bucket(AnswerBounds(2, 6), (4, 5)),
        Bucket(AnswerBounds(6, 10), (6,)),
    ]


@pytest.mark.parametrize(
    ("aggregate", "size", "answer", "truth"),
    [
        ("sum", 4, AnswerBounds(4, 20), 11),  # Query 1
        ("max", 3, AnswerBounds(6, 10), 7),  # Query 2
        ("avg", 2, AnswerBounds(0, 4), 2),  # Query 3
    ],
)
def test_sharing_3_2_4_queries(
    aggregate: Aggregate, size: int, answer: AnswerBounds, truth: int
) -> None:
    assert report_example().ask(aggregate, size) == answer
    assert truth in answer


def test_rows_and_promises_move_the_end_of_all_windows() -> None:
    """Windows of time, 10 long, before and after a promise that nothing more comes before 15::

    at      0   2       6           12      15
            1   5       9
        [───────────────────)                 end  7: 1, 5, 9
                    [───────────────────)     end 15: 9
    """
    gram = TimeGram(width=1, max_size=10)
    gram.add(np.array([0, 2, 6]), np.array([1, 5, 9]))
    assert gram.ask("count", 10) == AnswerBounds(3, 3)
    gram.advance(15)
    assert gram.ask("count", 10) == AnswerBounds(1, 1)
    assert gram.ask("min", 10) == AnswerBounds(9, 10)
    assert gram.ask("min", 8) is None


def test_what_no_window_needs_is_evicted() -> None:
    gram = TimeGram(width=1, max_size=5)
    for _ in range(100):
        gram.add_rows(np.arange(7))
    assert len(gram) == 5
    gram.advance(1_000_000)
    assert len(gram) == 0


def test_a_value_too_far_out_for_its_buckets_leaves_one_side_open() -> None:
    gram = TimeGram(width=0.001, max_size=3)
    gram.add_rows(np.array([1e300, 0.0, 0.0]))
    top = gram.ask("max", 3)
    total = gram.ask("sum", 3)
    assert top is not None
    assert total is not None
    assert (top.high, total.high) == (math.inf, math.inf)
    assert total.low > 2_000_000


ANY_FLOAT = st.floats(allow_nan=False, allow_infinity=False)
TAME = st.floats(-1000, 1000) | st.integers(-50, 50).map(lambda n: n / 10)
COLUMNS = st.one_of(
    st.lists(ANY_FLOAT, max_size=30).map(lambda v: np.array(v, dtype=np.float64)),
    st.lists(TAME, max_size=30).map(lambda v: np.array(v, dtype=np.float64)),
    st.lists(st.integers(-(1 << 53), 1 << 53), max_size=30).map(lambda v: np.array(v, np.int64)),
    st.lists(st.integers(-40, 40), max_size=30).map(lambda v: np.array(v, np.int64)),
)
ALL_INTEGERS = st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=30)
WIDTHS = st.one_of(
    st.integers(1, 20),
    st.integers(1, 1 << 40),
    st.sampled_from([0.1, 0.5, 1 / 3, 5e-324, 1e300]),
    st.floats(min_value=0, exclude_min=True, allow_infinity=False),
)
ORIGINS = st.integers(-1000, 1000).map(lambda n: n / 7) | st.integers(-1000, 1000)


def truth(aggregate: Aggregate, values: NDArray[np.generic]) -> Fraction | int:
    """The answer as a number, without rounding."""
    exact = [Fraction(v) for v in values.tolist()]
    if aggregate == "min":
        return min(exact)
    if aggregate == "max":
        return max(exact)
    if aggregate == "count":
        return len(exact)
    return sum(exact, Fraction(0)) / (len(exact) if aggregate == "avg" else 1)


def in_batches(rows: int, cuts: Sequence[int]) -> list[slice]:
    edges = [0, *sorted(min(c, rows) for c in cuts), rows]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def holds_the_truth(gram: TimeGram, at: NDArray[np.int64], values: NDArray[np.generic]) -> None:
    sizes = range(1, 33)
    for aggregate in AGGREGATES:
        for size, answer in zip(sizes, gram.ask_each(aggregate, sizes), strict=True):
            inside = values[(gram.end - size <= at) & (at < gram.end)]
            if answer is None:
                assert not len(inside)
            else:
                assert truth(aggregate, inside) in answer, (aggregate, size)


def origin_for(width: float, origin: float) -> float:
    return origin if abs(origin) <= width * (1 << 31) else 0


@settings(max_examples=150)
@given(
    values=COLUMNS,
    width=WIDTHS,
    origin=ORIGINS,
    cuts=st.lists(st.integers(0, 30), max_size=3),
)
@example(values=np.array([-5e-324]), width=1e300, origin=0, cuts=[])
@example(values=np.array([0.3, 0.7, 0.6]), width=0.1, origin=0, cuts=[])
@example(values=np.array([1.7e308, -1.7e308]), width=1e300, origin=-1e300, cuts=[])
def test_rows_the_interval_holds_the_truth(
    values: NDArray[np.generic], width: float, origin: float, cuts: list[int]
) -> None:
    gram = TimeGram(width=width, origin=origin_for(width, origin), max_size=32)
    for batch in in_batches(len(values), cuts):
        gram.add_rows(values[batch])
        seen = values[: batch.stop]
        holds_the_truth(gram, np.arange(len(seen)), seen)


@settings(max_examples=100)
@given(values=COLUMNS, width=WIDTHS, data=st.data())
def test_time_the_interval_holds_the_truth(
    values: NDArray[np.generic], width: float, data: st.DataObject
) -> None:
    steps = data.draw(st.lists(st.integers(0, 9), min_size=len(values), max_size=len(values)))
    at = np.cumsum(np.array([-20, *steps], dtype=np.int64))[1:]
    cuts = data.draw(st.lists(st.integers(0, 30), max_size=3))
    gram = TimeGram(width=width, max_size=32)
    for batch in in_batches(len(values), cuts):
        gram.add(at[batch], values[batch])
        holds_the_truth(gram, at[: batch.stop], values[: batch.stop])
    gram.advance(gram.end + data.draw(st.integers(0, 20)))
    holds_the_truth(gram, at, values)


@settings(max_examples=100)
@given(
    rows=st.lists(st.tuples(st.integers(-20, 40), st.integers(-40, 40)), max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=4),
)
def test_rows_in_any_order_are_remembered_as_if_they_had_come_in_order(
    rows: list[tuple[int, int]], cuts: list[int]
) -> None:
    """Also after rows have been evicted: what comes behind them is in no window."""
    merged = TimeGram(width=3, max_size=32)
    at, values = (np.array([r[i] for r in rows], dtype=np.int64) for i in (0, 1))
    for batch in in_batches(len(rows), cuts):
        merged.merge(at[batch], values[batch])
        order = np.argsort(at[: batch.stop], kind="stable")
        sorted_at, sorted_values = at[: batch.stop][order], values[: batch.stop][order]
        plain = TimeGram(width=3, max_size=32)
        plain.add(sorted_at, sorted_values)
        assert (merged.end, merged.nbytes) == (plain.end, plain.nbytes)
        assert merged.buckets() == plain.buckets()
        for aggregate in AGGREGATES:
            assert merged.ask_each(aggregate, range(1, 33)) == plain.ask_each(
                aggregate, range(1, 33)
            )
        holds_the_truth(merged, sorted_at, sorted_values)


def test_the_largest_window_changes() -> None:
    gram = TimeGram(width=1, max_size=3)
    gram.add_rows(np.arange(10))
    gram.resize(5)
    assert len(gram) == 3, "what is gone is not brought back"
    gram.add_rows(np.arange(10))
    assert len(gram) == 5
    gram.resize(2)
    assert len(gram) == 2
    with pytest.raises(OptionError, match="positive size, got 0"):
        gram.resize(0)


@given(values=ALL_INTEGERS, width=st.integers(1, 1 << 31), origin=st.integers(-9, 9))
def test_whole_buckets_hold_any_64_bit_integer(values: list[int], width: int, origin: int) -> None:
    gram = TimeGram(width=width, origin=origin, max_size=32)
    column = np.array(values, dtype=np.int64)
    gram.add_rows(column)
    holds_the_truth(gram, np.arange(len(column)), column)


class ListOfTimestamps:
    """The report's own structure (3.2.2) and lookups (3.2.3), word for word, for rows."""

    def __init__(self, width: int, max_size: int) -> None:
        self.width, self.max_size = width, max_size
        self.buckets: dict[int, list[int]] = {}
        self.now = -1

    def add(self, value: int) -> None:
        self.now += 1
        self.buckets.setdefault(value // self.width, []).append(self.now)
        if sum(map(len, self.buckets.values())) > self.max_size:
            oldest = min((ts for ts in self.buckets.values() if ts), key=lambda ts: ts[0])
            oldest.pop(0)

    def ask(self, aggregate: Aggregate, size: int) -> tuple[float, float]:
        counts = {b: sum(t > self.now - size for t in ts) for b, ts in sorted(self.buckets.items())}
        counts = {b: n for b, n in counts.items() if n}
        if aggregate in ("min", "max"):
            b = list(counts)[-1 if aggregate == "max" else 0]
            return b * self.width, (b + 1) * self.width
        rows = sum(counts.values())
        if aggregate == "count":
            return rows, rows
        low = sum(b * self.width * n for b, n in counts.items())
        high = sum((b + 1) * self.width * n for b, n in counts.items())
        return (low, high) if aggregate == "sum" else (low / rows, high / rows)


@settings(max_examples=60)
@given(
    values=st.lists(st.integers(-30, 30), min_size=1, max_size=40),
    width=st.sampled_from([1, 2, 3, 4, 8, 50]),
)
def test_answers_are_those_of_the_report_s_lists_of_timestamps(
    values: list[int], width: int
) -> None:
    gram, lists = TimeGram(width=width, max_size=16), ListOfTimestamps(width, max_size=16)
    for value in values:
        gram.add_rows(np.array([value]))
        lists.add(value)
        for aggregate in AGGREGATES:
            for size in (1, 2, 7, 16):
                answer = gram.ask(aggregate, size)
                assert answer is not None
                assert (answer.low, answer.high) == pytest.approx(lists.ask(aggregate, size))


def test_what_makes_no_sense_is_refused_and_changes_nothing() -> None:
    gram = TimeGram(width=1, max_size=4)
    gram.add(np.array([5]), np.array([1.0]))
    with pytest.raises(InputError, match="position 4 came after 5"):
        gram.add(np.array([4]), np.array([1.0]))
    with pytest.raises(InputError, match="position 6 came after 7"):
        gram.add(np.array([7, 6]), np.array([1.0, 1.0]))
    with pytest.raises(InputError, match="NaN"):
        gram.add(np.array([6]), np.array([math.nan]))
    with pytest.raises(InputError, match="2 positions came with 1 values"):
        gram.add(np.array([6, 7]), np.array([1.0]))
    with pytest.raises(ColumnTypeError, match="uint64"):
        gram.add(np.array([6]), np.array([1], dtype=np.uint64))
    with pytest.raises(OptionError, match="max_size=5 keeps rows"):
        gram.ask("sum", 5)
    with pytest.raises(OptionError, match="asked for 'median'"):
        gram.ask("median", 4)  # type: ignore[arg-type]
    assert (gram.end, len(gram)) == (6, 1)


@pytest.mark.parametrize("width", [0, -1.0, math.nan, math.inf, 10**400])
def test_a_bucket_has_a_width(width: float) -> None:
    with pytest.raises(OptionError, match="positive width"):
        TimeGram(width=width, max_size=4)


def test_integers_that_floats_cannot_hold_need_whole_buckets() -> None:
    with pytest.raises(InputError, match="whole width"):
        Buckets(width=0.5).numbers(np.array([(1 << 53) + 1]))
