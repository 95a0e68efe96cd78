"""Nexmark: the stream is what the model says, and every contender gives the oracle's answers."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
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


@pytest.mark.parametrize("name", ["q4", "q6"])
def test_winning_bids_are_aggregated_again_while_streams_come(name: str) -> None:
    """As brute force has it: every bid with every auction, and every auction in its turn."""
    data, contest = nexmark(3_000), next(c for c in CONTESTS if c.name == name)
    bids: dict[int, list[dict[str, Any]]] = {}
    for bid in data.bids.to_pylist():
        bids.setdefault(bid["auction"], []).append(bid)
    won = []
    for sold in sorted(data.auctions.to_pylist(), key=lambda auction: auction["expires"]):
        prices = [
            bid["price"]
            for bid in bids.get(sold["id"], [])
            if sold["ts"] <= bid["ts"] < sold["expires"] and bid["price"] >= sold["reserve"]
        ]
        won += [{**sold, "price": max(prices)}] if prices else []
    groups: dict[tuple[Any, ...], list[int]] = {}
    wanted: list[tuple[Any, ...]] = []
    for row in won:
        if name == "q4":
            second = row["expires"].replace(microsecond=0)
            end = second - dt.timedelta(seconds=second.second % 10) + dt.timedelta(seconds=10)
            groups.setdefault((end, row["category"]), []).append(row["price"])
        else:
            sold_by = groups.setdefault((row["seller"],), [])
            sold_by.append(row["price"])
            last = sold_by[-10:]
            wanted.append((len(sold_by), row["seller"], sum(last) / len(last)))
    if name == "q4":
        wanted = [(*group, sum(prices) / len(prices)) for group, prices in groups.items()]
    query = panes.open(contest.text, lateness="20 seconds")
    found = [query.push(auctions=data.auctions.slice(0, 90), bids=data.bids.slice(0, 1_000))]
    found.append(query.push(auctions=data.auctions.slice(90), bids=data.bids.slice(1_000)))
    found.append(query.punctuate(auctions="2026-01-01T00:00:12Z", bids="2026-01-01T00:00:12Z"))
    assert len(found[-1]) > 0
    found.append(query.finish())
    rows = [tuple(row.values())[1:] for row in pa.concat_tables(found).to_pylist()]
    assert not len(query.late)
    assert sorted(rows) == [(*key, pytest.approx(mean)) for *key, mean in sorted(wanted)]


def test_contenders_agree_over_several_windows() -> None:
    bench.check(nexmark(250_000))


def test_a_contender_that_is_wrong_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    (hot,) = (contest for contest in CONTESTS if contest.name == "q5")
    wrong = replace(hot, duckdb=hot.duckdb.replace("2000000 + 4", "2000000 + 3"))
    monkeypatch.setattr(bench, "CONTESTS", (wrong,))
    with pytest.raises(WrongAnswerError, match="duckdb disagrees with panes in q5"):
        bench.run(10_000, 1, lambda _: None)


@pytest.mark.long
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
