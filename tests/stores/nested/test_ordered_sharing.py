"""OrderedSharing: the tree and the staircase both give the minimum or maximum of the rows.

Catches: an answer used after its row has left, a window skipped when a row comes, an invalid node
in the way of a valid one, an equal value taken for a smaller one, a tree that loses its order.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lab.papers.ordered_sharing import OrderedSharing, SharedAnswer
from lab.papers.window_tree import WindowTree
from panes.errors import ColumnTypeError, OptionError
from panes.stores.nested.nested_windows import NestedWindows, StaircaseSharing

# *Aggregate Sharing*, Figure 8: answers 5, 10, 15, 20, 30, 50 for windows A, B, C, D, E, F.
#
#     at      0    10    20    30    40    50  51
#            50    30    20    15    10     5
#     A                                    [─)            1
#     B                             [────────)           12
#     C                       [──────────────)           22
#     D              [───────────────────────)           40
#     E             [────────────────────────)           41
#     F    [─────────────────────────────────)          100
AT = np.array([0, 10, 20, 30, 40, 50])
VALUES = np.array([50, 30, 20, 15, 10, 5])
A, B, C, D, E, F = 1, 12, 22, 40, 41, 100


def figure_8() -> OrderedSharing:
    sharing = OrderedSharing("max", max_size=F, sizes=[A, B, C, D, E, F])
    sharing.add(AT, VALUES)
    assert sharing.shared() == [], "all windows are invalid until one is looked up (6.2.2)"
    sharing.ask(F)
    return sharing


def test_sharing_figure_8_one_lookup_validates_all_smaller_windows() -> None:
    sharing = figure_8()
    assert [(n.size, n.answer) for n in sharing.shared()] == [
        (A, 5),
        (B, 10),
        (C, 15),
        (D, 20),
        (E, 30),
        (F, 50),
    ]
    assert sharing.ask_each([A, B, C, D, E, F]).to_pylist() == [5, 10, 15, 20, 30, 50]
    assert sharing.recalculations == 1


def test_sharing_figure_7_a_row_takes_the_place_of_all_smaller_windows() -> None:
    sharing = figure_8()
    sharing.add(np.array([50]), np.array([30]))
    assert sharing.shared() == [SharedAnswer(E, 30, 50), SharedAnswer(F, 50, 0)]
    assert sharing.ask_each([A, B, C, D, E]).to_pylist() == [30] * 5
    assert sharing.recalculations == 1


def test_sharing_6_3_2_1_an_invalid_window_in_the_way_is_removed() -> None:
    """At 51 the answer of E, 30 at 10, has just left it; that of D, 20 at 20, has not."""
    sharing = figure_8()
    sharing.add(np.array([51]), np.array([35]))
    assert sharing.shared() == [SharedAnswer(D, 35, 51), SharedAnswer(F, 50, 0)]
    assert sharing.ask(E) == 35


def test_sharing_6_3_2_2_a_window_between_two_takes_the_larger_one_s_answer_if_it_holds_it() -> (
    None
):
    sharing = figure_8()
    assert sharing.ask(60) == 50
    assert sharing.recalculations == 1, "50 lies in E', so F answers for it"
    assert sharing.ask(45) == 30
    assert sharing.recalculations == 2, "50 does not, so E' is calculated again"
    assert [n.size for n in sharing.shared()] == [A, B, C, D, 45, F], "E shares the answer of E'"


def test_sharing_6_3_2_3_a_single_tree_for_min() -> None:
    sharing = OrderedSharing("min", max_size=F, sizes=[A, B, C, D, E, F])
    sharing.add(AT, -VALUES)
    assert sharing.ask(F) == -50
    sharing.add(np.array([50]), np.array([-30]))
    assert sharing.shared() == [SharedAnswer(E, -30, 50), SharedAnswer(F, -50, 0)]


def test_an_answer_is_as_old_as_its_row_and_not_as_its_calculation() -> None:
    """Step 2c of 6.3.2.2 prints the current time; with it, 9 would outlive its window::

    9 1 1      looked up here
      1 1 1    9 has left
    """
    sharing = OrderedSharing("max", max_size=3, sizes=[3])
    sharing.add_rows(np.array([9, 1, 1]))
    assert sharing.ask(3) == 9
    assert sharing.shared() == [SharedAnswer(3, 9, 0)]
    sharing.add_rows(np.array([1]))
    assert sharing.ask(3) == 1


def test_windows_are_registered_and_removed_while_the_stream_runs() -> None:
    sharing = OrderedSharing("max", max_size=10, sizes=[4])
    sharing.add_rows(np.array([3, 8, 2, 1]))
    sharing.register(2)
    sharing.register(2)
    assert sharing.sizes == (2, 4)
    assert sharing.ask_each([4, 2]).to_pylist() == [8, 2]
    sharing.remove(4)
    assert 4 not in sharing.sizes
    assert sharing.ask_each([4, 3, 2]).to_pylist() == [8, 8, 2]
    with pytest.raises(OptionError, match="no window of size 4"):
        sharing.remove(4)
    with pytest.raises(OptionError, match="max_size=11"):
        sharing.register(11)


@pytest.mark.parametrize("form", [OrderedSharing, StaircaseSharing])
def test_values_are_ordered_as_everywhere_else(form: type[NestedWindows]) -> None:
    """NaN is the greatest, -0.0 is 0.0, and times are values too."""
    floats = form("max", max_size=4)
    floats.add_rows(np.array([math.inf, math.nan, -1.5]))
    assert floats.ask(1) == -1.5
    assert math.isnan(float(str(floats.ask(3))))
    days = form("min", max_size=4)
    days.add_rows(np.array(["2026-01-02", "2026-01-01"], dtype="datetime64[s]"))
    assert str(days.ask(2)) == "2026-01-01 00:00:00"
    with pytest.raises(ColumnTypeError, match="so far, and now are double"):
        days.add_rows(np.array([1.0]))
    with pytest.raises(ColumnTypeError, match="need numbers or times"):
        form("min", max_size=4).add_rows(np.array(["text"]))
    with pytest.raises(OptionError, match="asked for 'sum'"):
        form("sum", max_size=4)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", [OrderedSharing, StaircaseSharing])
def test_a_window_without_rows_has_no_answer(form: type[NestedWindows]) -> None:
    sharing = form("max", max_size=10)
    assert sharing.ask(3) is None
    sharing.add(np.array([-100]), np.array([7]))
    sharing.advance(-95)
    assert sharing.ask_each([1, 4, 5, 10]).to_pylist() == [None, None, 7, 7]


LARGEST = 24


class NestedWindowsMachine(RuleBasedStateMachine):
    """Rows, promises, lookups and changes of windows in any order, against the rows themselves."""

    @initialize(aggregate=st.sampled_from(["min", "max"]), sizes=st.sets(st.integers(1, LARGEST)))
    def begin(self, aggregate: Literal["min", "max"], sizes: set[int]) -> None:
        self.best = min if aggregate == "min" else max
        self.sign = -1 if aggregate == "min" else 1
        self.tree = OrderedSharing(aggregate, max_size=LARGEST, sizes=sizes)
        self.stairs = StaircaseSharing(aggregate, max_size=LARGEST)
        self.sizes = set(sizes)
        self.rows: list[tuple[int, int]] = []
        self.end = 0

    @rule(values=st.lists(st.integers(-9, 9), max_size=6))
    def rows_come(self, values: list[int]) -> None:
        for store in (self.tree, self.stairs):
            store.add_rows(np.array(values, dtype=np.int64))
        self.rows += [(self.end + i, v) for i, v in enumerate(values)]
        self.end += len(values)

    @rule(steps=st.lists(st.tuples(st.integers(0, 9), st.integers(-9, 9)), min_size=1, max_size=6))
    def rows_come_at_times(self, steps: list[tuple[int, int]]) -> None:
        at = np.cumsum([s for s, _ in steps]) + self.end
        values = [v for _, v in steps]
        for store in (self.tree, self.stairs):
            store.add(at, np.array(values, dtype=np.int64))
        self.rows += zip(at.tolist(), values, strict=True)
        self.end = int(at[-1]) + 1

    @rule(far=st.integers(0, 2 * LARGEST))
    def time_passes(self, far: int) -> None:
        self.end += far
        for store in (self.tree, self.stairs):
            store.advance(self.end)

    @rule(sizes=st.lists(st.integers(1, LARGEST), max_size=4))
    def windows_are_looked_up(self, sizes: list[int]) -> None:
        wanted = [self.answer(size) for size in sizes]
        assert self.stairs.ask_each(sizes).to_pylist() == wanted
        assert self.tree.ask_each(sizes).to_pylist() == wanted

    @rule(size=st.integers(1, LARGEST))
    def a_window_is_registered(self, size: int) -> None:
        self.tree.register(size)
        self.sizes.add(size)

    @precondition(lambda self: self.sizes)
    @rule(data=st.data())
    def a_window_is_removed(self, data: st.DataObject) -> None:
        size = data.draw(st.sampled_from(sorted(self.sizes)))
        self.tree.remove(size)
        self.sizes.remove(size)

    @invariant()
    def the_tree_is_ordered_both_ways_and_what_is_valid_is_right(self) -> None:
        nodes = self.tree.shared()
        answers = [self.sign * int(str(n.answer)) for n in nodes]
        assert [n.size for n in nodes] == sorted({n.size for n in nodes})
        assert answers == sorted(set(answers))
        for node in nodes:
            if node.at >= self.end - node.size:
                assert node.answer == self.answer(node.size)
        assert self.tree.sizes == tuple(sorted(self.sizes))

    def answer(self, size: int) -> int | None:
        inside = [v for at, v in self.rows if self.end - size <= at < self.end]
        return self.best(inside) if inside else None


TestNestedWindows = NestedWindowsMachine.TestCase
TestNestedWindows.settings = settings(max_examples=60, stateful_step_count=40)


@settings(max_examples=60)
@given(
    windows=st.integers(1, 300),
    steps=st.lists(st.tuples(st.booleans(), st.integers(1, 300), st.integers(0, 40)), max_size=30),
)
def test_the_tree_stays_balanced(windows: int, steps: list[tuple[bool, int, int]]) -> None:
    """An AVL tree of n nodes is at most 1.44 log2(n + 2) high, whatever is split and joined."""
    tree, at = WindowTree(), 1000
    ascending = np.arange(1, windows + 1)
    tree.replace_up_to(windows, ascending, 1000 * ascending, at - ascending)
    for is_row, where, count in steps:
        if is_row:
            tree.insert(np.array([at]), np.array([1000 * where]))
        else:
            below = np.unique(np.linspace(0, where, count + 2).astype(np.int64)[1:-1])
            tree.replace_up_to(where, below, 1000 * below - 500, np.full(len(below), at))
        nodes = tree.windows()
        assert (np.diff(nodes[:, :2], axis=0) > 0).all()
        assert tree.lean() <= 1
        assert tree.height() <= 1.4405 * math.log2(len(nodes) + 2)
