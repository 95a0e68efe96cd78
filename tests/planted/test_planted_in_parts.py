"""Wrong edits in the parts of a register over shards that their histories must catch.

If one of these tests fails, histories no longer come where that bug would show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from panes.axis import BEGINNING
from panes.errors import QueryError
from panes.shards import above_shard, query_state, register_shard
from panes.shards.many_states import ManyStates
from panes.shards.missed_queries import MissedQueries
from panes.shards.parts_shard import PartsShard
from tests.shards import parts_histories as histories

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
        above_shard, "arrived", answers_are_not_passed_on,
        histories.windows_come_to_joins,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_edit_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, function, bug, history = PLANTED[name]
    monkeypatch.setattr(module, function, bug(getattr(module, function)))
    with pytest.raises((AssertionError, ValueError, KeyError, QueryError)):
        history()
