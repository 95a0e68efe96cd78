"""One stream on several sides of a join, each time as something else.

What a side is follows from where it stands, never from the name of its stream. The engine and the
oracle read the text with the same code, so both are compared with what shares none of it: DuckDB,
which is given the same text, and nested loops over rows that are known by hand.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.errors import QueryError
from tests.join.histories import (
    BANDS,
    END,
    HOWS,
    WINDOWS,
    histories,
    of_one,
    taken_of_one,
    text_of_one,
    told,
)
from tests.join.nested_loops import How, NestedLoops, Partners, Step
from tests.support import open_join

S = pa.table({"t": [1, 2, 3, 11, 12], "k": [7, 8, 9, 10, None], "v": [5, -2, 3, 4, 1]})
U = pa.table({"t": [2, 4, 12], "k": [1, 2, 3], "v": [9, -9, 0]})


def all_rows(answers: pa.Table) -> list[str]:
    return sorted(map(repr, zip(*(c.to_pylist() for c in answers.columns), strict=True)))


def opened(text: str, step: int = 2, **streams: pa.Table) -> pa.Table:
    """What a query gives whose streams come in small batches."""
    query = open_join(text, schema={name: rows.schema for name, rows in streams.items()})
    parts = [
        query.push(**{name: rows.slice(first, step) for name, rows in streams.items()})
        for first in range(0, max(map(len, streams.values())), step)
    ]
    return pa.concat_tables([*parts, query.finish()])


def in_duckdb(text: str, **streams: pa.Table) -> pa.Table:
    connection = duckdb.connect()
    for name, rows in streams.items():
        connection.register(name, rows)
    return connection.sql(text).to_arrow_table()


def test_a_column_is_that_of_its_side_though_the_other_select_names_another_the_same() -> None:
    """v of a is S's v, v of b is its k: at 3 they are 3 and 9."""
    text = (
        "SELECT max(a.v) AS m, max(b.v) AS n FROM s a LEFT JOIN (SELECT t, k AS v FROM s) b "
        "ON a.t = b.t [TUMBLING 10 WATTR t]"
    )
    want = [(0, 10, 5, 9), (10, 20, 4, 10)]
    for answers in (panes.sql(text, s=S), panes.oracle(text, s=S), opened(text, s=S)):
        assert [tuple(row.values()) for row in answers.to_pylist()] == want


NEAR = "ON b.t BETWEEN a.t - 1 AND a.t + 1"


@pytest.mark.parametrize(
    ("text", "streams"),
    [
        (f"SELECT a.v, b.w FROM s a JOIN (SELECT t, v AS w FROM s WHERE v > 0) b {NEAR}", "s"),
        (f"SELECT a.v, b.v AS w FROM s a LEFT JOIN (SELECT t, v FROM s WHERE v > 0) b {NEAR}", "s"),
        (
            "SELECT a.v, b.v AS w FROM (SELECT t, CAST(v AS VARCHAR) AS v FROM s) a FULL JOIN "
            f"(SELECT t, v / 2 AS v FROM s WHERE k > 7) b {NEAR}",
            "s",
        ),
        (
            "SELECT a.v, b.v AS w FROM (SELECT t, v FROM s WHERE v > 0) a RIGHT JOIN "
            f"(SELECT t + 10 AS t, v FROM s) b {NEAR}",
            "s",
        ),
        (
            "SELECT a.v, b.w, c.k FROM s a JOIN (SELECT t, v AS w FROM s WHERE v > 0) b "
            f"{NEAR} LEFT JOIN (SELECT t, k FROM s WHERE v < 4) c ON c.t BETWEEN a.t - 1 AND a.t",
            "s",
        ),
        ("SELECT a.v, b.v AS w FROM u b JOIN s a ON a.t BETWEEN b.t - 1 AND b.t", "su"),
        (f"SELECT a.v, b.v AS w, a.k FROM s b JOIN u a {NEAR}", "su"),
        ("SELECT s.v, u.v AS w, u.k FROM s u LEFT JOIN u s ON u.t BETWEEN s.t AND s.t + 1", "su"),
        ("SELECT U.v, S.v AS w, u.K FROM s U LEFT JOIN u S ON u.T BETWEEN s.t AND S.t + 1", "su"),
        (
            "SELECT s.v, b.v AS w FROM s JOIN (SELECT t, v FROM s WHERE k > 8) b "
            "ON b.t BETWEEN s.t AND s.t",
            "s",
        ),
        (f"SELECT a.v FROM s a SEMI JOIN (SELECT t FROM s WHERE v > 3) b {NEAR}", "s"),
        (f"SELECT a.v FROM s a ANTI JOIN (SELECT t FROM s WHERE v > 3) b {NEAR}", "s"),
    ],
)
def test_a_join_of_one_stream_with_itself_is_what_duckdb_says(text: str, streams: str) -> None:
    given = {name: {"s": S, "u": U}[name] for name in streams}
    want = all_rows(in_duckdb(text, **given))
    ours = text.replace("VARCHAR", "STRING")
    for answers in (panes.sql(ours, **given), panes.oracle(ours, **given), opened(ours, **given)):
        assert all_rows(answers) == want


