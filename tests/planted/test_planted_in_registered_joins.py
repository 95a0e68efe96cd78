"""Wrong edits in registers over joins that the machine of their histories must catch.

If one of these tests fails, histories no longer come where that bug would show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

import panes
from panes.arrays.columns import column_of
from panes.nodes import missed_rows
from panes.nodes.missed_rows import Whole
from panes.planning.join_plan import JoinPlan
from panes.process import join_answers, shared_joins
from panes.process.newest_rows import NewestRows
from panes.shards import shared_join_shard
from panes.shards.missed_queries import MissedQueries
from panes.windows.partners import Band
from tests.join.register_machines import (
    SETTINGS,
    InOneProcess,
    JoinRegisterMachine,
    SharedShardsMachine,
)
from tests.process.registered_joins import require_whole_windows
from tests.shards.join_host import FAR, require_late_after_an_end

Function = Callable[..., Any]
Machine = type[JoinRegisterMachine]


def everything_is_sure(_: Function) -> Function:
    def wrong(join: JoinPlan, unstored: Sequence[int], joined: pa.Table) -> pa.Table:
        return joined

    return wrong


def groups_by_the_later_row(_: Function) -> Function:
    """As if all groups were by the positions of both sides."""

    def wrong(whole: Whole, joined: pa.Table) -> pa.Table:
        found, join = whole.plan.aggregation, whole.plan.join
        if found is None or found.by != "positions":
            return joined
        names = [n for n in (join.left_at, join.right_at) if n in joined.column_names]
        later = pc.max_element_wise(*(column_of(joined, name) for name in names))
        return joined.filter(pc.greater(later, whole.upto))

    return wrong


def rows_that_are_filtered_out_have_not_come(right: Function) -> Function:
    def wrong(newest: NewestRows, tables: dict[str, pa.Table], *args: Any) -> NewestRows:
        passing = {n: t.filter(pc.greater(t.column("v"), 2)) for n, t in tables.items()}
        found: NewestRows = right(newest, passing, *args)
        return found

    return wrong


def nobody_meets_a_row_that_is_not_stored(_: Function) -> Function:
    def wrong(join: JoinPlan, at: int, *, of_left: bool) -> int:
        return at

    return wrong


def what_was_joined_is_not_missed(_: Function) -> Function:
    def wrong(whole: Whole) -> tuple[tuple[Sequence[int], bool], ...]:
        return ((whole.missed.unstored, True),)

    return wrong


def nothing_is_unstored(_: Function) -> Function:
    def wrong(missed: MissedQueries, shared: Any) -> list[int]:
        missed._met.setdefault(shared.key, [-(2**62)] * len(shared.join.sources))
        return [-(2**62)] * len(shared.join.sources)

    return wrong


def columns_of_the_last_side(right: Function) -> Function:
    def wrong(*args: Any) -> tuple[pa.Schema, ...]:
        sides = right(*args)
        return (sides[-1],) * len(sides)

    return wrong


BUGS: dict[str, tuple[Machine, object, str, Callable[[Function], Function]]] = {
    "rows look alone that had a partner": (
        InOneProcess, join_answers, "sure_rows", everything_is_sure,
    ),
    "the same, over shards": (
        SharedShardsMachine, shared_join_shard, "sure_rows", everything_is_sure,
    ),
    "groups by one position are partial": (
        InOneProcess, Whole, "rows", groups_by_the_later_row,
    ),
    "the same groups, over shards": (
        SharedShardsMachine, Whole, "rows", groups_by_the_later_row,
    ),
    "rows that other queries leave out are not counted": (
        InOneProcess, NewestRows, "after", rows_that_are_filtered_out_have_not_come,
    ),
    "partners are taken to lie where their rows do": (
        InOneProcess, missed_rows, "_met", nobody_meets_a_row_that_is_not_stored,
    ),
    "a stream has the same columns wherever it stands": (
        InOneProcess, shared_joins, "joined_schemas", columns_of_the_last_side,
    ),
    "a new join over shards has missed nothing": (
        SharedShardsMachine, MissedQueries, "unstored", nothing_is_unstored,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, place, name, change = BUGS[bug]
    monkeypatch.setattr(place, name, change(getattr(place, name)))
    one = settings(SETTINGS, max_examples=150, report_multiple_bugs=False, print_blob=False)
    with pytest.raises((AssertionError, panes.PanesError)):
        run_state_machine_as_test(machine, settings=one)


def test_a_reach_by_the_width_of_a_band_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a run that goes on after an end."""
    for kind in ("JOIN", "RIGHT JOIN"):
        require_late_after_an_end(FAR.format(kind))
    monkeypatch.setattr(Band, "farthest", Band.width)
    for kind in ("JOIN", "RIGHT JOIN"):
        with pytest.raises(AssertionError):
            require_late_after_an_end(FAR.format(kind))


def test_what_was_given_before_counting_as_given_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the second query over a join."""
    require_whole_windows()
    monkeypatch.setattr(Whole, "_newest", what_was_joined_is_not_missed(Whole._newest))
    with pytest.raises(AssertionError):
        require_whole_windows()
