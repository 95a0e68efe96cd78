"""Gathering is what Arrow's `take` gives, for columns of every kind."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from panes.arrays.gather import gather, is_plain

COLUMNS = {
    "bytes": pa.array([1, -2, 3, -4], pa.int8()),
    "shorts": pa.array([1, -2, 3, -4], pa.int16()),
    "words": pa.array([1, 2, 3, 4], pa.uint32()),
    "longs": pa.array([2**62, -(2**62), 3, 4]),
    "floats": pa.array([0.5, float("nan"), -0.0, 4.0]),
    "times": pa.array([datetime(2020, 1, d) for d in range(1, 5)], pa.timestamp("us", "UTC")),
    "days": pa.array([date(2020, 1, d) for d in range(1, 5)]),
    "with NULLs": pa.array([1, None, 3, None]),
    "NULLs": pa.nulls(4),
    "booleans": pa.array([True, False, False, True]),
    "texts": pa.array(["a", "", "ccc", "d"]),
    "decimals": pa.array([Decimal("1.5")] * 3 + [Decimal("-2.0")], pa.decimal128(20, 1)),
    "lists": pa.array([[1], [], [2, 3], [4]]),
}
ROW = np.array([3, 1, 0, 2])
PLAIN = {"bytes", "shorts", "words", "longs", "floats", "times", "days"}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("size", [0, 1, 7, 100_000])
def test_every_kind_of_column(name: str, size: int) -> None:
    index = np.random.default_rng(size).integers(0, len(ROW), size)
    found = gather([COLUMNS[name]], ROW, index)[0]
    found.validate(full=True)
    assert found.type == COLUMNS[name].type
    wanted = COLUMNS[name].take(pa.array(ROW[index]))
    assert list(map(str, found.to_pylist())) == list(map(str, wanted.to_pylist()))


@pytest.mark.parametrize("name", COLUMNS)
def test_a_slice_of_a_column(name: str) -> None:
    """What lies before a slice, in the same memory, is not seen."""
    part = COLUMNS[name].slice(1, 2)
    found = gather([part, part], np.array([1, 0]), np.array([0, 0, 1]))
    wanted = part.take(pa.array([1, 1, 0]))
    assert [list(map(str, f.to_pylist())) for f in found] == [
        list(map(str, wanted.to_pylist()))
    ] * 2


def test_which_columns_are_plain() -> None:
    assert {name for name, column in COLUMNS.items() if is_plain(column)} == PLAIN
