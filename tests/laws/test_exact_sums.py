"""Exact sums say when they cannot be exact: limbs of 32 bits add up to so many values only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from panes.aggregates.aggregate import Argument, Bounded, Selection
from panes.aggregates.arithmetic import avg, sum_
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
