"""Rows that do not count are set aside: late and rejected ones, with the reason."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes

W = "[TUMBLING 10 WATTR at]"


def test_a_stream_may_have_a_column_named_reason() -> None:
    query = panes.open(f"SELECT count(*) AS n FROM t {W}", lateness=0)
    query.push(t=pa.table({"at": [15, None], "reason": ["a", "b"]}))
    assert query.rejected.column_names == ["at", "reason", "reason_"]
    assert query.rejected["reason"].to_pylist() == ["b"]


def test_rows_that_cannot_be_counted_in_order_are_reported() -> None:
    t = pa.table({"seq": [3, None, 1, 2]})
    with pytest.warns(panes.RejectedRowsWarning, match="left out 1 rows: `seq` is NULL"):
        assert len(panes.sql("SELECT count(*) AS n FROM t [ROWS 2 WATTR seq]", t=t)) == 3


def test_late_rows_can_be_taken_and_are_then_forgotten() -> None:
    query = panes.open(f"SELECT count(*) AS n FROM t {W}", lateness=0)
    query.push(t=pa.table({"at": [50]}))
    query.push(t=pa.table({"at": [1]}))
    assert query.take_late()["at"].to_pylist() == [1]
    assert not len(query.late)


def test_a_late_row_in_the_first_batch_finds_its_windows_closed() -> None:
    query = panes.open("SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]")
    query.punctuate(s=100)
    assert not len(query.push(s=pa.table({"at": [5]})))
    assert query.late["reason"].to_pylist() == ["behind progress 100; all its windows are closed"]
    assert not len(query.finish())


def test_a_late_row_does_not_set_the_origin() -> None:
    query = panes.open("SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at ORIGIN FIRST]")
    query.punctuate(s=100)
    query.push(s=pa.table({"at": [5, 103]}))
    assert query.finish()["window_start"].to_pylist() == [103]
