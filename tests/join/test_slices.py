"""Large batches are joined in slices of time: the same rows, at the same step, from less memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.axis import FOREVER
from panes.join import slices as sliced
from panes.join.rule import Arrivals, Progress
from tests.join.histories import BANDS, END, HOWS, WINDOWS, join_text, sides, table, told
from tests.join.nested_loops import EVER, How, NestedLoops, Partners, Row, Step

PARTNERS = st.sampled_from([*BANDS, *WINDOWS])
Sides = tuple[list[Row], list[Row]]


@contextmanager
def row_by_row() -> Iterator[None]:
    """Slices as short as they can be."""
    with patch.object(sliced, "_CHUNK", 1), patch.object(sliced, "_SLICE", 2):
        yield


def nearly_sorted(rows: list[Row], disorder: list[int]) -> list[Row]:
    """Rows in the order of their positions, some of them a few positions behind."""
    moved = zip(rows, disorder, strict=False)
    return [row for row, _ in sorted(moved, key=lambda both: both[0].at + both[1])]


DISORDER = st.lists(st.sampled_from([0, 0, 0, 3, 9]), min_size=12, max_size=12)


@pytest.mark.parametrize("how", HOWS)
@settings(max_examples=30)
@given(partners=PARTNERS, rows=sides(), disorder=DISORDER)
def test_tables_in_slices_give_what_nested_loops_give(
    how: How, partners: Partners, rows: Sides, disorder: list[int]
) -> None:
    left, right = (nearly_sorted(side, disorder) for side in rows)
    want = NestedLoops(partners, how).step(Step(tuple(left), tuple(right), EVER, EVER))
    with row_by_row():
        found = panes.sql(join_text(how, partners), l=table(left), r=table(right))
    assert told(found) == sorted(want, key=repr)


@pytest.mark.parametrize("how", HOWS)
@settings(max_examples=30)
@given(
    partners=PARTNERS,
    batches=st.lists(sides(most=8), max_size=3),
    disorder=DISORDER,
    lateness=st.sampled_from([0, 2, 10, 50]),
)
def test_pushes_in_slices_give_what_they_prove_late_rows_included(
    how: How, partners: Partners, batches: list[Sides], disorder: list[int], lateness: int
) -> None:
    query, loops = (
        panes.open(join_text(how, partners), lateness=lateness),
        NestedLoops(partners, how),
    )
    query.push(l=table([]), r=table([]))
    seen = [-EVER, -EVER]
    with row_by_row():
        for number, both in enumerate(batches):
            rows = [
                nearly_sorted([Row(r.at, r.key, 100 * number + r.id) for r in side], disorder)
                for side in both
            ]
            for side in range(2):
                seen[side] = max([seen[side], *(row.at for row in rows[side])])
            promises = [None if at == -EVER else at - lateness for at in seen]
            want = loops.step(Step(tuple(rows[0]), tuple(rows[1]), *promises))
            given_now = told(query.push(l=table(rows[0]), r=table(rows[1])))
            assert given_now == sorted(want, key=repr)
            assert (query.state["left_rows"], query.state["right_rows"]) == loops.stored()
        assert told(query.finish()) == sorted(loops.step(END), key=repr)
    assert len(query.late) == len(loops.late)


def cut(*at: list[int], reach: int) -> list[tuple[list[int], list[int], Progress]]:
    sides = [Arrivals(np.array(side, dtype=np.int64)) for side in at]
    with row_by_row():
        parts = list(sliced.slices(sides[0], sides[1], Progress(), Progress(70, 80), reach=reach))
    return [(p.left.at.tolist(), p.right.at.tolist(), p.after) for p in parts]


def test_slices_know_what_comes_behind_them() -> None:
    assert cut([0, 10, 30, 20], [5, 40], reach=10) == [
        ([0], [5], Progress(10, 40)),
        ([10], [], Progress(20, 40)),
        ([30, 20], [40], Progress(70, 80)),
    ]


def test_rows_in_no_order_and_reaches_as_long_as_the_batch_have_one_slice() -> None:
    assert len(cut([90, 50, 70, 0], [80, 60, 1], reach=10)) == 1
    assert len(cut([0, 10, 20, 30], [0, 10, 20, 30], reach=30)) == 1
    assert len(cut([0, 10, 20, 30], [0, 10, 20, 30], reach=FOREVER)) == 1


def test_a_batch_with_a_late_row_has_one_slice() -> None:
    rows = Arrivals(np.arange(0, 100, 10))
    promises = Progress(0, 1), Progress(0, 0)
    with row_by_row():
        late, kept = (list(sliced.slices(rows, rows, p, Progress(), reach=1)) for p in promises)
    assert (len(late), len(kept)) == (1, 10)


def test_few_rows_have_one_slice() -> None:
    few = Arrivals(np.arange(1_000))
    assert len(list(sliced.slices(few, few, Progress(), Progress(), reach=1))) == 1
