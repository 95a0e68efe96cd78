"""Nexmark: the stream is what the model says, and every contender gives the oracle's answers."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow.compute as pc
import pytest

import panes
from lab.bench import nexmark as bench
from lab.bench.nexmark_queries import CONTESTS, LEFT_OUT, Contest
from lab.bench.nexmark_stream import nexmark
from panes.errors import WrongAnswerError
from panes.reference.compare import difference

EVENTS = 100_000
"""Ten seconds: as long as a window."""


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_others_bids() -> None:
    data = nexmark(EVENTS)
    assert (len(data.persons), len(data.auctions), len(data.bids)) == (2_000, 6_000, 92_000)
    assert nexmark(EVENTS).bids == data.bids
    assert nexmark(EVENTS, seed=2).bids != data.bids
    first, last = data.bids["ts"][0].value, data.bids["ts"][-1].value
    assert last - first == 100 * (EVENTS - 1 - 4)  # ten thousand a second; four come before


def test_everybody_who_is_named_has_been_there_before() -> None:
    """No bid is for an auction that has not been opened, no auction by a person who is unknown."""
    data = nexmark(EVENTS)
    opened = dict(
        zip(data.auctions["id"].to_pylist(), data.auctions["ts"].to_pylist(), strict=True)
    )
    came = dict(zip(data.persons["id"].to_pylist(), data.persons["ts"].to_pylist(), strict=True))
    bids = data.bids.slice(0, 20_000).to_pylist()
    assert all(opened[bid["auction"]] < bid["ts"] for bid in bids)
    assert all(came[bid["bidder"]] < bid["ts"] for bid in bids)
    assert all(came[row["seller"]] < row["ts"] for row in data.auctions.to_pylist())


def test_half_of_the_bids_go_to_the_hot_auction_and_prices_are_even_by_their_logarithm() -> None:
    data = nexmark(EVENTS)
    hot = sum(a % 100 == 0 for a in data.bids["auction"].to_pylist()) / len(data.bids)
    assert 0.49 < hot < 0.53
    low, middle, high = pc.quantile(data.bids["price"], [0.0, 0.5, 1.0]).to_pylist()
    assert 100 <= low < 110
    assert 90_000 < middle < 110_000
    assert 9e7 < high <= 1e8


@pytest.mark.parametrize("contest", CONTESTS, ids=lambda c: c.name)
def test_everyone_gives_the_answers_of_the_oracle(contest: Contest) -> None:
    data = nexmark(3_000)
    streams = {name: getattr(data, name) for name in contest.streams}
    want = bench.normal(panes.oracle(contest.text, **streams))
    assert len(want)
    for who, answer in bench.contenders(contest).items():
        assert difference(bench.normal(answer(data)), want) is None, who


def test_contenders_agree_over_several_windows() -> None:
    bench.check(nexmark(250_000))


def test_a_contender_that_is_wrong_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(CONTESTS[0], duckdb=CONTESTS[0].duckdb.replace("2000000 + 4", "2000000 + 3"))
    monkeypatch.setattr(bench, "CONTESTS", (wrong,))
    with pytest.raises(WrongAnswerError, match="duckdb disagrees with panes in q5"):
        bench.run(10_000, 1, lambda _: None)


def test_a_report_has_a_ratio_for_each_query_and_says_what_is_left_out() -> None:
    said: list[str] = []
    report = bench.run(10_000, 1, said.append)
    assert [what.split(",")[0] for what, _, _ in report.bars] == [c.name for c in CONTESTS]
    assert {t.contender for t in report.timings} == {"panes", "duckdb", "polars"}
    assert "q11: its windows are sessions" in said[0]
    assert len(said) == bench.STEPS
    named = {c.name for c in CONTESTS}
    for words in LEFT_OUT:
        found = [int(n) for n in re.findall(r"q(\d+)", words)]
        spans = range(found[0], found[-1] + 1) if " to " in words else found
        named |= {f"q{n}" for n in spans}
    assert named == {f"q{n}" for n in range(23)}
