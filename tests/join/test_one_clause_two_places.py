"""A window clause right behind ON, and behind the SELECT list or GROUP BY: two things, said apart.

    ON ... c.ts BETWEEN i.ts AND i.ts + 10   [TUMBLING 10 WATTR ts]      windows that hold both rows
    GROUP BY i.k                             [TUMBLING 10 WATTR i.ts]    windows of joined rows

A pair of 8 and 12 is in no window of the first kind, and in [0, 10) of the second.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import panes
from panes.errors import QueryError

I = pa.table({"ts": [1, 8, 13], "k": [1, 1, 2], "its": [1, 8, 13]})
C = pa.table({"ts": [3, 12, 14], "k": [1, 1, 2], "cts": [3, 12, 14]})
ON = "FROM i {} c ON i.k = c.k AND c.ts BETWEEN i.ts AND i.ts + 5"
COUNT = "count(c.ts) AS n"


def counts(text: str, **streams: pa.Table) -> list[tuple[int, ...]]:
    streams = streams or {"i": I, "c": C}
    answers = panes.sql(text, **streams)
    assert sorted(map(repr, answers.to_pylist())) == sorted(
        map(repr, panes.oracle(text, **streams).to_pylist())
    )
    return sorted((row["window_end"], row["n"]) for row in answers.to_pylist())


def hinted(text: str, **streams: pa.Table) -> list[str]:
    """The clauses that a refusal says to write instead."""
    with pytest.raises(
        QueryError, match="could be meant for both rows of a pair, or for"
    ) as refused:
        counts(text, **streams)
    return re.findall(r"\[.*?\]", str(refused.value))


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
@pytest.mark.parametrize("clause", ["TUMBLING 10", "RANGE 20 SLIDE 10", "RANGE 10 SLIDE 5"])
@pytest.mark.parametrize("column", ["i.ts", "c.ts", "I.TS"])
def test_a_clause_on_one_side_behind_a_band_is_refused_and_both_ways_to_say_it_run(
    kind: str, clause: str, column: str
) -> None:
    on = ON.format(kind)
    above, common = hinted(f"SELECT {COUNT} {on} [{clause} WATTR {column}]")
    assert (above, common) == (f"[{clause} WATTR {column.lower()}]", f"[{clause} WATTR ts]")
    of_joined = counts(f"SELECT {COUNT} {above} {on}")
    assert of_joined == counts(f"SELECT {COUNT} {on} WHERE true {above}")
    assert of_joined != counts(f"SELECT {COUNT} {on} {common}")


def test_the_two_kinds_of_windows_by_hand() -> None:
    """
    i 1 ── c 3    both in [0, 10)
    i 8 ────── c 12    of 8, but not together in one
             i 13 ─ c 14    both in [10, 20)
    """
    on = ON.format("JOIN")
    assert counts(f"SELECT {COUNT} [TUMBLING 10 WATTR i.ts] {on}") == [(10, 2), (20, 1)]
    assert counts(f"SELECT {COUNT} {on} [TUMBLING 10 WATTR ts]") == [(10, 1), (20, 1)]


def test_the_later_position_is_one_of_joined_rows_only() -> None:
    on, clause = ON.format("JOIN"), "[TUMBLING 10 WATTR max(i.ts, c.ts)]"
    with pytest.raises(QueryError, match="write it behind the SELECT list"):
        counts(f"SELECT {COUNT} {on} {clause}")
    assert counts(f"SELECT {COUNT} {clause} {on}") == [(10, 1), (20, 2)]


def test_a_band_in_where_of_an_inner_join_is_one_too() -> None:
    where = "WHERE i.k = c.k AND c.ts >= i.ts AND c.ts <= i.ts + 5"
    above, common = hinted(f"SELECT {COUNT} FROM i, c [TUMBLING 10 WATTR i.ts] {where}")
    assert counts(f"SELECT {COUNT} {above} FROM i, c {where}") == [(10, 2), (20, 1)]
    assert counts(f"SELECT {COUNT} FROM i, c {common} {where}") == [(10, 1), (20, 1)]


def test_a_column_that_only_one_side_has_names_that_side() -> None:
    on = "FROM i JOIN c ON i.k = c.k AND c.cts BETWEEN i.its AND i.its + 5"
    above, common = hinted(f"SELECT {COUNT} {on} [TUMBLING 10 WATTR its]")
    assert counts(f"SELECT {COUNT} {above} {on}") == [(10, 2), (20, 1)]
    renamed = on.replace("JOIN c", "JOIN (SELECT cts AS its, ts, k FROM c) c").replace("cts", "its")
    renamed = renamed.replace("SELECT its AS its", "SELECT cts AS its")
    assert counts(f"SELECT {COUNT} {renamed} {common}") == [(10, 1), (20, 1)]


def test_joined_rows_that_are_not_aggregated_are_only_told_of_windows_in_common() -> None:
    on = ON.format("JOIN")
    assert hinted(f"SELECT i.k AS n {on} [TUMBLING 10 WATTR i.ts]") == ["[TUMBLING 10 WATTR ts]"]


@pytest.mark.parametrize("on", ["i.k = c.k", "i.k = c.k AND i.k <= c.k", "i.ts = c.ts"])
def test_without_a_band_a_side_may_be_named(on: str) -> None:
    for column in ("i.ts", "ts"):
        assert len(
            counts(f"SELECT {COUNT} FROM i JOIN c ON {on} [TUMBLING 10 WATTR {column}]")
        ) in (0, 2)


def test_origin_and_alignment_are_in_what_to_write() -> None:
    clause = "RANGE 12 SLIDE 5 WATTR {} ORIGIN -2 ALIGN START"
    on = ON.format("JOIN")
    above, common = hinted(f"SELECT {COUNT} {on} [{clause.format('i.ts')}]")
    assert (above, common) == (f"[{clause.format('i.ts')}]", f"[{clause.format('ts')}]")
    counts(f"SELECT {COUNT} {above} {on}")
    counts(f"SELECT {COUNT} {on} {common}")
