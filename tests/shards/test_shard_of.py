"""Which shard a key lives in never changes: a checkpoint depends on it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panes.arrays.key_numbers import KeyNumbers
from panes.shards.names import AT, ROWS, column_name
from panes.shards.sent_rows import rows_of_schema
from panes.shards.shard_of import shards_of

KEYS = {
    "integers": (pa.array([0, 1, -1, None, 2**62]), [35, 65, 36, 0, 75]),
    "short integers": (pa.array([0, 1, -1, None], pa.int8()), [35, 65, 36, 0]),
    "floats": (pa.array([0.0, -0.0, 1.5, float("nan"), None]), [35, 35, 70, 18, 0]),
    "text": (
        pa.array(["", "a", "é", None, "a longer key"]),
        [8, 83, 22, 0, 88],
    ),
    "booleans": (pa.array([True, False, None]), [65, 35, 0]),
    "decimals": (pa.array([Decimal("1.50"), Decimal("-3.25"), None]), [79, 75, 0]),
    "dates": (pa.array([dt.date(2026, 1, 1), None]), [24, 0]),
    "instants": (pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None]), [96, 0]),
}


@pytest.mark.parametrize("name", KEYS)
def test_shards_are_pinned(name: str) -> None:
    column, pinned = KEYS[name]
    assert shards_of([column], 100).tolist() == pinned


def test_equal_keys_share_a_shard() -> None:
    both = shards_of([pa.array([0.0, -0.0, float("nan"), -float("nan")])], 1_000).tolist()
    assert both[0] == both[1]
    assert both[2] == both[3]
    whole = pa.array([1, 2, 3])
    assert shards_of([whole], 97).tolist() == shards_of([whole.cast(pa.int32())], 97).tolist()
    text = pa.array(["x", "a", "b"])
    assert shards_of([text[1:]], 97).tolist() == shards_of([text], 97).tolist()[1:]
    assert shards_of([text], 97).tolist() == shards_of([text.cast(pa.large_string())], 97).tolist()


def test_columns_are_not_mixed_up() -> None:
    ab, ba = pa.array(["a", "b"]), pa.array(["b", "a"])
    first, second = shards_of([ab, ba], 1 << 40).tolist()
    assert first != second


@pytest.mark.parametrize("keys", [pa.array(range(10_000)), pa.array(map(str, range(10_000)))])
def test_keys_spread_evenly(keys: pa.Array) -> None:
    counts = np.bincount(shards_of([keys], 16), minlength=16)
    assert counts.min() > 500
    assert counts.max() < 750


def test_without_keys_there_is_one_shard() -> None:
    assert shards_of([], 8).tolist() == [0]


INSTANT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
LIKE_OTHERS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "floats": (pa.float64(), [0.0, -0.0, 1.5, float("nan"), -float("nan"), None]),
    "short floats": (pa.float32(), [0.0, -0.0, 1.5, float("nan"), -float("nan"), None]),
    "decimals": (pa.decimal128(10, 2), [Decimal("0"), Decimal("-0.00"), Decimal("1.5"), None]),
    "instants": (pa.timestamp("us", "Europe/Berlin"), [INSTANT, INSTANT.replace(hour=1), None]),
    "text": (pa.string(), ["", "a", None]),
    "bytes": (pa.binary(), [b"", b"a", None]),
    "booleans": (pa.bool_(), [True, False, None]),
    "short integers": (pa.int8(), [0, -1, None]),
}


@pytest.mark.parametrize("name", LIKE_OTHERS)
@given(data=st.data())
def test_rows_of_one_group_are_sent_to_one_shard(name: str, data: st.DataObject) -> None:
    """By each row's own values, whatever GROUP BY and DISTINCT take for one."""
    kind, values = LIKE_OTHERS[name]
    drawn = data.draw(st.lists(st.tuples(*[st.sampled_from(values)] * 2), min_size=1, max_size=12))
    keys = [pa.array(column, kind) for column in zip(*drawn, strict=True)]
    groups = KeyNumbers([kind, kind]).encode(keys, len(drawn))
    filler = rows_of_schema("at", pa.schema([("a", kind), ("b", kind)]))
    number = np.arange(len(drawn))
    rows = pa.table({column_name(i): column for i, column in enumerate(keys)})
    filler.take(rows, np.zeros(len(drawn), dtype=np.int32), number)
    homes = np.full(len(drawn), -1)
    for shard, tables in filler.parts(1_000).items():
        homes[tables[ROWS].column(AT).to_numpy()] = shard
    assert (homes >= 0).all()
    assert len(set(zip(groups.tolist(), homes.tolist(), strict=True))) == len(set(groups.tolist()))
