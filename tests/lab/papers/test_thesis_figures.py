"""The figures' experiments on a few rows: every series is there, and exact numbers are exact.

What takes time is not looked at. Answers are checked by the experiments themselves; that they do
so is shown by answers that are wrong.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import panes
from lab.papers import fig_6_10, fig_6_11, fig_6_12, fig_6_15, fig_6_19, fig_8_8, fig_8_11
from lab.papers.disorder import SECOND, Arrivals, Punctuation, band, block_sorted, packet_table
from lab.papers.skew import SMALL_SHARE, Link, group_counts, skewed_links
from lab.papers.slack import PUNCTUATION, Slack, observe
from lab.papers.unions import in_any_order, in_order, united
from lab.papers.watch import Watch, ask, require_same
from panes.errors import WrongAnswerError
from panes.sample_streams import START, bids

COUNT = "SELECT count(*) AS n FROM packets [RANGE 10 seconds SLIDE 10 seconds WATTR ts]"


def packets(*seconds: float) -> pa.Table:
    at = START + (np.array(seconds) * SECOND).astype(np.int64)
    return packet_table(at, np.random.default_rng(1))


def at(second: float) -> int:
    return START + int(second * SECOND)


def test_wrong_answers_are_an_error_that_names_the_experiment() -> None:
    right = ask("SELECT count(*) AS n FROM bids [RANGE 2 ROWS SLIDE 2 ROWS]", bids(6), batch=4)
    wrong = right.set_column(2, "n", pa.array([2, 2, 1]))
    require_same(right, right, of="Q")
    with pytest.raises(WrongAnswerError, match=r"Q: `n` is 1 instead of 2"):
        require_same(wrong, right, of="Q")


def test_every_kind_of_experiment_stops_at_a_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def lossy(text: str, rows: pa.Table, *, batch: int, store: str | None = None) -> pa.Table:
        right = ask(text, rows, batch=batch, store=store)
        return right.slice(1) if store == "eager" else right

    def early(self: Watch) -> pa.Table:
        return self.query.finish()

    monkeypatch.setattr(fig_6_10, "ask", lossy)
    monkeypatch.setattr(fig_6_15, "ask", lossy)
    monkeypatch.setattr(Watch, "finish", early)
    with pytest.raises(WrongAnswerError, match="ROWS"):
        fig_6_10.measure(bids(100), (1,), size=40, batch=50, runs=1)
    with pytest.raises(WrongAnswerError, match="ROWS"):
        fig_6_15.measure(bids(100), (2,), (3,), batch=50, runs=1)
    with pytest.raises(WrongAnswerError, match="answers instead of"):
        observe(COUNT, DISORDERED, batch=1, store="eager")
    with pytest.raises(WrongAnswerError, match="Q8-2, IOP"):
        fig_8_8.measure((0,), seconds=70, rate=5, groups=2)


def test_a_watch_sees_the_most_that_was_held_and_all_answers() -> None:
    watch = Watch(COUNT, store="buffered")
    watch.push(packets=packets(1, 2, 3))
    held = watch.query.state["bytes"]
    assert len(watch.punctuate(packets=at(10))) == 1
    assert watch.query.state["bytes"] < held
    watch.push(packets=packets(11))
    watch.finish()
    assert watch.peak_bytes == held
    assert watch.answers["n"].to_pylist() == [3, 1]
    assert 0 < watch.latency < watch.seconds


# arrival   1   9   12   8 |  14   21   25     the punctuation promises 10 after four rows
# window [0, 10) is answered at | with punctuation, at 12 with slack 2, at 21 with slack 8
DISORDERED = Arrivals(packets(1, 9, 12, 8, 14, 21, 25), (Punctuation(4, at(10)),))


def test_punctuation_answers_when_the_last_row_is_in() -> None:
    (only,) = observe(COUNT, DISORDERED, batch=1, store="eager")
    assert (only.end, only.value) == (at(10), 3)
    assert (only.rows, only.behind) == (0, 2 * SECOND)


@pytest.mark.parametrize(
    ("slack", "value", "rows", "behind"),
    [("2 seconds", 2, 0, 2), ("8 seconds", 3, 2, 11)],
)
def test_slack_answers_too_early_or_late(slack: str, value: int, rows: int, behind: int) -> None:
    first = observe(COUNT, DISORDERED, batch=1, store="buffered", slack=Slack(slack, "drop"))[0]
    assert (first.end, first.value) == (at(10), value)
    assert (first.rows, first.behind) == (rows, behind * SECOND)


def test_6_10_times_every_store_and_the_scan() -> None:
    found = fig_6_10.measure(bids(300), (1, 40), size=40, batch=50, runs=1)
    assert list(found) == [1, 40]
    for seconds in found.values():
        assert list(seconds) == ["buffering", "WID", "panes (beyond)", fig_6_10.SCAN]
        assert min(seconds.values()) > 0
    assert len(fig_6_10.read(bids(300), batch=50)) == 6


def test_6_15_has_a_cell_for_each_pane_and_window() -> None:
    found = fig_6_15.measure(bids(500), (2, 5), (3,), batch=100, runs=1)
    assert list(found) == [(2, 3), (5, 3)]
    assert all(set(seconds) == {"panes", "WID", "scan"} for seconds in found.values())
    assert fig_6_15.ratio_of({"panes": 4.0, "WID": 11.0, "scan": 1.0}) == pytest.approx(0.3)


def test_6_11_slack_of_the_whole_disorder_is_right_and_none_is_not() -> None:
    arrivals = band(4_000, seconds=100, max_disorder=3.2, every=6.4)
    found = fig_6_11.measure(arrivals, (0, 3_200), batch=20)
    assert list(found) == [PUNCTUATION, "consistent slack", "generous slack"]
    assert {point.error for point in found[PUNCTUATION].values()} == {0}
    consistent, generous = found["consistent slack"], found["generous slack"]
    assert consistent[3_200].error == generous[3_200].error == 0
    assert consistent[0].error > generous[0].error > 0
    assert consistent[0].rows == 0 < consistent[3_200].rows
    assert consistent[3_200].behind >= 3.2


def test_6_12_slack_of_a_block_is_right_and_less_is_not() -> None:
    arrivals = block_sorted(3_000, seconds=490 * 6, block=490)
    found = fig_6_12.measure(arrivals, (0, 490.9, 600), batch=10)
    told, slack = found[PUNCTUATION][0], found[fig_6_12.KIND]
    assert (told.error, told.rows) == (0, 0)
    assert [slack[s].error > 0 for s in slack] == [True, False, False]
    assert slack[600].rows > slack[490.9].rows > slack[0].rows


def test_6_19_every_second_of_a_link_is_a_data_set_of_its_own() -> None:
    (link,) = fig_6_19.one_link("DS5", windows=2, rows=1_000).values()
    groups = group_counts(1_000, SMALL_SHARE["DS5"])
    answers = panes.sql(fig_6_19.Q6_7, packets=link.rows)
    per_window = answers["window_end"].value_counts().to_pylist()
    most = groups.small + groups.medium + groups.large
    assert [most * 0.95 <= each["counts"] <= most for each in per_window] == [True, True]
    assert len(answers["srcIP"].unique()) == len(answers)


def test_6_19_adaptive_groups_take_less_memory() -> None:
    links = {5.0: fig_6_19.one_link("DS5", windows=2, rows=2_000)}
    alone = fig_6_19.measure(fig_6_19.Q6_7, links, fig_6_19.Q6_7_STORES, every=0.5, runs=1)
    assert alone["AdaptWID"][5.0].peak_bytes < alone["WID"][5.0].peak_bytes
    skewed = {5.0: skewed_links(seconds=15, delay=5, rate=100)}
    three = fig_6_19.measure(fig_6_19.Q6_8, skewed, fig_6_19.Q6_8_STORES, every=1, runs=1)
    assert list(three) == list(fig_6_19.Q6_8_STORES)
    assert three["AdaptWID"][5.0].peak_bytes < three["WID"][5.0].peak_bytes


def test_a_union_gives_the_same_in_order_and_in_any_order() -> None:
    # early  1 2 3 ... 20, late the same with a delay of 7: in order, seven rows of `early` wait
    seconds = np.arange(1, 21)
    rows = packets(*seconds)
    position = START + seconds * SECOND
    links = {"early": Link(rows, position), "late": Link(rows, position + 7 * SECOND)}
    right = panes.sql(COUNT, packets=united(links))
    merged = in_order(COUNT, links, store="eager", every=1)
    melded = in_any_order(COUNT, links, store="eager", every=1)
    assert merged.answers.equals(right)
    assert melded.answers.equals(right)
    row = rows.slice(0, 1).nbytes + 8
    assert 6 * row <= merged.peak_bytes <= 8 * row
    assert melded.peak_bytes < 4 * row


def test_8_8_only_in_order_grows_with_skew() -> None:
    found = fig_8_8.measure((0, 20, 40), seconds=130, rate=20, groups=8)
    iop, oop = (
        [found[way, skew].peak_bytes for skew in (0, 20, 40)] for way in (fig_8_8.IOP, fig_8_8.OOP)
    )
    assert iop[0] < iop[1] < iop[2]
    assert oop[0] < oop[1] == oop[2] < iop[1]


def test_8_11_only_in_order_grows_with_delay() -> None:
    found = fig_8_11.measure((0, 10), seconds=100, rate=10, every=2)
    assert list(found) == list(fig_8_11.WAYS)
    merged, melded = found[fig_8_11.MERGED], found["OOP, WID"]
    assert merged[10].peak_bytes > 5 * merged[0].peak_bytes
    assert melded[10].peak_bytes == melded[0].peak_bytes
