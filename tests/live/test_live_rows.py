"""Sinks of one query that several pages look into: each page shows all that was set aside."""

from __future__ import annotations

import pyarrow as pa

from panes.live.feed import Look
from panes.live.snapshot import Snapshot
from panes.spark.live_rows import LiveRows
from panes.spark.live_subjects import OneQuery


def set_aside(page: OneQuery) -> dict[str, int]:
    """How many rows a page shows of each kind."""
    empty = Snapshot("spark", "", "", "", taken=0.0, started=0.0, status="running")
    return {r.kind: r.rows for r in page.fill(empty, Look()).set_aside.reasons}


def rows(reason: str) -> list[pa.Table]:
    return [pa.table({"reason": [reason]})]


def test_a_second_page_shows_late_and_rejected_rows_as_the_first_does() -> None:
    late, rejected = LiveRows(), LiveRows()
    late.apart.add("late", rows("behind"))
    rejected.apart.add("rejected", rows("no position"))
    pages = [OneQuery("", None, late, rejected) for _ in range(2)]
    rejected.apart.add("rejected", rows("no position"))
    assert [set_aside(page) for page in pages] == [{"late": 1, "rejected": 2}] * 2


def test_a_second_page_takes_no_row_from_the_first() -> None:
    late, rejected = LiveRows(), LiveRows()
    rejected.apart.add("rejected", rows("no position"))
    alone, again = (OneQuery("", None, None, rejected) for _ in range(2))
    both = OneQuery("", None, late, rejected)
    rejected.apart.add("rejected", rows("no position"))
    assert set_aside(alone) == set_aside(again) == set_aside(both) == {"rejected": 2}
    assert set_aside(OneQuery("", None, None, None)) == {}
