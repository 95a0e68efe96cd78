"""Which shard a key lives in never changes: a checkpoint depends on it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

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
