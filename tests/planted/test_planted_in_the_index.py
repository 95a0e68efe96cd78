"""Wrong edits in window indexes that the state machine of their histories must catch.

If one of these tests fails, histories no longer come where that bug would show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from panes.arrays import order_keys
from panes.index import aux_ring, bw, db, domain, keys, ring, row_ring
from panes.index.form_aggr import AggrForm
from panes.index.form_hash import HashForm
from panes.index.form_list import ListForm
from panes.index.g_index import GIndex
from panes.index.indexed_rows import IndexedRows
from panes.index.kinds import KINDS, Kind
from panes.index.live_window import LiveWindow
from panes.index.row_ring import RowRing
from panes.nodes.set_aside import RowPile
from tests.index.histories import begin_small, histories

Function = Callable[..., Any]


def evicting(change: int) -> Callable[[Function], Function]:
    return lambda right: lambda window, number: right(window, number + change)


def counting_at_once(right: Function) -> Function:
    def wrong(form: ListForm, first: int, *args: Any) -> None:
        right(form, first, *args)
        form.domain.add(form.rows.read(form.rows.pointers, first, form.rows.end))

    return wrong


def merged_back_to_front(right: Function) -> Function:
    return lambda *parts: right(*parts[:4], *(merged[::-1] for merged in parts[4:]))


def forgetting_what_waits(right: Function) -> Function:
    return lambda window, keys, _: right(window, keys, [])


def by_their_bits(right: Function) -> Function:
    def wrong(array: Any) -> Any:
        is_float = str(array.type) == "double"
        return array.fill_null(0.0).to_numpy().view(np.int64) if is_float else right(array)

    return wrong


def without_the_oldest_row(right: Function) -> Function:
    return lambda array, size, begin, end: right(array, size, min(begin + 1, end), end)


def not_linked_to_older_rows(right: Function) -> Function:
    def wrong(entries: Any, youngest: Any, heads: Any, *rest: Any) -> None:
        heads[entries, 1] = -1
        right(entries, youngest, heads, *rest)

    return wrong


def linked_to_the_fifth(right: Function) -> Any:
    def wrong(entries: Any, first: Any, links: Any, mask: Any, heads: Any, *rest: Any) -> Any:
        heads[entries, 5] = heads[entries, 4]
        return right(entries, first, links, mask, heads, *rest)

    return staticmethod(wrong)


def nothing(*_: object, **__: object) -> None: ...


BUGS: dict[str, tuple[Kind | None, object, str, Callable[[Function], Any]]] = {
    "a basic window leaves too early": (None, IndexedRows, "evict_before", evicting(1)),
    "a basic window leaves too late": (None, IndexedRows, "evict_before", evicting(-1)),
    "rows are seen before they are sealed": ("hash", ListForm, "add", counting_at_once),
    "new values are merged in the wrong order": ("hash", domain, "_merge", merged_back_to_front),
    "text of waiting rows is forgotten": (None, IndexedRows, "_forget_text", forgetting_what_waits),
    "floats are compared by their bits": (None, order_keys, "encode", by_their_bits),
    "a buffer that grows loses its oldest row": (None, row_ring, "moved", without_the_oldest_row),
    "late rows vanish": (None, RowPile, "add", lambda _: nothing),
    "rows are given as they came": (None, LiveWindow, "_in_order", lambda _: lambda _, rows: rows),
    "groups are not taken back": ("group", GIndex, "evict", lambda _: nothing),
    "LIST is not taken back": ("list", ListForm, "evict", lambda _: nothing),
    "AGGR forgets to count": ("tree", AggrForm, "seal", lambda _: lambda _: None),
    "HASH counts NULL as a value": (
        "hash", HashForm, "add", lambda right: lambda form, first, keys, _: right(
            form, first, keys, None
        ),
    ),
    "a ring keeps what has left it": ("db", db.Db, "evict", lambda _: nothing),
    "a ring is not cut": ("bw", bw, "_cut_off", lambda _: nothing),
    "a row is linked to the fifth before it": ("db", db.Db, "linking", linked_to_the_fifth),
    "a ring loses its older rows": ("bw", bw, "_connect", not_linked_to_older_rows),
    "the ends of rings do not move": ("ring", ring, "_move_ends", lambda _: nothing),
    "local rings are not connected": ("aux", aux_ring, "_connect", lambda _: nothing),
    "NULL is a value": (
        None, RowRing, "set_keys", lambda right: lambda rows, first, keys, _: right(
            rows, first, keys, None
        ),
    ),
    "text is found by its number, not in its order": (
        None, keys.NumberedKeys, "rank", lambda _: lambda _, numbers: numbers,
    ),
}  # fmt: skip


TYPES = {
    "floats are compared by their bits": pa.float64(),
    "text of waiting rows is forgotten": pa.string(),
    "text is found by its number, not in its order": pa.string(),
}
"""Of which values a bug shows, where it does not show of all."""


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_in_an_index_is_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, place, name, planted = BUGS[bug]
    begin_small(monkeypatch)
    monkeypatch.setattr(place, name, planted(getattr(place, name)))
    machine = histories(kind, TYPES.get(bug))
    enough = settings(max_examples=150, stateful_step_count=20, phases=[Phase.generate])
    with pytest.raises(Exception):  # noqa: B017 - whatever breaks first
        run_state_machine_as_test(machine, settings=enough)


def test_bugs_are_planted_in_kinds_that_exist() -> None:
    assert {kind for kind, *_ in BUGS.values() if kind is not None} <= set(KINDS)
