"""What a snapshot says of a query, a join and a register while they run."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pyarrow as pa
import pytest

import panes
from panes.errors import OptionError
from panes.live.feed import Feed, Look
from panes.live.live_page import feed_of
from panes.live.query_feed import QueryFeed
from panes.live.snapshot import VERSION, Snapshot
from panes.process import in_steps
from tests.live.streams import TEXT, bids
from tests.support import open_join, open_query


def looked(feed: Feed, look: Look = Look()) -> Snapshot:  # noqa: B008 - frozen
    return feed.snapshot(look)


def opened(lateness: int = 5) -> tuple[panes.OpenQuery, QueryFeed]:
    query = open_query(TEXT, lateness=lateness)
    return query, QueryFeed(query)


def test_before_the_first_batch_a_snapshot_waits() -> None:
    _, feed = opened()
    shown = looked(feed)
    assert (shown.status, shown.counts.rows, shown.progress) == ("waiting", 0, None)
    assert shown.text == TEXT


def test_panes_fill_and_windows_close() -> None:
    """
    rows     1 3 | 12 | 25         promise 20
    panes   [0    [10  [20
    windows ... [-20, 20) closed | [-10, 30) [0, 40) [10, 50) [20, 60) open
    """
    query, feed = opened()
    query.push(bids=bids([1, 3, 12, 25]))
    shown = looked(feed)
    assert shown.progress == 20
    assert shown.newest == 25
    assert (shown.panes.start, shown.panes.end) == ([0, 10, 20], [10, 20, 30])
    assert shown.panes.rows == [2, 1, 1]
    open_ends = [e for e, c in zip(shown.windows.end, shown.windows.closed, strict=True) if not c]
    assert open_ends == [30, 40, 50, 60]
    assert shown.windows.end[shown.windows.closed.index(False) - 1] == 20
    query.push(bids=bids([38]))
    after = looked(feed)
    assert [e for e, c in zip(after.windows.end, after.windows.closed, strict=True) if not c] == [
        *(40, 50, 60, 70)
    ]


def test_a_late_row_is_a_point_with_its_reason() -> None:
    query, feed = opened()
    query.push(bids=bids([1, 3, 12, 25]))
    query.push(bids=bids([30, 14, 31]))
    shown = looked(feed)
    assert (shown.arrivals.late_row, shown.arrivals.late_at) == ([5], [14])
    assert shown.counts.late == 1
    assert [(r.kind, r.rows) for r in shown.set_aside.reasons] == [("late", 1)]
    assert shown.set_aside.reasons[0].reason == "behind progress; counted in its open windows"
    assert shown.set_aside.rows[0][:4] == ["late", 14, "a", 14.0]


def test_the_promise_is_a_line_over_rows() -> None:
    query, feed = opened()
    query.push(bids=bids([1, 12]))
    query.push(bids=bids([13, 25]))
    query.punctuate(bids=40)
    shown = looked(feed)
    assert shown.arrivals.promise_row == [2, 4, 4]
    assert shown.arrivals.promise_at == [7, 20, 40]


def test_rejected_rows_are_told_apart() -> None:
    query, feed = opened()
    query.push(bids=bids([1]))
    query.push(bids=pa.table({"at": [None, 2], "item": ["a", "b"], "price": [1.0, 2.0]},
                             schema=bids([1]).schema))  # fmt: skip
    shown = looked(feed)
    assert (shown.counts.rows, shown.counts.rejected) == (3, 1)
    assert shown.set_aside.reasons[0].kind == "rejected"


def test_a_batch_that_is_refused_leaves_no_trace() -> None:
    query, feed = opened()
    query.push(bids=bids([1, 3]))
    before = looked(feed)
    with pytest.raises(panes.PanesError):
        query.push(bids=pa.table({"other": [1]}))
    after = looked(feed)
    assert (after.counts, after.panes, after.arrivals) == (
        *(before.counts, before.panes, before.arrivals),
    )


def test_a_batch_that_fails_is_told_until_one_succeeds() -> None:
    query = open_query("SELECT sum(1 / x) AS s FROM bids [TUMBLING 10 WATTR at]", lateness=5)
    feed = QueryFeed(query)
    query.push(bids=pa.table({"at": [1], "x": [1]}))
    with pytest.raises(panes.PanesError):
        query.push(bids=pa.table({"at": [2, 30], "x": [1, 0]}))
    shown = looked(feed)
    assert (shown.status, shown.counts.rows) == ("failed", 1)
    assert shown.said.startswith("cannot evaluate `1 / x`")
    assert "\n" not in shown.said
    query.push(bids=pa.table({"at": [2, 30], "x": [1, 1]}))
    shown = looked(feed)
    assert (shown.status, shown.said, shown.counts.rows) == ("running", "", 3)


def test_answers_are_a_table_and_a_line_for_each_key() -> None:
    query, feed = opened(lateness=0)
    for at in (5, 15, 25):
        query.push(bids=pa.concat_tables([bids([at] * 2, "a"), bids([at], "b")]))
    shown = looked(feed).answers
    assert shown.columns == ["window_start", "window_end", "item", "n", "high"]
    assert (shown.by, shown.window) == ("n", 20)
    assert [row[2:4] for row in shown.rows] == [["a", 4], ["b", 2]]
    assert [(line.key, line.at, line.value) for line in shown.lines] == [
        ("a", [10, 20], [2.0, 4.0]),
        ("b", [10, 20], [1.0, 2.0]),
    ]


def test_answers_that_are_no_numbers_are_in_the_table_and_on_no_line() -> None:
    query = open_query(TEXT.replace("count(*) AS n, ", ""), lateness=0)
    feed = QueryFeed(query)
    prices = [None, float("nan"), float("inf"), 4.0, 5.0]
    items = ["null", "nan", "inf", "four", "null"]
    query.push(bids=pa.table({"at": [5, 5, 5, 5, 15], "item": items, "price": prices}))
    query.push(bids=bids([25], "x"))
    shown = looked(feed).answers
    assert [row[2:] for row in shown.rows] == [
        *(["inf", "inf"], ["null", 5.0], ["four", 4.0], ["nan", "nan"])
    ]
    assert [(line.key, line.at, line.value) for line in shown.lines] == [
        ("null", [20], [5.0]),
        ("four", [10, 20], [4.0, 4.0]),
    ]


def test_a_key_can_be_looked_for() -> None:
    query, feed = opened(lateness=0)
    query.push(bids=pa.concat_tables([bids([5], "lamp"), bids([5], "chair"), bids([15], "x")]))
    assert [row[2] for row in looked(feed, Look(answers="LAM")).answers.rows] == ["lamp"]
    assert looked(feed, Look(answers="nothing")).answers.rows == []


def test_answers_in_steps_are_seen_too() -> None:
    """The command reads a file in steps: what it gives is shown like what a push gives."""
    query, feed = opened(lateness=0)
    given = [*in_steps.push(query, {"bids": bids([5, 15, 25])}), *in_steps.finish(query)]
    shown = looked(feed)
    assert shown.counts.rows == 3
    assert shown.counts.answers == sum(map(len, given)) > 0
    assert shown.status == "finished"


def test_watching_changes_no_answer_and_ends_with_the_page() -> None:
    watched, feed = opened()
    alone = open_query(TEXT, lateness=5)
    for at in ([1, 3, 12, 25], [30, 14, 31], [90]):
        assert watched.push(bids=bids(at)).equals(alone.push(bids=bids(at)))
    feed.detach()
    assert watched.watcher is None
    assert watched.finish().equals(alone.finish())


@pytest.mark.parametrize(
    "window", ["ROWS 3", "RANGE 5 RATTR at SLIDE 1 ROW", "RANGE ALL SLIDE 10 WATTR at"]
)
def test_every_kind_of_window_is_shown(window: str) -> None:
    query = open_query(
        f"SELECT count(*) AS n FROM bids [{window}]", lateness=None if "ROWS" in window else 0
    )
    feed = QueryFeed(query)
    for at in ([1, 3, 12], [14, 25], [31]):
        query.push(bids=bids(at))
    shown = looked(feed)
    assert shown.counts.rows == 6
    assert shown.counts.answers > 0
    json.loads(shown.as_json())


def test_a_join_is_shown() -> None:
    query = open_join(
        "SELECT l.item, r.price FROM l [RANGE 5 WATTR at], r [RANGE 5 WATTR at] "
        "WHERE l.item = r.item",
        lateness=0,
    )
    feed = QueryFeed(query)
    query.push(l=bids([1, 7]), r=bids([2, 9]))
    shown = looked(feed)
    assert (shown.kind, shown.counts.rows) == ("join", 4)
    assert shown.counts.answers == len(shown.answers.rows) > 0


def test_a_snapshot_is_versioned_json_and_always_bounded() -> None:
    query = open_query(TEXT, lateness=5, max_answers=None)
    feed = QueryFeed(query)
    rng = np.random.default_rng(1)
    for start in range(0, 400_000, 20_000):
        at = np.sort(rng.integers(start, start + 20_000, 20_000))
        keys = rng.integers(0, 5_000, 20_000)
        query.push(bids=pa.table({"at": at, "item": keys, "price": rng.random(20_000)}))
    text = looked(feed).as_json()
    shown = json.loads(text)
    assert shown["version"] == VERSION == 1
    assert len(text) < 200_000
    assert set(shown) == {"version", *(f.name for f in dataclasses.fields(Snapshot))}
    assert shown["counts"]["rows"] == 400_000
    assert not shown["panes"]["exact"]
    assert len(shown["samples"]["at"]) < 500


def test_numbers_that_json_does_not_know_become_text() -> None:
    text = "SELECT item, sum(price) AS s FROM bids [TUMBLING 10 WATTR at] GROUP BY item"
    query = open_query(text, lateness=0)
    feed = QueryFeed(query)
    rows = pa.table({"at": [1, 2, 15], "item": ["a", "b", "c"],
                     "price": [float("nan"), float("inf"), 1.0]})  # fmt: skip
    query.push(bids=rows)
    shown = json.loads(looked(feed).as_json())
    assert {row[2]: row[3] for row in shown["answers"]["rows"]} == {"a": "nan", "b": "inf"}


def test_only_what_runs_in_this_process_is_shown() -> None:
    with pytest.raises(OptionError, match="got str"):
        feed_of("SELECT 1")


def test_queries_inside_a_query_are_shown_by_a_register() -> None:
    text = (
        "SELECT sum(n) AS m FROM (SELECT count(*) AS n FROM s [TUMBLING 5 WATTR at]) [TUMBLING 9]"
    )
    with pytest.raises(panes.OptionError, match="has queries inside") as refused:
        panes.live(panes.open(text))
    assert "reg.add(name, text)" in str(refused.value.hint)
    reg = panes.register("s", lateness=0)
    reg.add("sums", text)
    feed = feed_of(reg)
    reg.push(pa.table({"at": [1, 30]}))
    assert looked(feed).counts.answers == 1
