"""Queries that outlive their process: what they answer after a restart is what they would have.

Every kind of query is stopped after each of its calls and opened again from its folder. Answers,
rows set aside, progress and what is stored are compared with a run that nothing has stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import panes
from panes.process.opened import RunningQuery
from tests.process.kept_queries import KINDS, Kind, batches

Again = Callable[[Any], Any]


def _open(kind: Kind, folder: Path | None = None, **options: Any) -> Any:
    kept = {} if folder is None else {"state": folder, **options}
    return panes.open(kind.text, **{**kind.options, **kept})


def _seen(query: RunningQuery) -> list[object]:
    """What a query shows of itself; Arrow may lay out the same rows in fewer bytes."""
    state = {name: n for name, n in query.state.items() if "bytes" not in name}
    state.pop("on_disk", None)
    return [query.late.to_pylist(), query.rejected.to_pylist(), query.progress, state]


def _run(query: Any, again: Again = lambda query: query) -> list[object]:
    """Everything that a query says; `again` is asked for it after every call."""
    said: list[object] = []
    for given in batches(query.query.streams):
        said.append(query.push(**given).to_pylist())
        query = again(query)
        said += _seen(query)
    said.append(query.finish().to_pylist())
    query = again(query)
    return [*said, *_seen(query)]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_query_that_is_opened_again_after_every_call_says_the_same(
    kind: Kind, tmp_path: Path
) -> None:
    def again(query: Any) -> Any:
        query.close()
        return _open(kind, tmp_path)

    expected = _run(_open(kind))
    assert any(expected[0::5])
    assert _run(_open(kind, tmp_path), again) == expected


def _killed(query: Any) -> None:
    """Let go of the folder, as the system does when a process is killed."""
    query._turn.keeper.folder.close()


def test_a_killed_query_is_pushed_what_is_behind_its_position(tmp_path: Path) -> None:
    kind = KINDS["panes"]
    given = list(batches(("t",)))
    plain = _open(kind)
    expected = [plain.push(**one).to_pylist() for one in given]

    query = _open(kind, tmp_path, checkpoint_every=4)
    for number, one in enumerate(given):
        query.position = {"offset": number}
        query.push(**one)
    assert (query.pushes, query.position) == (6, {"offset": 5})
    _killed(query)

    query = _open(kind, tmp_path, checkpoint_every=4)
    assert (query.pushes, query.position) == (4, {"offset": 3})
    assert [answers.to_pylist() for answers in query.last_answers] == expected[:4]
    assert [query.push(**one).to_pylist() for one in given[4:]] == expected[4:]


def test_close_writes_what_is_not_written_yet(tmp_path: Path) -> None:
    query = _open(KINDS["panes"], tmp_path, checkpoint_every=100)
    query.push(t=next(batches(("t",)))["t"])
    query.close()
    assert _open(KINDS["panes"], tmp_path).pushes == 1


def test_a_position_goes_with_the_push_and_not_with_one_that_fails(tmp_path: Path) -> None:
    query = _open(KINDS["panes"], tmp_path)
    query.position = 1
    query.push(t=pa.table({"ts": [1], "k": [1], "x": [1.0]}))
    query.position = 2
    with pytest.raises(panes.InputError):
        query.push(t=pa.table({"ts": [2]}))
    query.take_late()
    assert (query.position, query.pushes) == (1, 1)
    query.push(t=pa.table({"ts": [2], "k": [1], "x": [1.0]}))
    assert (query.position, query.pushes) == (2, 2)
