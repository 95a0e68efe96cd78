"""Registers of any queries, in any history: each is answered as it would be alone.

One that is stopped at any time and opened again on its folder answers just the same.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.process.register_histories import any_history

SETTINGS = settings(
    max_examples=25, deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip


@pytest.mark.parametrize("late", ["open", "drop"])
@pytest.mark.parametrize("streams", [("s",), ("s", "r")], ids=["one stream", "two streams"])
def test_each_query_is_answered_as_it_would_be_alone(streams: tuple[str, ...], late: str) -> None:
    @SETTINGS
    @given(data=st.data())
    def histories(data: st.DataObject) -> None:
        any_history(data, streams, late)

    histories()


@pytest.mark.parametrize("streams", [("s",), ("s", "r")], ids=["one stream", "two streams"])
def test_each_query_is_answered_as_it_would_be_alone_however_often_it_is_stopped(
    streams: tuple[str, ...],
) -> None:
    @SETTINGS
    @given(data=st.data())
    def histories(data: st.DataObject) -> None:
        with tempfile.TemporaryDirectory() as place:
            any_history(data, streams, "open", Path(place))

    histories()
