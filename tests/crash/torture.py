"""Every case killed in every cell: ``python -m tests.crash.torture --kills 100``.

The table goes to docs/reliability.md, between two marks, cell by cell as it is filled. Cases that
are not asked for keep their lines. With ``--missing``, so do cells that have as many kills already:
a table that takes days is filled in many runs.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

from panes.crash.kills import POINTS, VICTIMS
from panes.crash.trials import Cell, Tally, Torment, cells, drivers_for
from panes.crash.verdict import Verdict
from tests.crash.cases import CASES, KINDS

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- kills: begin -->", "<!-- kills: end -->"
COLUMNS = ("query", "killed", "when", "kills", "runs", "lost", "twice", "wrong")
HEAD = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|\n"


def line(name: str, cell: Cell, tally: Tally) -> str:
    """One line of the table."""
    found = tally.verdict
    numbers = (tally.kills, tally.runs, found.lost, found.twice, found.wrong)
    words = (name, cell.victim, POINTS[cell.point], *map(str, numbers))
    return "| " + " | ".join(words) + " |"


def key(row: str) -> tuple[str, ...]:
    """What a line is about."""
    return tuple(part.strip() for part in row.strip("|").split("|")[:3])


def order(row: str) -> tuple[int, int, int]:
    """The place of a line in the table."""
    name, victim, point = key(row)
    words = list(POINTS.values())
    return list(CASES).index(name), VICTIMS.index(victim), words.index(point)


def lines(page: str) -> dict[tuple[str, ...], str]:
    """The lines of a page's table, by what they are about."""
    _, table, _ = re.split(f"{BEGIN}\n|{END}", page)
    return {key(r): r for r in table.splitlines()[2:] if r.startswith("|")}


def kills_in(page: str, name: str, cell: Cell) -> int:
    """How many kills of a cell a page tells of."""
    row = lines(page).get((name, cell.victim, POINTS[cell.point]))
    return 0 if row is None else int(row.split("|")[1 + COLUMNS.index("kills")])


def written(page: str, new: str) -> str:
    """A page with a line more, or with a newer one."""
    before, _, after = re.split(f"{BEGIN}\n|{END}", page)
    rows = lines(page)
    rows[key(new)] = new
    body = "\n".join(sorted(rows.values(), key=order))
    return f"{before}{BEGIN}\n{HEAD}{body}\n{END}{after}"


def main() -> None:
    """Kill, and write down what came of it; the exit code is 1 if anything was wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--victim", action="append", choices=VICTIMS)
    parser.add_argument("--point", action="append", choices=list(POINTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--missing", action="store_true", help="leave out what has been done")
    asked = parser.parse_args()
    total, page = Tally(), PAGE.read_text()
    for victim in asked.victim or VICTIMS:
        with drivers_for(victim, KINDS) as drivers:
            for name in asked.case or CASES:
                case = CASES[name]
                chosen = [
                    c
                    for c in cells(case.job, (victim,))
                    if not asked.point or c.point in asked.point
                    if not asked.missing or kills_in(page, name, c) < asked.kills
                ]
                if not chosen:
                    continue
                torment = Torment(case.job, case.streams, seed=asked.seed)
                if torment.calm(drivers) != Verdict():
                    sys.exit(f"{name}: wrong without a kill")
                for cell in chosen:
                    began = time.monotonic()
                    tally = torment.tally(drivers, cell, asked.kills)
                    total = total + tally
                    told = line(name, cell, tally)
                    sys.stderr.write(f"{told} {time.monotonic() - began:.0f} s\n")
                    PAGE.write_text(written(PAGE.read_text(), told))
    sys.exit(1 if total.verdict else 0)


if __name__ == "__main__":
    main()
