"""Queries that outlive their process: what they answer after a restart is what they would have.

Every kind of query is stopped after each of its calls and opened again from its folder. Answers,
rows set aside, progress and what is stored are compared with a run that nothing has stopped.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

import panes
from panes.process.running_query import RunningQuery
from tests.process.kept_queries import KINDS, Kind, batches, rows

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


SPLIT = ["panes", "holistic", "adaptive", "per row", "left join", "windows over windows"]


@hypothesis.given(data=st.data())
@hypothesis.settings(max_examples=12, deadline=None)
def test_any_split_and_any_stops_give_the_same(data: st.DataObject) -> None:
    """Stopped wherever it may be, and pushed again what is behind `pushes`."""
    kind = KINDS[data.draw(st.sampled_from(SPLIT))]
    plain = _open(kind)
    streams, table = plain.query.streams, rows(0, 90)
    cuts = [0, *sorted(data.draw(st.sets(st.integers(1, 89), min_size=1, max_size=6))), 90]
    given = [
        {name: table.slice(begin, end - begin) for name in streams} for begin, end in pairwise(cuts)
    ]
    expected = [plain.push(**one).to_pylist() for one in given]
    every = data.draw(st.integers(1, 3))
    with tempfile.TemporaryDirectory() as folder:
        query = _open(kind, Path(folder), checkpoint_every=every)
        found: dict[int, object] = {}
        for _ in range(30):
            while query.pushes < len(given):
                number = query.pushes
                found[number] = query.push(**given[number]).to_pylist()
                if data.draw(st.booleans()):
                    break
            else:
                break
            stop = data.draw(st.sampled_from([_killed, lambda query: query.close()]))
            stop(query)
            query = _open(kind, Path(folder), checkpoint_every=every)
        assert query.pushes == len(given) or every > 1
        assert [found[number] for number in sorted(found)] == expected[: len(found)]
        if query.pushes == len(given):
            assert query.finish().to_pylist() == plain.finish().to_pylist()


def test_promises_for_keys_are_kept(tmp_path: Path) -> None:
    text = "SELECT k, count(*) AS n FROM t [TUMBLING 10 WATTR ts] GROUP BY k"

    def said(query: Any, again: Again) -> list[object]:
        found = []
        calls: list[Again] = [
            lambda query: query.push(t=rows(0, 25)),
            lambda query: query.punctuate(key={"k": 1}, t=20),
            lambda query: query.push(t=rows(9, 30)),
            lambda query: query.punctuate(key={"k": 2}, t=10),
            lambda query: query.punctuate(t=12),
            lambda query: query.finish(),
        ]
        for call in calls:
            found.append(call(query).to_pylist())
            query = again(query)
        return [*found, query.late.to_pylist()]

    def again(query: Any) -> Any:
        query.close()
        return panes.open(text, state=tmp_path)

    expected = said(panes.open(text), lambda query: query)
    assert expected[1]
    assert expected[3]
    assert said(panes.open(text, state=tmp_path), again) == expected


def test_partial_results_that_are_python_objects_are_refused(tmp_path: Path) -> None:
    texts = panes.CustomAggregate(
        name="texts",
        lift=lambda x: np.array([[frozenset([v]) for v in x]], dtype=object),
        combine=np.logical_or,
        lower=lambda partial: [len(v) for v in partial[0]],
        empty=(None,),
        type=pa.int64(),
    )
    query = panes.open(
        "SELECT texts(x) AS n FROM t [TUMBLING 10 WATTR ts]", aggregates=[texts], state=tmp_path
    )
    with pytest.raises(panes.QueryError, match="are Python objects"):
        query.push(t=rows(0, 5))
    assert query.pushes == 0


def test_a_step_that_fails_after_it_was_written_has_not_happened(tmp_path: Path) -> None:
    """Whoever watches may fail, and an interrupt may come, when the folder is ahead already."""
    kind = Kind("SELECT ts, sum(x) AS a FROM t [TUMBLING 1000 WATTR ts] GROUP BY ts", {})
    given, plain = list(batches(("t",))), _open(kind)
    expected = [plain.push(**one).to_pylist() for one in given]
    query = _open(kind, tmp_path)
    found = []
    for number, one in enumerate(given):
        query.watcher = Failing()
        query.position = number
        with pytest.raises(KeyboardInterrupt):
            query.push(**one)
        assert query.pushes == number
        query.watcher = None
        found.append(query.push(**one).to_pylist())
        assert (query.pushes, query.position) == (number + 1, number)
        if number % 2:
            _killed(query)
            query = _open(kind, tmp_path)
    assert found == expected
    assert query.finish().to_pylist() == plain.finish().to_pylist() != []


class Failing:
    """A watcher that fails when it is told of answers."""

    def began(self) -> None: ...

    def took(self, batches: object) -> None: ...

    def gave(self, answers: object) -> None: ...

    def stepped(self, answers: object, seconds: float) -> None:
        raise KeyboardInterrupt

    def failed(self, error: BaseException, *, was_told: bool) -> None: ...


def test_a_state_that_remembers_other_things_is_refused(tmp_path: Path) -> None:
    query = _open(KINDS["panes"], tmp_path)
    query._windows._stall.weather = "fine"
    query.push(t=rows(0, 5))
    _killed(query)
    with pytest.raises(panes.StateError, match=r"by panes .*, which remembers other things"):
        _open(KINDS["panes"], tmp_path)


def test_other_columns_are_refused(tmp_path: Path) -> None:
    query = _open(KINDS["panes"], tmp_path)
    query.push(t=rows(0, 5))
    query.close()
    other = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.float64()})
    with pytest.raises(
        panes.StateError, match="with other columns: those of `t` were ts int64, k int64"
    ):
        _open(KINDS["panes"], tmp_path, schema=other)


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
