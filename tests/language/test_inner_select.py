"""SELECTs in each other inside FROM: each says of the columns of the one inside what it selects."""

from __future__ import annotations

import datetime as dt
import re

import pytest

import panes

ROWS = {"at": [1, 2, 3, 4], "x": [0, 5, 2, 5], "a": [[1], [2, 9], [3], [2, 9]],
        "p": [{"t": 4 - i, "q": {"x": i}} for i in range(4)]}  # fmt: skip
GIVEN = {
    "what is outside is asked of rows that pass inside": (
        "(SELECT at, 10 / x AS y FROM (SELECT * FROM s WHERE x <> 0) WHERE 10 / x < 5)", [2.0, 2.0],
    ),
    "names are those of the SELECT inside": (
        "(SELECT at, x - 1 AS y FROM (SELECT at, 2 * x + 1 AS x FROM s WHERE x > 0))", [4, 10, 10],
    ),
    "a name outside hides one inside": (
        "(SELECT t.at AS at, t.y AS y FROM (SELECT at, x AS y, 7 AS x FROM s) t WHERE x = 7)",
        [0, 2, 5, 5],
    ),
    "a function of elements keeps its parameter": (
        "(SELECT at, y FROM (SELECT at, x AS y, a AS b FROM s) WHERE exists(b, p -> p > y))",
        [0, 2, 5, 5],
    ),
    "duplicates are told apart once": (
        "(SELECT DISTINCT 1 AS at, y FROM (SELECT DISTINCT at, x AS y FROM s))", [0, 2, 5],
    ),
    "rows are left out behind duplicates": (
        "(SELECT * FROM (SELECT DISTINCT 1 AS at, x AS y FROM s) WHERE y > 0)", [2, 5],
    ),
    "fields of a struct": ("(SELECT p.t AS at, s.p.q.x AS y FROM s WHERE p.t < 4)", [1, 2, 3]),
    "fields of what is selected inside": (
        "(SELECT p.t AS at, t.r.x AS y FROM (SELECT u.p, p.q AS r FROM s u) t WHERE r.x > 0)",
        [1, 2, 3],
    ),
    "a union inside": (
        "(SELECT at, y + 1 AS y FROM (SELECT at, x AS y FROM s UNION ALL "
        "SELECT at, 9 + 0 * x AS y FROM s) WHERE y > 4)", [6, 6, 10, 10, 10, 10],
    ),
    "unions in parentheses": (
        "(SELECT at, y FROM ((SELECT at, x AS y FROM s) UNION ALL "
        "(SELECT at, 1 + 0 * x AS y FROM s)) WHERE at < 3)", [0, 1, 1, 5],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "values"), GIVEN.values(), ids=GIVEN)
def test_selects_in_each_other(source: str, values: list[float]) -> None:
    text = f"SELECT sort_array(collect_list(y)) AS y FROM {source} [TUMBLING 10 WATTR at]"
    assert panes.sql(text, s=ROWS)["y"].to_pylist() == [values]
    assert panes.oracle(text, s=ROWS)["y"].to_pylist() == [values]


@pytest.mark.parametrize(("source", "values"), GIVEN.values(), ids=GIVEN)
def test_names_of_with_stand_for_them(source: str, values: list[float]) -> None:
    text = f"""WITH a AS {source}, b AS (SELECT * FROM a)
        SELECT count(*) AS n, max(y) AS y FROM b [TUMBLING 10 WATTR at]"""
    [found] = panes.sql(text, s=ROWS).to_pylist()
    assert (found["n"], found["y"]) == (len(values), max(values))


def test_a_field_is_no_column_of_a_window() -> None:
    """Of what a dot stands behind, only the stream's own name is left out."""
    for clause, field in (("WATTR p.t", "p.t"), ("WATTR at PA s.p.t", "s.p.t")):
        with pytest.raises(panes.QueryError, match=f"and `{field}` is a field of one") as refused:
            panes.sql(f"SELECT count(*) AS n FROM s [TUMBLING 10 {clause}]", s=ROWS)
        assert f"FROM (SELECT {field} AS t, ... FROM s)" in str(refused.value)
    with pytest.raises(panes.QueryError, match=r"and `r\.p\.t` .*\n\nHint: .* FROM r\)"):
        panes.sql("SELECT l.x FROM l, r [TUMBLING 9 WATTR r.p.t] WHERE l.x = r.x", l=ROWS, r=ROWS)
    text = "SELECT struct(max(at) AS at) AS m FROM s [TUMBLING 10 WATTR s.at] GROUP BY s.p.q.x"
    assert len(panes.sql(text, s=ROWS)) == 4


def test_a_key_under_the_name_of_its_field_or_in_a_struct() -> None:
    text = "SELECT p.t AS t, count(*) AS n FROM s [TUMBLING 10 WATTR at] WHERE p.t < 3 GROUP BY t"
    assert panes.sql(text, s=ROWS)["t"].to_pylist() == [1, 2]
    made = (
        "SELECT max(r.t) AS m FROM (SELECT at, struct(p.t, p.q.x) AS r FROM s) "
        "[TUMBLING 10 WATTR at]"
    )
    for answered in (panes.sql, panes.oracle):
        assert answered(made, s=ROWS)["m"].to_pylist() == [4]


@pytest.mark.parametrize(
    ("column", "value"),
    [("x", 1.5), ("x", "1970-01-01 00:00:01"), ("p", {"at": dt.datetime(1970, 1, 1)})],
)
def test_a_column_that_orders_nothing_is_made_one_that_does_as_the_hint_says(
    column: str, value: object
) -> None:
    text, rows = "SELECT count(*) AS n FROM {} [TUMBLING 10 seconds WATTR {}]", {column: [value]}
    with pytest.raises(panes.ColumnTypeError) as refused:
        panes.sql(text.format("s", column), s=rows)
    [said] = re.findall(r"FROM (\(SELECT .* AS at), ... FROM s\)", str(refused.value))
    assert panes.sql(text.format(f"{said} FROM s)", "at"), s=rows)["n"].to_pylist() == [1]
