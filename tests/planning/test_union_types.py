"""Streams of a union that have a column in two types are told what to write, and it is answered."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import panes
from panes.errors import ColumnTypeError

UTC = pa.timestamp("us", "UTC")
TYPES = [
    (pa.timestamp("ms", "UTC"), UTC, pa.int64(), pa.int64()),
    (UTC, pa.timestamp("us"), pa.int64(), pa.int64()),
    (UTC, UTC, pa.int32(), pa.int64()),
    (UTC, UTC, pa.float64(), pa.int64()),
    (UTC, UTC, pa.string(), pa.int64()),
]


@pytest.mark.parametrize(("old_ts", "new_ts", "old_k", "new_k"), TYPES, ids=str)
def test_a_union_of_two_types_is_answered_as_the_hint_says(
    old_ts: pa.DataType, new_ts: pa.DataType, old_k: pa.DataType, new_k: pa.DataType
) -> None:
    numbers = pa.array([1, 2])
    old = pa.table({"ts": numbers.cast(old_ts), "k": numbers.cast(old_k)})
    new = pa.table({"ts": numbers.cast(new_ts), "k": numbers.cast(new_k)})
    text = "SELECT k, count(*) AS n FROM {} [TUMBLING 1 day WATTR ts] GROUP BY k"
    with pytest.raises(ColumnTypeError) as refused:
        panes.sql(text.format("(old UNION ALL new)"), old=old, new=new)
    written = re.search(r"FROM (\(.*\))", refused.value.hint or "")
    assert written
    rest = "k" if " AS ts" in written[1] else "ts"
    answers = panes.sql(text.format(written[1].replace("...", rest)), old=old, new=new)
    assert answers["n"].to_pylist() == [2, 2]
