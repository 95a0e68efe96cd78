"""A register that outlives its process: stopped after every push, it answers what it would have."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import panes
from panes.errors import OptionError, StateError
from panes.process.register import Register
from tests.process.kept_queries import batches

QUERIES = {
    "sums": "SELECT k, sum(x) AS a FROM t [RANGE 10 SLIDE 5 WATTR ts] GROUP BY k",
    "filtered": "SELECT k, count(*) AS n FROM t [RANGE 30 SLIDE 7 WATTR ts] WHERE x > 3 GROUP BY k",
    "medians": "SELECT median(x) AS m FROM t [TUMBLING 20 WATTR ts]",
    "sketches": "SELECT k, approx_count_distinct(s) AS d FROM t [RANGE 20 SLIDE 10 WATTR ts] "
    "GROUP BY k",
}
OPTIONS: list[dict[str, Any]] = [
    {"lateness": 3},
    {"rows_late": 7},
    {"lateness": 3, "late": "drop", "keep_rows": 10},
]
GIVEN = [one["t"] for one in batches(("t",))]


def _plain(answers: Mapping[str, Any]) -> dict[str, Any]:
    return {name: table.to_pylist() for name, table in answers.items()}


def _seen(reg: Register) -> list[object]:
    state = {name: n for name, n in reg.state.items() if "bytes" not in name and name != "on_disk"}
    exact_from = {name: reg.exact_from(name) for name in reg.queries()}
    return [reg.late.to_pylist(), reg.progress, state, reg.queries(), exact_from]


def _run(reg: Register, again: Callable[[Register], Register] = lambda reg: reg) -> list[object]:
    """Everything a register says while queries come and go; `again` is asked for it each time."""
    said: list[object] = []
    for name in ("sums", "filtered", "medians"):
        reg.add(name, QUERIES[name])
    for number, table in enumerate(GIVEN):
        if number == 2:
            reg.add("sketches", QUERIES["sketches"])
        if number == 4:
            reg.remove("filtered")
        said.append(_plain(reg.push(table)))
        reg = again(reg)
        said += _seen(reg)
    said.append(_plain(reg.finish()))
    reg = again(reg)
    return [*said, reg.is_finished, reg.progress, reg.queries(), reg.late.to_pylist()]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_register_that_is_opened_again_after_every_push_says_the_same(
    options: dict[str, Any], tmp_path: Path
) -> None:
    def again(reg: Register) -> Register:
        reg.close()
        return panes.register("t", state=tmp_path, **options)

    expected = _run(panes.register("t", **options))
    assert _run(panes.register("t", state=tmp_path, **options), again) == expected


def test_what_a_push_answered_can_be_read_again_by_query(tmp_path: Path) -> None:
    reg = panes.register("t", lateness=3, state=tmp_path)
    reg.add("sums", QUERIES["sums"])
    reg.position = "a"
    found = _plain(reg.push(GIVEN[0]))
    assert found
    reg.close()
    reg = panes.register("t", lateness=3, state=tmp_path)
    assert [_plain(answers) for answers in reg.last_answers] == [found]
    assert (reg.pushes, reg.position) == (1, "a")


def test_queries_that_were_added_and_not_pushed_to_are_there_after_close(tmp_path: Path) -> None:
    reg = panes.register("t", lateness=3, state=tmp_path)
    reg.add("sums", QUERIES["sums"], deadline="5 seconds")
    reg.close()
    reg = panes.register("t", lateness=3, state=tmp_path)
    assert reg.queries() == {"sums": QUERIES["sums"]}
    with pytest.raises(panes.QueryError, match="already registered"):
        reg.add("sums", QUERIES["sums"])


@pytest.mark.parametrize("options", OPTIONS[:2])
def test_a_register_whose_queries_all_went_before_a_batch_came_goes_on(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    """How its stream progresses was said by a query that is gone, and the next one says it."""
    plain, reg = panes.register("t", **options), panes.register("t", state=tmp_path, **options)
    reg.add("sums", QUERIES["sums"])
    reg.remove("sums")
    reg.close()
    reg = panes.register("t", state=tmp_path, **options)
    assert not reg.queries()
    for one in (plain, reg):
        one.add("sums", QUERIES["sums"])
    for table in GIVEN:
        assert _plain(reg.push(table)) == _plain(plain.push(table))
    assert _plain(reg.finish()) == _plain(plain.finish())


def test_a_push_of_a_register_that_cannot_be_written_has_not_happened(tmp_path: Path) -> None:
    plain = panes.register("t", lateness=3)
    reg = panes.register("t", lateness=3, state=tmp_path)
    for one in (plain, reg):
        one.add("sums", QUERIES["sums"])
    expected = [_plain(plain.push(table)) for table in GIVEN[:3]]

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    found = []
    for table in GIVEN[:3]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(StateError, match="the step has not happened"):
                reg.push(table)
        found.append(_plain(reg.push(table)))
    assert found == expected


def test_another_schema_is_refused(tmp_path: Path) -> None:
    reg = panes.register("t", lateness=3, state=tmp_path)
    reg.add("sums", QUERIES["sums"])
    reg.push(GIVEN[0])
    reg.close()
    with pytest.raises(StateError, match="streams with other columns: those of `t` were ts int64"):
        panes.register("t", lateness=3, state=tmp_path, schema=pa.schema({"ts": pa.int64()}))
    panes.register("t", lateness=3, state=tmp_path, schema=GIVEN[0].schema).close()


def test_a_register_has_one_place_to_go_on_from(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="saved and state are two ways to go on"):
        panes.register("t", lateness=3, saved=tmp_path / "file", state=tmp_path / "state")


def test_the_folder_of_another_stream_is_refused(tmp_path: Path) -> None:
    panes.register("t", lateness=3, state=tmp_path).close()
    with pytest.raises(StateError, match="stream was t, is u"):
        panes.register("u", lateness=3, state=tmp_path)
    with pytest.raises(StateError, match="kind was Register, is OpenQuery"):
        panes.open(QUERIES["sums"], lateness=3, state=tmp_path)
