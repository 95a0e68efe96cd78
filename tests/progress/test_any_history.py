"""Any history of queries and progress: graph, tree and timers against brute force.

`edges_in` tries every position, so it shares no arithmetic with the room. A link too many or too
few after a removal, a dummy that hides a group, a timer that stands on the wrong page or misses a
jump, and an edge that is off by one at either end of a step fail here.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lab.papers.plain_scan import PlainScan
from lab.papers.sliding_tree import SlidingTree, mean_tests
from panes.progress.draw import draw_dot, draw_mermaid, draw_tree
from panes.progress.optimise import optimise
from panes.progress.sliding_graph import Link, SlidingGraph
from panes.progress.timers import Timers
from panes.windows.cut import Edges

slides = st.one_of(st.sampled_from([1, 2, 3, 4, 6, 8, 12, 24, 36]), st.integers(1, 60))
families = slides.flatmap(lambda s: st.integers(0, s - 1).map(lambda phase: Edges(s, phase)))
in_phase = slides.map(lambda s: Edges(s, 0))
jumps = st.one_of(st.just(1), st.integers(0, 7), st.integers(0, 200))


def edges_in(family: Edges, previous: int, now: int) -> bool:
    return any((at - family.phase) % family.slide == 0 for at in range(previous + 1, now + 1))


def nearest_links(groups: list[Edges], root: Edges) -> list[Link]:
    """The links of a graph by its definition: pairs with nothing in between."""
    links: list[Link] = []
    for child in sorted(groups):
        above = [g for g in groups if g != child and child.within(g)]
        near = [p for p in above if not any(o != p and o.within(p) for o in above)]
        if not near and child != root:
            near = [root]
        links += [
            Link(p, child, is_strong=p.slide == max(o.slide for o in near))
            for p in sorted(near, reverse=True)
        ]
    return links


class AnyHistory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.graph = SlidingGraph()
        self.timers = Timers(at=-100)
        self.at = -100
        self.asked: dict[str, Edges] = {}
        self.names = 0

    @rule(family=st.one_of(families, in_phase))
    def add(self, family: Edges) -> None:
        name = f"q{self.names}"
        self.names += 1
        self.asked[name] = family
        self.graph.add(name, family)
        self.timers.add(family)

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.asked)))
        family = self.asked.pop(name)
        left = self.graph.remove(name)
        assert (left == family) == (family not in self.asked.values())
        if left:
            self.timers.remove(left)

    @rule(limit=st.sampled_from([0.0, 0.01, 0.1]))
    def optimise(self, limit: float) -> None:
        before = mean_tests(self.graph)
        added = optimise(self.graph, node_limit=limit, most_children=6)
        assert mean_tests(self.graph) < before if added else mean_tests(self.graph) == before

    @rule(jump=jumps)
    def progress(self, jump: int) -> None:
        previous, self.at = self.at, self.at + jump
        wanted = {f for f in self.asked.values() if edges_in(f, previous, self.at)}
        groups = [group.family for group in self.graph.groups()]
        tree = SlidingTree(self.graph)
        assert sorted(PlainScan(groups).due(previous, self.at)) == sorted(wanted)
        assert sorted(tree.due(previous, self.at)) == sorted(wanted)
        assert sorted(self.timers.advance(self.at)) == sorted(wanted)
        assert tree.tests(previous, self.at) <= len(self.graph.tree())
        due_queries = {q for q, family in self.asked.items() if family in wanted}
        assert set(self.graph.candidates(tree.due(previous, self.at))) == due_queries

    @invariant()
    def groups_are_what_was_asked(self) -> None:
        grouped = {q: group.family for group in self.graph.groups() for q in group.queries}
        assert grouped == self.asked
        assert len(self.timers) == len(set(self.asked.values()))

    @invariant()
    def links_are_pairs_with_nothing_in_between(self) -> None:
        root = self.graph.root
        if root is None:
            assert not self.asked
            return
        below = self.graph.tree()
        tops = [f for f in below if f != root and self.graph.parents(f) == [root]]
        is_derived = self.graph.group(root).is_dummy and set(below[root]) == set(tops)
        stored = [f for f in below if not (is_derived and f == root)]
        assert self.graph.links() == nearest_links(stored, root)

    @invariant()
    def every_dummy_has_two_children(self) -> None:
        for family, children in self.graph.tree().items():
            assert len(children) >= 2 or not self.graph.group(family).is_dummy


AnyHistory.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestAnyHistory = AnyHistory.TestCase


@given(st.lists(families, max_size=12, unique=True), st.integers(-150, 150), jumps)
@settings(deadline=None)
def test_a_scan_finds_the_families_with_an_edge_after_previous_and_up_to_now(
    asked: list[Edges], previous: int, jump: int
) -> None:
    wanted = [f for f in asked if edges_in(f, previous, previous + jump)]
    assert PlainScan(asked).due(previous, previous + jump) == wanted


@given(st.lists(families, min_size=1, max_size=12, unique=True))
@settings(deadline=None)
def test_the_longest_jump_there_is_finds_every_group(asked: list[Edges]) -> None:
    nothing, everything = -(1 << 62), 1 << 62
    graph, timers = SlidingGraph(), Timers(at=nothing)
    for i, family in enumerate(asked):
        graph.add(f"q{i}", family)
        timers.add(family)
    assert PlainScan(asked).due(nothing, everything) == asked
    assert sorted(SlidingTree(graph).due(nothing, everything)) == sorted(asked)
    assert timers.advance(everything) == asked


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=40, unique=True), st.data())
@settings(deadline=None)
def test_timers_of_slides_of_any_size_are_right_at_every_jump(
    wanted: list[int], data: st.DataObject
) -> None:
    asked = [Edges(slide, data.draw(st.integers(0, slide - 1))) for slide in wanted]
    scan, timers = PlainScan(asked), Timers(at=0)
    for family in asked:
        timers.add(family)
    at = 0
    for jump in data.draw(st.lists(st.integers(0, 10**13), max_size=10)):
        assert timers.advance(at + jump) == scan.due(at, at + jump)
        at += jump


def test_progress_that_does_not_grow_reaches_nothing() -> None:
    timers = Timers(at=0)
    timers.add(Edges(5, 0))
    assert timers.advance(10) == [Edges(5, 0)]
    assert timers.advance(10) == timers.advance(3) == []
    assert timers.at == 10


def test_slides_that_divide_at_another_phase_are_not_linked() -> None:
    #  4 from 1    |   |   |   |      8 from 5 lies on it, 8 from 0 does not
    graph = SlidingGraph()
    for name, family in {"a": Edges(4, 1), "b": Edges(8, 5), "c": Edges(8, 0)}.items():
        graph.add(name, family)
    assert draw_tree(graph) == "\n".join(
        ["1 (dummy)", "├─ 4 from 1: a", "│  └─ 8 from 5: b", "└─ 8: c"]
    )


def test_a_dummy_becomes_a_group_when_a_query_asks_for_it() -> None:
    graph = SlidingGraph()
    for slide in (7, 8, 12, 20):
        graph.add(f"q{slide}", Edges(slide, 0))
    optimise(graph)
    graph.add("q4", Edges(4, 0))
    assert graph.candidates(SlidingTree(graph).due(3, 4)) == ["q4"]
    graph.remove("q4")
    assert SlidingTree(graph).due(3, 4) == []


def test_a_query_is_scheduled_once_and_removed_once() -> None:
    graph = SlidingGraph()
    graph.add("hot", Edges(60, 0))
    with pytest.raises(ValueError, match="a query `hot` is already scheduled"):
        graph.add("hot", Edges(30, 0))
    with pytest.raises(ValueError, match="no query `cold` is scheduled\n\nHint: queries: hot"):
        graph.remove("cold")


@given(st.permutations([Edges(2, 0), Edges(3, 0), Edges(4, 0), Edges(12, 0), Edges(12, 7)]))
@settings(max_examples=20, deadline=None)
def test_drawings_do_not_depend_on_the_order_of_queries(order: list[Edges]) -> None:
    graph = SlidingGraph()
    for family in order:
        graph.add(f'"{family.slide}" <{family.phase}>', family)
    assert (
        draw_dot(graph)
        == r"""digraph sliding {
  "1" [label="1\n(dummy)", style=dashed];
  "2" [label="2\n\"2\" <0>"];
  "3" [label="3\n\"3\" <0>"];
  "4" [label="4\n\"4\" <0>"];
  "12" [label="12\n\"12\" <0>"];
  "12 from 7" [label="12 from 7\n\"12\" <7>"];
  "1" -> "2";
  "1" -> "3";
  "2" -> "4";
  "4" -> "12";
  "3" -> "12" [style=dashed];
  "1" -> "12 from 7";
}"""
    )
    assert (
        draw_mermaid(graph)
        == """graph TD
  s1_0["1<br>(dummy)"]
  s2_0["2<br>&quot;2&quot; &lt;0&gt;"]
  s3_0["3<br>&quot;3&quot; &lt;0&gt;"]
  s4_0["4<br>&quot;4&quot; &lt;0&gt;"]
  s12_0["12<br>&quot;12&quot; &lt;0&gt;"]
  s12_7["12 from 7<br>&quot;12&quot; &lt;7&gt;"]
  s1_0 --> s2_0
  s1_0 --> s3_0
  s2_0 --> s4_0
  s4_0 --> s12_0
  s3_0 -.-> s12_0
  s1_0 --> s12_7"""
    )
    assert draw_tree(SlidingGraph()) == "no sliding groups"
