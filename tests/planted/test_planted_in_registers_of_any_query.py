"""Wrong edits between the nodes of a register that histories of any queries must catch.

If one of these tests fails, histories no longer come where that bug would show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import panes
from panes.answers.portions import Portion
from panes.process.join_run import JoinRun
from panes.process.node import Step
from panes.process.query_node import Came, QueryNode
from panes.process.shared_windows import SharedWindows
from panes.process.windows_node import WindowsNode
from tests.process.register_histories import any_history

Function = Callable[..., Any]


def a_pane_too_early(right: Function) -> Function:
    def wrong(node: QueryNode) -> Mapping[str, int]:
        return {column: at + 4 for column, at in right(node).items()}

    return wrong


def run_twice(right: Function) -> Function:
    def wrong(node: QueryNode, step: Step) -> Sequence[Portion]:
        given: Sequence[Portion] = right(node, step)
        if not step.rows:
            return given
        again: Sequence[Portion] = right(node, Step(step.rows, step.promised))
        return again if len(again[0].table) else given

    return wrong


def nothing_is_missed(_: Function) -> Function:
    def wrong(node: QueryNode, came: Came) -> None:
        node._came = came

    return wrong


def no_row_came_before(_: Function) -> Function:
    def wrong(windows: SharedWindows, newest: int) -> None: ...

    return wrong


def nothing_was_promised(_: Function) -> Function:
    def wrong(run: JoinRun, *args: object) -> None: ...

    return wrong


def streams_promise_nothing(right: Function) -> Function:
    def wrong(node: QueryNode, came: Came) -> None:
        right(node, came)
        node._came = None

    return wrong


BUGS: dict[str, tuple[type, str, Callable[[Function], Function]]] = {
    "a promise is a pane too early": (WindowsNode, "promised_answers", a_pane_too_early),
    "a node is run twice": (QueryNode, "take", run_twice),
    "a later query is given what it missed": (WindowsNode, "begin_behind", nothing_is_missed),
    "later windows over a part miss nothing": (SharedWindows, "begin_behind", no_row_came_before),
    "a later join hears of no promise": (JoinRun, "begin_behind", nothing_was_promised),
    "a later query does not hear its stream": (
        WindowsNode,
        "begin_behind",
        streams_promise_nothing,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, change = BUGS[bug]
    monkeypatch.setattr(place, name, change(getattr(place, name)))

    @seed(1)
    @settings(
        max_examples=200, deadline=None, database=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck), report_multiple_bugs=False, print_blob=False,
    )  # fmt: skip
    @given(data=st.data())
    def histories(data: st.DataObject) -> None:
        any_history(data, ("s",), "open")

    with pytest.raises((AssertionError, panes.PanesError)):
        histories()
