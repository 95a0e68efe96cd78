"""A register over joins as a snapshot shows it: who shares which join, and what each query read."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes
from panes.errors import InputError
from panes.live.feed import Look
from panes.live.register_feed import RegisterFeed
from tests.live.streams import ask
from tests.process.registered_joins import LEFT, QUERIES, RIGHT, registered


def test_queries_share_joins_and_rows_are_counted_once() -> None:
    """Three joins read four rows of each stream; `dear` and `counted` share the join of `pairs`."""
    reg = registered()
    feed = RegisterFeed(reg)
    answers = reg.push(l=LEFT, r=RIGHT)
    shown = feed.snapshot(Look())
    assert shown.counts.rows == len(LEFT) + len(RIGHT)
    assert shown.counts.answers == sum(map(len, answers.values()))
    found = shown.register
    assert found is not None
    joins = {q.name: q.shape for q in found.queries}
    assert joins["pairs"] == joins["dear"] == joins["counted"]
    assert len({joins["pairs"], joins["windows"], joins["spent"]}) == found.shapes == 3
    assert found.of_joins
    assert not found.groups
    assert {q.name: q.answers for q in found.queries} == {n: len(t) for n, t in answers.items()}
    assert {q.name: q.window for q in found.queries} == {
        "pairs": "joined rows",
        "dear": "joined rows",
        "counted": "5",
        "windows": "joined rows",
        "spent": "a group as soon as it is complete",
    }


def test_the_cost_is_how_many_joined_rows_a_query_was_given() -> None:
    """`dear` selects some of the rows that `pairs` selects, of the same join: both read all."""
    reg = registered()
    feed = RegisterFeed(reg)
    pairs = reg.push(l=LEFT, r=RIGHT)["pairs"]
    found = feed.snapshot(Look()).register
    assert found is not None
    cost = {q.name: q.cost for q in found.queries}
    assert cost["pairs"] == cost["dear"] == cost["counted"] == len(pairs) > 0
    assert [q.cost for q in found.queries] == sorted(cost.values(), reverse=True)


def test_late_rows_are_shown_once_though_every_join_sets_them_aside() -> None:
    reg = registered()
    feed = RegisterFeed(reg)
    reg.push(l=LEFT, r=RIGHT)
    reg.push(l=pa.table({"at": [2], "k": [1], "id": [9]}))
    shown = feed.snapshot(Look())
    assert (shown.counts.late, shown.counts.rows) == (1, 9)
    assert [reason.rows for reason in shown.set_aside.reasons] == [1]
    assert shown.progress == 11


def test_a_stream_that_is_joined_with_itself_is_counted_once() -> None:
    text = "SELECT a.id, b.k FROM l AS a [RANGE 3 WATTR at], l AS b [RANGE 3 WATTR at]"
    reg = panes.register(("l",), lateness=0)
    reg.add("self", f"{text} WHERE a.k = b.k")
    feed = RegisterFeed(reg)
    reg.push(l=LEFT)
    assert feed.snapshot(Look()).counts.rows == len(LEFT)


def test_the_answers_of_the_query_that_is_looked_at() -> None:
    reg = registered()
    feed = RegisterFeed(reg)
    assert feed.snapshot(Look(of="counted")).answers.of == "counted"
    reg.push(l=LEFT, r=RIGHT)
    shown = feed.snapshot(Look(of="counted")).answers
    assert shown.of == "counted"
    assert list(shown.columns) == ["window_start", "window_end", "x", "n"]
    assert feed.snapshot(Look()).answers.of == "pairs"


def test_before_its_streams_have_come_a_query_waits() -> None:
    reg = registered()
    feed = RegisterFeed(reg)
    reg.push(l=LEFT)
    shown = feed.snapshot(Look())
    assert shown.register is not None
    assert {q.window for q in shown.register.queries} == {"waits for its streams"}
    reg.push(r=RIGHT)
    assert feed.snapshot(Look()).counts.rows == len(LEFT) + len(RIGHT)


def test_a_push_that_is_refused_is_told_and_counts_nothing() -> None:
    reg = registered()
    feed = RegisterFeed(reg)
    reg.push(l=LEFT, r=RIGHT)
    before = feed.snapshot(Look())
    with pytest.raises(InputError):
        reg.push(l=pa.table({"at": ["x"], "k": [1], "id": [9]}))
    after = feed.snapshot(Look())
    assert (after.status, after.counts) == ("failed", before.counts)
    assert reg.finish() is not None
    assert feed.snapshot(Look()).status == "finished"


def test_after_the_end_queries_show_the_joins_that_they_had() -> None:
    reg = registered()
    feed = RegisterFeed(reg)
    reg.push(l=LEFT, r=RIGHT)
    before = feed.snapshot(Look())
    reg.finish()
    after = feed.snapshot(Look())
    assert before.register is not None
    assert after.register is not None
    assert after.axis == before.axis
    assert after.register.shapes == 3
    assert {q.name: (q.window, q.shape) for q in after.register.queries} == {
        q.name: (q.window, q.shape) for q in before.register.queries
    }


def test_a_page_with_queries_that_come_and_go() -> None:
    reg = registered()
    with panes.live(reg, edit=True) as page:
        reg.push(l=LEFT, r=RIGHT)
        body = {"name": "more", "text": QUERIES["pairs"]}
        assert ask(page.url, "/api/queries", method="POST", body=body)[0] == 200
        shown = ask(page.url)[2]
        assert "more" in {q["name"] for q in shown["register"]["queries"]}
        assert shown["register"]["can_edit"]
        assert ask(page.url, "/api/queries", method="DELETE", body={"name": "more"})[0] == 200
    assert list(reg.queries()) == list(QUERIES)
    assert reg.watcher is None
