"""The figures of *Aggregate Sharing in Stream Databases*, on tiny streams.

Catches: a rival whose queue is off by one when it wraps around, rows that come in batches stored
otherwise than one by one, a contender with a wrong answer that is timed all the same.
"""

from __future__ import annotations

import numpy as np
import pytest

from lab.papers import fig_sharing_3_5, fig_sharing_4_6, fig_sharing_9_10, sharing_scale
from lab.papers.sharing_runs import (
    Integers,
    Make,
    Naive,
    NaiveAtOnce,
    compare,
    random_rows,
    response,
    same_answers,
    skewed_rows,
    timegram_over,
    window_sizes,
)
from lab.papers.sharing_scale import AT_ONCE, NAIVE, Scale
from panes.errors import WrongAnswerError
from panes.stores.nested.buckets import AnswerBounds

CONTENDERS = {
    **fig_sharing_4_6.contenders(random_rows(400, seed=0)),
    **fig_sharing_9_10.contenders(random_rows(400, seed=0)),
}


@pytest.mark.parametrize("make", CONTENDERS.values(), ids=CONTENDERS)
@pytest.mark.parametrize("every", [1, 7, 200])
def test_every_contender_answers_as_plain_rows_do(make: Make, every: int) -> None:
    for queries in (1, 5, 40):
        sizes = window_sizes(queries, largest=60)
        same_answers(make, sizes, random_rows(200, seed=queries), every=every)
        same_answers(make, sizes, skewed_rows(200, seed=queries), every=every)


@pytest.mark.parametrize("naive", [Naive, NaiveAtOnce])
def test_naive_keeps_the_newest_rows_of_each_window(naive: type[Naive]) -> None:
    """Windows of 1, 2 and 5 over 9 1 8 2 3, then 4 alone: the 9 leaves the largest."""
    queues = naive(np.array([1, 2, 5]))
    queues.add(np.array([9, 1, 8, 2, 3]))
    assert queues.ask() == [3, 3, 9]
    queues.add(np.array([4]))
    assert queues.ask() == [4, 4, 8]


def test_a_contender_that_is_one_row_short_is_an_error() -> None:
    def short(sizes: Integers) -> Naive:
        return Naive(np.maximum(sizes - 1, 1))

    rows = np.arange(50)[::-1].copy()
    with pytest.raises(WrongAnswerError, match="Naive: the maximum of the newest 5 of 10 rows"):
        same_answers(short, np.array([5]), rows, every=10)
    with pytest.raises(WrongAnswerError):
        compare(lambda _: {"short": short}, lambda count, seed: rows[:count], 3, largest=9, rows=20)


def test_a_timegram_divides_the_range_of_its_rows() -> None:
    """[-10, 10] in 5 buckets, as *Aggregate Sharing* 3.2.4 has it; a width is a whole number."""
    gram = timegram_over(np.array([-10, 9]), buckets=5)(np.array([3]))
    gram.add(np.array([3, -10, -9, 5, 2, 7, -3]))
    assert gram.ask() == [AnswerBounds(6, 10)]


def test_lookups_happen_as_often_as_the_ratio_says() -> None:
    class Counting:
        asked = added = 0

        def add(self, rows: Integers) -> None:
            self.added += len(rows)

        def ask(self) -> list[int | None]:
            self.asked += 1
            return []

    counting = Counting()
    response(lambda _: counting, np.array([4]), np.arange(24), updates=5)
    assert (counting.added, counting.asked) == (24, 1 + 4)  # once before the clock starts


def test_skewed_rows_lie_mostly_within_20() -> None:
    assert 0.93 < np.mean(np.abs(skewed_rows(10_000, seed=0)) <= 20) < 0.98


def tiny(figure: sharing_scale.Contenders) -> Scale:
    return sharing_scale.measure(
        figure, random_rows, few=(1, 2, 8), many=(100,), long=(1, 4), long_window=300, rows=20,
        fewer_rows=5,
    )  # fmt: skip


def test_figures_4_and_6_measure_every_contender() -> None:
    scale = tiny(fig_sharing_4_6.contenders)
    assert all(list(of) == [NAIVE, AT_ONCE, "TimeGram"] for of in scale.few.values())
    assert [len(panel.series) for panel in sharing_scale.panels(scale)] == [3, 3, 3]
    assert len(sharing_scale.grid(scale).rows) == 3 + 1 + 2
    assert len(list(fig_sharing_4_6.claims_4(scale))) == 3
    assert fig_sharing_4_6.claim_6(scale.few[8], scale.few[8]).holds


def test_figures_9_and_10_measure_every_contender() -> None:
    scale = tiny(fig_sharing_9_10.contenders)
    assert all(
        list(of) == [NAIVE, AT_ONCE, "OrderedSharing", "StaircaseSharing"]
        for times in (scale.few, scale.many, scale.long)
        for of in times.values()
    )
    assert len(list(fig_sharing_9_10.claims_9(scale))) == 2
    ratios = fig_sharing_9_10.skewed_to_random(queries=(2,), rows=20, rounds=3)
    assert min(ratios) > 0
    assert [fig_sharing_9_10.claim_10([r]).holds for r in (0.9, 1.0)] == [True, False]


def test_recalculations_depend_on_the_order_of_the_values_alone() -> None:
    grid = fig_sharing_9_10.recalculations(counted=(1, 8), rows=100, streams=2)
    assert [row[0] for row in grid.rows] == ["1", "8"]
    assert [row[3] for row in grid.rows] == [row[4] for row in grid.rows]
    assert float(grid.rows[1][3]) > 0


def test_figures_3_and_5_measure_every_ratio() -> None:
    times = fig_sharing_3_5.measure(skewed_rows, largest=50, rows=20, ratios=(1, 4, 10), rounds=1)
    assert list(times) == [1, 4, 10]
    assert all(min(of.values()) > 0 for of in times.values())
    assert len(list(fig_sharing_3_5.claims_3(times, times, times))) == 4
    assert fig_sharing_3_5.claim_5(times, times).holds


def test_every_aggregate_of_a_timegram_is_checked_and_timed() -> None:
    grid = fig_sharing_4_6.other_aggregates(skewed_rows, queries=20, lookups=1)
    assert grid.head == ("count", "sum", "avg", "min", "max")
    assert [len(row) for row in grid.rows] == [5]
