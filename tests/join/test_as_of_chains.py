"""Chains of as-of joins: each finds its last row as of the first stream's row, not of one found."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.errors import QueryError, UnknownColumnError
from tests.join.histories import sides, table
from tests.join.nested_loops import Row

L = pa.table({"at": [1, 5, 9], "k": [1, 1, 1], "id": [1, 2, 3]})
R = pa.table({"at": [1, 4, 8], "k": [1, 1, 1], "x": [10, 20, 30]})
M = pa.table({"at": [0, 5, 7], "k": [1, 1, 1], "y": [7, 8, 9]})
FORMS = (
    "l ASOF {0} r [RANGE 5 WATTR at] ON l.k = r.k ASOF {0} m [RANGE 6 WATTR at] ON l.k = m.k",
    "l ASOF {0} r ON l.k = r.k [RANGE 5 WATTR at] ASOF {0} m ON l.k = m.k [RANGE 6 WATTR at]",
    "l ASOF {0} r [RANGE 5 WATTR at] USING (k) ASOF {0} m [RANGE 6 WATTR at] USING (k)",
    "l ASOF {0} r [RANGE 5 WATTR r.at] ON l.k = r.k ASOF {0} m [RANGE 6 WATTR m.at] ON l.k = m.k",
    "l [RANGE 1 WATTR at] ASOF {0} r [RANGE 5 WATTR at] USING (k) ASOF {0} m [RANGE 6 WATTR at] "
    "USING (k)",
    "l ASOF {0} r [RANGE 5 WATTR at] ON l.k = r.k ASOF {0} m ON l.k = m.k AND m.at <= l.at "
    "AND m.at >= l.at - 6",
    "l ASOF {0} r ON l.k = r.k AND r.at BETWEEN l.at - 5 AND l.at ASOF {0} m [RANGE 6 WATTR at] "
    "ON l.k = m.k",
)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_chain_finds_as_of_the_first_row(form: str) -> None:
    """
    at   0   1       4   5       7   8   9
    l        1           2               3
    r        10      20              30
    m    7               8       9              the 5 of m is seen by 2, though r was found at 4
    """
    text = f"SELECT l.id, r.x, m.y FROM {form.format('JOIN')}"
    want = [(1, 10, 7), (2, 20, 8), (3, 30, 9)]
    for answers in (panes.sql(text, l=L, r=R, m=M), panes.oracle(text, l=L, r=R, m=M)):
        assert sorted(tuple(row.values()) for row in answers.to_pylist()) == want


def test_a_row_that_found_nothing_is_still_somewhere() -> None:
    text = "SELECT l.id, r.x, m.y FROM " + FORMS[0].format("LEFT JOIN").replace(
        "5 WATTR", "0 WATTR"
    )
    text = text.replace("RANGE 0", "RANGE 1")
    got = panes.sql(text, l=L, r=R.slice(2), m=M).to_pylist()
    assert sorted(tuple(row.values()) for row in got) == [(1, None, 7), (2, None, 8), (3, 30, 9)]


def test_the_clause_of_a_chain_may_name_the_row_that_was_found() -> None:
    text = "SELECT l.id, m.y FROM " + FORMS[0].format("JOIN").replace("6 WATTR at", "6 WATTR r.at")
    got = panes.sql(text, l=L, r=R, m=M).to_pylist()
    assert sorted(tuple(row.values()) for row in got) == [(1, 7), (2, 7), (3, 9)]


def test_streams_that_call_their_positions_differently_have_a_clause_each() -> None:
    there = R.rename_columns(["rat", "k", "x"])
    text = "SELECT l.id, r.x FROM l{} ASOF JOIN r [RANGE 5 WATTR {}] ON l.k = r.k"
    for name, hint in (
        ("rat", "l [RANGE 5 WATTR ts] ... r [RANGE 5 WATTR rat]"),
        ("at", "l [RANGE 5 WATTR at] ... r [RANGE 5 WATTR ts]"),
    ):
        with pytest.raises(QueryError, match="is to order the rows of both sides") as refused:
            panes.sql(text.format("", name), l=L, r=there)
        assert refused.value.hint == f"name the column of each: {hint}"
    got = panes.sql(text.format(" [RANGE 5 WATTR at]", "rat"), l=L, r=there)
    assert sorted(got["x"].to_pylist()) == [10, 20, 30]
    with pytest.raises(UnknownColumnError):
        panes.sql(text.format("", "nowhere"), l=L, r=there)


def test_a_band_may_follow_an_as_of_join() -> None:
    """From 2 before l to 1 behind it; the clause of r is for r alone."""
    found = "SELECT l.id, r.x, m.y FROM l ASOF JOIN r [RANGE 5 WATTR at] ON l.k = r.k"
    for rest in (
        "JOIN m ON l.k = m.k AND m.at BETWEEN l.at - 2 AND l.at + 1",
        "JOIN m ON l.k = m.k [RANGE 2 WATTR at]",
        ", m [RANGE 2 WATTR at]",
    ):
        for answer in (panes.sql, panes.oracle):
            got = answer(f"{found} {rest}", l=L, r=R, m=M).to_pylist()
            assert sorted(tuple(row.values()) for row in got) == [
                (1, 10, 7), (2, 20, 8), (3, 30, 9)
            ]  # fmt: skip


@settings(max_examples=40)
@given(
    rows=sides(),
    others=sides(),
    sizes=st.tuples(*3 * [st.sampled_from([1, 4, 30])]),
    kinds=st.tuples(*3 * [st.sampled_from(["JOIN", "LEFT JOIN"])]),
    step=st.integers(1, 5),
)
def test_any_chain_gives_what_looking_up_row_by_row_gives(
    rows: tuple[list[Row], list[Row]],
    others: tuple[list[Row], list[Row]],
    sizes: tuple[int, ...],
    kinds: tuple[str, ...],
    step: int,
) -> None:
    """Three lookups of each row, in tables, by the oracle, and in batches as they come."""
    found = [rows[1], *others]
    text = "SELECT l.id AS l, r.id AS r, m.id AS m, n.id AS n FROM l"
    for name, size, kind in zip("rmn", sizes, kinds, strict=True):
        text += f" ASOF {kind} {name} [RANGE {size} WATTR at] ON l.k = {name}.k"
    want = []
    for row in rows[0]:
        last = [_last(row, other, size) for other, size in zip(found, sizes, strict=True)]
        if all(one is not None for one, kind in zip(last, kinds, strict=True) if kind == "JOIN"):
            want.append((row.id, *last))
    streams = {"l": table(rows[0])} | dict(zip("rmn", map(table, found), strict=True))
    want.sort(key=repr)
    assert _rows(panes.sql(text, **streams)) == want
    assert _rows(panes.oracle(text, **streams)) == want
    query = panes.open(text, schema={name: rows.schema for name, rows in streams.items()})
    parts = [
        query.push(**{name: rows.slice(first, step) for name, rows in streams.items()})
        for first in range(0, max(map(len, streams.values())), step)
    ]
    assert _rows(pa.concat_tables([*parts, query.finish()])) == want


def _last(row: Row, others: list[Row], size: int) -> int | None:
    near = [o for o in others if o.key == row.key != (None,) and row.at - size <= o.at <= row.at]
    return max(near, key=lambda o: (o.at, o.id)).id if near else None


def _rows(answers: pa.Table) -> list[tuple[int | None, ...]]:
    return sorted((tuple(row.values()) for row in answers.to_pylist()), key=repr)
