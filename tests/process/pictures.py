"""Behaviours of a register that are shown as tests, and that planted bugs must spoil.

Histories seldom come to what they show, so ``tests/planted`` runs them too.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

import panes


def rows(*at: int, x: int = 1) -> pa.Table:
    return pa.table({"at": pa.array(at, pa.int64()), "k": ["a"] * len(at), "x": [x] * len(at)})


def counts(answers: Mapping[str, pa.Table], name: str) -> list[tuple[int, int]]:
    """(window_start, n) of one query."""
    table = answers[name]
    return list(zip(table["window_start"].to_pylist(), table["n"].to_pylist(), strict=True))


def panes_that_were_folded_answer_no_finer_window() -> None:
    """Panes before 900 are those of the long window, so [700, 1000) is open but not known."""
    reg = panes.register("t", lateness=0)
    reg.add("short", "SELECT count(*) AS n FROM t [RANGE 5 SLIDE 1 WATTR at]")
    reg.add("long", "SELECT count(*) AS n FROM t [RANGE 1000 SLIDE 100 WATTR at]")
    reg.push(rows(*range(998)))
    added = reg.add("middle", "SELECT count(*) AS n FROM t [RANGE 300 SLIDE 10 WATTR at]")
    assert added.exact_from == 900
    assert counts(reg.finish(), "middle")[:2] == [(900, 98), (910, 88)]


def panes_that_a_new_query_needs_are_not_folded() -> None:
    """Progress moves before panes are cut for the new query."""
    reg = panes.register("t", lateness=0)
    reg.add("short", "SELECT count(*) AS n FROM t [RANGE 5 SLIDE 1 WATTR at]")
    reg.add("long", "SELECT count(*) AS n FROM t [RANGE 1000 SLIDE 100 WATTR at]")
    reg.push(rows(*range(501)))
    added = reg.add("middle", "SELECT count(*) AS n FROM t [RANGE 300 SLIDE 10 WATTR at]")
    assert added.exact_from == 400
    reg.punctuate(600)
    assert counts(reg.punctuate(1000), "middle")[:2] == [(400, 101), (410, 91)]
