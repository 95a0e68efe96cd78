"""What the language understands, and how it refuses the rest."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes
from panes.language.parse import parse
from panes.language.query import Window
from panes.windows.spec import Landmark, PartitionedRows, PerRow, Sliding

MINUTE = 60_000_000


def window(clause: str) -> Window:
    found = parse(f"SELECT count(*) FROM s [{clause}]").window
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        (
            "RANGE 10 minutes SLIDE 1 minute WATTR ts",
            Window(Sliding(size=10 * MINUTE, slide=MINUTE), "time", "ts"),
        ),
        (
            "wa ts, slide 1 min, range 600 sec",
            Window(Sliding(size=10 * MINUTE, slide=MINUTE), "time", "ts"),
        ),
        (
            "RANGE 6.4 s SLIDE 640 ms WATTR ts",
            Window(Sliding(size=6_400_000, slide=640_000), "time", "ts"),
        ),
        ("RANGE 1000 SLIDE 10 WATTR seq", Window(Sliding(size=1000, slide=10), "integer", "seq")),
        ("RANGE 100 ROWS SLIDE 1 ROW", Window(Sliding(size=100, slide=1), "rows", None)),
        (
            "RANGE 100 tuples SLIDE 10 tuples WA row-num",
            Window(Sliding(size=100, slide=10), "rows", None),
        ),
        ("ROWS 6", Window(Sliding(size=6, slide=1), "rows", None)),
        (
            "RANGE 9 ROWS SLIDE 3 ROWS PA a, b",
            Window(PartitionedRows(size=9, slide=3), "rows", None, ("a", "b")),
        ),
        ("RANGE ALL SLIDE 1 minute WATTR ts", Window(Landmark(slide=MINUTE), "time", "ts")),
        ("TUMBLING 1 minute WATTR ts", Window(Sliding(size=MINUTE, slide=MINUTE), "time", "ts")),
        (
            "RANGE TUMBLING 1 minute, WA ts",
            Window(Sliding(size=MINUTE, slide=MINUTE), "time", "ts"),
        ),
        ("RANGE 5 minutes RATTR ts SLIDE 1 ROW", Window(PerRow(size=5 * MINUTE), "time", "ts")),
        (
            "RANGE 5 minutes RATTR ts SLIDE 5 ROWS SATTR rank(ts)",
            Window(PerRow(size=5 * MINUTE, every=5, counted_by="rank"), "time", "ts"),
        ),
        (
            "RANGE 10 SLIDE 4 WATTR a ALIGN START",
            Window(Sliding(size=10, slide=4, origin=2), "integer", "a"),
        ),
        (
            "RANGE 10 SLIDE 4 WATTR a ORIGIN 3",
            Window(Sliding(size=10, slide=4, origin=3), "integer", "a"),
        ),
        (
            "TUMBLING 1 day WATTR ts ORIGIN '1970-01-01T06:00:00Z'",
            Window(
                Sliding(size=1440 * MINUTE, slide=1440 * MINUTE, origin=360 * MINUTE), "time", "ts"
            ),
        ),
        (
            "TUMBLING 10 WATTR a ORIGIN FIRST",
            Window(Sliding(size=10, slide=10), "integer", "a", origin_first=True),
        ),
        ("RANGE 10 SLIDE 4 WATTR `my col`", Window(Sliding(size=10, slide=4), "integer", "my col")),
    ],
)
def test_a_clause_means_the_window_it_says(clause: str, expected: Window) -> None:
    assert window(clause) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, max(x) AS m FROM s [RANGE 10 SLIDE 5 WATTR a] GROUP BY k",
        "SELECT k, max(x) AS m [RANGE 10 SLIDE 5 WATTR a] FROM s GROUP BY k",
        "SELECT k, max(x) AS m FROM s GROUP BY k [RANGE 10 SLIDE 5 WATTR a]",
        "select s.k, MAX(s.x) m from s AS s [range 10, slide 5, wa a] group by s.k;",
        "SELECT k, max(x) AS m FROM s [RANGE 10 SLIDE 5 WATTR a] GROUP BY 1",
    ],
)
def test_the_clause_stands_in_any_of_three_places(text: str) -> None:
    table = pa.table({"a": [1, 7, 12], "k": ["p", "q", "p"], "x": [1.0, 2.0, 3.0]})
    answers = panes.sql(text, s=table)
    assert answers.column_names == ["window_start", "window_end", "k", "m"]
    assert answers["m"].to_pylist() == [1.0, 1.0, 2.0, 3.0, 2.0, 3.0]


def test_answers_have_windows_then_keys_then_the_rest_in_the_selects_order() -> None:
    table = pa.table({"a": [1], "k": ["p"], "x": [2], "y": [3]})
    text = (
        "SELECT sum(x) AS s, y AS why, count(*), window_end AS until, upper(k) AS big "
        "FROM s [TUMBLING 5 WATTR a] GROUP BY k, y"
    )
    answers = panes.sql(text, s=table)
    assert answers.to_pylist() == [
        {
            "window_start": 0, "window_end": 5, "why": 3, "k": "p",
            "s": 2, "count(*)": 1, "until": 5, "big": "P",
        }
    ]  # fmt: skip
    assert answers.column_names[2:4] == ["why", "k"]


def test_names_are_found_whatever_their_case_and_however_they_are_quoted() -> None:
    table = pa.table({"At": [1], "select": [2], "bid-price": [7]})
    text = "SELECT max(`select`) AS a, max(bid-price) AS b FROM s [TUMBLING 5 WATTR AT]"
    assert panes.sql(text, s=table).to_pylist()[0] == {
        "window_start": 0, "window_end": 5, "a": 2, "b": 7,
    }  # fmt: skip


def test_having_and_group_by_see_through_aliases() -> None:
    table = pa.table({"a": [1, 2, 3], "x": [10, 11, 12]})
    text = (
        "SELECT x % 2 AS odd, sum(x) + 1 AS more FROM s [TUMBLING 5 WATTR a] "
        "GROUP BY odd HAVING more * 2 > 30"
    )
    assert panes.sql(text, s=table).to_pylist() == [
        {"window_start": 0, "window_end": 5, "odd": 0, "more": 23}
    ]


REFUSED = {
    "": "a window query is one SELECT, found the end of the query",
    "DROP TABLE s": "line 1, column 1: a window query is one SELECT, found `DROP`",
    "SELECT count(*) FROM s [RANGE 5 SLIDE 1 WATTR a]; SELECT 1": "exactly one SELECT",
    "SELECT *\nFROM s [RANGE 5 SLIDE 1 WATTR a]": r"line 1, column 8: SELECT \* has no meaning",
    "SELECT k FROM s [RANGE 5 SLIDE 1 WATTR a]": "line 1, column 8: `k` is neither grouped nor",
    "SELECT count(*)\nFROM s [RANGE 5 SLIDE 0 WATTR a]": "line 2, column 23: .* positive SLIDE, got 0",
    "SELECT count(*) FROM s [RANGE -5 SLIDE 1 WATTR a]": "needs a positive RANGE, got -5",
    "SELECT count(*) FROM s [RANGE 5 SLIDE 1]": "does not say which column.*\n\nHint: add WATTR ts",
    "SELECT count(*) FROM s [RANGE 5 WATTR a]": "needs a SLIDE",
    "SELECT count(*) FROM s [SLIDE 5 WATTR a]": "needs a RANGE",
    "SELECT count(*) FROM s [RANGE 5 fortnights SLIDE 1 day WATTR a]": "column 33: RANGE has an unknown unit",
    "SELECT count(*) FROM s [RANGE 1 month SLIDE 1 day WATTR a]": "no fixed length",
    "SELECT count(*) FROM s [RANGE 5 minutes SLIDE 1 WATTR a]": "units of time and SLIDE in plain numbers",
    "SELECT count(*) FROM s [RANGE 1.5 ROWS SLIDE 1 ROW]": "counts rows, got 1.5",
    "SELECT count(*) FROM s [RANGE 5 SLIDE 1 WATTR a] [RANGE 6 SLIDE 1 WATTR a]": "found a second",
    "SELECT count(*) FROM s [RANGE 5 SLIDE 1 WATTR a EVERY 3]": "cannot say `EVERY` here",
    "SELECT count(*) FROM s, t [RANGE 5 SLIDE 1 WATTR a]": "reads a stream `t`, which was not given",
    "SELECT count(*) FROM s JOIN t [RANGE 5 SLIDE 1 WATTR a]": "reads a stream `t`",
    "SELECT count(*) FROM (SELECT a, max(x) FROM s GROUP BY a) [RANGE 5 SLIDE 1 WATTR a]": "filters rows, projects them and drops duplicates",
    "SELECT count(*) FROM (SELECT a FROM (SELECT DISTINCT a, b FROM s)) [RANGE 5 SLIDE 1 WATTR a]": "column 23: a SELECT around a SELECT DISTINCT keeps its columns",
    "SELECT count(*) FROM (SELECT DISTINCT a FROM (s UNION ALL t)) [RANGE 5 SLIDE 1 WATTR a]": "column 30: SELECT DISTINCT inside FROM tells the rows of one stream apart",
    "SELECT count(*) FROM (SELECT a FROM (SELECT b AS a FROM s) WHERE b > 1) [RANGE 5 SLIDE 1 WATTR a]": "column 66: no column `b` in the SELECT inside FROM",
    "SELECT count(*) FROM (SELECT a FROM (SELECT a, c, p AS b FROM s) WHERE exists(c, p -> p > b)) [RANGE 5 SLIDE 1 WATTR a]": "`p` is a column of the SELECT inside as well",
    "SELECT count(*) FROM (SELECT a + 1 FROM s) [RANGE 5 SLIDE 1 WATTR a]": "needs a name",
    "SELECT count(*) FROM (SELECT a FROM s [RANGE 5 SLIDE 1 WATTR a])": "behind its parenthesis",
    "SELECT count(*) FROM (WITH x AS (SELECT 1) SELECT a FROM s) [RANGE 5 SLIDE 1 WATTR a]": "WITH stands at the beginning",
    "SELECT count(*) FROM s [RANGE 5 SLIDE 1 WATTR a] EMIT EARLY EVERY 3 ROWS": "not rows",
    "SELECT count(*) FROM s [RANGE 5 SLIDE 1 WATTR a] EMIT EARLY GROUP BY k": "nothing follows EMIT EARLY",
    "SELECT count(*) FROM s [RANGE 5 SLIDE 1 WATTR a] WHERE x IN (SELECT 1)": "without subqueries",
    "SELECT count(*) FROM s [RANGE 5 SLIDE 1 WATTR a] WHERE max(x) > 1": "WHERE cannot hold an aggregate.*\n\nHint: filter answers with HAVING",
    "SELECT count(*) FROM s [RANGE 5 SLIDE 1 WATTR a] ORDER BY 1": "ORDER BY is not understood",
    "SELECT count(*) FROM s [RANGE 5 SLIDE 1 WATTR a] LIMIT 3": "LIMIT is not understood",
    "SELECT DISTINCT k FROM s [RANGE 5 SLIDE 1 WATTR a] GROUP BY k": "SELECT DISTINCT has no GROUP BY",
    "WITH x AS 1 SELECT count(*) FROM s [RANGE 5 SLIDE 1 WATTR a]": "`x` is one SELECT in parentheses",
    "SELECT max(x) OVER (PARTITION BY k) FROM s [RANGE 5 SLIDE 1 WATTR a]": "OVER .* no place",
    "SELECT max(sum(x)) FROM s [RANGE 5 SLIDE 1 WATTR a]": "cannot hold an aggregate, found sum",
    "SELECT kll_sketch_agg_bigint(x) FROM s [RANGE 5 SLIDE 1 WATTR a]": "by random bits",
    "SELECT approx_top_k_accumulate(x) FROM s [RANGE 5 SLIDE 1 WATTR a]": "depend on the order of rows",
    "SELECT grouping(x) FROM s [RANGE 5 SLIDE 1 WATTR a]": "a window has one level",
    "SELECT mode(x, false) FROM s [RANGE 5 SLIDE 1 WATTR a]": "any of several values",
    "SELECT count_if(k) FROM s [RANGE 5 SLIDE 1 WATTR a]": "must be a condition",
    "SELECT percentile_cont(0.5) FROM s [RANGE 5 SLIDE 1 WATTR a]": "needs the order",
    "SELECT max(x) WITHIN GROUP (ORDER BY x) FROM s [RANGE 5 SLIDE 1 WATTR a]": "no WITHIN GROUP",
    "SELECT percentile(x, 0.5, 2) FROM s [RANGE 5 SLIDE 1 WATTR a]": "takes no frequency but 1",
    "SELECT percentile(x, 0.5, k) FROM s [RANGE 5 SLIDE 1 WATTR a]": "got k\n\nHint: a median by weights",
    "SELECT bit_and(price) FROM s [RANGE 5 SLIDE 1 WATTR a]": "needs whole numbers",
    "SELECT listagg(x) FROM s [RANGE 5 SLIDE 1 WATTR a]": "joins text or binary",
    "SELECT max(map(k, x)) FROM s [RANGE 5 SLIDE 1 WATTR a]": "can be ordered",
    "SELECT median(x, 2) FROM s [RANGE 5 SLIDE 1 WATTR a]": "median takes median\\(x\\), got 2",
    "SELECT quantile(x) FROM s [RANGE 5 SLIDE 1 WATTR a]": "quantile takes quantile\\(x, p\\), got 1",
    "SELECT quantile(x, k) FROM s [RANGE 5 SLIDE 1 WATTR a]": "must be numbers, got k",
    "SELECT quantile(x, 1.5) FROM s [RANGE 5 SLIDE 1 WATTR a]": "between 0 and 1, got 1.5",
    "SELECT top_k(x, 0) FROM s [RANGE 5 SLIDE 1 WATTR a]": "positive whole number below 2,147,483,648, got 0$",
    "SELECT max(*) FROM s [RANGE 5 SLIDE 1 WATTR a]": r"max\(\*\) has no meaning",
    "SELECT count(*) FROM s": "the query has no window.*\n\nHint: say which: FROM s ",
    "SELECT count(*)": "the query reads no stream",
    "SELECT count(*) +\nFROM s [RANGE 5 SLIDE 1 WATTR a]": "line 2",
    "SELECT 'open FROM s [RANGE 5 SLIDE 1 WATTR a]": "the query cannot be read",
    "SELECT count(*) FROM s [RANGE 5 SLIDE 1 WATTR nope]": "no column `nope` in stream `s`",
    "SELECT max(prise) FROM s [RANGE 5 SLIDE 1 WATTR a]": "did you mean `price`",
    "SELECT count(*) FROM z [RANGE 5 SLIDE 1 WATTR a]": "reads a stream `z`, which was not given",
    "SELECT count(*) FROM s [RANGE 5 SLIDE 1 WATTR k]": "`k` of stream `s` cannot order a window: it is string",
    "SELECT count(*) FROM s [RANGE 5 minutes SLIDE 1 minute WATTR a]": "`a` is an integer, so RANGE",
    "SELECT count(*) FROM s [TUMBLING 5 minutes WATTR x]": r"timestamp_millis\(x\) AS ts, ... FROM s",
    "SELECT count(*) FROM s [TUMBLING 5 minutes WATTR k]": r"to_timestamp\(k, 'dd/MM/yyyy HH:mm'\) AS at",
    "SELECT count(*) AS n, n * 2 AS m FROM s [RANGE 5 SLIDE 1 WATTR a]": r"called n, write what it is: COUNT\(\*\)",
    "SELECT count(*) AS n FROM s [RANGE 5 SLIDE 1 WATTR a] WHERE x > 0 AND n > 3": "HAVING n > 3",
    "SELECT k, count(*) AS n FROM s [RANGE 5 SLIDE 1 WATTR a] GROUP BY ALL": "name them: GROUP BY",
    "SELECT count(*) FROM s GROUP BY window(ts, '1 minute')": "a window is no function here",
    "SELECT count(*) FROM s [RANGE 5 SLIDE 1 WATTR ts]": "`ts` is a timestamp, so RANGE",
    "SELECT sum(k) FROM s [RANGE 5 SLIDE 1 WATTR a]": "sum needs numbers, got string",
    "SELECT median(k) FROM s [RANGE 5 SLIDE 1 WATTR a]": "interpolate between numbers, got string",
    "SELECT bool_and(x) FROM s [RANGE 5 SLIDE 1 WATTR a]": "need a boolean, got int64",
    "SELECT max(x + (x > 1)) FROM s [RANGE 5 SLIDE 1 WATTR a]": "`\\+` of bigint and bool.*Spark",
    "SELECT max(0x1F) FROM s [RANGE 5 SLIDE 1 WATTR a]": "does not read `0x1F`.*write 31",
    f"SELECT max(0x{'9' * 5000}) FROM s [RANGE 5 SLIDE 1 WATTR a]": "`0x9{16}...`.*decimal digits",
    "SELECT max(nofun(x)) FROM s [RANGE 5 SLIDE 1 WATTR a]": "no function `nofun`",
    "SELECT count(*), count(*) FROM s [RANGE 5 SLIDE 1 WATTR a] GROUP BY l": "cannot group values",
    "SELECT count(*) AS n FROM s [RANGE 5 RATTR a SLIDE 1 ROW PA l]": "PA `l` cannot group values",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_understood_is_refused_with_a_reason(text: str) -> None:
    table = pa.table(
        {
            "a": [1], "k": ["p"], "x": [1], "price": [1.0],
            "ts": pa.array([0], pa.timestamp("us")), "l": [[1]],
        }
    )  # fmt: skip
    with pytest.raises(panes.PanesError, match=f"(?s){REFUSED[text]}"):
        panes.sql(text, **({} if "FROM z" in text else {"s": table}))


def test_a_query_nested_too_deeply_is_refused() -> None:
    text = f"SELECT max({'(' * 3000}x{')' * 3000}) FROM s [RANGE 5 SLIDE 1 WATTR a]"
    with pytest.raises(panes.QueryError, match="nested too deeply"):
        parse(text)


def test_a_key_that_is_named_twice_is_one_key() -> None:
    query = parse("SELECT k, count(*) AS n FROM s [ROWS 5 PA k] GROUP BY k, K")
    assert [key.name for key in query.keys] == ["k"]
