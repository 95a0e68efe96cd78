"""What would give more answers than a step may is refused in time, whatever the windows are."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

import panes
from panes.arrays.memory import stated_limit
from panes.errors import FailedQueryWarning, LimitError, OptionError
from panes.windows import limit
from panes.windows.limit import at_most, require_room
from tests.support import STORES

AXIS = pa.timestamp("us", "UTC")
FAR = pa.table(
    {
        "at": pa.array([0, 10**12], pa.int64()),
        "ts": pa.array([0, 10**15], AXIS),
        "k": ["a", "b"],
        "x": [1.0, 2.0],
    }
)
HUGE = (
    "RANGE 1000000 days SLIDE 1 microsecond WATTR ts",
    "RANGE ALL SLIDE 1 microsecond WATTR ts",
    "RANGE 2305843009213693951 SLIDE 1 WATTR at",
    "RANGE 1000000000 SLIDE 1 WATTR at",
    "RANGE ALL SLIDE 1 WATTR at",
)
TEXT = "SELECT k, max(x) AS m, count(*) AS n FROM s [{}] GROUP BY k"


@pytest.mark.parametrize("window", HUGE)
@pytest.mark.parametrize("aggregate", ["max(x)", "median(x)", "approx_count_distinct(x)"])
def test_a_table_is_refused(window: str, aggregate: str) -> None:
    begun = time.process_time()
    with pytest.raises(LimitError, match="max_answers is 100,000,000"):
        panes.sql(f"SELECT k, {aggregate} AS a FROM s [{window}] GROUP BY k", s=FAR)
    assert time.process_time() - begun < 10


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("window", [w for w in HUGE if "ALL" not in w])
def test_every_store_refuses_it(window: str, store: str) -> None:
    """The eager store at once, the others when windows close."""
    lateness = "0 seconds" if "ts" in window else 0
    query = panes.open(TEXT.format(window), lateness=lateness, max_ahead=None, store=store)
    query.push(s=FAR.slice(0, 0))

    def push() -> None:
        for row in range(len(FAR)):
            query.push(s=FAR.slice(row, 1))

    with pytest.raises(LimitError):
        push()


@pytest.mark.parametrize(
    "window", ["RANGE 90000000 SLIDE 1 WATTR at", "RANGE ALL SLIDE 1 WATTR at"]
)
def test_what_memory_does_not_hold_is_refused(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ninety million answers are allowed, but not on a machine with 8 GB."""
    monkeypatch.setattr(limit, "usable_memory", lambda: 8_000_000_000)
    rows = pa.table({"at": [0, 85_000_000], "k": ["a", "a"], "x": [1.0, 2.0]})
    query = panes.open(TEXT.format(window), lateness=0, max_ahead=None)
    query.push(s=rows.slice(0, 1))
    with pytest.raises(LimitError, match=r"GB while it works, and a step may use half of 8.0 GB"):
        query.push(s=rows.slice(1))
    assert query.state["partials"] == 1
    with at_most(None):
        require_room(1e30)
    assert limit.fitting(10**9) == 8_000_000_000 // 1024


def test_the_memory_of_a_container_is_what_it_says(tmp_path: Path) -> None:
    said = tmp_path / "memory.max"
    assert stated_limit(said) is None
    for text, want in [("max\n", None), ("4096\n", 4096)]:
        said.write_text(text)
        assert stated_limit(said) == want


def test_the_limit_is_an_option() -> None:
    rows = pa.table({"at": [0, 500], "k": ["a", "a"], "x": [1.0, 2.0]})
    text = TEXT.format("RANGE 100 SLIDE 1 WATTR at")
    want = panes.sql(text, s=rows)
    assert len(want) == 200
    for enough in (300, 10**9, None):
        assert panes.sql(text, s=rows, max_answers=enough).equals(want)
    with pytest.raises(LimitError, match="max_answers is 99"):
        panes.sql(text, s=rows, max_answers=99)
    query = panes.open(text, lateness=0, max_answers=99)
    query.push(s=rows.slice(0, 1))
    with pytest.raises(LimitError):
        query.push(s=rows.slice(1))
    assert query.state["partials"] == 1
    for wrong in (0, -1, "many", 1.5):
        with pytest.raises(OptionError, match="max_answers"):
            panes.sql(text, s=rows, max_answers=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("aggregate", ["max(x)", "median(x)"])
def test_a_register_sets_aside_what_would_give_too_many(aggregate: str) -> None:
    reg = panes.register("s", lateness=0, max_ahead=None)
    reg.add(
        "huge", f"SELECT k, {aggregate} AS a FROM s [RANGE 1000000000 SLIDE 1 WATTR at] GROUP BY k"
    )
    reg.add("good", "SELECT k, max(x) AS a FROM s [RANGE 100 SLIDE 10 WATTR at] GROUP BY k")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FailedQueryWarning)
        answers = {name: table.to_pylist() for name, table in reg.push(FAR).items()}
        last = {name: table.to_pylist() for name, table in reg.finish().items()}
    assert set(reg.failed) == {"huge"}
    assert "max_answers" in reg.failed["huge"]
    assert (len(answers["good"]), len(last["good"])) == (10, 10)


def test_limits_are_those_of_the_thread_that_runs() -> None:
    with at_most(None):
        require_room(1e30)
        with at_most(5), pytest.raises(LimitError):
            require_room(6)
        require_room(1e30)
    with pytest.raises(LimitError):
        require_room(1e30)
