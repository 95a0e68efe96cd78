"""The experiments over joins on a few rows: who stores less, who gives earlier, and what is exact.

Answers are checked by the experiments themselves; that they do so is shown by an answer that is
wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lab.papers import fig_7_5, fig_7_6, fig_8_9, fig_8_10, joined_counts
from lab.papers.draw import draw
from lab.papers.figure import Measured
from lab.papers.flows import Traffic, flow_links
from lab.papers.joined_counts import OA, OPIB, OPOB
from lab.papers.joined_unions import sources
from lab.papers.order_preserving import InputBufferedJoin, OutputBufferedJoin
from panes.errors import WrongAnswerError
from panes.join.oa_join import OAJoin
from panes.join.rule import Arrivals, JoinedRows, JoinRule, Progress
from panes.windows.partners import Band


@pytest.fixture(scope="module")
def by_band() -> fig_7_6.Found:
    return fig_7_6.measure((1, 4), (OA, OPOB, OPIB), seconds=24, rate=20, flows=8, runs=1)


def test_oa_join_stores_no_more_than_either_baseline_at_any_band(by_band: fig_7_6.Found) -> None:
    for by in by_band.values():
        assert by[OA].peak_bytes < by[OPOB].peak_bytes
        assert by[OA].peak_bytes < by[OPIB].peak_bytes


def test_only_the_output_buffered_join_lets_pairs_wait(by_band: fig_7_6.Found) -> None:
    for by in by_band.values():
        assert by[OA].peak_waiting == by[OPIB].peak_waiting == 0 < by[OPOB].peak_waiting
        assert by[OA].pairs == by[OPOB].pairs == by[OPIB].pairs > 0
    assert by_band[4][OPOB].peak_waiting > 4 * by_band[1][OPOB].peak_waiting


def test_a_join_that_loses_a_pair_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lossy(OAJoin):
        def step(
            self, left: Arrivals, right: Arrivals, before: Progress, after: Progress
        ) -> Iterator[JoinedRows]:
            given = list(super().step(left, right, before, after))
            yield from given[1:]

    monkeypatch.setitem(joined_counts.JOINS, OA, Lossy)
    with pytest.raises(WrongAnswerError, match="Q7-2, OA-Join, band 2 s"):
        fig_7_6.measure((2,), (OA,), seconds=10, rate=20, flows=4, runs=1)


@pytest.mark.parametrize("kind", [OutputBufferedJoin, InputBufferedJoin])
def test_baselines_give_the_pairs_of_oa_join_in_the_order_of_the_left(
    kind: type[OutputBufferedJoin | InputBufferedJoin],
) -> None:
    # band [-2, 2]; promises come after each step, the left at 1, 3, 5, ... in two steps each
    rule, rng = JoinRule(Band(-2, 2)), np.random.default_rng(3)
    some, plain = kind(rule), OAJoin(rule)
    promised = Progress()
    ordered: list[tuple[int, int]] = []
    free: list[tuple[int, int]] = []
    for begin in range(0, 40, 4):
        left, right = (Arrivals(rng.integers(begin, begin + 4, 5)) for _ in range(2))
        after = Progress(begin + 4, begin + 4)
        ordered += pairs(some.step(left, right, promised, after))
        free += pairs(plain.step(left, right, promised, after))
        promised = after
    end = Progress(1_000, 1_000)
    ordered += pairs(some.step(Arrivals(), Arrivals(), promised, end))
    assert [left for left, _ in ordered] == sorted(left for left, _ in ordered)
    assert sorted(ordered) == sorted(free)
    assert [left for left, _ in free] != sorted(left for left, _ in free)


def pairs(given: Iterator[JoinedRows]) -> list[tuple[int, int]]:
    return [
        (int(a), int(b))
        for joined in given
        if joined.left is not None and joined.right is not None
        for a, b in zip(
            joined.left.at[joined.left_index], joined.right.at[joined.right_index], strict=True
        )
    ]


def test_8_9_the_same_rows_wait_in_the_join_as_in_merge() -> None:
    found = fig_8_9.measure((0, 30), seconds=50, rate=5, flows=20)
    iop, oop = found[fig_8_9.IOP], found[fig_8_9.OOP]
    assert iop[0].peak_bytes == oop[0].peak_bytes
    for skew in (0, 30):
        assert oop[skew].peak_rows == iop[skew].peak_rows
    assert oop[0].peak_rows < oop[30].peak_rows


def test_8_10_late_rows_of_one_side_cost_memory_only_in_one_order() -> None:
    found = fig_8_10.measure((0, 10), seconds=135, rate=5, flows=50, every=5)
    one, apart, free = (found[way] for way in (fig_8_10.IOP, fig_8_10.APART, fig_8_10.OOP))
    assert one[0].peak_rows == apart[0].peak_rows == free[0].peak_rows
    assert one[10].peak_rows > free[10].peak_rows
    assert one[10].peak_bytes > free[10].peak_bytes
    assert free[10].peak_rows == apart[10].peak_rows


def test_7_5_a_box_is_complete_before_the_slabs_that_cover_it() -> None:
    # p3 is S0's promise of 2, p5 that of 3: (2,1) covers the group, then (*,1) does
    seen = fig_7_5.observe(4)
    assert (seen.joint[1.5, 0.5], seen.slabs[1.5, 0.5]) == (3, 5)
    assert all(number <= seen.slabs[place] for place, number in seen.joint.items())
    # by definition: the promise of the side that comes last
    for (a, b), number in seen.joint.items():
        assert number == max(2 * int(a + 0.5) - 1, 2 * int(b + 0.5))


def test_7_5_draws_slabs_and_boxes(tmp_path: Path) -> None:
    measured: Measured = fig_7_5.run()
    slabs, boxes, _ = measured.panels
    assert "slab, (*,1)" in slabs.outlines
    assert boxes.outlines["box, (2,1)"] == ((0.0, 1.0), (2.0, 1.0), (2.0, 0.0))
    assert all(claim.holds for claim in measured.claims)
    assert draw(measured, "", tmp_path / "a.png").stat().st_size > 20_000


def test_flows_are_answered_on_the_other_side() -> None:
    links = flow_links(
        {"l": Traffic(30), "r": Traffic(30, delay=2, is_answer=True)}, seconds=2, flows=1
    )
    one, answer = links["l"].rows.slice(0, 1).to_pylist()[0], links["r"].rows.to_pylist()[0]
    assert (one["srcIP"], one["srcPort"]) == (answer["destIP"], answer["destPort"])
    assert (one["destIP"], one["destPort"]) == (answer["srcIP"], answer["srcPort"])
    at = np.asarray(links["r"].rows["ts"].cast("int64"))
    assert set(links["r"].arrival - at) == {2_000_000}


def test_sides_of_one_link_are_written_by_its_name() -> None:
    assert sources({"M1": ("M1",), "M3": ("M2", "C")}) == "M1, M2 UNION C AS M3"
