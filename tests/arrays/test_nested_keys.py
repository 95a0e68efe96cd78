"""Nested values as bytes: they sort as the values do, and nothing is lost on the way."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panes.arrays.nested_keys import decode, encode, require_orderable
from panes.errors import ColumnTypeError
from panes.reference.compare import same
from panes.reference.folds import order

TYPE = pa.struct(
    [
        ("i", pa.int32()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("d", pa.decimal128(10, 2)),
        ("t", pa.timestamp("us")),
        ("v", pa.list_(pa.struct([("b", pa.bool_()), ("r", pa.binary())]))),
    ]
)


_HOUR = dt.timedelta(hours=1)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


_inner = st.fixed_dictionaries(
    {"b": maybe(st.booleans()), "r": maybe(st.sampled_from([b"", b"\0", b"\0\xff", b"\1"]))}
)
values = st.fixed_dictionaries(
    {
        "i": maybe(st.integers(-(2**31), 2**31 - 1)),
        "x": maybe(st.sampled_from([0.0, -1.5, math.inf, -math.inf, math.nan])),
        "s": maybe(st.text(max_size=3)),
        "d": maybe(st.integers(-999, 999).map(lambda n: Decimal(n) / 100)),
        "t": maybe(st.integers(-(10**6), 10**6).map(lambda s: dt.datetime(1970, 1, 1) + s * _HOUR)),
        "v": maybe(st.lists(maybe(_inner), max_size=3)),
    }
)


@given(drawn=st.lists(maybe(values), max_size=12), begin=st.integers(0, 3))
def test_they_come_back_and_sort_as_the_values_do(drawn: list[Any], begin: int) -> None:
    array = pa.array(drawn, TYPE).slice(begin)
    keys = encode(array)
    assert same(decode(keys, TYPE).to_pylist(), array.to_pylist())
    present = [(k, v) for k, v in zip(keys.to_pylist(), array.to_pylist(), strict=True) if v]
    by_key = [order(v) for _, v in sorted(present, key=lambda p: p[0])]
    assert by_key == sorted(by_key)


@pytest.mark.parametrize("inside", [pa.map_(pa.string(), pa.int64()), pa.month_day_nano_interval()])
def test_what_has_no_order_is_refused_wherever_it_is_inside(inside: pa.DataType) -> None:
    for nested in (pa.struct([("a", inside)]), pa.list_(inside), pa.list_(pa.list_(inside))):
        with pytest.raises(ColumnTypeError, match="can be ordered"):
            require_orderable(nested, what="max")