def test_a_stream_stands_in_a_union_and_beside_it() -> None:
    ours = (
        "SELECT a.v, b.w FROM (SELECT t, v FROM s WHERE v > 0 UNION ALL SELECT t, v FROM u) a "
        f"LEFT JOIN (SELECT t, k AS w FROM s) b {NEAR}"
    )
    given = {"s": S, "u": U}
    want = all_rows(in_duckdb(ours, **given))
    for answers in (panes.sql(ours, **given), panes.oracle(ours, **given), opened(ours, **given)):
        assert all_rows(answers) == want


def test_a_stream_that_two_sides_read_is_not_a_name_of_either() -> None:
    with pytest.raises(QueryError, match=r"`s` could be any of 2 sides.*\n\nHint: say `a` or `b`"):
        panes.sql(f"SELECT s.v FROM s a JOIN s b {NEAR}", s=S)


SELECTED = (
    ("s", "v"),
    ("(SELECT t, v FROM s WHERE v > 0)", "v"),
    ("(SELECT t, k AS v, v AS k FROM s)", "v"),
    ("(SELECT t, v AS w FROM s WHERE k > 1)", "w"),
    ("(SELECT t + 2 AS t, v - k AS d FROM s)", "d"),
    ("(SELECT t, CAST(v AS DOUBLE) AS v FROM s WHERE k < 3)", "v"),
)
ROWS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 4), st.none() | st.integers(-3, 3)), max_size=8
)
KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


@settings(max_examples=40)
@given(
    rows=ROWS,
    sides=st.lists(st.sampled_from(SELECTED), min_size=2, max_size=3),
    kinds=st.tuples(*2 * [st.sampled_from(KINDS)]),
    step=st.integers(1, 4),
)
def test_any_selects_of_one_stream_join_as_duckdb_says(
    rows: list[tuple[int, int, int | None]],
    sides: list[tuple[str, str]],
    kinds: tuple[str, str],
    step: int,
) -> None:
    s = pa.table(
        {name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate("tkv")}
    )
    if len(sides) > 2:  # what stands behind a join is joined by the position of its first side
        kinds = (kinds[0] if kinds[0] in KINDS[:2] else "LEFT JOIN", kinds[1])
    text = ", ".join(f"{name}.{value} AS {name}v" for name, (_, value) in zip("abc", sides))  # noqa: B905
    text = f"SELECT {text} FROM {sides[0][0]} a"
    for name, kind, (side, _) in zip("bc", kinds, sides[1:]):  # noqa: B905
        text += f" {kind} {side} {name} ON {name}.t BETWEEN a.t - 1 AND a.t + 2"
    want = all_rows(in_duckdb(text, s=s))
    assert all_rows(panes.sql(text, s=s)) == want
    assert all_rows(panes.oracle(text, s=s)) == want
    assert all_rows(opened(text, step, s=s)) == want


