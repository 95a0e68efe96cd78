"""The worked examples of *Knowing When to Slide*, named by section and figure."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.papers.remote_time import SlideOnArrival, SynchronisedClock
from lab.papers.sliding_tree import SlidingTree, mean_tests
from panes.progress.draw import draw_tree
from panes.progress.optimise import (
    Balance,
    Dummy,
    algorithm_3,
    best_theta,
    feasible_dummies,
    optimise,
)
from panes.progress.schedule import Schedule
from panes.progress.sliding_graph import SlidingGraph
from panes.windows.cut import Edges
from panes.windows.families import common
from panes.windows.spec import Sliding

FIGURE_3 = (2, 4, 8, 24, 15, 12, 5, 22, 3, 11, 9)
FIGURE_4 = (7, 8, 12, 20)
MINUTE = 60


def graph_of(*slides: int) -> SlidingGraph:
    graph = SlidingGraph()
    for slide in slides:
        graph.add(f"q{slide}", Edges(slide, 0))
    return graph


def slides_due(tree: SlidingTree, count: int) -> set[int]:
    return {family.slide for family in tree.due(count - 1, count)}


def test_iv_the_candidate_query_list_names_the_queries_that_slide_whatever_their_sizes() -> None:
    schedule = Schedule(at=0)
    schedule.add("average", Sliding(size=10, slide=2))
    schedule.add("longest", Sliding(size=600, slide=2))
    schedule.add("rarest", Sliding(size=10, slide=5))
    assert len(schedule.graph.groups()) == 2
    assert [schedule.advance(at) for at in (1, 2, 5, 6)] == [
        [],
        ["average", "longest"],
        ["average", "longest", "rarest"],
        ["average", "longest"],
    ]


def test_vi_a_figure_3_strong_edges_make_the_sliding_tree() -> None:
    assert (
        draw_tree(graph_of(*FIGURE_3))
        == """\
