"""Orders and places: what the compiled loops give is what NumPy gives by comparison.

Catches equal keys that change places, keys too wide to share a word with their place, and pairs
that are numbered twice.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from panes.aggregates.monoid import Columns
from panes.arrays.ordering import number_pairs, sort
from panes.arrays.slots import moved
from panes.stores.panes import by_group

MANY = 5_000


@st.composite
def keys(draw: st.DrawFn, count: int = MANY) -> NDArray[np.int64]:
    """Integers in no order, close together or far apart, with ties or without."""
    span = draw(st.sampled_from([2, 100, 1 << 12, 1 << 20, 1 << 40, 1 << 62]))
    low = draw(st.sampled_from([-(1 << 62), -50, 0, 1 << 61]))
    step = draw(st.integers(1, span))
    ties = draw(st.integers(1, 7))
    return np.array([low + i // ties * step * 7_919 % span for i in range(count)])[::-1].copy()


@given(keys=keys())
def test_sort_is_stable(keys: NDArray[np.int64]) -> None:
    order, ordered = sort(keys)
    assert order.tolist() == np.argsort(keys, kind="stable").tolist()
    assert ordered.tolist() == np.sort(keys).tolist()


@given(first=keys(), second=keys())
def test_sorting_twice_orders_pairs(first: NDArray[np.int64], second: NDArray[np.int64]) -> None:
    order, _ = sort(first, sort(second)[0])
    assert order.tolist() == np.lexsort((second, first)).tolist()


@pytest.mark.parametrize("ends", [(-(1 << 63), (1 << 63) - 1), (0, 1)])
def test_sort_reaches_from_end_to_end(ends: tuple[int, int]) -> None:
    """Keys as far apart as integers can be, and as close."""
    order, ordered = sort(np.array([ends[1], ends[0]] * MANY))
    assert ordered.tolist() == [ends[0]] * MANY + [ends[1]] * MANY
    assert order.tolist() == [*range(1, 2 * MANY, 2), *range(0, 2 * MANY, 2)]


@pytest.mark.parametrize("bits", [49, 50, 51, 52])
def test_sort_where_a_word_is_just_wide_enough_or_not(bits: int) -> None:
    """The places of so many keys take 13 bits, and a word has 63 beside its sign."""
    assert (MANY - 1).bit_length() == 13
    spread = np.arange(MANY) * 7_919 % MANY
    keys = spread * ((1 << bits) // MANY)
    keys[spread == MANY - 1] = (1 << bits) - 1
    order, ordered = sort(keys)
    assert order.tolist() == np.argsort(keys, kind="stable").tolist()
    assert ordered.tolist() == np.sort(keys).tolist()


@given(majors=keys(200), minors=st.lists(st.integers(0, 3), min_size=200, max_size=200))
@pytest.mark.parametrize("in_order", [True, False])
def test_pairs_are_numbered_once_and_ascend(
    majors: NDArray[np.int64], minors: list[int], *, in_order: bool
) -> None:
    if in_order:
        majors = np.sort(majors)
    numbers, major, minor = number_pairs(majors, np.array(minors, dtype=np.int32))
    pairs = list(zip(majors.tolist(), minors, strict=True))
    distinct = list(zip(major.tolist(), minor.tolist(), strict=True))
    assert distinct == sorted(set(pairs))
    assert [distinct[n] for n in numbers] == pairs


@pytest.mark.parametrize("dtype", [np.int64, np.float64, object])
def test_rows_move_group_by_group(dtype: type) -> None:
    """Group 2 first, then group 0; the rows of group 1 are not asked for.

    row    0  1  2  3  4  5          after   1  4  0  5
    group  0  2  1  1  2  0          group   2  2  0  0
    """
    places, offsets = by_group(np.array([0, 2, 1, 1, 2, 0]), np.array([2, 0]))
    assert places.tolist() == [2, 0, -1, -1, 1, 3]
    assert offsets.tolist() == [0, 2, 4]
    partials: Columns = np.array([[0, 1, 2, 3, 4, 5], [0, 10, 20, 30, 40, 50]]).astype(dtype)
    assert moved(partials, places, 4).tolist() == [[1, 4, 0, 5], [10, 40, 0, 50]]
