"""Exact sums: of doubles they are those of fractions; of limbs they say when they cannot be."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panes.aggregates.aggregate import Argument, Bounded, Selection
from panes.aggregates.arithmetic import avg, sum_
from panes.aggregates.exact_sums import ExactSums
from panes.errors import ArithmeticOverflowError

TYPES = (pa.int64(), pa.uint64(), pa.decimal128(10, 2))


@pytest.mark.parametrize("data_type", TYPES, ids=str)
@pytest.mark.parametrize("make", [sum_, avg])
def test_more_values_than_limbs_can_add_up_are_refused(
    make: Callable[[Argument, Selection], Bounded], data_type: pa.DataType
) -> None:
    made = make(Argument(0, data_type), Selection((0,), None))
    limbs = len(made.pieces[0].monoid.names)
    for count, fits in ((1 << 31, True), ((1 << 31) + 1, False)):
        partials = [np.zeros((limbs, 1), dtype=np.int64), np.array([[count]])]
        if fits:
            assert float(made.lower(partials)[0].as_py()) == 0
        else:
            with pytest.raises(ArithmeticOverflowError, match="2,147,483,648 values"):
                made.lower(partials)


_doubles = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.1, 0.2, 0.3, 1e16, 1.0, -1.0, 1e308, -1e308, 5e-324, 2.0**-1000, -0.0]),
)


def nearest(values: list[float]) -> float:
    """The double that is nearest to the exact sum."""
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@given(groups=st.lists(st.lists(_doubles, min_size=1, max_size=30), min_size=1, max_size=5))
def test_sums_of_doubles_are_rounded_once(groups: list[list[float]]) -> None:
    flat = ExactSums.of(np.array([v for g in groups for v in g]))
    begin = np.cumsum([0, *(len(g) for g in groups[:-1])])
    assert flat.added(begin).rounded().tolist() == [nearest(g) for g in groups]


@given(values=st.lists(_doubles, min_size=1, max_size=20), cut=st.integers(0, 20))
def test_sums_of_sums_are_the_same_also_once_they_were_stored(
    values: list[float], cut: int
) -> None:
    start = np.zeros(1, np.int64)
    parts = [ExactSums.of(np.array(p)).added(start) for p in (values[:cut], values[cut:]) if p]
    stored = [ExactSums.from_bytes(p.to_bytes(), 1) for p in parts]
    both = stored[0] if len(stored) == 1 else stored[0].joined(stored[1]).added(start)
    assert both.rounded().tolist() == [nearest(values)]


def test_a_sum_with_a_bit_in_every_place_is_exact() -> None:
    """More parts than are held at first: every second power of two, and many at a time."""
    powers = [math.ldexp(1.0, e) for e in range(-1074, 960, 2)]
    for values in (powers, powers[::-1], powers[::2] + powers[1::2]):
        sums = ExactSums.of(np.array(values)).added(np.zeros(1, np.int64))
        less = ExactSums.of(-np.array(values[1:])).added(np.zeros(1, np.int64))
        assert sums.rounded().tolist() == [nearest(values)]
        assert sums.joined(less).added(np.zeros(1, np.int64)).rounded().tolist() == [values[0]]


@pytest.mark.parametrize(
    ("values", "bits"),
    [
        ([math.inf, 1.0], 0x7FF0),
        ([-math.inf, 1e308, 1e308], 0xFFF0),
        ([math.inf, -math.inf], 0xFFF8),
        ([math.inf, -math.inf, math.nan], 0x7FF8),
        ([math.nan, 1.0], 0x7FF8),
        ([1e308, 1e308, -1e308, -1e308], 0),
        ([1e308, 1e308], 0x7FF0),
        ([-1e308, -1e308], 0xFFF0),
    ],
)
def test_infinities_and_nan_are_those_of_java(values: list[float], bits: int) -> None:
    for some in (values, values[::-1]):
        [found] = ExactSums.of(np.array(some)).added(np.zeros(1, np.int64)).rounded().view("u8")
        assert found == bits << 48