1 (dummy)
├─ 2: q2
│  └─ 4: q4
│     ├─ 8: q8
│     └─ 12: q12 (also within 3)
│        └─ 24: q24 (also within 8)
├─ 3: q3
│  └─ 9: q9
├─ 5: q5
│  └─ 15: q15 (also within 3)
└─ 11: q11
   └─ 22: q22 (also within 2)"""
    )


def test_vi_a_figure_3_does_not_depend_on_the_order_of_groups() -> None:
    assert graph_of(*FIGURE_3).links() == graph_of(*sorted(FIGURE_3)).links()
    assert graph_of(*FIGURE_3).links() == graph_of(*sorted(FIGURE_3, reverse=True)).links()


def test_vi_a_without_a_common_divisor_but_one_the_only_node_without_parents_is_the_root() -> None:
    assert graph_of(2, 4, 6).root == Edges(2, 0)
    assert graph_of(4, 6).root == Edges(2, 0)
    assert graph_of(4, 6).group(Edges(2, 0)).is_dummy
    assert not graph_of(2, 4, 6).group(Edges(2, 0)).is_dummy


def test_vi_b_algorithm_1_finds_the_slides_that_divide_the_tuple_count() -> None:
    tree = SlidingTree(graph_of(*FIGURE_3))
    for count in range(1, 1_000):
        assert slides_due(tree, count) == {s for s in FIGURE_3 if count % s == 0}


@pytest.mark.parametrize(
    ("count", "tested"),
    [
        (7, {1, 2, 3, 5, 11}),  # odd: 4, 8, 12 and 24 need no test
        (9, {1, 2, 3, 5, 11, 9}),
        (25, {1, 2, 3, 5, 11, 15}),
        (121, {1, 2, 3, 5, 11, 22}),
        (2, {1, 2, 3, 5, 11, 4}),
        (12, {1, 2, 3, 5, 11, 4, 8, 12, 9, 24}),
    ],
)
def test_vi_b_of_figure_3_only_children_of_due_nodes_are_tested(
    count: int, tested: set[int]
) -> None:
    assert SlidingTree(graph_of(*FIGURE_3)).tests(count - 1, count) == len(tested)


def test_vi_b_a_slide_of_10_added_after_958_tuples_is_due_two_tuples_later() -> None:
    schedule = Schedule(at=958)
    schedule.add("new", Sliding(size=50, slide=10))
    due = [count for count in range(959, 1_000) if schedule.advance(count)]
    assert due == [960, 970, 980, 990]


def test_vi_c_one_timer_ticks_at_the_greatest_common_divisor() -> None:
    assert SlidingTree(graph_of(*FIGURE_3)).tick == 1
    tree = SlidingTree(graph_of(30, 45, 60))
    assert tree.tick == 15
    assert [f.slide for f in tree.due(165, 180)] == [30, 60, 45]


def test_vi_d_algorithm_2_waits_for_a_tuple_and_counts_from_it() -> None:
    # slide 150, tuples every 60: due at 150, slid at 180; then due at 330, slid at 360
    groups = SlideOnArrival([150])
    assert [t for t in range(0, 720, 60) if groups.arrive(t)] == [180, 360, 540]


def test_vi_d_the_clock_slides_at_once_if_a_tuple_comes_while_it_waits() -> None:
    # local   0    60        100       160
    # tuple   ●    ● λ=20              ●          the tick at 100 may wait until 120
    clock = SynchronisedClock(slide=100, alpha=0.0)
    clock.arrive(0, local=0)
    clock.arrive(40, local=60)
    assert clock.wait == 20
    assert clock.arrive(95, local=105) == [105]
    assert clock.wait == 10
    assert clock.advance(local=400) == [210, 310]


def test_vi_d_equation_1_weighs_old_delays_with_alpha() -> None:
    clock = SynchronisedClock(slide=1_000, alpha=0.75)
    clock.arrive(0, local=0)
    clock.arrive(100, local=180)
    assert clock.wait == 20  # 0.75 * 0 + 0.25 * 80
    clock.arrive(200, local=240)
    assert clock.wait == 25  # 0.75 * 20 + 0.25 * 40
    clock.arrive(300, local=240)
    assert clock.wait == 4  # 0.75 * 25 - 0.25 * 60: a tuple faster than the first


def test_vi_d_after_a_tuple_faster_than_the_first_the_clock_does_not_slide_early() -> None:
    clock = SynchronisedClock(slide=100, alpha=0.0)
    clock.arrive(0, local=50)
    clock.arrive(100, local=120)  # 30 faster: the clock shows 70
    assert clock.wait == 0
    assert clock.advance(local=149) == []
    assert clock.advance(local=200) == [150]


def test_vi_d_alpha_is_a_weight() -> None:
    with pytest.raises(ValueError, match="alpha must lie between 0 and 1, got 2"):
        SynchronisedClock(slide=1, alpha=2)
    with pytest.raises(ValueError, match="a clock needs a positive slide, got 0"):
        SynchronisedClock(slide=0)


def test_vi_e_figure_4_a_dummy_of_4_brings_5_tests_per_tuple_to_3_75() -> None:
    graph = graph_of(*FIGURE_4)
    assert mean_tests(graph) == 5
    assert optimise(graph) == [Edges(4, 0)]
    assert mean_tests(graph) == Fraction("3.75")
    assert (
        draw_tree(graph)
        == """\
