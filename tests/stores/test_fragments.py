"""Fragments are one store whatever they overlap: the same partials as if all rows came at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from panes.aggregates.lanes import Op
from panes.aggregates.monoid import Lanes
from panes.stores import fragments as module
from panes.stores.fragment import Fragment, merged
from panes.stores.fragments import Fragments

COUNT = Lanes(Op.ADD, ("n",), (0,))
LEAST = Lanes(Op.LEAST, ("low",), ((1 << 62),))
MONOIDS = (COUNT, LEAST, COUNT)
pairs = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2), st.integers(-5, 5)), max_size=8)


def fragment(rows: list[tuple[int, int, int]]) -> Fragment:
    """The partials of rows: pane, group and value; the counts are one array."""
    starts, groups, values = np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy()
    ones = np.ones((1, len(rows)), dtype=np.int64)
    return merged([Fragment(starts, groups, (ones, values[None, :], ones))], MONOIDS)


def content(held: Fragment) -> list[tuple[int, ...]]:
    columns = (held.starts, held.groups, *(lane for p in held.partials for lane in p))
    return list(zip(*(c.tolist() for c in columns), strict=True))


@given(batches=st.lists(pairs, max_size=25), drift=st.integers(0, 9))
def test_any_batches_merge_to_what_all_rows_give(
    batches: list[list[tuple[int, int, int]]], drift: int
) -> None:
    """With a drift, each batch lies behind the one before it, or overlaps its end."""
    moved = [
        [(start + drift * i, group, value) for start, group, value in batch]
        for i, batch in enumerate(batches)
    ]
    store = Fragments(MONOIDS)
    for batch in moved:
        store.add(fragment(batch))
        assert len(store.fragments) <= module._MOST_FRAGMENTS
    want = fragment([row for batch in moved for row in batch])
    found = store.everything()
    assert content(found) == content(want)
    assert not len(found) or found.partials[0] is found.partials[2], "one array, as before"


def test_panes_that_repeat_are_merged_before_they_take_much_room() -> None:
    store = Fragments(MONOIDS)
    again = fragment([(start, 0, 1) for start in range(100)])
    for _ in range(10):
        store.add(again)
        assert len(store) <= 1.5 * len(again)


def test_panes_that_do_not_are_left_alone() -> None:
    store = Fragments(MONOIDS)
    parts = [fragment([(start, 0, 1) for start in range(i, i + 10)]) for i in range(0, 100, 10)]
    for part in parts:
        store.add(part)
    assert store.fragments == tuple(parts)
