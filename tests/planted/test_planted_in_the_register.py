"""Wrong edits in a register that the state machine of its histories must catch.

The machine runs longer than in the suite, but stops at the first step that goes wrong. If one of
these tests fails, histories no longer come where that bug would show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from panes.asking import ask_panes as ask
from panes.asking.row_tail import RowTail
from panes.axis import BEGINNING
from panes.planning.terms import CheckedOptions
from panes.process.register import Register
from panes.progress.sliding_graph import SlidingGraph
from panes.shards import register_state
from panes.sharing import queries
from panes.sharing.classed_panes import ClassedPanes
from panes.sharing.completeness import Completeness
from panes.sharing.needs import Needs
from panes.sharing.shape import Computed, Shape
from panes.sharing.shared_store import SharedStore
from panes.stores.contents import ValueSet
from panes.stores.multisets import ValueStore
from panes.windows.many import Rulers
from tests.process import pictures
from tests.reference.histories import HISTORIES, Histories, forget_keys_early
from tests.reference.sharded_histories import ShardedHistories

Function = Callable[..., Any]


def knowing_no_cuts(right: Function) -> Function:
    def wrong(completeness: Completeness, newest: int) -> None:
        right(completeness, newest)
        completeness.cuts_before = {}

    return wrong


def knowing_no_eviction(right: Function) -> Function:
    def wrong(completeness: Completeness, *args: Any) -> int:
        evicted, completeness.evicted_before = completeness.evicted_before, BEGINNING
        try:
            return int(right(completeness, *args))
        finally:
            completeness.evicted_before = evicted

    return wrong


def one_pane_further(right: Function) -> Function:
    def wrong(store: SharedStore, progress: int, newest: int) -> None:
        shared = store.completeness.shared_cut
        older = None if shared is None else shared.older
        right(store, progress + (0 if older is None else older.cut.grid), newest)

    return wrong


def although_queries_changed(right: Function) -> Function:
    def wrong(store: SharedStore, progress: int, newest: int) -> None:
        before, store.completeness.is_current = store.completeness.is_current, True
        right(store, progress, newest)
        store.completeness.is_current = before

    return wrong


def keeping_no_history(right: Function) -> Function:
    def wrong(store: SharedStore, progress: int, newest: int) -> None:
        known = dict(store.completeness.cuts_before)
        right(store, progress, newest)
        store.completeness.cuts_before = known

    return wrong


def from_the_beginning(is_one: Callable[[object], bool]) -> Callable[[Function], Function]:
    def planted(right: Function) -> Function:
        def wrong(needs: Needs, wanted: Sequence[Any], newest: int) -> None:
            is_some = any(map(is_one, wanted))
            right(needs, wanted, BEGINNING if is_some else newest)

        return wrong

    return planted


def is_filter(stored: object) -> bool:
    return isinstance(stored, int)


def is_piece(stored: object) -> bool:
    return not isinstance(stored, int | ValueSet | Computed)


def is_computed(stored: object) -> bool:
    return isinstance(stored, Computed)


def only_making_room(right: Function) -> Function:
    def wrong(panes: ClassedPanes, width: int) -> None:
        panes.width = width

    return wrong


def with_the_last_row_as_newest(right: Function) -> Function:
    def wrong(reg: Register, batch: pa.Table) -> Any:
        found = right(reg, batch)
        if len(batch):
            reg._primary.queries.newest = batch["at"][-1].as_py()
        return found

    return wrong


def without_writing_back(right: Function) -> Function:
    def wrong(shape: Shape) -> None:
        shape._rulers = None

    return wrong


def although_others_wait(right: Function) -> Function:
    def wrong(graph: SlidingGraph, query: str) -> Any:
        family = graph._family_of[query]
        right(graph, query)
        return family

    return wrong


def leaving_places(right: Function) -> Function:
    def wrong(shape: Shape, name: str) -> Any:
        indexes = dict(shape._index)
        member = right(shape, name)
        shape._index = {n: i for n, i in indexes.items() if n != name}
        return member

    return wrong


def by(change: int) -> Callable[[Function], Function]:
    """A result that is wrong by so much."""
    return lambda right: lambda *args: right(*args) + change


def closing(change: int) -> Callable[[Function], Function]:
    return lambda right: lambda shape, which, wid: right(shape, which, wid + change)


def doing_nothing(right: Function) -> Function:
    return lambda *args: None


def forgetting_all(right: Function) -> Function:
    return lambda store, kept: right(store, set())


def knowing_no_gaps(right: Function) -> Function:
    def wrong(tail: RowTail, *args: Any) -> None:
        right(tail, *args)
        tail.known_from = BEGINNING

    return wrong


def whatever_the_filter(right: Function) -> Function:
    def wrong(stored: object, *args: Any) -> Any:
        named = Computed(stored.column, None) if isinstance(stored, Computed) else stored
        return right(named, *args)

    return wrong


BUGS: dict[str, tuple[object, str, Callable[[Function], Function]]] = {
    "how panes were cut before is forgotten": (Completeness, "change_cut", knowing_no_cuts),
    "evicted panes are taken for empty ones": (Completeness, "complete_from", knowing_no_eviction),
    "panes are folded one pane too early": (SharedStore, "fold", one_pane_further),
    "a new piece is said to know all rows": (Needs, "_store", from_the_beginning(is_piece)),
    "a new filter is said to know all rows": (Needs, "_store", from_the_beginning(is_filter)),
    "an expression is said to be there for all rows": (
        Needs, "_store", from_the_beginning(is_computed),
    ),
    "keys are mixed up when a class is new": (ClassedPanes, "_widen", only_making_room),
    "filters are forgotten that others have": (ClassedPanes, "_forget_filters", forgetting_all),
    "multisets keep numbers of keys that changed": (ValueStore, "rename_groups", doing_nothing),
    "a late row is taken for the newest": (Register, "push", with_the_last_row_as_newest),
    "a window is closed unanswered": (Shape, "close_before", closing(+1)),
    "a window is answered twice": (Shape, "close_before", closing(-1)),
    "panes are evicted one tick early": (Shape, "needed_from", by(+1)),
    "panes are never evicted": (SharedStore, "evict", doing_nothing),
    "queries that come make others start again": (Shape, "_write_back", without_writing_back),
    "queries are mistaken when one has gone": (Shape, "remove", leaving_places),
    "queries that slide alike leave together": (SlidingGraph, "remove", although_others_wait),
    "a window too early is promised": (queries, "first_from", by(-1)),
    "a window too late is promised": (queries, "first_from", by(+1)),
    "the newest window is not answered": (Rulers, "reached", by(-1)),
    "late rows are counted though they are dropped": (
        CheckedOptions, "drops_late", lambda right: property(lambda terms: False),  # type: ignore[dict-item, return-value]
    ),
    "rows that are not kept any more are taken for none": (RowTail, "push", knowing_no_gaps),
    "a window is asked for that begins inside a pane": (ask, "_require_edge", doing_nothing),
}  # fmt: skip


OVER_SHARDS: dict[str, tuple[object, str, Callable[[Function], Function]]] = {
    "a state does not tell of which rows": (register_state, "identity_of", whatever_the_filter),
    "what a state does not have is there for all rows": (
        register_state, "after", lambda right: lambda newest: BEGINNING,
    ),
}  # fmt: skip
"""Bugs in what shards remember of what they store."""

PICTURES: dict[str, tuple[Callable[[Function], Function], Callable[[], None]]] = {
    "panes are folded that a new query needs": (
        although_queries_changed, pictures.panes_that_a_new_query_needs_are_not_folded,
    ),
    "that panes were folded is forgotten": (
        keeping_no_history, pictures.panes_that_were_folded_answer_no_finer_window,
    ),
}  # fmt: skip
"""Bugs that histories seldom come to, and the pictures that show them."""


def plant(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, wrong = (BUGS | OVER_SHARDS)[bug]
    monkeypatch.setattr(place, name, wrong(getattr(place, name)))


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_in_a_register_is_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys_early(monkeypatch)
    plant(bug, monkeypatch)
    many = settings(HISTORIES, max_examples=300, phases=[Phase.generate], print_blob=False)
    with pytest.raises((Exception, pytest.fail.Exception)):
        run_state_machine_as_test(Histories, settings=many)


@pytest.mark.slow
@pytest.mark.parametrize("bug", OVER_SHARDS)
def test_a_planted_bug_over_shards_is_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(bug, monkeypatch)
    many = settings(HISTORIES, max_examples=100, phases=[Phase.generate], print_blob=False)
    with pytest.raises((Exception, pytest.fail.Exception)):
        run_state_machine_as_test(ShardedHistories, settings=many)


@pytest.mark.parametrize("bug", PICTURES)
def test_a_planted_bug_shows_in_a_picture(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, picture = PICTURES[bug]
    picture()
    monkeypatch.setattr(SharedStore, "fold", wrong(SharedStore.fold))
    with pytest.raises(AssertionError):
        picture()