1 (dummy)
├─ 4 (dummy)
│  ├─ 8: q8
│  ├─ 12: q12
│  └─ 20: q20
└─ 7: q7"""
    )


def test_vi_e_the_cost_is_what_algorithm_1_does_on_average() -> None:
    # Figure 3: the root; 2, 3, 5, 11 below it; then 4, 8, 12, 24, 15, 9, 22 below these parents
    figure_3 = 5 + sum(Fraction(1, parent) for parent in (2, 4, 4, 12, 5, 3, 11))
    for slides, expected in ((FIGURE_4, Fraction(5)), (FIGURE_3, figure_3)):
        graph = graph_of(*slides)
        assert mean_tests(graph) == expected
        tree, until = SlidingTree(graph), math.lcm(*slides)
        assert sum(tree.tests(count, count + 1) for count in range(until)) == expected * until


def test_vi_e_equations_2_and_3_for_figure_4() -> None:
    # C0 = 4 tests of children a tuple, C1 = 2 + 3/4, slide of the root 1
    (dummy,) = feasible_dummies(Edges(1, 0), [Edges(s, 0) for s in FIGURE_4], 64)
    assert dummy.gain == (4 - 2.75) / 4
    assert best_theta([dummy], float) == (0.3125, 1)
    assert best_theta([dummy], lambda sigma: 2.0 * sigma) == (0.15625, 1)


def test_vi_e_of_several_optimisations_the_one_of_greatest_theta_is_chosen() -> None:
    dummies = [Dummy((), 0.4), Dummy((), 0.3), Dummy((), 0.01)]
    assert best_theta(dummies, float) == (0.4, 1)
    assert best_theta(dummies, lambda sigma: 1 + sigma / 10)[1] == 2


@pytest.mark.parametrize(
    ("limits", "added"),
    [
        ({"node_limit": 0.3125}, 1),
        ({"node_limit": 0.32}, 0),
        ({"graph_limit": 0.31}, 1),
        ({"graph_limit": 0.3125}, 0),  # line 8 asks for more than the limit
    ],
)
def test_vi_e_limits_leave_a_graph_as_it_is(limits: dict[str, float], added: int) -> None:
    graph = graph_of(*FIGURE_4)
    assert len(optimise(graph, **limits)) == added  # type: ignore[arg-type]


def test_vi_e_algorithm_3_line_14_a_node_that_is_refused_comes_again_with_fewer_dummies() -> None:
    # The root would take two dummies at once, since the second is nearly free. One dummy stands
    # already and a third is dear: both are refused, the better one alone is not.
    graph = graph_of(20, 30, 50, 70, 42, 63, 105)
    root, children = next(iter(graph.tree().items()))
    feasible = feasible_dummies(root, children, 64)[:2]

    def cost(sigma: int) -> float:
        return {1: 1.0, 2: 1.05}.get(sigma, 10.0)

    assert best_theta(feasible, cost)[1] == 2
    one_stands = Balance(gained=0.0, dummies=1)
    added = algorithm_3(graph, {root: feasible}, one_stands, 0.0, 0.1, cost)
    assert added == [common(feasible[0].children)]
    assert one_stands == Balance(gained=feasible[0].gain, dummies=2)


def test_vi_e_a_dummy_is_not_added_for_children_that_another_has_taken_or_that_share_little() -> (
    None
):
    graph = graph_of(*FIGURE_4, 9, 15, 22)
    wanted = [(8, 12, 20), (8, 20), (22, 20), (9, 15)]
    feasible = [Dummy(tuple(Edges(s, 0) for s in slides), 0.1) for slides in wanted]
    added = algorithm_3(graph, {Edges(1, 0): feasible}, Balance(), 0.0, 0.0, float)
    assert added == [Edges(4, 0), Edges(3, 0)]
    before = mean_tests(graph)
    halves = [Dummy((Edges(4, 0), Edges(22, 0)), 0.1)]  # 2 (1 - 1/2) tests saved, one more made
    assert algorithm_3(graph, {Edges(1, 0): halves}, Balance(), 0.0, 0.0, float) == []
    assert mean_tests(graph) == before


def intervals(instants: list[int]) -> list[int]:
    return [later - earlier for earlier, later in pairwise(instants)]


@given(
    delays=st.lists(st.integers(30, 90), min_size=40, max_size=40),
    slide=st.sampled_from([3 * MINUTE, 5 * MINUTE]),
)
def test_vii_tables_i_and_ii_timers_slide_more_accurately_than_algorithm_2(
    delays: list[int], slide: int
) -> None:
    # A tuple every 2 minutes, 30 to 90 seconds on its way; slides of 3 and 5 minutes.
    on_arrival, clock = SlideOnArrival([slide]), SynchronisedClock(slide=slide, alpha=0.5)
    late: list[int] = []
    timely: list[int] = []
    for i, delay in enumerate(delays):
        timestamp, local = 2 * MINUTE * i, 2 * MINUTE * i + delay
        late += [local for _ in on_arrival.arrive(timestamp)]
        timely += clock.arrive(timestamp, local=local)
    assert all(slide <= gap <= slide + 2 * MINUTE for gap in intervals(late))
    assert all(slide - MINUTE <= gap <= slide + MINUTE for gap in intervals(timely))
    # Algorithm 2 falls a minute behind with every slide, the clock never more than one.
    missed = late[0] + slide * (len(late) - 1) - late[-1]
    assert abs(missed + MINUTE * (len(late) - 1)) <= MINUTE
    assert abs(timely[0] + slide * (len(timely) - 1) - timely[-1]) <= MINUTE
