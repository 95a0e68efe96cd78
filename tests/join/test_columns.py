"""Names of a join: what columns are called, which side a name means, USING and *."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes

L = pa.table({"ts": [0, 10, 20], "k": [1, 1, 2], "id": ["a", "b", "c"]})
R = pa.table({"ts": [1, 11, 25], "k": [1, 2, 2], "x": [1.5, 2.5, 3.5]})
M = pa.table({"ts": [2, 12], "k": [1, 2], "y": [7, 8]})
BAND = "l [RANGE 5 WATTR ts], r [RANGE 5 WATTR ts]"
NEAR = "r.ts BETWEEN l.ts - 5 AND l.ts + 5"


def names(text: str) -> list[str]:
    """The columns of an answer, once the oracle has agreed on everything."""
    streams = {"l": L, "r": R} | ({"m": M} if "JOIN m" in text else {})
    got, want = panes.sql(text, **streams), panes.oracle(text, **streams)
    assert got.schema == want.schema
    assert sorted(map(repr, zip(*got.columns, strict=True))) == sorted(
        map(repr, zip(*want.columns, strict=True))
    )
    assert len(got)
    return list(got.column_names)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (f"SELECT * FROM {BAND} WHERE l.k = r.k", ["l.ts", "l.k", "id", "r.ts", "r.k", "x"]),
        (f"SELECT l.*, x FROM {BAND}", ["ts", "k", "id", "x"]),
        (f"SELECT l.ts, r.ts FROM {BAND}", ["l.ts", "r.ts"]),
        (f"SELECT l.ts, r.ts AS other FROM {BAND}", ["ts", "other"]),
        (f"SELECT ID, X FROM {BAND}", ["ID", "X"]),
        (f"SELECT `l`.`id` FROM {BAND}", ["id"]),
        (
            "SELECT * FROM l JOIN r USING (k) [TUMBLING 10 WATTR ts]",
            ["window_start", "window_end", "k", "l.ts", "id", "r.ts", "x"],
        ),
        (f"SELECT * FROM l LEFT SEMI JOIN r ON {NEAR}", ["ts", "k", "id"]),
        (f"SELECT ts, k FROM l SEMI JOIN r ON l.k = r.k AND {NEAR} WHERE k = 1", ["ts", "k"]),
        (
            f"SELECT * FROM l SEMI JOIN r ON {NEAR} "
            "JOIN m ON l.k = m.k AND m.ts BETWEEN l.ts AND l.ts + 2",
            ["l.ts", "l.k", "id", "m.ts", "m.k", "y"],
        ),
        (
            f"SELECT l.ts, r.ts, count(*) AS n FROM {BAND} GROUP BY l.ts, r.ts",
            ["l.ts", "r.ts", "n"],
        ),
        (f"SELECT l.ts, sum(x) AS s FROM {BAND} GROUP BY l.ts", ["ts", "s"]),
        (
            f"SELECT l.k, count(*) AS n [TUMBLING 10 WATTR l.ts] FROM {BAND} GROUP BY l.k",
            ["window_start", "window_end", "k", "n"],
        ),
        (
            "SELECT window_end, id FROM l, r [TUMBLING 10 WATTR ts] WHERE window_end > 10",
            ["window_start", "window_end", "id"],
        ),
    ],
)
def test_columns_have_short_names_unless_two_sides_have_them(text: str, columns: list[str]) -> None:
    assert names(text) == columns


@pytest.mark.parametrize("how", ["", "LEFT", "RIGHT", "FULL"])
def test_a_column_of_using_is_the_one_that_is_there(how: str) -> None:
    text = f"SELECT k, id, x FROM l {how} JOIN r USING (k) [TUMBLING 10 WATTR ts]"
    names(text)
    found = panes.sql(text, l=L, r=R)
    assert found["k"].null_count == 0


def test_using_reaches_over_three_streams() -> None:
    text = (
        "SELECT k, id, x, y FROM l FULL JOIN r USING (k) [TUMBLING 10 WATTR ts] "
        "JOIN m USING (k) [TUMBLING 10 WATTR ts]"
    )
    assert names(text) == ["window_start", "window_end", "k", "id", "x", "y"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"SELECT ts FROM {BAND}", r"`ts` could be any of `l.ts`, `r.ts`"),
        (f"SELECT id FROM {BAND} WHERE k = 1", r"`k` could be any of"),
        (f"SELECT l.zz FROM {BAND}", r"no column `zz` in stream `l`"),
        (f"SELECT q.id FROM {BAND}", r"no column `q.id`"),
        (f"SELECT `l.id` FROM {BAND}", r"one pair of backticks is one name"),
        ("SELECT id FROM l JOIN r USING (zz) [TUMBLING 5 WATTR ts]", r"no column `zz`"),
        ("SELECT id FROM l JOIN r USING (k + 1) [TUMBLING 5 WATTR ts]", r"expected `\)`"),
        ("SELECT id FROM l JOIN r USING () [TUMBLING 5 WATTR ts]", r"expected a name in USING"),
        ("SELECT id FROM l NATURAL JOIN r [TUMBLING 5 WATTR ts]", r"NATURAL JOIN"),
        ("SELECT id FROM l JOIN r ON l.k = r.k", r"nothing says how far apart"),
        (
            "SELECT a.id FROM l a JOIN r b ON a.k = b.k",
            r"AND b\.ts BETWEEN a\.ts - .* AND a\.ts, or",
        ),
        ("SELECT id FROM l ASOF JOIN r b ON l.k = b.k", r"Hint: ASOF JOIN b \[RANGE 5 seconds WA"),
        (f"SELECT id FROM l JOIN r ON l.k IN (SELECT k FROM r) AND {NEAR}", "without subqueries"),
        (f"SELECT id FROM l JOIN r ON EXISTS (SELECT 1) AND {NEAR}", "without subqueries"),
        (f"SELECT id FROM l JOIN r ON rand() < 0.5 AND {NEAR}", "`rand` cannot be used"),
        (f"SELECT id FROM l JOIN r ON input_file_name() = id AND {NEAR}", "reaches outside"),
        (f"SELECT id FROM l JOIN r ON count(*) = 1 AND {NEAR}", "ON cannot hold an aggregate"),
        (f"SELECT id FROM l JOIN r ON row_number() OVER (ORDER BY id) = 1 AND {NEAR}", "OVER"),
        (f"SELECT id FROM l JOIN r ON {NEAR}; DROP TABLE l", "exactly one SELECT"),
        (f"SELECT id FROM {BAND} ORDER BY id", "ORDER BY"),
        (f"SELECT DISTINCT id FROM {BAND}", "DISTINCT"),
        ("SELECT id FROM l [ROWS 5], r [ROWS 5]", "names the column"),
        ("SELECT id FROM l [RANGE 5 WATTR ts], r", "one side of the join has a window"),
        ("SELECT id FROM l, r [RANGE 0 WATTR ts]", "positive RANGE"),
        ("SELECT id FROM l, r [TUMBLING 5 seconds WATTR ts]", "plain numbers"),
        ("SELECT id FROM l ASOF JOIN r ON l.ts <= r.ts", "last row at or before"),
        ("SELECT id FROM l ASOF RIGHT JOIN r [RANGE 5 WATTR ts] ON l.k = r.k", "inner or left"),
        ("SELECT id FROM l ASOF JOIN r ON l.k = r.k [TUMBLING 5 WATTR ts]", "no SLIDE"),
        (f"SELECT count(*) AS n FROM {BAND}", "nothing says when joined rows are complete"),
        (f"SELECT count(*) AS n [TUMBLING 5 WATTR l.k] FROM {BAND}", "make no progress on"),
        (f"SELECT id [TUMBLING 5 WATTR l.ts] FROM {BAND}", "that are aggregated"),
        (f"SELECT id FROM {BAND} EMIT EARLY", "EMIT EARLY"),
        ("SELECT id FROM l, r, m [TUMBLING 5 WATTR ts]", "nothing says how far apart"),
        ("SELECT a.id FROM l [RANGE 5 WATTR ts], l [RANGE 5 WATTR ts]", "two sides"),
        (f"SELECT r.x FROM l SEMI JOIN r ON {NEAR}", "JOIN gives no columns of `r`"),
        (f"SELECT l.*, r.* FROM l ANTI JOIN r ON {NEAR}", "JOIN gives no columns of `r`"),
        (f"SELECT x FROM l ANTI JOIN r ON {NEAR}", "no column `x` in stream `l`"),
        (f"SELECT id FROM l SEMI JOIN r ON {NEAR} WHERE r.x > 2", "no columns of `r`"),
        (f"SELECT max(r.x) AS m FROM l ANTI JOIN r ON {NEAR} GROUP BY l.ts", "no columns of `r`"),
        (f"SELECT count(*) AS n FROM l SEMI JOIN r ON {NEAR} GROUP BY r.ts", "no columns of `r`"),
        (
            f"SELECT count(*) AS n [TUMBLING 5 WATTR r.ts] FROM l SEMI JOIN r ON {NEAR}",
            "no columns of `r`",
        ),
        (
            f"SELECT id FROM l SEMI JOIN r ON {NEAR} JOIN m ON m.k = r.k AND m.ts = l.ts",
            "no columns of `r`",
        ),
    ],
)
def test_what_a_join_cannot_mean_is_refused_by_name(text: str, message: str) -> None:
    streams = {name: table for name, table in (("l", L), ("r", R), ("m", M))
               if f" {name}" in text.partition("FROM")[2]}  # fmt: skip
    with pytest.raises(panes.PanesError, match=message):
        panes.sql(text, **streams)


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), "does not say how far apart"),
        (pa.int64(), pa.timestamp("us"), "does not say how far apart"),
        (pa.float64(), pa.float64(), "does not say how far apart"),
        (pa.string(), pa.string(), "does not say how far apart"),
    ],
    ids=str,
)
def test_positions_that_do_not_lie_on_one_axis_are_refused(
    left: pa.DataType, right: pa.DataType, message: str
) -> None:
    streams = {
        name: pa.table({"ts": pa.array([], kind), "id": pa.array([], pa.int64())})
        for name, kind in (("l", left), ("r", right))
    }
    text = "SELECT l.id FROM l JOIN r ON r.ts >= l.ts AND r.ts <= l.ts + INTERVAL 1 HOUR"
    with pytest.raises(panes.QueryError, match=message):
        panes.sql(text, **streams)


def test_a_month_is_no_distance() -> None:
    ts = pa.array([], pa.timestamp("us"))
    with pytest.raises(panes.QueryError, match="fixed length"):
        panes.sql(
            "SELECT l.ts FROM l JOIN r ON r.ts <= l.ts + INTERVAL 1 MONTH",
            l=pa.table({"ts": ts}),
            r=pa.table({"ts": ts}),
        )


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("SELECT id FROM l JOIN r ON r.ts >= l.ts", "every row of `l`"),
        ("SELECT id FROM l JOIN r ON r.ts <= l.ts", "every row of `r`"),
        ("SELECT id FROM l JOIN r ON l.k = r.k [RANGE ALL SLIDE 5 WATTR ts]", "`l` and `r`"),
        ("SELECT id FROM l ASOF JOIN r ON r.ts <= l.ts", "every row of `r`"),
    ],
)
def test_a_stream_refuses_to_keep_rows_for_ever_and_says_which(text: str, kept: str) -> None:
    assert len(panes.sql(text, l=L, r=R))
    with pytest.raises(panes.QueryError, match=f"would keep .*{kept}"):
        panes.open(text).push(l=L, r=R)


def test_fields_made_of_columns_have_the_names_of_the_columns() -> None:
    """As over one stream; fields were called `l.a` by the side."""
    tables = {
        "l": pa.table({"ts": [0], "a": [[1, 2]]}),
        "r": pa.table({"ts": [1], "a": [[3]], "b": [[3]]}),
    }
    on = "FROM l [RANGE 5 WATTR ts], r [RANGE 5 WATTR ts]"
    text = f"SELECT arrays_zip(l.a, b) AS z, struct(l.a, r.ts) AS s, (l.ts, b) AS p {on}"
    for answers in (panes.sql(text, **tables), panes.oracle(text, **tables)):
        assert answers.to_pylist() == [
            {
                "z": [{"a": 1, "b": 3}, {"a": 2, "b": None}],
                "s": {"a": [1, 2], "ts": 1},
                "p": {"ts": 0, "b": [3]},
            }
        ]
