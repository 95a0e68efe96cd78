"""Batches of one push, joined: rows in their order, and the columns of those that pass."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from panes.nodes.arrival import Arrival, joined

NOTHING = Arrival(np.empty(0, dtype=np.int64), [pa.array([], pa.string())])


def test_passing_rows_count_from_the_beginning_of_all_batches() -> None:
    """
    rows      5  6  7 | 8  9
    passing   x     x |    x
    """
    first = Arrival(np.array([5, 6, 7]), [pa.array(["a", "c"])], np.array([0, 2]))
    second = Arrival(np.array([8, 9]), [pa.array(["e"])], np.array([1]))
    both = joined([first, NOTHING, second])
    assert both.at.tolist() == [5, 6, 7, 8, 9]
    assert both.passing_rows.tolist() == [0, 2, 4]
    assert both.passing_at.tolist() == [5, 7, 9]
    assert both.columns[0].to_pylist() == ["a", "c", "e"]


def test_where_all_rows_pass_nothing_is_listed() -> None:
    first = Arrival(np.array([5, 6]), [pa.array(["a", "b"])])
    second = Arrival(np.array([7]), [pa.array(["c"])], np.array([0]))
    assert joined([first, first]).passing is None
    assert joined([first, second]).passing_rows.tolist() == [0, 1, 2]
    assert joined([NOTHING, first]) is first
