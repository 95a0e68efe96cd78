"""The table of kills: what is written into it, and what is left out since it is there."""

from __future__ import annotations

from panes.crash.kills import BLOCK, DRIVER, SUNK, WORKER
from panes.crash.trials import Cell, Tally
from panes.crash.verdict import Verdict
from tests.crash.torture import BEGIN, END, HEAD, PAGE, kills_in, line, lines, written

EMPTY = f"before\n{BEGIN}\n{HEAD}{END}\nafter\n"


def test_lines_stand_in_the_order_of_the_cases_and_the_newest_stays() -> None:
    page = EMPTY
    for name, cell, kills in (
        ("a join", Cell(WORKER, BLOCK), 3),
        ("sliding", Cell(WORKER, BLOCK), 5),
        ("sliding", Cell(DRIVER, SUNK), 2),
        ("sliding", Cell(WORKER, BLOCK), 7),
    ):
        page = written(page, line(name, cell, Tally(kills, 1, Verdict())))
    assert page.startswith(f"before\n{BEGIN}\n{HEAD}| sliding | driver |")
    assert page.endswith(f"{END}\nafter\n")
    assert [key[:2] for key in lines(page)] == [
        ("sliding", "driver"),
        ("sliding", "worker"),
        ("a join", "worker"),
    ]
    assert kills_in(page, "sliding", Cell(WORKER, BLOCK)) == 7
    assert kills_in(page, "sliding", Cell(WORKER, SUNK)) == 0


def test_the_table_of_the_documentation_tells_of_nothing_lost() -> None:
    rows = lines(PAGE.read_text())
    assert rows
    assert {tuple(part.strip() for part in row.split("|")[6:9]) for row in rows.values()} == {
        ("0", "0", "0")
    }
