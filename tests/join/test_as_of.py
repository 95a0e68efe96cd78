"""As-of joins: the last row at or before, in any history, with ties and late rows."""

from __future__ import annotations

import math

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from tests.join.histories import END, histories, sides, table, taken, told
from tests.join.nested_loops import LastRows, Row, Step
from tests.support import open_join

WORDS = {"inner": "ASOF JOIN", "left": "ASOF LEFT JOIN"}
RANGES = st.sampled_from([1, 3, 10, 100])


def text(how: str, size: int, further: str = "") -> str:
    joined = f"l {WORDS[how]} r [RANGE {size} WATTR at]"
    return f"SELECT l.id AS a, r.id AS b FROM {joined} ON l.k = r.k {further}"


@pytest.mark.parametrize("how", WORDS)
@settings(max_examples=40)
@given(steps=histories(late=True), size=RANGES)
def test_each_step_gives_the_rows_whose_last_partner_it_proves(
    how: str, steps: list[Step], size: int
) -> None:
    query, loops = open_join(text(how, size)), LastRows(size, how)  # type: ignore[arg-type]
    query.push(l=table([]), r=table([]))
    for step in steps:
        assert taken(query, step) == sorted(loops.step(step), key=repr)
        assert (query.state["left_rows"], query.state["right_rows"]) == loops.stored()
    assert told(query.finish()) == sorted(loops.step(END), key=repr)
    assert (query.state["rows"], query.state["bytes"]) == (0, 0)


@pytest.mark.parametrize("how", WORDS)
@settings(max_examples=40)
@given(rows=sides(), size=RANGES)
def test_tables_the_oracle_and_a_further_condition(
    how: str, rows: tuple[list[Row], list[Row]], size: int
) -> None:
    # Odd rows only: a condition on pairs that is neither a key nor a position.
    left, right = rows
    streams = {"l": table(left), "r": table(right)}
    for further, keep in (("", lambda a, b: True), ("AND (l.id + r.id) % 2 = 1", _is_odd)):
        want: list[tuple[int | None, int | None, int | None]] = []
        for a in left:
            near = [
                b for b in right
                if None not in a.key and a.key == b.key and a.at - size <= b.at <= a.at
                and keep(a, b)
            ]  # fmt: skip
            if near:
                want.append((a.id, max(near, key=lambda b: (b.at, b.id)).id, None))
            elif how == "left":
                want.append((a.id, None, None))
        assert told(panes.sql(text(how, size, further), **streams)) == sorted(want, key=repr)
        assert told(panes.oracle(text(how, size, further), **streams)) == sorted(want, key=repr)


def _is_odd(a: Row, b: Row) -> bool:
    return (a.id + b.id) % 2 == 1


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
@settings(max_examples=25)
@given(rows=sides(), size=RANGES)
def test_duckdb_finds_the_same_last_rows(
    kind: pa.DataType, rows: tuple[list[Row], list[Row]], size: int
) -> None:
    left, right = rows
    alone = {(row.at, row.key): row for row in right}.values()  # DuckDB says nothing of ties
    l, r = (
        t.set_column(1, "k", t.column("k").cast(kind)) for t in (table(left), table(list(alone)))
    )
    found = duckdb.sql(
        "SELECT l.id AS a, CASE WHEN r.at >= l.at - " + str(size) + " THEN r.id END AS b "
        "FROM l ASOF LEFT JOIN r ON l.k = r.k AND l.at >= r.at"
    ).to_arrow_table()
    assert told(panes.sql(text("left", size), l=l, r=r)) == told(found)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([1.0, 3.0, 2.0], 1),  # the greatest
        ([None, -5.0, None], 1),  # NULL is least
        ([9.0, math.nan, math.inf], 1),  # NaN is greatest
        ([4.0, 4.0, 4.0], 2),  # equal: the next column decides
    ],
)
def test_of_rows_at_one_position_the_greatest_is_the_last(
    values: list[float | None], wanted: int
) -> None:
    # at   0         5
    # r              v v v      three rows at one position, whatever the order they came in
    # l              a
    r = pa.table(
        {"at": [5, 5, 5], "k": [1, 1, 1], "v": pa.array(values, pa.float64()), "id": [0, 1, 2]}
    )
    l = table([Row(5, (1,), 7)])
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        got = panes.sql(text("inner", 10), l=l, r=r.take(order))
        assert told(got) == [(7, wanted, None)]
        assert told(panes.oracle(text("inner", 10), l=l, r=r.take(order))) == [(7, wanted, None)]


def test_ties_of_one_key_cost_no_pairs() -> None:
    # Every row on the left ties with every row on the right: 4 million pairs, 2,000 answers.
    n = 2_000
    rows = pa.table({"at": [0] * n, "k": [1] * n, "id": list(range(n))})
    got = panes.sql(text("inner", 5), l=rows, r=rows, max_answers=10 * n)
    assert set(got["b"].to_pylist()) == {n - 1}
    named = rows.set_column(1, "k", rows.column("k").cast(pa.string()))
    assert panes.sql(text("inner", 5), l=named, r=named, max_answers=10 * n).equals(got)


def test_a_late_row_finds_what_is_stored_for_rows_in_time() -> None:
    # at    0    5    10   15   20
    # r     0         1
    # l promises 15, RANGE 10: rows of r before 5 are forgotten
    # l          late, at 9: would find r 0, which is forgotten; it is not given as alone either
    # l               late, at 12: finds r 1
    query = open_join(text("left", 10))
    query.push(l=table([]), r=table([Row(0, (1,), 0), Row(10, (1,), 1)]))
    query.punctuate(l=15, r=15)
    assert query.state["right_rows"] == 1
    assert told(query.push(l=table([Row(9, (1,), 7), Row(12, (1,), 8)]))) == [(8, 1, None)]
    reasons = query.late["reason"].to_pylist()
    assert len(reasons) == 2
    assert told(query.finish()) == []


@settings(max_examples=10)
@given(steps=histories(), size=RANGES)
def test_a_window_above_an_as_of_join_loses_nothing(steps: list[Step], size: int) -> None:
    for at in ("l.at", "r.at", "max(l.at, r.at)", "min(l.at, r.at)"):
        asked = (
            f"SELECT count(*) AS n [TUMBLING 3 WATTR {at}] FROM l ASOF LEFT JOIN r "
            f"[RANGE {size} WATTR at] ON l.k = r.k"
        )
        query = open_join(asked)
        query.push(l=table([]), r=table([]))
        parts = []
        for step in steps:
            parts.append(query.push(l=table(step.left), r=table(step.right)))
            made = {"l": step.left_promise, "r": step.right_promise}
            parts.append(query.punctuate(**{k: v for k, v in made.items() if v is not None}))
        got = pa.concat_tables([*parts, query.finish()])
        streams = {
            "l": table([r for s in steps for r in s.left]),
            "r": table([r for s in steps for r in s.right]),
        }
        want = panes.oracle(asked, **streams)
        assert sorted(map(repr, got.to_pylist())) == sorted(map(repr, want.to_pylist()))
