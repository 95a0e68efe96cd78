"""Wrong edits that the suite must catch: each is planted and the oracle must disagree.

If one of these tests fails, the comparison with the oracle has become blind to that bug.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import panes
from panes.aggregates.aggregate import Selection
from panes.aggregates.monoid import Lanes
from panes.nodes import sliding as pipeline
from panes.reference.compare import difference
from panes.stores import fragment as fragments
from panes.stores import keyed_panes as partials
from panes.stores import panes as store
from panes.stores import rows_and_partials
from panes.stores.keyed_panes import KeyedPanes
from panes.stores.row_buffer import RowBuffer
from panes.windows import tag
from panes.windows.cover import Cover
from panes.windows.cut import Cut
from panes.windows.extent import Extent

TABLE = pa.table(
    {
        "at": [3, 17, 18, 4, 29, 55, 31, -6, -20, 90],
        "k": ["a", "b", "a", "a", None, "b", "a", "b", None, "a"],
        "x": [1.0, -2.0, None, 4.5, 0.25, 8.0, -1.0, 3.0, 2.0, 7.0],
    }
)
QUERIES = (
    "SELECT k, min(x) AS l, max(x) AS h, sum(x) AS s, count(*) AS n "
    "FROM t [RANGE 20 SLIDE 10 WATTR at] GROUP BY k",
    "SELECT k, max(x) AS h, avg(x) AS m, median(x) AS d "
    "FROM t [RANGE 35 SLIDE 10 WATTR at] GROUP BY k",
    "SELECT k, count(x) AS n FROM t [RANGE ALL SLIDE 10 WATTR at] GROUP BY k",
    "SELECT k, count(*) AS n, last(x) AS z FROM t [RANGE 3 SLIDE 10 WATTR at] GROUP BY k",
    "SELECT k, count(*) AS n FROM t [RANGE 4 ROWS SLIDE 3 ROWS] GROUP BY k",
)


def streamed(text: str) -> pa.Table:
    """In order and row by row, so that eviction and merging take part."""
    query = panes.open(text, lateness=None if "ROWS" in text else 0)
    rows = TABLE if "ROWS" in text else TABLE.sort_by("at")
    found = [query.push(t=rows.slice(i, 1)) for i in range(len(rows))]
    return pa.concat_tables([*found, query.finish()])


def wrong() -> list[str]:
    """Where engine and oracle differ; an engine that breaks down counts as caught too."""
    found = []
    for text in QUERIES:
        want = panes.oracle(text, t=TABLE)
        engines: list[Callable[[str], pa.Table]] = [lambda q: panes.sql(q, t=TABLE)]
        if "median" not in text:
            engines.append(streamed)
        for engine in engines:
            try:
                differs = difference(engine(text), want)
            except Exception as failure:
                differs = repr(failure)
            found += [] if differs is None else [differs]
    return found


def test_without_a_planted_bug_nothing_differs() -> None:
    assert wrong() == []


def shifted(function: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: change(function(*args, **kwargs))


def one_pane_less(cover: Cover) -> Cover:
    longer = cover.last - cover.first > 1
    return Cover(cover.offsets, cover.wid, cover.first + longer, cover.last)


def one_window_late(cover: Cover) -> Cover:
    return Cover(cover.offsets, cover.wid + 1, cover.first, cover.last)


BUGS: dict[str, tuple[object, str, Callable[[Any], Any]]] = {
    "the oldest pane of a window is forgotten": (store, "cover", one_pane_less),
    "windows are named one too late": (store, "cover", one_window_late),
    "panes under the newest due window are cut off": (
        store, "extent", lambda e: Extent(e.start, e.end - 1),
    ),
    "a pane is evicted one tick early": (store, "extent", lambda e: Extent(e.start + 1, e.end)),
    "a window closes one slide early": (pipeline, "windows_closed", lambda w: w + 1),
    "the last window is never answered": (pipeline, "windows_reached", lambda w: w - 1),
    "answers come in the wrong order": (partials, "by_window", lambda order: order[::-1].copy()),
    "partials of one pane are not merged": (
        fragments, "compact_slots", lambda r: (np.zeros_like(r[0]), r[1]),
    ),
    "a pane begins one tick late": (Cut, "pane_start", lambda s: s + 1),
    "a neutral element is not neutral": (Lanes, "empty", lambda p: p + p.dtype.type(1)),
    "NULLs are counted": (Selection, "slots", lambda s: np.abs(s)),
    "count(x) is taken for count(*)": (Selection, "keeps_all", lambda kept: True),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, change = BUGS[bug]
    monkeypatch.setattr(place, name, shifted(getattr(place, name), change))
    assert wrong(), f"no test would notice that {bug}"


SLIDING = (
    "SELECT k, max(x) AS h, count(*) AS n FROM t [RANGE 20 SLIDE 10 WATTR at] GROUP BY k",
    "SELECT k, sum(x) AS s, count(x) AS n FROM t [RANGE 35 SLIDE 10 WATTR at] GROUP BY k",
)
DENSE = pa.table(
    {
        "at": [i // 2 for i in range(400)],
        "k": ["a" if i % 9 else "b" for i in range(400)],
        "x": [float(i % 13) for i in range(400)],
    }
)


def wrong_stores() -> list[str]:
    """Where a store and the oracle differ, over a stream that makes groups turn."""
    found = []
    for text in SLIDING:
        want = panes.oracle(text, t=DENSE)
        for name in ("eager", "buffered", "adaptive", "adaptive-panes"):
            try:
                query = panes.open(text, lateness=0, store=name)
                given = [query.push(t=DENSE.slice(i, 30)) for i in range(0, 400, 30)]
                differs = difference(pa.concat_tables([*given, query.finish()]), want)
            except Exception as failure:
                differs = repr(failure)
            found += [] if differs is None else [f"{name}: {differs}"]
    return found


STORE_BUGS: dict[str, tuple[object, str, Callable[[Any], Any]]] = {
    "a row is tagged with one window too many": (tag, "window_bounds", lambda b: (b[0], b[1] + 1)),
    "a row misses its oldest window": (tag, "window_bounds", lambda b: (b[0] + 1, b[1])),
    "buffered rows are dropped a window early": (rows_and_partials, "last_wid", lambda w: w - 1),
    "rows that became partials stay buffered too": (
        RowBuffer, "everything", lambda rows: None if rows is None else rows.taken(
            np.r_[np.arange(len(rows)), 0]
        ),
    ),
    "what is lent for an answer is kept": (KeyedPanes, "lent", lambda _: nullcontext()),
}  # fmt: skip


def test_without_a_planted_bug_all_stores_agree() -> None:
    assert wrong_stores() == []


@pytest.mark.parametrize("bug", STORE_BUGS)
def test_a_planted_bug_in_a_store_is_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, change = STORE_BUGS[bug]
    monkeypatch.setattr(place, name, shifted(getattr(place, name), change))
    assert wrong_stores(), f"no test would notice that {bug}"
