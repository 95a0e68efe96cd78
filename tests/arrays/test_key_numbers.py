"""Numbers for keys: when keys are forgotten, those that stay are numbered anew, in their order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from panes.arrays.key_numbers import KeyNumbers

COUNT = 10_000


@pytest.mark.parametrize("columns", [1, 2])
def test_new_numbers_ascend_with_the_old_ones_whatever_the_keys(columns: int) -> None:
    """Integers are numbered by their size within a batch: here, against the order they came in."""
    numbers = KeyNumbers([pa.int64()] * columns)
    for begin in range(COUNT, 0, -1000):
        batch = pa.array(np.arange(begin - 1000, begin))
        numbers.encode([batch] * columns, 1000)
    live = np.arange(0, COUNT, 2)
    keys = numbers.columns(live)
    renamed = numbers.keep(live)
    assert renamed[live].tolist() == list(range(len(live)))
    assert (renamed[1::2] == -1).all()
    assert len(numbers) == len(live)
    for before, after in zip(keys, numbers.columns(np.arange(len(live))), strict=True):
        assert after.equals(before)
    assert numbers.encode(keys, len(live)).tolist() == list(range(len(live)))


def test_keys_that_stay_may_get_other_values() -> None:
    numbers = KeyNumbers([pa.int64(), pa.string()])
    numbers.encode([pa.array([7, 8, 9]), pa.array(["a", "b", "c"])], 3)
    renamed = numbers.keep(np.array([0, 2]), [pa.array([1, 0]), pa.array(["a", "c"])])
    assert renamed.tolist() == [0, -1, 1]
    assert [c.to_pylist() for c in numbers.columns(np.arange(2))] == [[1, 0], ["a", "c"]]
