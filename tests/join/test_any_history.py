"""Joins in any history: every step gives what nested loops say, no sooner, no later, never twice.

Rows come in any order, in any batches, at any skew between the sides, with promises between them.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from tests.join.histories import (
    BANDS,
    END,
    HOWS,
    WINDOWS,
    histories,
    join_text,
    run,
    table,
    taken,
    told,
)
from tests.join.histories import sides as two_sides
from tests.join.nested_loops import EVER, How, NestedLoops, Partners, Row, Step
from tests.support import open_join

PARTNERS = st.sampled_from([*BANDS, *WINDOWS])


def expected(steps: list[Step], loops: NestedLoops) -> list[list[object]]:
    return [sorted(loops.step(step), key=repr) for step in [*steps, END]]


@pytest.mark.parametrize("how", HOWS)
@settings(max_examples=25)
@given(partners=PARTNERS, steps=histories())
def test_each_step_gives_what_it_proves(how: How, partners: Partners, steps: list[Step]) -> None:
    query = open_join(join_text(how, partners))
    assert run(query, steps) == expected(steps, NestedLoops(partners, how))
    assert not len(query.late)


@pytest.mark.parametrize("how", HOWS)
@settings(max_examples=25)
@given(partners=PARTNERS, steps=histories(late=True))
def test_late_rows_meet_what_is_stored_and_rows_are_stored_while_a_partner_may_come(
    how: How, partners: Partners, steps: list[Step]
) -> None:
    query, loops = open_join(join_text(how, partners)), NestedLoops(partners, how)
    query.push(l=table([]), r=table([]))
    for step in steps:
        want = sorted(loops.step(step), key=repr)
        assert taken(query, step) == want
        assert (query.state["left_rows"], query.state["right_rows"]) == loops.stored()
        assert (query.state["bytes"] == 0) == (loops.stored() == (0, 0))
    assert told(query.finish()) == sorted(loops.step(END), key=repr)
    assert len(query.late) == query.state["late_rows"] == len(loops.late)
    assert (query.state["rows"], query.state["bytes"]) == (0, 0)


@pytest.mark.parametrize("how", HOWS)
@settings(max_examples=20)
@given(partners=PARTNERS, steps=histories(late=True))
def test_dropped_late_rows_are_as_if_they_had_not_come(
    how: How, partners: Partners, steps: list[Step]
) -> None:
    query = open_join(join_text(how, partners), late="drop")
    loops, in_time = NestedLoops(partners, how), []
    for step in steps:
        left = tuple(r for r in step.left if r.at >= loops.promised[0])
        right = tuple(r for r in step.right if r.at >= loops.promised[1])
        in_time.append(Step(left, right, step.left_promise, step.right_promise))
        loops.step(in_time[-1])
    assert run(query, steps) == expected(in_time, NestedLoops(partners, how))
    dropped = sum(len(s.left) + len(s.right) for s in steps)
    dropped -= sum(len(s.left) + len(s.right) for s in in_time)
    assert len(query.late) == dropped


@pytest.mark.parametrize("how", HOWS)
@settings(max_examples=20)
@given(partners=PARTNERS, rows=two_sides(), keyed=st.booleans())
def test_tables_and_the_oracle_give_what_nested_loops_give(
    how: How, partners: Partners, rows: tuple[list[Row], list[Row]], keyed: bool
) -> None:
    left, right = ([r if keyed else Row(r.at, (), r.id) for r in side] for side in rows)
    loops = NestedLoops(partners, how)
    want = sorted(loops.step(Step(tuple(left), tuple(right), EVER, EVER)), key=repr)
    text = join_text(how, partners, keyed)
    streams = {"l": table(rows[0]), "r": table(rows[1])}
    assert told(panes.sql(text, **streams)) == want
    assert told(panes.oracle(text, **streams)) == want


@settings(max_examples=25)
@given(partners=PARTNERS, steps=histories(), lateness=st.integers(0, 50), how=st.sampled_from(HOWS))
def test_a_bound_on_lateness_promises_for_each_side(
    partners: Partners, steps: list[Step], lateness: int, how: How
) -> None:
    query, loops = (
        open_join(join_text(how, partners), lateness=lateness),
        NestedLoops(partners, how),
    )
    query.push(l=table([]), r=table([]))
    seen = [-EVER, -EVER]
    for step in steps:
        for side, rows in enumerate((step.left, step.right)):
            seen[side] = max([seen[side], *(row.at for row in rows)])
        promises = [None if at == -EVER else at - lateness for at in seen]
        want = loops.step(Step(step.left, step.right, *promises))
        given_now = told(query.push(l=table(step.left), r=table(step.right)))
        assert given_now == sorted(want, key=repr)
    assert told(query.finish()) == sorted(loops.step(END), key=repr)
    assert len(query.late) == len(loops.late)
