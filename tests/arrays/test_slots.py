"""Places and packing are what NumPy says, however values lie."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from panes.arrays.slots import distinct, packed, places_among

positions = st.lists(st.integers(-60, 60), max_size=30)


@given(ascending=positions, values=positions, apart=st.sampled_from([1, 7, 10**15]))
def test_places_are_those_of_a_search(ascending: list[int], values: list[int], apart: int) -> None:
    among = np.unique(np.array(ascending, dtype=np.int64)) * apart
    wanted = np.array(values, dtype=np.int64) * apart
    assert places_among(among, wanted).tolist() == np.searchsorted(among, wanted).tolist()


@given(values=positions, apart=st.sampled_from([1, 7, 10**15]), lowest=st.sampled_from([-60, 0]))
def test_different_values_ascend_and_none_is_there_twice(
    values: list[int], apart: int, lowest: int
) -> None:
    given_values = np.maximum(np.array(values, dtype=np.int64), lowest) * apart
    assert distinct(given_values).tolist() == sorted(set(given_values.tolist()))


@given(keep=st.lists(st.booleans(), min_size=1, max_size=40), lanes=st.integers(1, 3))
def test_packing_keeps_the_columns_that_are_kept(keep: list[bool], lanes: int) -> None:
    kept = np.flatnonzero(keep)
    values = np.arange(lanes * len(keep), dtype=np.int64).reshape(lanes, -1)
    want = values[:, kept].tolist()
    assert packed(values.copy(), kept).tolist() == want
    almost = np.delete(np.arange(40), 7)
    full = np.arange(lanes * 40, dtype=np.float64).reshape(lanes, -1)
    assert packed(full.copy(), almost).tolist() == full[:, almost].tolist()
