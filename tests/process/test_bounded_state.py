"""What a stream keeps is counted to the byte, bounded, and told when it only grows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest

import panes
from panes.errors import NoProgressWarning, OptionError, RejectedRowsWarning
from panes.nodes import release
from panes.planning.terms import StreamOptions
from panes.process.running_query import OpenQuery
from tests.support import ORDERED, PARTITIONED, PER_ROW, STORES, WINDOWS, open_query

COUNT = "SELECT k, count(*) AS n FROM s [{}] GROUP BY k"


def table(at: list[int], **columns: Sequence[object]) -> pa.Table:
    return pa.table({"at": pa.array(at, pa.int64()), **(columns or {"k": ["a"] * len(at)})})


# Every byte


def test_bytes_of_keys_rows_and_answers_are_counted() -> None:
    long = ["x" * 1_000 + str(i) for i in range(50)]
    query = open_query(COUNT.format("TUMBLING 10 WATTR at"), lateness=0)
    query.push(s=table(list(range(5)) * 10, k=long))
    state = query.state
    assert state["key_bytes"] > 50_000
    assert state["total_bytes"] == sum(
        size for name, size in state.items() if name.endswith("bytes") and name != "total_bytes"
    )
    query.push(s=table([100]))
    query.push(s=table([1], k=["late"]))
    assert query.state["set_aside_bytes"] > 0
    assert query.state["total_bytes"] > query.state["set_aside_bytes"]


@pytest.mark.parametrize("window", ["RANGE 5 ROWS SLIDE 3 ROWS WATTR at", *PER_ROW])
def test_bytes_of_rows_that_wait_are_counted(window: str) -> None:
    keys = " GROUP BY k" if "RATTR" not in window else ""
    selected = "k, " if "RATTR" in window or keys else ""
    query = open_query(f"SELECT {selected}count(*) AS n FROM s [{window}]{keys}", lateness=10**6)
    rows = table(list(range(300)), k=["a"] * 300, b=[True] * 300)
    query.push(s=rows)
    assert query.state["waiting_rows"] > 0
    assert query.state["waiting_bytes"] >= 8 * query.state["waiting_rows"]


def test_bytes_before_the_origin_is_known_are_counted() -> None:
    query = open_query(COUNT.format("TUMBLING 10 WATTR at ORIGIN FIRST"), lateness=1_000)
    query.push(s=table(list(range(100))))
    assert query.state["waiting_bytes"] > 800


def test_bytes_that_distinct_remembers_are_counted() -> None:
    text = "SELECT count(*) AS n FROM (SELECT DISTINCT at, k FROM s) [TUMBLING 10 WATTR at]"
    query = open_query(text, lateness=10**6)
    query.push(s=table(list(range(100))))
    assert query.state["operator_bytes"] > 1_600


@pytest.mark.parametrize("store", STORES)
def test_every_store_counts_its_keys(store: str) -> None:
    query = open_query(COUNT.format("TUMBLING 10 WATTR at"), lateness=0, store=store)
    query.push(s=table(list(range(5)), k=["x" * 10_000 + str(i) for i in range(5)]))
    assert query.state["key_bytes"] > 50_000


def test_a_register_counts_keys_tables_and_rows() -> None:
    reg = panes.register("s", lateness=0, keep_rows=10)
    reg.add("q", COUNT.format("RANGE 100 SLIDE 10 WATTR at"))
    reg.push(table(list(range(0, 200, 2)), k=[f"{i % 7} {'x' * 100}" for i in range(100)]))
    state = reg.state
    assert state["table_bytes"] > 0
    assert state["key_bytes"] > 700
    assert state["row_bytes"] > 0
    assert state["total_bytes"] == sum(
        size for name, size in state.items() if name.endswith("bytes") and name != "total_bytes"
    )


# Answers in line


def test_answers_in_line_are_counted_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "MOST_WAITING", 30)
    text = COUNT.format("TUMBLING 10 WATTR at")
    query = open_query(text, lateness=0, flush=panes.SlowFlush(at_most=2))
    given, keys = 0, [str(i) for i in range(20)]
    for second in range(0, 100, 10):
        given += len(query.push(s=table([second] * 20, k=keys)))
        assert query.state["waiting_answers"] <= 30
    assert query.state["waiting_answers"] == 30
    assert query.state["waiting_bytes"] > 30 * 8
    assert given + len(query.finish()) == 10 * 20


# Streams without progress


def pushes(query: OpenQuery, count: int, rows: int = 10) -> Iterator[int]:
    """Push so many batches; gives the number of each that told something."""
    for number in range(count):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            query.push(s=table([number] * rows))
        yield from (number for w in told if w.category is NoProgressWarning)


def test_a_stream_without_progress_is_told_once() -> None:
    query = open_query(COUNT.format("TUMBLING 10 WATTR at"), stall_rows=150)
    assert list(pushes(query, 40)) == [14]


def test_a_few_large_batches_are_no_stall() -> None:
    query = open_query(COUNT.format("TUMBLING 10 WATTR at"), stall_rows=150)
    assert list(pushes(query, 9, rows=1_000)) == []


def test_progress_begins_the_count_again() -> None:
    query = open_query(COUNT.format("TUMBLING 10 WATTR at"), stall_rows=150)
    assert list(pushes(query, 14)) == []
    query.punctuate(s=1)
    assert list(pushes(query, 40)) == [15]  # the first push after it is progress itself


def test_promises_for_one_key_are_progress() -> None:
    query = open_query(COUNT.format("TUMBLING 10 WATTR at"), stall_rows=150)
    assert list(pushes(query, 14)) == []
    query.punctuate(s=1, key={"k": "a"})
    assert list(pushes(query, 14)) == []


@pytest.mark.parametrize("options", [{"lateness": 0}, {"stall_rows": None}, {"rows_late": 1}])
def test_what_makes_progress_or_is_told_not_to_is_silent(options: dict[str, int | None]) -> None:
    query = open_query(
        COUNT.format("TUMBLING 10 WATTR at"),
        **{"stall_rows": 20, **options},
    )
    assert list(pushes(query, 60)) == []


def test_a_silent_stream_of_a_union_is_named() -> None:
    text = "SELECT count(*) AS n FROM (s UNION ALL control) [TUMBLING 10 WATTR at]"
    query = open_query(text, lateness=0, stall_rows=100)
    rows = pa.table({"at": pa.array(range(20), pa.int64())})
    for _ in range(9):
        query.push(s=rows)
    with pytest.warns(NoProgressWarning, match="`control` has not moved"):
        query.push(s=rows)


def test_rows_counted_as_they_arrive_need_no_progress() -> None:
    query = open_query(COUNT.format("ROWS 4"), stall_rows=20)
    assert list(pushes(query, 30)) == []


def test_a_register_without_progress_is_told_once() -> None:
    reg = panes.register("s", stall_rows=150)
    reg.add("q", COUNT.format("TUMBLING 10 WATTR at"))
    told = []
    for number in range(40):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            reg.push(table([number] * 10))
        told += [number for w in caught if "give a lateness" in str(w.message)]
    assert told == [14]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "many"])
def test_stall_rows_is_a_number_of_rows(wrong: object) -> None:
    with pytest.raises(OptionError, match="stall_rows"):
        open_query(COUNT.format("TUMBLING 10 WATTR at"), stall_rows=wrong)


# Positions far ahead

INTEGER = COUNT.format("TUMBLING 10 WATTR at")


def test_one_position_far_ahead_closes_nothing() -> None:
    """
    at     1  5  12 | 13  10^15  14        max_ahead = 1000
                          ^^^^^ rejected: nothing within 1000 below it
    """
    query = open_query(INTEGER, lateness=2, max_ahead=1_000)
    query.push(s=table([1, 5, 12]))
    with pytest.warns(RejectedRowsWarning, match="1 row is further ahead"):
        query.push(s=table([13, 10**15, 14]))
    assert query.progress == 12
    assert query.rejected.column("at").to_pylist() == [10**15]
    assert [a["n"] for a in query.push(s=table([21])).to_pylist()] == []
    assert [a["n"] for a in query.finish().to_pylist()] == [3, 1]


@pytest.mark.filterwarnings("ignore::panes.RejectedRowsWarning")
@pytest.mark.parametrize("absurd", [10**18, 2**60, 2**62 - 1])
@pytest.mark.parametrize("window", ["TUMBLING 10", "RANGE 30 SLIDE 10", "RANGE ALL SLIDE 10"])
def test_unless_told_otherwise_an_absurd_position_closes_nothing(window: str, absurd: int) -> None:
    query = OpenQuery(COUNT.format(f"{window} WATTR at"), StreamOptions(lateness=2))
    reg = panes.register("s", lateness=2)
    reg.add("q", INTEGER)
    for at in ([1, 5, 12], [13, absurd, 14], [15]):
        query.push(s=table(at))
        reg.push(table(at))
    for one in (query, reg):
        assert one.progress == 13
        assert one.rejected.column("at").to_pylist() == [absurd]
        assert len(one.late) == 0


@pytest.mark.filterwarnings("ignore::panes.RejectedRowsWarning")
def test_windows_say_how_far_is_far_and_none_believes_everything() -> None:
    far, wide = 10**18, "TUMBLING 1000000000000 WATTR at"
    for run, window, is_believed in [
        (StreamOptions(lateness=2), "TUMBLING 10 WATTR at", False),
        (StreamOptions(lateness=2), wide, True),
        (StreamOptions(lateness=2, max_ahead=None), "TUMBLING 10 WATTR at", True),
        (StreamOptions(), "TUMBLING 10 WATTR at", True),  # rows close nothing
        (StreamOptions(), "RANGE ALL SLIDE 10 WATTR at", False),
    ]:
        query = OpenQuery(COUNT.format(window), run)
        query.push(s=table([1, 5, far]))
        assert (len(query.rejected) == 0) == is_believed


@pytest.mark.filterwarnings("ignore::panes.RejectedRowsWarning")
def test_after_a_gap_a_stream_goes_on() -> None:
    """
    at     1 | 5000 | 5001 5002 | 5003 5004 10^15
               ^^^^   ^^^^^^^^^ rejected: one or two rows may be wrong; half of three are believed
    """
    query = OpenQuery(INTEGER, StreamOptions(lateness=0, max_ahead=100))
    for at in ([1], [5_000], [5_001, 5_002], [5_003, 5_004, 10**15]):
        query.push(s=table(at))
    assert query.rejected.column("at").to_pylist() == [5_000, 5_001, 5_002, 10**15]
    assert query.progress == 5_004


@pytest.mark.filterwarnings("ignore::panes.RejectedRowsWarning")
@pytest.mark.parametrize("batch", [1, 2, 3, 7, 100])
def test_rows_in_steps_are_believed_in_any_split(batch: int) -> None:
    at = np.arange(0, 10_000, 90).tolist()
    query = OpenQuery(INTEGER, StreamOptions(lateness=0, max_ahead=100))
    for begin in range(0, len(at), batch):
        query.push(s=table(at[begin : begin + batch]))
    assert len(query.rejected) == 0
    query.push(s=table([10_200]))
    assert len(query.rejected) == 1


@pytest.mark.filterwarnings("ignore::panes.RejectedRowsWarning")
def test_of_the_first_batch_half_is_believed() -> None:
    query = OpenQuery(INTEGER, StreamOptions(lateness=0, max_ahead=100))
    query.push(s=table([10**15, 50, 60, 70, 0]))
    assert query.rejected.column("at").to_pylist() == [10**15]
    assert query.progress == 70


@pytest.mark.filterwarnings("ignore::panes.RejectedRowsWarning")
def test_a_landmark_ends_although_a_row_was_far_ahead() -> None:
    query = OpenQuery(COUNT.format("RANGE ALL SLIDE 1 WATTR at"), StreamOptions(max_ahead=100))
    query.push(s=table([1, 2, 2**60, 3]))
    assert len(query.finish()) == 3


@pytest.mark.filterwarnings("ignore::panes.RejectedRowsWarning")
def test_a_register_rejects_positions_far_ahead_too() -> None:
    reg = panes.register("s", lateness=0, max_ahead=100)
    reg.add("q", INTEGER)
    reg.push(table([1, 2, 3]))
    assert not reg.push(table([4, 10**15]))
    assert reg.rejected.column("at").to_pylist() == [10**15]
    assert reg.progress == 4


def test_streams_of_a_union_are_believed_each_by_itself() -> None:
    text = "SELECT count(*) AS n FROM (s UNION ALL r) [TUMBLING 10 WATTR at]"
    query = OpenQuery(text, StreamOptions(lateness=0, max_ahead=100))
    near = pa.table({"at": pa.array([1, 2], pa.int64())})
    far = pa.table({"at": pa.array([10**9, 10**9 + 1], pa.int64())})
    query.push(s=near, r=far)
    query.push(s=near, r=far)
    assert len(query.rejected) == 0


def test_a_length_of_time_is_refused_on_an_integer_axis() -> None:
    query = open_query(INTEGER, lateness=0, max_ahead="2 days")
    with pytest.raises(OptionError, match="max_ahead is a whole number"):
        query.push(s=table([1]))
    with pytest.raises(OptionError, match="none is ahead"):
        open_query(COUNT.format("ROWS 4"), max_ahead=7)
    with pytest.raises(OptionError, match="max_ahead needs a unit"):
        open_query("SELECT count(*) AS n FROM s [TUMBLING 1 minute WATTR ts]", max_ahead=7)


@pytest.mark.parametrize("window", [w for w in (*WINDOWS, *PARTITIONED, *ORDERED) if "at" in w])
def test_a_wide_max_ahead_changes_no_answer(window: str) -> None:
    rows = table(list(range(50)), k=["a", "b"] * 25, b=[True] * 50)
    answers = []
    for max_ahead in (None, 10**6):
        query = OpenQuery(COUNT.format(window), StreamOptions(lateness=3, max_ahead=max_ahead))
        answers.append(pa.concat_tables([query.push(s=rows), query.finish()]))
    assert answers[0].equals(answers[1])
