"""Rows asked of a register that keeps the last ones: all of a window, or none.

::

    came      0 ──────── 600 ──────────── 1600
    kept                 [ the last 1,000 )
    RANGE 1000           [───────────────)      answered
    RANGE 1200       [───────────────────)      refused: rows are kept from 600 on
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import panes
from panes.errors import QueryError
from panes.process.register import Register

COUNT = "SELECT count(*) AS n FROM t [TUMBLING 10 WATTR at]"
RANGE, ROWS = "SELECT at FROM t [RANGE {} WATTR at]", "SELECT at FROM t [ROWS {}]"


def rows(*at: int) -> pa.Table:
    return pa.table({"at": pa.array(at, pa.int64())})


def register(keep: int, *batches: pa.Table) -> Register:
    reg = panes.register("t", lateness=0, late="open", keep_rows=keep)
    reg.add("n", COUNT)
    for batch in batches:
        reg.push(batch)
    return reg


def asked(reg: Register, text: str) -> list[int]:
    found: list[int] = reg.ask(text)["at"].to_pylist()
    return found


def taken_up(reg: Register, folder: Path, keep: int) -> Register:
    reg.save(folder / "register")
    return panes.register("t", lateness=0, keep_rows=keep, saved=folder / "register")


@pytest.mark.parametrize("size", [1, 400, 800, 1600], ids="batches of {}".format)
def test_a_window_that_begins_before_the_rows_that_are_kept_is_refused(size: int) -> None:
    reg = register(1_000, *(rows(*range(n, n + size)) for n in range(0, 1_600, size)))
    assert asked(reg, RANGE.format(1_000)) == list(range(600, 1_600))
    with pytest.raises(QueryError, match="begins at 400, and rows are kept from 600 on") as refused:
        reg.ask(RANGE.format(1_200))
    assert "reg.prepare(...) the same question" in str(refused.value)
    assert reg.state["rows"] == 1_000


def test_what_is_kept_begins_after_the_newest_row_that_is_not() -> None:
    """A late row comes after newer ones, and stays longer than they do."""
    reg = register(3, rows(1, 9, 20), rows(4, 21))
    assert asked(reg, RANGE.format(12)) == [20, 21]
    with pytest.raises(QueryError, match="rows are kept from 10 on"):
        reg.ask(RANGE.format(15))


def test_rows_that_are_kept_are_asked_again_after_a_restart(tmp_path: Path) -> None:
    reg = taken_up(register(4, rows(1, 2, 3), rows(4, 5, 6)), tmp_path, 4)
    assert asked(reg, RANGE.format(4)) == asked(reg, ROWS.format(4)) == [3, 4, 5, 6]
    with pytest.raises(QueryError, match="rows are kept from 3 on"):
        reg.ask(RANGE.format(5))
    reg.push(rows(7))
    with pytest.raises(QueryError, match="rows are kept from 4 on"):
        reg.ask(RANGE.format(5))


@pytest.mark.parametrize("kept", [0, 2, 4])
def test_rows_that_were_not_kept_before_a_restart_are_missing_and_not_left_out(
    tmp_path: Path, kept: int
) -> None:
    """Six rows have come, and the register after the restart keeps more of them than before."""
    reg = taken_up(register(kept, rows(1, 2, 3), rows(4, 5, 6)), tmp_path, 10)
    for text in (ROWS, "SELECT count(*) AS n FROM t [ROWS {}]"):
        with pytest.raises(QueryError, match=f"begins at 1, .* knows rows from {6 - kept} on"):
            reg.ask(text.format(5))
    with pytest.raises(QueryError, match=f"begins at 2, and rows are kept from {7 - kept} on"):
        reg.ask(RANGE.format(5))
    reg.push(rows(7))
    assert asked(reg, RANGE.format(kept + 1)) == asked(reg, ROWS.format(kept + 1))
    assert len(asked(reg, ROWS.format(kept + 1))) == kept + 1


def test_fewer_rows_are_kept_after_a_restart_if_so_many_are_wanted(tmp_path: Path) -> None:
    reg = taken_up(register(4, rows(1, 2, 3, 4)), tmp_path, 2)
    assert asked(reg, RANGE.format(2)) == [3, 4]
    with pytest.raises(QueryError, match="rows are kept from 3 on"):
        reg.ask(RANGE.format(3))
    with pytest.raises(QueryError, match="keep_rows=3"):
        reg.ask(ROWS.format(3))


def test_a_question_that_is_prepared_later_knows_the_rows_that_are_kept() -> None:
    reg = register(4, rows(1, 2, 3), rows(4, 5, 6))
    reg.prepare(RANGE.format(6))
    with pytest.raises(QueryError, match="knows rows from 3 on"):
        reg.ask(RANGE.format(6))
    reg.push(rows(7, 8))
    assert asked(reg, RANGE.format(6)) == [3, 4, 5, 6, 7, 8]
    reg.prepare(RANGE.format(8))
    with pytest.raises(QueryError, match="knows rows from 3 on"):
        reg.ask(RANGE.format(8))


def test_a_longer_question_knows_what_the_shorter_one_did_or_what_is_kept() -> None:
    reg = register(5, rows(1, 2, 3))
    reg.prepare(RANGE.format(2))
    reg.push(rows(4, 5, 6))
    assert asked(reg, RANGE.format(5)) == [2, 3, 4, 5, 6]
    reg.prepare(RANGE.format(5))
    reg.push(rows(6, 6, 6, 6, 6))
    assert asked(reg, RANGE.format(5)) == [2, 3, 4, 5, 6, 6, 6, 6, 6, 6]


def test_without_rows_there_are_none_to_be_asked_for(tmp_path: Path) -> None:
    reg = panes.register("t", lateness=0, keep_rows=2, schema=rows().schema)
    reg.add("n", COUNT)
    assert asked(reg, RANGE.format(3)) == asked(reg, ROWS.format(2)) == []
    assert asked(taken_up(reg, tmp_path, 2), RANGE.format(3)) == []
