"""What may change while the state of a query lives on: the lines of docs/guides/upgrades.md.

A stream is stopped in its middle, and the query goes on from its state with other options or
another text. It must give what the same query in one process gives that was changed in the same
place, or refuse. Where nothing in one process can be changed so, the answers are written out.

Catches: answers that wait for a flush and are forgotten without one, early answers that are given
as final ones, closed windows that are answered again from half of their panes.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import panes
from panes.errors import StateError
from tests.sharded_query import ShardedQuery
from tests.support import assert_rows

TEXT = "SELECT k, count(*) AS n, sum(x) AS total FROM s [RANGE 20 SLIDE 10 WATTR at] GROUP BY k"
SCHEMA = pa.schema({"at": pa.int64(), "k": pa.int64(), "x": pa.int64()})
PLAIN: dict[str, Any] = {"lateness": 5}


def batch(*at: int, keys: int = 4) -> pa.Table:
    """A row of each key at each place."""
    rows = [(a, k, a + k) for a in at for k in range(keys)]
    return pa.table([list(c) for c in zip(*rows, strict=True)], schema=SCHEMA)


BEFORE = [batch(1, 4, 12), batch(18, 27)]
AFTER = [batch(24, 33), batch(31, 48, 59), batch(90)]


class Changed:
    """A query that goes on from its state under another text or with other options."""

    def __init__(self, text: str, **options: Any) -> None:
        self.host = ShardedQuery(text, SCHEMA, **options)

    def change(self, text: str, **options: Any) -> None:
        states = self.host.states
        self.host = ShardedQuery(text, SCHEMA, **options)
        self.host.states = states

    def push(self, *batches: pa.Table) -> pa.Table:
        outcomes = [o.answers for b in batches for o in self.host.push(s=b)]
        return _named(outcomes)

    def finish(self) -> pa.Table:
        return _named([o.answers for o in self.host.finish()])


def _named(tables: list[pa.Table]) -> pa.Table:
    """Answers as the query names its columns; positions stand for themselves here."""
    table = pa.concat_tables(tables)
    names = ["window_start", "window_end", "k", "n", "total"]
    return table.rename_columns([*names, *table.column_names[len(names) :]])


def final(answers: pa.Table) -> pa.Table:
    """Answers that are final, without what says so."""
    rows = [r for r in answers.to_pylist() if r.get("status", "final") == "final"]
    names = ("window_start", "window_end", "k", "n", "total")
    return pa.Table.from_pylist([{n: r[n] for n in names} for r in rows])


WANTED = panes.oracle(TEXT, s=pa.concat_tables([*BEFORE, *AFTER]))

FLUSH = {"flush": panes.SlowFlush(at_most=3)}
CHANGES: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "a longer lateness": (TEXT, PLAIN, TEXT, {"lateness": 30}),
    "a shorter lateness": (TEXT, {"lateness": 30}, TEXT, PLAIN),
    "late: open to drop": (TEXT, PLAIN, TEXT, {**PLAIN, "late": "drop"}),
    "late: drop to open": (TEXT, {**PLAIN, "late": "drop"}, TEXT, PLAIN),
    "late: open to revise": (TEXT, PLAIN, TEXT, {**PLAIN, "late": "revise"}),
    "late: revise to open": (TEXT, {**PLAIN, "late": "revise"}, TEXT, PLAIN),
    "EMIT EARLY from now on": (TEXT, PLAIN, TEXT + " EMIT EARLY", PLAIN),
    "no EMIT EARLY any more": (TEXT + " EMIT EARLY", PLAIN, TEXT, PLAIN),
    "another EMIT EARLY": (TEXT + " EMIT EARLY EVERY 3", PLAIN, TEXT + " EMIT EARLY", PLAIN),
    "a flush from now on": (TEXT, PLAIN, TEXT, {**PLAIN, **FLUSH}),
    "no flush any more": (TEXT, {**PLAIN, **FLUSH}, TEXT, PLAIN),
    "another flush": (TEXT, {**PLAIN, **FLUSH}, TEXT, {**PLAIN, "flush": panes.LazyFlush(9)}),
    "no flush, but why": (TEXT, {**PLAIN, **FLUSH}, TEXT, {**PLAIN, "why": True}),
    "a flush, why no more": (
        TEXT,
        {**PLAIN, **FLUSH, "why": True},
        TEXT,
        {**PLAIN, **FLUSH},
    ),
    "a flush, EMIT EARLY no more": (
        TEXT + " EMIT EARLY",
        {**PLAIN, **FLUSH},
        TEXT,
        {**PLAIN, **FLUSH},
    ),
    "a flush, EMIT EARLY from now on": (
        TEXT,
        {**PLAIN, **FLUSH},
        TEXT + " EMIT EARLY",
        {**PLAIN, **FLUSH},
    ),
    "why from now on": (TEXT, PLAIN, TEXT, {**PLAIN, "why": True}),
    "a limit of answers": (TEXT, PLAIN, TEXT, {**PLAIN, "max_answers": 1_000}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_is_allowed_loses_and_repeats_nothing(name: str) -> None:
    """No row of this stream is late, so every window has one final answer, whatever changes."""
    text, options, other, others = CHANGES[name]
    query = Changed(text, **options)
    given = [final(query.push(*BEFORE))]
    query.change(other, **others)
    given += [final(query.push(*AFTER)), final(query.finish())]
    assert_rows(pa.concat_tables([t for t in given if len(t)]), WANTED)


def test_answers_that_wait_come_at_once_when_there_is_no_flush_any_more() -> None:
    """Eight answers have been found, three were given; the others come with the next batch."""
    query = Changed(TEXT, **PLAIN, flush=panes.SlowFlush(at_most=3))
    query.push(*BEFORE)
    assert any("line" in state for state in query.host.states), "some wait"
    query.change(TEXT, **PLAIN)
    query.push(AFTER[0])
    assert not any("line" in state for state in query.host.states)


def test_what_revises_and_waits_is_not_given_without_a_status() -> None:
    query = Changed(TEXT, **PLAIN, late="revise", flush=panes.SlowFlush(at_most=1))
    query.push(*BEFORE, batch(2), batch(3))
    query.change(TEXT, **PLAIN)
    with pytest.raises(StateError, match="wait in the checkpoint that revise"):
        query.push(*AFTER)
    query.change(TEXT, **PLAIN, late="revise")
    query.push(AFTER[0])
    query.change(TEXT, **PLAIN)
    query.push(*AFTER[1:])


def test_windows_that_were_forgotten_are_not_answered_again() -> None:
    """The window [-10, 10) was closed and forgotten when late rows did not revise yet."""
    query = Changed(TEXT, **PLAIN)
    query.push(*BEFORE)
    query.change(TEXT, **PLAIN, late="revise")
    again = query.push(batch(2)).to_pylist()
    for row in again:
        rows = [r for b in (*BEFORE, batch(2)) for r in b.to_pylist() if r["k"] == row["k"]]
        inside = [r["x"] for r in rows if row["window_start"] <= r["at"] < row["window_end"]]
        assert (row["n"], row["total"]) == (len(inside), sum(inside)), row


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (TEXT.replace("RANGE 20", "RANGE 30"), "the window was"),
        (TEXT.replace("SLIDE 10", "SLIDE 5"), "the window was"),
        (TEXT.replace("WATTR at", "WATTR at ORIGIN 3"), "the window was"),
        (TEXT.replace("WATTR at", "WATTR x"), "the window was"),
        (TEXT.replace("GROUP BY k", "GROUP BY k, x"), "GROUP BY was"),
        (TEXT.replace("sum(x)", "max(x)"), "SELECT was"),
        (TEXT.replace("GROUP", "WHERE x > 3 GROUP"), "WHERE was"),
    ],
    ids=["range", "slide", "origin", "column", "keys", "aggregates", "where"],
)
def test_a_change_that_the_state_cannot_follow_is_refused(text: str, told: str) -> None:
    query = Changed(TEXT, **PLAIN)
    query.push(*BEFORE)
    query.change(text, **PLAIN)
    with pytest.raises(StateError, match=told):
        query.host.push(s=AFTER[0])
