"""Windows over windows, one behaviour each; time goes to the right, a column is a tick."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import panes
from panes.errors import OptionError, QueryError
from tests.support import open_graph

PEAKS = "SELECT k, max(x) AS m FROM s [TUMBLING 10 WATTR at] GROUP BY k"


def rows(*at: int, x: int = 1) -> pa.Table:
    return pa.table({"at": list(at), "k": ["a"] * len(at), "x": [x] * len(at)})


def test_the_last_minute_of_an_hour_belongs_to_that_hour() -> None:
    """An answer lies at the last tick of its window, so windows that end together hold it."""
    utc = pa.timestamp("us", "UTC")
    minutes = [dt.datetime(2026, 1, 1, 0, m, 30, tzinfo=dt.UTC) for m in (0, 58, 59)]
    stream = pa.table({"ts": pa.array(minutes, utc)})
    text = (
        "SELECT count(*) AS minutes, max(n) AS most FROM "
        "(SELECT count(*) AS n FROM s [TUMBLING 1 minute WATTR ts]) [TUMBLING 1 hour]"
    )
    (answer,) = panes.sql(text, s=stream).to_pylist()
    assert answer["window_end"] == dt.datetime(2026, 1, 1, 1, tzinfo=dt.UTC)
    assert (answer["minutes"], answer["most"]) == (3, 1)


def test_an_outer_window_closes_in_the_step_that_closes_its_last_inner_one() -> None:
    """
    inner   |----|----|----|----|
    outer   |---------|---------|
    rows     x  x  x            P    progress reaches 20: both close at once
    """
    query = open_graph(f"SELECT sum(m) AS t FROM ({PEAKS}) [TUMBLING 20]")
    assert not len(query.push(s=rows(1, 4, 13)))
    assert query.punctuate(s=19).num_rows == 0
    assert query.punctuate(s=20).to_pylist() == [{"window_start": 0, "window_end": 20, "t": 2}]


def test_answers_have_their_columns_whether_or_not_there_are_any() -> None:
    query = open_graph(f"SELECT k, sum(m) AS t FROM ({PEAKS}) [TUMBLING 20] GROUP BY k")
    given = [*(query.push(s=rows(at)) for at in (1, 2, 13, 47, 48)), query.finish()]
    assert {tuple(answers.column_names) for answers in given} == {
        ("window_start", "window_end", "k", "t")
    }


def test_window_end_and_window_start_mean_what_they_say() -> None:
    """The window 0-10 ends at 10, which the outer window 10-20 holds."""
    starts = {}
    for column in ("window_time", "window_end", "window_start"):
        text = f"SELECT count(*) AS n FROM ({PEAKS}) [TUMBLING 10 WATTR {column}]"
        starts[column] = panes.sql(text, s=rows(3))["window_start"].to_pylist()
    assert starts == {"window_time": [0], "window_end": [10], "window_start": [0]}


def test_with_names_parts_and_a_part_without_windows_is_put_where_its_name_stands() -> None:
    text = f"""
        WITH big AS (SELECT at, k, x * 2 AS x FROM s WHERE x > 1),
             peaks AS (SELECT k, max(x) AS m FROM big [TUMBLING 10 WATTR at] GROUP BY k),
             unread AS ({PEAKS})
        SELECT k, avg(m) AS a FROM peaks [TUMBLING 30] GROUP BY k
    """
    stream = pa.concat_tables([rows(1, 12, x=3), rows(14, 25, x=5), rows(7, x=1)])
    assert panes.sql(text, s=stream)["a"].to_pylist() == [pytest.approx((6 + 10 + 10) / 3)]
    assert panes.oracle(text, s=stream).equals(panes.sql(text, s=stream))


def test_a_part_that_is_said_twice_is_one_part() -> None:
    select = f"SELECT a.k AS k, b.m AS m FROM ({PEAKS}) a JOIN ({PEAKS}) b"
    text = f"{select} ON a.window_end = b.window_end"
    query = open_graph(text)
    assert [part.name for part in query.query.parts] == ["inner_1", ""]


def test_a_z_score_is_one_query() -> None:
    """The last ten ticks against the sixty before their end."""
    text = """
        SELECT a.window_end AS until, (a.m - b.m) / b.s AS z
        FROM (SELECT avg(x) AS m FROM s [TUMBLING 10 WATTR at]) a
        JOIN (SELECT avg(x) AS m, stddev_pop(x) AS s FROM s [RANGE 60 SLIDE 10 WATTR at]) b
        ON a.window_end = b.window_end
    """
    stream = pa.table({"at": list(range(0, 60, 10)), "x": [1.0, 1.0, 1.0, 1.0, 1.0, 7.0]})
    found = panes.sql(text + " WHERE b.s > 0", s=stream).to_pylist()
    assert found == [{"until": 60, "z": pytest.approx((7 - 2) / 5**0.5)}]


def test_a_failing_outer_part_leaves_no_trace_in_the_inner_one() -> None:
    """The inner window is closed by the same push; pushed again, it is answered once."""
    text = f"SELECT sum(1 / (m - 1)) AS t FROM ({PEAKS}) [TUMBLING 20]"
    query = open_graph(text, lateness=0)
    query.push(s=rows(1, x=2))
    with pytest.raises(panes.PanesError):
        query.push(s=pa.concat_tables([rows(11, x=1), rows(45, x=2)]))
    found = query.push(s=pa.concat_tables([rows(11, x=3), rows(45, x=2)]))
    assert found["t"].to_pylist() == [1.5]


def test_state_returns_to_nothing_at_each_level() -> None:
    query = open_graph(f"SELECT sum(m) AS t FROM ({PEAKS}) [RANGE 100 SLIDE 10]", lateness=0)
    for at in range(0, 2_000, 7):
        query.push(s=rows(at))
        assert query.state["partials"] < 16
    query.finish()
    assert query.state["partials"] == 0


def test_late_rows_are_those_of_the_stream() -> None:
    query = open_graph(f"SELECT sum(m) AS t FROM ({PEAKS}) [TUMBLING 20]", lateness=0)
    query.push(s=rows(5, 35))
    query.push(s=rows(6))
    assert query.late["at"].to_pylist() == [6]
    assert query.state["late_rows"] == 1


def test_a_stream_is_joined_with_windows_over_it() -> None:
    """Rows beside the windows: only the rows of the stream are judged by lateness and clock."""
    text = f"""
        SELECT s.at AS at, w.m AS m FROM s JOIN ({PEAKS}) w
        ON s.k = w.k AND s.at >= w.window_end AND s.at < w.window_end + 10
    """
    query = open_graph(text, lateness=5)
    found = [query.push(s=rows(at)) for at in (1, 12, 23, 34)] + [query.finish()]
    at = sorted(a for table in found if table.num_columns for a in table["at"].to_pylist())
    assert at == [12, 23, 34]


def test_explain_shows_every_part() -> None:
    text = f"SELECT sum(m) AS t FROM ({PEAKS}) [TUMBLING 20]"
    said = panes.explain(text, s=rows(1))
    assert said.index("part       inner_1") < said.index("asked")
    assert said.count("\nwindow ") == 2


MINUTES = "SELECT k, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY k"
OF_ROWS = "SELECT count(*) AS n FROM s [RANGE 6 ROWS SLIDE 2 ROWS PA k]"
REFUSED = {
    "early inside": (f"SELECT sum(m) AS t FROM ({PEAKS} EMIT EARLY) [TUMBLING 20]", "only final"),
    "early in WITH": (
        f"WITH p AS ({PEAKS} EMIT EARLY) SELECT sum(m) AS t FROM p [TUMBLING 20]",
        "only final",
    ),
    "early in a union": (
        f"SELECT sum(m) AS t FROM ({PEAKS} UNION ALL {PEAKS} EMIT EARLY) [TUMBLING 20]",
        "only final",
    ),
    "early in a join": (
        f"SELECT a.k AS k FROM ({PEAKS} EMIT EARLY) a JOIN ({MINUTES}) b "
        "ON a.window_end = b.window_end",
        "only final",
    ),
    "reads itself": (
        "WITH a AS (SELECT count(*) AS n FROM a [TUMBLING 5 WATTR at]) "
        "SELECT max(n) AS m FROM a [TUMBLING 10]",
        "`a` reads itself",
    ),
    "joins itself": (
        "WITH a AS (SELECT s.k AS k FROM s JOIN a ON s.k = a.k [TUMBLING 5 WATTR at]) "
        "SELECT max(k) AS m FROM a [TUMBLING 10]",
        "`a` reads itself",
    ),
    "reads itself deep inside": (
        "WITH a AS (SELECT max(n) AS n FROM (SELECT count(*) AS n FROM `A` [TUMBLING 5 WATTR at]) "
        "[TUMBLING 10]) SELECT max(n) AS m FROM a [TUMBLING 20]",
        "`a` reads itself",
    ),
    "one name twice": (
        f"WITH a AS ({PEAKS}), A AS ({PEAKS}) SELECT max(m) AS m FROM a [TUMBLING 10]",
        "two parts",
    ),
    "two sides of one name": (
        f"SELECT a.k AS k FROM ({PEAKS}) a JOIN ({MINUTES}) a ON a.window_end = a.window_end",
        "two sides of the join are called `a`",
    ),
    "recursive": (
        f"WITH RECURSIVE a AS ({PEAKS}) SELECT max(m) AS m FROM a [TUMBLING 10]",
        "itself",
    ),
    "not closed": (f"WITH a AS ({PEAKS} SELECT max(m) AS m FROM a [TUMBLING 10]", "not closed"),
    "columns named": (f"WITH a(m) AS ({PEAKS}) SELECT max(m) AS m FROM a [TUMBLING 10]", "SELECT"),
    "WITH inside": (
        f"SELECT max(m) AS m FROM (WITH a AS ({PEAKS}) SELECT m FROM a) [TUMBLING 10]",
        "beginning",
    ),
    "no promise": (f"SELECT sum(m) AS t FROM ({PEAKS}) [TUMBLING 20 WATTR m]", "promise nothing"),
    "no promise per row": (
        f"SELECT m, sum(m) AS t FROM ({PEAKS}) [RANGE 20 RATTR m SLIDE 1 ROW]",
        "promise nothing of `m`",
    ),
    "no promise on one side of a union": (
        f"SELECT count(*) AS n FROM (SELECT k, m AS e FROM ({PEAKS}) UNION ALL "
        "SELECT k, at AS e FROM s) [TUMBLING 20 WATTR e]",
        "promise nothing of `m`",
    ),
    "another order": (
        f"SELECT sum(m) AS t FROM (SELECT m, 0 - window_end AS e FROM ({PEAKS})) "
        "[TUMBLING 20 WATTR e]",
        "`0 - window_end` AS e could put answers in another order",
    ),
    "another order by a value": (
        f"SELECT sum(m) AS t FROM (SELECT m, window_end + m AS e FROM ({PEAKS})) "
        "[TUMBLING 20 WATTR e]",
        "`window_end [+] m` AS e could put answers in another order",
    ),
    "position left out": (
        f"SELECT count(*) AS n FROM (SELECT DISTINCT k FROM ({PEAKS})) [TUMBLING 20]",
        "does not give `window_time`",
    ),
    "over a value of a join": (
        f"SELECT sum(v) AS t FROM (SELECT a.m AS v FROM ({PEAKS}) a JOIN ({MINUTES}) b "
        "ON a.window_end = b.window_end) [TUMBLING 20 WATTR v]",
        "promise nothing of `v`",
    ),
    "above a join by a value": (
        f"SELECT sum(a.m) AS t [TUMBLING 10 WATTR a.m] FROM ({PEAKS}) a JOIN ({MINUTES}) b "
        "ON a.k = b.k AND a.window_end = b.window_end",
        "kept for ever",
    ),
    "never ends": (
        f"SELECT sum(n) AS t FROM ({OF_ROWS}) [TUMBLING 20]",
        "never close",
    ),
    "joined by keys alone": (
        f"SELECT a.k AS k FROM ({PEAKS}) a JOIN ({MINUTES}) b ON a.k = b.k",
        "`a` are joined by `k`, of which they promise nothing: all would be kept for ever",
    ),
    "joined by a band of values": (
        f"SELECT a.k AS k FROM ({PEAKS}) a JOIN ({MINUTES}) b ON a.m BETWEEN b.n - 3 AND b.n",
        "`a` are joined by `m`, of which they promise nothing",
    ),
    "a stream joined by a value": (
        f"SELECT s.k AS k FROM s JOIN ({PEAKS}) b ON b.m BETWEEN s.at - 3 AND s.at",
        "`b` are joined by `m`, of which they promise nothing",
    ),
    "joined in windows of values": (
        f"SELECT a.k AS k FROM ({PEAKS}) a JOIN ({PEAKS}) b ON a.k = b.k [TUMBLING 10 WATTR m]",
        "`a` are joined by `m`",
    ),
    "joined answers that promise nothing": (
        f"SELECT a.n AS n FROM ({OF_ROWS}) a JOIN ({MINUTES}) b ON a.window_end = b.window_end",
        "promise nothing of any column",
    ),
    "as of by a value": (
        f"SELECT a.k AS k FROM ({PEAKS}) a ASOF JOIN ({PEAKS}) b ON a.k = b.k AND b.m <= a.m "
        "AND b.m >= a.m - 5",
        "kept for ever",
    ),
}  # fmt: skip


_PLAIN = [text for name, (text, _) in REFUSED.items() if name == "not closed"]


@pytest.mark.parametrize(("text", "why"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_answered_is_refused_when_it_is_described(text: str, why: str) -> None:
    """With the place in the text, and something to write."""
    with pytest.raises(QueryError, match=why) as refused:
        open_graph(text, lateness=0)
    assert "line 1, column" in str(refused.value)
    if text not in _PLAIN:
        assert "Hint:" in str(refused.value)


def test_revisions_take_no_query_with_others_inside() -> None:
    text = f"SELECT sum(m) AS t FROM ({PEAKS}) [TUMBLING 20]"
    with pytest.raises(OptionError, match="other windows have counted"):
        open_graph(text, late="revise", lateness=0)


def test_a_table_may_be_windowed_over_any_column_of_answers() -> None:
    """Whole tables need no promises: everything is there."""
    text = f"SELECT count(*) AS n FROM ({PEAKS}) [TUMBLING 20 WATTR m]"
    assert panes.sql(text, s=rows(1, 12, x=5)).to_pylist() == [
        {"window_start": 0, "window_end": 20, "n": 2}
    ]


def test_ten_levels_deep() -> None:
    text = "SELECT count(*) AS n FROM s [TUMBLING 1 WATTR at]"
    for level in range(9):
        text = f"SELECT sum(n) AS n FROM ({text}) [TUMBLING {2 ** (level + 1)}]"
    stream = rows(*range(512))
    assert panes.sql(text, s=stream)["n"].to_pylist() == [512]
    query = open_graph(text, lateness=0)
    found = [query.push(s=stream.slice(i, 100)) for i in range(0, 512, 100)] + [query.finish()]
    assert sum(sum(t["n"].to_pylist()) for t in found if t.num_columns) == 512


def test_selects_of_a_union_may_have_windows_or_not() -> None:
    """Peaks of one stream and rows of another, counted together."""
    text = (
        f"SELECT k, count(*) AS n, sum(m) AS t FROM (SELECT k, m, window_end AS e FROM ({PEAKS}) "
        "UNION ALL SELECT k, x AS m, at AS e FROM u WHERE x > 1) [TUMBLING 20 WATTR e] GROUP BY k"
    )
    streams = {"s": rows(1, 4, 13, x=3), "u": rows(2, 3, x=5)}
    assert panes.sql(text, **streams).to_pylist() == [
        {"window_start": 0, "window_end": 20, "k": "a", "n": 3, "t": 13},
        {"window_start": 20, "window_end": 40, "k": "a", "n": 1, "t": 3},
    ]
    assert panes.oracle(text, **streams).equals(panes.sql(text, **streams))
    others = PEAKS.replace("FROM s", "FROM u")
    both = f"SELECT count(*) AS n FROM ({PEAKS} UNION ALL {others}) [TUMBLING 20]"
    assert panes.sql(both, **streams)["n"].to_pylist() == [3]


def test_a_select_of_answers_alone_is_refused_with_what_to_write() -> None:
    for text in (f"SELECT k, m + 1 AS m FROM ({PEAKS}) WHERE m > 1", f"SELECT * FROM ({PEAKS})"):
        with pytest.raises(
            QueryError, match="line 1, column 1: the outermost SELECT has no window"
        ):
            panes.open(text)


def test_late_rows_of_streams_in_different_types_are_shown_together() -> None:
    text = (
        f"SELECT a.k AS k FROM ({PEAKS}) a JOIN u b ON a.k = b.k AND b.at BETWEEN a.window_end AND "
        "a.window_end + 9"
    )
    other = pa.table({"at": [1, 30], "k": ["a", "a"], "x": pa.array([[1], None])})
    query = panes.open(text, lateness=0)
    query.push(s=rows(1, 30), u=other)
    query.push(s=rows(2, x=7), u=other.slice(0, 1))
    assert [(row["k"], row["x"]) for row in query.late.to_pylist()] == [("a", "7"), ("a", "[1]")]
    assert panes.sql(text, s=rows(21), u=other)["k"].to_pylist() == ["a"]


@pytest.mark.parametrize(
    "on",
    [
        "ON a.k = b.k AND a.window_end = b.window_end",
        "ON a.window_start = b.window_start AND (a.k = b.k AND a.window_end = b.window_end)",
        "ON a.window_start = b.window_start AND a.k = b.k",
        "USING (k, window_end)",
        "USING (window_start, k, window_end)",
    ],
)
def test_equal_edges_of_windows_are_joined(on: str) -> None:
    """Whichever edges are equal, one of them says how far apart two answers may be."""
    sums = "SELECT k, sum(x) AS t FROM s [TUMBLING 10 WATTR at] GROUP BY k"
    text = f"SELECT a.window_end AS e, a.m AS m, b.t AS t FROM ({PEAKS}) a JOIN ({sums}) b {on}"
    want = [{"e": 10, "m": 2, "t": 4}, {"e": 20, "m": 2, "t": 2}]
    streamed = panes.open(text, lateness=0)
    found = streamed.push(s=rows(1, 2, 13, 25, x=2)).to_pylist()
    assert sorted(found, key=lambda row: row["e"]) == want
    assert panes.oracle(text, s=rows(1, 2, 13, x=2)).sort_by("e").to_pylist() == want
