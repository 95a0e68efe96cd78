"""What a snapshot says of a register: queries by cost, who shares what, the sliding graph."""

from __future__ import annotations

import json
from threading import Thread

import pytest

import panes
from panes.live.feed import Look
from panes.live.followed import MOST_FOLLOWED, FollowedAnswers
from panes.live.register_feed import RegisterFeed
from panes.live.register_shown import MOST_QUERIES
from tests.live.streams import ask, bids


@pytest.fixture
def reg() -> panes.Register:
    reg: panes.Register = panes.register("bids", lateness=0)
    reg.add(
        "often", "SELECT item, count(*) AS n FROM bids [RANGE 20 SLIDE 2 WATTR at] GROUP BY item"
    )
    reg.add(
        "seldom", "SELECT item, count(*) AS n FROM bids [RANGE 20 SLIDE 4 WATTR at] GROUP BY item"
    )
    reg.add("three", "SELECT sum(price) AS s FROM bids [RANGE 6 SLIDE 3 WATTR at]")
    return reg


def test_queries_are_sorted_by_what_their_answers_took(reg: panes.Register) -> None:
    feed = RegisterFeed(reg)
    answers = reg.push(bids(list(range(0, 60))))
    shown = feed.snapshot(Look())
    assert shown.register is not None
    queries = shown.register.queries
    assert [q.name for q in queries] == ["three", "often", "seldom"]
    assert {q.name: q.answers for q in queries} == {n: len(t) for n, t in answers.items()}
    assert [q.cost for q in queries] == sorted((q.cost for q in queries), reverse=True)


def test_who_shares_what_and_the_sliding_graph(reg: panes.Register) -> None:
    feed = RegisterFeed(reg)
    reg.push(bids([1, 30]))
    shown = feed.snapshot(Look()).register
    assert shown is not None
    assert list(shown.stores) == ["item", ""]
    shapes = {q.name: q.shape for q in shown.queries}
    assert shapes["often"] == shapes["seldom"] != shapes["three"]
    labels = [g.label for g in shown.groups]
    links = [(labels[p], g.label) for g in shown.groups for p in g.parents]
    assert sorted(links) == [("1", "2"), ("1", "3"), ("2", "4")]


def test_windows_carry_the_name_of_their_query(reg: panes.Register) -> None:
    feed = RegisterFeed(reg)
    reg.push(bids([1, 30]))
    assert set(feed.snapshot(Look()).windows.of) == {"often", "seldom", "three"}


def test_whoever_looks_never_holds_up_whoever_pushes(reg: panes.Register) -> None:
    """A look may wait for its turn at the register, with its own lock held: so no push takes it."""
    feed = RegisterFeed(reg)
    with feed._lock:
        push = Thread(target=reg.push, args=(bids([1, 30]),), daemon=True)
        push.start()
        push.join(60)
        assert not push.is_alive()
    assert feed.snapshot(Look()).panes.start


def test_answers_of_the_last_few_queries_that_were_looked_at_are_kept(reg: panes.Register) -> None:
    feed = RegisterFeed(reg)
    assert feed.snapshot(Look()).answers.of == "often"
    assert "from the next window" in feed.snapshot(Look(of="three")).answers.note
    assert feed.snapshot(Look(of="gone")).answers.of == "often"
    reg.push(bids([1, 30]))
    assert feed.snapshot(Look(of="three")).answers.columns[-1] == "s"
    followed = FollowedAnswers()
    keys = {f"q{i}": 0 for i in range(20)}
    for name in keys:
        followed.shown(keys, Look(of=name))
    assert list(followed.names) == [f"q{i}" for i in range(20 - MOST_FOLLOWED, 20)]


def test_a_query_comes_and_goes_in_the_page(reg: panes.Register) -> None:
    with panes.live(reg, edit=True) as page:
        reg.push(bids([1, 30]))
        text = "SELECT max(price) AS m FROM bids [TUMBLING 5 WATTR at]"
        assert (
            ask(page.url, "/api/queries", method="POST", body={"name": "new", "text": text})[0]
            == 200
        )
        assert "new" in reg.queries()
        _, _, shown = ask(page.url)
        assert shown["register"]["can_edit"]
        assert "new" in {q["name"] for q in shown["register"]["queries"]}
        wrong = ask(page.url, "/api/queries", method="POST", body={"name": "bad", "text": "SELECT"})
        assert wrong[0] == 422
        assert ask(page.url, "/api/queries", method="DELETE", body={"name": "new"})[0] == 200
        assert "new" not in reg.queries()
        assert ask(page.url, "/api/queries", method="POST", body=["new"])[0] == 400


def test_unless_the_host_allows_it_nothing_can_be_changed(reg: panes.Register) -> None:
    with panes.live(reg) as page:
        body = {"name": "new", "text": "SELECT 1"}
        assert ask(page.url, "/api/queries", method="POST", body=body)[0] == 403
        assert ask(page.url, "/api/queries", method="DELETE", body={"name": "often"})[0] == 403
        assert not ask(page.url)[2]["register"]["can_edit"]
    assert list(reg.queries()) == ["often", "seldom", "three"]


def test_of_many_queries_the_costliest_are_shown_or_those_looked_for() -> None:
    reg = panes.register("bids", lateness=0)
    for i in range(300):
        reg.add(f"q{i}", f"SELECT count(*) AS n FROM bids [RANGE {20 + i} SLIDE {1 + i} WATTR at]")
    feed = RegisterFeed(reg)
    reg.push(bids([1, 30, 60]))
    shown = feed.snapshot(Look()).register
    assert shown is not None
    assert (len(shown.queries), shown.total, shown.queries[0].name) == (MOST_QUERIES, 300, "q0")
    found = feed.snapshot(Look(queries="Q29")).register
    assert found is not None
    assert {q.name for q in found.queries} == {"q29", *(f"q29{i}" for i in range(10))}
    assert len(json.dumps(json.loads(feed.snapshot(Look()).as_json()))) < 200_000


def test_a_failed_query_is_shown_with_its_reason() -> None:
    reg = panes.register("bids", lateness=0, max_answers=3)
    reg.add("few", "SELECT count(*) AS n FROM bids [TUMBLING 50 WATTR at]")
    reg.add("many", "SELECT count(*) AS n FROM bids [RANGE 50 SLIDE 1 WATTR at]")
    feed = RegisterFeed(reg)
    with pytest.warns(panes.FailedQueryWarning):
        reg.push(bids([1, 60]))
    shown = feed.snapshot(Look()).register
    assert shown is not None
    assert [(q.name, bool(q.failed)) for q in shown.queries] == [("many", True), ("few", False)]
    assert feed.recorder.counts.rows == 2  # the round was made twice, the rows came once
