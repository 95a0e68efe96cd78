"""Expressions that take too long for a batch are interrupted, and named."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes
from panes.errors import LimitError
from panes.expressions import time_limit


def test_a_batch_that_takes_too_long_is_stopped_and_the_query_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query = panes.open("SELECT max(levenshtein(s, reverse(s))) AS m FROM r [TUMBLING 10 WATTR at]")
    query.push(r=pa.table({"at": [1], "s": ["ab"]}))
    slow = pa.table({"at": [2] * 50_000, "s": ["abcdefghij" * 200] * 50_000})
    monkeypatch.setattr(time_limit, "SECONDS", 0.05)
    monkeypatch.setattr(time_limit, "SECONDS_EACH", 0.0)
    with pytest.raises(LimitError, match=r"`LEVENSHTEIN.*` took more than 0.05 seconds"):
        query.push(r=slow)
    monkeypatch.undo()
    query.push(r=pa.table({"at": [3], "s": ["abc"]}))
    assert query.finish()["m"].to_pylist() == [2]
