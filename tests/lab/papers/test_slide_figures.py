"""The figures and tables of *Knowing When to Slide*, on tiny streams.

Catches: a contender that names other groups than plain tests do and is timed all the same, tests
or pushes counted wrong, an interval between slides that reaches from one stream into the next.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from lab.papers import fig_slide_5_to_7, fig_slide_8_9, slide_runs, table_slide_1_2
from lab.papers.slide_runs import algorithm_1, graph_of, plain, random_slides, same_due
from lab.papers.sliding_tree import mean_tests
from lab.papers.table_slide_1_2 import BY_CLOCK, BY_PROGRESS, BY_TUPLE, TABLE_I, TABLE_II, Slid
from panes.errors import WrongAnswerError
from panes.progress.optimise import optimise


def test_both_algorithms_name_the_groups_whose_slide_divides_the_tuple_count() -> None:
    """::

    tuple    1  2  3  4  5  6
    due         2  3  2     2 3
    """
    due = [(2, 2), (3, 3), (4, 2), (6, 2), (6, 3)]
    for run in (plain([2, 3], tuples=6), algorithm_1(graph_of([2, 3]), tuples=6)):
        assert sorted(map(tuple, run.due.tolist())) == due


def test_slide_vi_e_tests_are_counted_as_the_paper_counts_them() -> None:
    """Slides 7, 8, 12, 20: 5 tests a tuple, 3.75 with the dummy 4, over a whole period."""
    graph, tuples = graph_of([7, 8, 12, 20]), 840
    run = algorithm_1(graph, tuples=tuples)
    assert (run.tests, run.pushes) == (5 * tuples, tuples + 840 // 7 + 840 // 8 + 70 + 42)
    optimise(graph)
    helped = algorithm_1(graph, tuples=tuples)
    assert Fraction(helped.tests, tuples) == Fraction(15, 4) == mean_tests(graph)
    assert helped.pushes == run.pushes + tuples // 4


def test_slides_are_drawn_anew_for_each_seed_and_the_same_for_the_same() -> None:
    slides = random_slides(50, most=200, seed=1)
    assert slides == random_slides(50, most=200, seed=1) != random_slides(50, most=200, seed=2)
    assert slides == sorted(set(slides))
    assert set(random_slides(2_000, most=20, seed=0)) == set(range(2, 21))


def test_a_run_that_misses_one_group_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of([2, 3])
    run = plain([2, 3], tuples=12)
    same_due(graph, {"plain": run, "graph": run}, tuples=12)
    short = replace(run, due=run.due[:-1])
    with pytest.raises(WrongAnswerError, match="graph: groups were due at other tuples"):
        same_due(graph, {"plain": run, "graph": short}, tuples=12)
    monkeypatch.setitem(slide_runs.NAMERS, "timers", lambda graph: lambda previous, now: [])
    with pytest.raises(WrongAnswerError, match="timers: names other groups"):
        same_due(graph, {"plain": run}, tuples=12)


def test_figures_5_to_7_measure_every_contender() -> None:
    points = {q: fig_slide_5_to_7.measure(q, 30, tuples=60, rounds=2) for q in (10, 100, 10_000)}
    for point in points.values():
        assert list(point.tests) == list(point.loops) == ["plain", *_graphs()]
        assert list(point.calls) == ["plain scan", "sliding tree", "timers"]
        assert point.tests["plain"] == point.groups
        assert point.tests["sliding graph, optimised"] <= point.tests["sliding graph"]
        assert min(*point.loops.values(), *point.calls.values()) > 0
    assert points[10_000].groups == 29
    for claims in (
        fig_slide_5_to_7.claims_5(points),
        fig_slide_5_to_7.claims_6(points),
        fig_slide_5_to_7.claims_7(points, {200: 2.0, 800: 3.0}),
    ):
        assert all(claim.published and claim.measured for claim in claims)


def _graphs() -> list[str]:
    return [fig_slide_5_to_7.GRAPH, fig_slide_5_to_7.OPTIMISED]


def test_figures_8_and_9_count_fewer_tests_with_dummies_and_more_pushes() -> None:
    counts = fig_slide_8_9.measure(12, 200, tuples=500, rounds=3)
    original, first, second = counts.values()
    assert (original.dummies, first.dummies > 0) == (0, True)
    assert first.tests <= second.tests <= original.tests
    assert first.pushes > original.pushes
    assert original.operations(per_push=10) == original.tests + 10 * original.pushes
    operations, tests, better, time = fig_slide_8_9.claims({12: counts})
    assert (operations.holds, tests.holds) == (False, True)
    assert better.published
    assert time.published


def test_tables_i_and_ii_algorithm_2_waits_for_tuples_and_progress_does_not_drift() -> None:
    for minutes, late in ((3, 240), (5, 360)):
        found = table_slide_1_2.measure(60 * minutes, seeds=range(20), tuples=61)
        mean = {name: float(np.mean(slid.intervals)) for name, slid in found.items()}
        assert mean[BY_TUPLE] == pytest.approx(late, abs=5)
        assert mean[BY_CLOCK] == pytest.approx(60 * minutes, abs=5)
        assert mean[BY_PROGRESS] == pytest.approx(60 * minutes, abs=5)
        assert found[BY_CLOCK].off_by(60 * minutes) < found[BY_TUPLE].off_by(60 * minutes)


def test_tables_i_and_ii_as_printed() -> None:
    """The timers' intervals add up to more than waits of at most 60 seconds allow."""
    assert sum(TABLE_I[BY_CLOCK]) - 6 * 180 == 80
    assert sum(TABLE_II[BY_CLOCK]) - 6 * 300 == 71
    for slide, table in ((180, TABLE_I), (300, TABLE_II)):
        claims = list(table_slide_1_2.claims(table_slide_1_2.measure(slide), table, slide))
        assert [claim.holds for claim in claims] == [True, True, True]


def test_streams_are_pooled_without_an_interval_between_them() -> None:
    assert Slid.pooled([Slid.at([0, 3, 7]), Slid.at([100, 102])]).intervals == (3, 4, 2)
