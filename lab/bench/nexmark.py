"""Nexmark in one process: auctions, bids and new users, against DuckDB and Polars.

Every contender starts from the same Arrow tables and ends with a table of all answers. All answers
are compared first; then contenders are timed in turns, so that a busy moment falls on all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lab.bench.measure import Report, timed_in_turns
from lab.bench.nexmark_queries import CONTESTS, LEFT_OUT, Contest
from lab.bench.nexmark_stream import Nexmark, nexmark
from panes.errors import WrongAnswerError
from panes.reference.compare import difference

_CHECKED = 300_000


STEPS = 2 + len(CONTESTS)
"""How often `run` says what it does."""


def run(rows: int, repeat: int, say: Callable[[str], None]) -> Report:
    """Check, then time, all contenders; `rows` are events of all three streams."""
    report = Report("nexmark", f"panes bench nexmark --rows {rows} --repeat {repeat}")
    say("left out: " + "; ".join(f"{name}: {why}" for name, why in LEFT_OUT.items()))
    say("checking that all contenders give the same answers")
    check(nexmark(min(rows, _CHECKED)))
    data = nexmark(rows)
    for contest in CONTESTS:
        say(f"timing {contest.name}, {contest.asks}")
        runs = {who: partial(answer, data) for who, answer in contenders(contest).items()}
        found = timed_in_turns(runs, repeat=repeat)
        medians = {
            who: report.add(who, contest.name, seconds, contest.rows(data))
            for who, seconds in found.items()
        }
        ratio = medians["duckdb"] / medians["panes"]
        what = f"{contest.name}, {contest.asks}: no slower than DuckDB"
        report.bar(what, f"{ratio:.2f} x", met=ratio >= 1)
    return report


def contenders(contest: Contest) -> dict[str, Callable[[Nexmark], pa.Table]]:
    """Who answers a query."""
    found: dict[str, Callable[[Nexmark], pa.Table]] = {
        "panes": contest.by_panes,
        "duckdb": contest.by_duckdb,
    }
    if contest.polars is not None:
        found["polars"] = contest.by_polars
    return found


def check(data: Nexmark) -> None:
    """All contenders give the same answers."""
    for contest in CONTESTS:
        ours, *others = contenders(contest).items()
        want = normal(ours[1](data))
        for who, answer in others:
            found = difference(normal(answer(data)), want)
            if found is not None:
                raise WrongAnswerError(f"{who} disagrees with panes in {contest.name}: {found}")


def normal(answers: pa.Table) -> pa.Table:
    """Answers of any contender with the same columns, types and order; the one item of a list."""
    instant = pa.timestamp("us", "UTC")
    items = [
        pc.list_element(column, 0) if pa.types.is_list(column.type) else column
        for column in answers.columns
    ]
    plain = pa.table(items, names=answers.column_names).flatten().combine_chunks()
    titles = [name.rpartition(".")[2] for name in plain.column_names]
    columns = {}
    for name, column in sorted(zip(titles, plain.columns, strict=True)):
        kind = column.type
        if pa.types.is_timestamp(kind):
            kind = instant
        elif pa.types.is_integer(kind):
            kind = pa.int64()
        elif pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            kind = pa.string()
        columns[name] = column.cast(kind)
    table = pa.table(columns)
    return table.sort_by([(name, "ascending") for name in table.column_names])
