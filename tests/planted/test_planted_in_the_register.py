"""Wrong edits in a register that the state machine of its histories must catch.

The machine runs longer than in the suite, but stops at the first step that goes wrong. If one of
these tests fails, histories no longer come where that bug would show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from panes.asking import ask_panes as ask
from panes.axis import BEGINNING
from panes.engine.register import Register
from panes.planning.terms import Terms
from panes.register import queries
from panes.register.shape import Shape
from panes.register.shared_store import SharedStore
from panes.schedule.sliding_graph import SlidingGraph
from panes.stores.multisets import ValueStore
from panes.windows.many import Rulers
from tests.engine import test_register as pictures
from tests.oracle.histories import HISTORIES, Histories, forget_keys_early

Function = Callable[..., Any]


def knowing_no_cuts(right: Function) -> Function:
    def wrong(store: SharedStore, newest: int) -> None:
        right(store, newest)
        store.cuts_before = {}

    return wrong


def knowing_no_eviction(right: Function) -> Function:
    def wrong(store: SharedStore, *args: Any) -> int:
        kept, store.evicted_before = store.evicted_before, BEGINNING
        try:
            return int(right(store, *args))
        finally:
            store.evicted_before = kept

    return wrong


def one_pane_further(right: Function) -> Function:
    def wrong(store: SharedStore, progress: int, newest: int) -> None:
        older = None if store.shared_cut is None else store.shared_cut.older
        right(store, progress + (0 if older is None else older.cut.grid), newest)

    return wrong


def although_queries_changed(right: Function) -> Function:
    def wrong(store: SharedStore, progress: int, newest: int) -> None:
        kept, store._is_cut = store._is_cut, True
        right(store, progress, newest)
        store._is_cut = kept

    return wrong


def keeping_no_history(right: Function) -> Function:
    def wrong(store: SharedStore, progress: int, newest: int) -> None:
        known = dict(store.cuts_before)
        right(store, progress, newest)
        store.cuts_before = known

    return wrong


def from_the_beginning(right: Function) -> Function:
    return lambda store, what, newest: right(store, what, BEGINNING)


def only_making_room(right: Function) -> Function:
    def wrong(store: SharedStore, width: int) -> None:
        store.width = width

    return wrong


def with_the_last_row_as_newest(right: Function) -> Function:
    def wrong(reg: Register, batch: pa.Table) -> Any:
        found = right(reg, batch)
        if len(batch):
            reg._queries.newest = batch["at"][-1].as_py()
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
        places = dict(shape._place)
        member = right(shape, name)
        shape._place = {n: place for n, place in places.items() if n != name}
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


BUGS: dict[str, tuple[object, str, Callable[[Function], Function]]] = {
    "how panes were cut before is forgotten": (SharedStore, "change_cut", knowing_no_cuts),
    "evicted panes are taken for empty ones": (SharedStore, "complete_from", knowing_no_eviction),
    "panes are folded one pane too early": (SharedStore, "fold", one_pane_further),
    "a new piece is said to know all rows": (SharedStore, "_hold", from_the_beginning),
    "a new filter is said to know all rows": (SharedStore, "_filter", from_the_beginning),
    "keys are mixed up when a class is new": (SharedStore, "_widen", only_making_room),
    "filters are forgotten that others have": (SharedStore, "_forget_filters", forgetting_all),
    "multisets keep numbers of keys that changed": (ValueStore, "rename_groups", doing_nothing),
    "a late row is taken for the newest": (Register, "push", with_the_last_row_as_newest),
    "a window is closed unanswered": (Shape, "close_before", closing(+1)),
    "a window is answered twice": (Shape, "close_before", closing(-1)),
    "panes are evicted one tick early": (Shape, "needed_from", by(+1)),
    "panes are never evicted": (SharedStore, "evict", doing_nothing),
    "queries that come make others start again": (Shape, "_keep", without_writing_back),
    "queries are mistaken when one has gone": (Shape, "remove", leaving_places),
    "queries that slide alike leave together": (SlidingGraph, "remove", although_others_wait),
    "a window too early is promised": (queries, "first_from", by(-1)),
    "a window too late is promised": (queries, "first_from", by(+1)),
    "the newest window is not answered": (Rulers, "reached", by(-1)),
    "late rows are counted though they are dropped": (
        Terms, "drops_late", lambda right: property(lambda terms: False),  # type: ignore[dict-item, return-value]
    ),
    "a window is asked for that begins inside a pane": (ask, "_require_edge", doing_nothing),
}  # fmt: skip


PICTURES: dict[str, tuple[Callable[[Function], Function], Callable[[], None]]] = {
    "panes are folded that a new query needs": (
        although_queries_changed, pictures.test_panes_that_a_new_query_needs_are_not_folded,
    ),
    "that panes were folded is forgotten": (
        keeping_no_history, pictures.test_panes_that_were_folded_answer_no_finer_window,
    ),
}  # fmt: skip
"""Bugs that histories seldom come to, and the pictures that show them."""


def plant(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, wrong = BUGS[bug]
    monkeypatch.setattr(place, name, wrong(getattr(place, name)))


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_in_a_register_is_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys_early(monkeypatch)
    plant(bug, monkeypatch)
    many = settings(HISTORIES, max_examples=300, phases=[Phase.generate], print_blob=False)
    with pytest.raises((Exception, pytest.fail.Exception)):
        run_state_machine_as_test(Histories, settings=many)


@pytest.mark.parametrize("bug", PICTURES)
def test_a_planted_bug_shows_in_a_picture(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, picture = PICTURES[bug]
    picture()
    monkeypatch.setattr(SharedStore, "fold", wrong(SharedStore.fold))
    with pytest.raises(AssertionError):
        picture()