@pytest.mark.parametrize("how", HOWS)
@settings(max_examples=10)
@given(
    partners=st.sampled_from([*BANDS, *WINDOWS]),
    steps=st.booleans().flatmap(lambda late: histories(late=late)),
)
def test_each_step_of_a_stream_joined_with_itself_gives_what_it_proves(
    how: How, partners: Partners, steps: list[Step]
) -> None:
    query, loops = open_join(text_of_one(how, partners)), NestedLoops(partners, how)
    taken_of_one(query, Step())
    for step in map(of_one, steps):
        assert taken_of_one(query, step) == sorted(loops.step(step), key=repr)
    assert told(query.finish()) == sorted(loops.step(END), key=repr)
    assert len(query.late) == len(loops.late)


def test_late_rows_have_the_columns_of_the_side_that_they_came_too_late_for() -> None:
    """A row at 2, behind 19: of a, and of b, where v is text and the number is n."""
    text = (
        "SELECT a.v, b.v AS w FROM s a JOIN (SELECT t, name AS v, v AS n FROM s) b "
        "ON b.t BETWEEN a.t - 1 AND a.t + 1"
    )
    rows = pa.table({"t": [1, 20, 2], "v": [1, 2, 3], "name": ["x", "y", "z"]})
    query, register = open_join(text, lateness=1), panes.register(["s"], lateness=1)
    register.add("near", text)
    for step in range(3):
        query.push(s=rows.slice(step, 1))
        register.push(s=rows.slice(step, 1))
    for late in (query.late, register.late):
        given = [(row["t"], row["v"], row["name"], row["n"]) for row in late.to_pylist()]
        assert given == [(2, "3", "z", None), (2, "z", None, 3)]


def test_a_register_answers_for_each_side_of_its_own(query_texts: dict[str, str]) -> None:
    """Two queries over one stream with itself: neither is the other's join."""
    register = panes.register(["s", "u"])
    for name, text in query_texts.items():
        register.add(name, text)
    parts = [register.push(s=S.slice(i, 2)) for i in range(0, 6, 2)]
    parts.append(register.finish())
    for name, text in query_texts.items():
        got = pa.concat_tables([part[name] for part in parts if part[name].num_columns])
        assert all_rows(got) == all_rows(in_duckdb(text, s=S))


def test_a_query_added_later_knows_the_newest_row_of_either_side() -> None:
    """
    t     1   3        14   16            pushed before `n` is added; b has only those up to 3
    [0, 10)   [10, 20)   [20, 30)         only what begins behind 16 is whole
    """
    near = "FROM s a LEFT JOIN (SELECT t, v FROM s WHERE v > 0) b ON b.t BETWEEN a.t AND a.t"
    register = panes.register(["s"])
    register.add("pairs", f"SELECT a.v, b.v AS w {near}")
    before, after = [1, 3, 14, 16], [18, 25]
    register.push(s=pa.table({"t": before, "v": [1, 1, -1, -1]}))
    register.punctuate(s=17)
    text = f"SELECT count(*) AS n [TUMBLING 10 WATTR a.t] {near}"
    register.add("n", text)
    parts = [register.push(s=pa.table({"t": after, "v": [1, 1]})), register.finish()]
    got = [row for part in parts for row in part["n"].to_pylist()]
    whole = panes.oracle(text, s=pa.table({"t": [*before, *after], "v": [1, 1, -1, -1, 1, 1]}))
    assert got == [row for row in whole.to_pylist() if row["window_start"] >= 20]


@pytest.fixture
def query_texts() -> dict[str, str]:
    both = f"SELECT a.v, b.v AS w FROM s a LEFT JOIN (SELECT t, {{}}) b {NEAR}"
    selected = {
        "high": "v FROM s WHERE v > 0",
        "low": "v FROM s WHERE v < 0",
        "keys": "k AS v FROM s",
    }
    return {name: both.format(select) for name, select in selected.items()}


def test_a_promise_before_the_other_stream_is_known_names_that_stream_and_not_its_alias() -> None:
    near = "a.k = b.k AND b.at BETWEEN a.at AND a.at"
    for other in ("u b", "(u UNION ALL u) b"):
        query = panes.open(f"SELECT a.at AS x FROM t a JOIN {other} ON {near}", lateness=0)
        query.push(t=pa.table({"at": [1], "k": [1]}))
        with pytest.raises(panes.PanesError, match="has seen no batch of `u`, so a promise"):
            query.punctuate(t=3)
