"""Wrong edits in the parts of a register over shards that their histories must catch.

If one of these tests fails, histories no longer come where that bug would show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from panes.axis import BEGINNING
from panes.errors import QueryError
from panes.shards import handed_on, parts_shard, query_state, register_shard
from panes.shards.handed_on import PartReading
from panes.shards.many_states import ManyStates
from panes.shards.missed_queries import MissedQueries
from panes.shards.parts_shard import PartsShard
from tests.shards import parts_histories as histories
from tests.shards.level_histories import NESTED, nested_comes_later, nested_together

Function = Callable[..., Any]


def all_windows_are_open(_: Function) -> Function:
    return lambda plan, after: BEGINNING


def one_window_too_early(right: Function) -> Function:
    def wrong(plan: Any, after: int) -> int:
        first: int = right(plan, after)
        return first if first == BEGINNING else first - 1

    return wrong


def nothing_is_missed(_: Function) -> Function:
    return lambda missed, source: BEGINNING


def rows_are_not_noted(_: Function) -> Function:
    return lambda shard, sources, opened: shard._missed.came(dict.fromkeys(sources, BEGINNING))


def states_stay(right: Function) -> Function:
    def wrong(states: ManyStates) -> None:
        states._asked |= states._names.keys()
        right(states)

    return wrong


def windows_begin_with_the_stream(_: Function) -> Function:
    return lambda queries, newest: None


def answers_are_not_passed_on(_: Function) -> Function:
    return lambda package: iter(())


def promised_too_early(right: Function) -> Function:
    return lambda query, end: {name: at + 10 for name, at in right(query, end).items()}


def nothing_is_told(_: Function) -> Function:
    return lambda reading, promised: None


def run_twice(right: Function) -> Function:
    def wrong(shard: Any, given: Any, query: Any, packages: Any) -> int:
        right(shard, given, query, packages)
        opened: int = right(shard, given, query, packages)
        return opened

    return wrong


PLANTED: dict[str, tuple[object, str, Callable[[Function], Function], Callable[[], None]]] = {
    "all windows are open": (
        query_state, "first_open", all_windows_are_open,
        lambda: histories.queries_come_later(0),
    ),
    "one window too early": (
        query_state, "first_open", one_window_too_early,
        lambda: histories.queries_come_later(0),
    ),
    "nothing is missed": (
        MissedQueries, "_at", nothing_is_missed,
        lambda: histories.joins_and_windows_in_one_register(0),
    ),
    "rows are not noted": (
        PartsShard, "_note_newest", rows_are_not_noted,
        histories.another_column_is_followed,
    ),
    "states stay": (
        ManyStates, "write", states_stay, histories.nothing_is_kept_of_what_has_gone,
    ),
    "windows begin with the stream": (
        register_shard, "begin_after", windows_begin_with_the_stream,
        histories.windows_come_to_joins,
    ),
    "answers are not passed on": (
        parts_shard, "arrived", answers_are_not_passed_on,
        histories.windows_come_to_joins,
    ),
    "a promise one window too early": (
        handed_on, "promised_by_windows", promised_too_early,
        lambda: nested_together({"q": NESTED["windows over windows"]}, "shuffled"),
    ),
    "promises of answers are not told": (
        PartReading, "_position", nothing_is_told,
        lambda: nested_comes_later("three levels", is_read=True),
    ),
    "a part is run twice": (
        PartsShard, "_step_alone", run_twice,
        lambda: nested_together({"q": NESTED["three levels"]}, "in order"),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_edit_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, function, bug, history = PLANTED[name]
    monkeypatch.setattr(module, function, bug(getattr(module, function)))
    with pytest.raises((AssertionError, ValueError, KeyError, QueryError)):
        history()
