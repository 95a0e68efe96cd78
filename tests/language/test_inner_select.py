"""SELECTs in each other inside FROM: each says of the columns of the one inside what it selects."""

from __future__ import annotations

import pytest

import panes

ROWS = {"at": [1, 2, 3, 4], "x": [0, 5, 2, 5], "a": [[1], [2, 9], [3], [2, 9]]}
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
