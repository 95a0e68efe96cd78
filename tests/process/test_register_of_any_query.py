"""Registers of any queries, one behaviour at a time: what is shared, refused, told and handed over.

That every answer is what the query would get alone is looked for in `test_any_register.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import panes
from panes.process.query_node import QueryNode

COUNT = "SELECT count(*) AS n FROM s [TUMBLING 5 WATTR at]"
ALL = "SELECT count(*) AS n FROM s [RANGE ALL SLIDE 5 WATTR at]"
ROWS = "SELECT sum(x) AS n FROM s [RANGE 3 ROWS SLIDE 3 ROWS]"
PEAKS = "SELECT k, max(x) AS m FROM s [TUMBLING 5 WATTR at] GROUP BY k"


def rows(*at: int) -> pa.Table:
    columns = {"at": at, "k": [1] * len(at), "x": [a % 5 for a in at], "o": [2 * a for a in at]}
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def over_peaks(size: int, name: str = "peaks") -> str:
    return (
        f"WITH {name} AS ({PEAKS}) SELECT k, sum(m) AS n FROM {name} [RANGE {size} SLIDE 5] "
        "GROUP BY k"
    )


def ends(table: pa.Table) -> list[int]:
    found: list[int] = table["window_end"].to_pylist()
    return found


def test_queries_over_the_same_inner_query_share_it_and_its_panes() -> None:
    """Whatever each text calls it. Once the last one goes, nothing of it is left."""
    reg = panes.register("s", lateness=0)
    for size in (10, 20, 30):
        reg.add(f"q{size}", over_peaks(size, f"p{size}"))
    reg.push(rows(1, 7, 12))
    assert (reg.state["nodes"], reg.state["stores"]) == (1, 1)
    assert reg.explain().count("part       p10") == 1
    for size in (10, 20, 30):
        reg.remove(f"q{size}")
    assert (reg.state["nodes"], reg.state["stores"]) == (0, 0)


def test_queries_that_say_the_same_run_once() -> None:
    reg = panes.register("s", lateness=0)
    reg.add("one", ALL)
    reg.add("two", ALL.replace("SELECT", "select  "))
    given = reg.push(rows(1, 6))
    assert reg.state["nodes"] == 1
    assert ends(given["one"]) == ends(given["two"]) == [5]


def test_a_stream_joined_with_a_union_of_itself_is_answered_as_alone() -> None:
    text = (
        "SELECT count(*) AS n FROM s a LEFT JOIN (s UNION ALL s) b ON a.k = b.k "
        "[RANGE 6 SLIDE 3 WATTR at]"
    )
    reg, alone = panes.register("s", lateness=0), panes.open(text, lateness=0)
    reg.add("pairs", text)
    batch = rows(1, 2, 5, 9, 20)
    for got, wanted in ((reg.push(batch), alone.push(s=batch)), (reg.finish(), alone.finish())):
        assert len(wanted)
        assert got["pairs"].equals(wanted)


def test_a_join_that_is_registered_twice_keeps_its_panes_once() -> None:
    text = ("SELECT count(*) AS n [RANGE 10 SLIDE 5 WATTR a.at] FROM s a JOIN s b "
            "ON b.at BETWEEN a.at AND a.at + 1")  # fmt: skip
    reg = panes.register("s", lateness=0)
    reg.add("one", text)
    reg.add("two", text)
    reg.push(rows(1, 2, 3))
    [join] = reg._graph.joins._joins.values()
    assert join.answers["one"] is join.answers["two"]
    found = reg.finish()
    assert found["one"].to_pylist() == found["two"].to_pylist() != []


def test_what_a_register_of_several_streams_takes() -> None:
    reg = panes.register(("s", "r"), lateness=0)
    reg.add("one", COUNT)
    both = "(SELECT at FROM s UNION ALL SELECT at FROM r)"
    reg.add("both", f"SELECT count(*) AS n FROM {both} [TUMBLING 5 WATTR at]")
    reg.add("near", "SELECT s.at FROM s JOIN r ON r.at BETWEEN s.at AND s.at + 1")
    found = reg.push(s=rows(1, 6), r=rows(2))
    assert {name: len(table) for name, table in found.items()} == {"one": 1, "near": 1}
    assert reg.push(r=rows(9))["both"]["n"].to_pylist() == [2]
    with pytest.raises(panes.OptionError, match="say for which stream"):
        reg.push(rows(1))


def test_a_late_row_is_told_once_however_many_queries_read_the_stream() -> None:
    """It is told whether or not WHERE lets it through, and says what became of it."""
    reg = panes.register("s", lateness=0)
    for name, text in {
        "a": ALL,
        "b": f"{ALL} WHERE x > 3",
        "c": over_peaks(10),
        "d": COUNT,
    }.items():
        reg.add(name, text)
    reg.push(rows(20))
    reg.push(rows(3))
    reasons = reg.take_late()["reason"].to_pylist()
    assert reasons == ["behind progress 20; counted in its open windows"]
    assert reg.state["late_rows"] == 1
    assert len(reg.late) == 0


def test_windows_over_another_column_progress_by_it() -> None:
    reg = panes.register("s", lateness=0)
    reg.add("at", COUNT)
    reg.add("o", COUNT.replace("at]", "o]"))
    assert ends(reg.push(rows(1, 3))["o"]) == [5]
    with pytest.raises(panes.OptionError, match="queries order `s` by at and by o"):
        reg.punctuate(20)
    assert len(reg.late) == 0


def test_a_query_over_a_column_that_nobody_looked_at_is_refused_once_rows_came() -> None:
    reg = panes.register("s", lateness=0)
    reg.add("at", COUNT)
    reg.push(rows(1, 3))
    with pytest.raises(panes.QueryError, match="nobody knows where they lie on `o`"):
        reg.add("o", COUNT.replace("at]", "o]"))
    assert list(reg.queries()) == ["at"]


@pytest.mark.parametrize("text", [
    ALL, f"SELECT sum(m) AS n FROM ({PEAKS}) [RANGE ALL SLIDE 10]",
    f"SELECT sum(n) AS n FROM ({ALL}) [TUMBLING 10]",
    COUNT.replace("TUMBLING 5", "RANGE 9 SLIDE 5").replace("at]", "at ORIGIN FIRST]"),
    "SELECT k, sum(x) AS n FROM s [PA k RANGE 3 ROWS SLIDE 1 ROW]",
    "SELECT sum(x) AS n FROM s [RANGE 3 SLIDE 1 ROW RATTR at]",
])  # fmt: skip
def test_what_would_miss_rows_for_ever_is_refused_once_rows_came(text: str) -> None:
    reg = panes.register("s", lateness=0)
    reg.add("first", COUNT)
    reg.push(rows())
    reg.add("early enough", text)
    reg.remove("early enough")
    reg.push(rows(1))
    with pytest.raises(panes.QueryError, match="rows have come before this query"):
        reg.add("late", text)
    assert list(reg.queries()) == ["first"]
    assert reg.state["nodes"] == 0


def test_counted_windows_go_on_counting_where_the_stream_is() -> None:
    reg = panes.register("s")
    reg.add("first", ROWS)
    reg.push(rows(1, 2, 3, 4))
    assert reg.add("later", ROWS.replace("sum", "max")).exact_from == 6
    assert ends(reg.push(rows(5, 6, 7, 8, 9))["later"]) == [9]


def test_a_query_that_fails_takes_those_with_it_that_contain_it_and_no_others() -> None:
    inner = "SELECT k, sum(10 / x) AS m FROM s [TUMBLING 5 WATTR at] GROUP BY k"
    reg = panes.register("s", lateness=0)
    reg.add("good", ALL)
    reg.add("bad", inner + " EMIT EARLY")
    reg.add("over", f"SELECT sum(m) AS n FROM ({inner}) [RANGE ALL SLIDE 10]")
    with pytest.warns(panes.FailedQueryWarning, match="are? set aside|is set aside"):
        found = reg.push(rows(1, 5, 6))
    assert set(reg.failed) == {"bad", "over"}
    assert ends(found["good"]) == [5]
    with pytest.raises(panes.QueryError, match="rows have come before"):
        reg.put_back("over")
    assert reg.put_back("bad").exact_from == 10


def test_a_sink_that_raises_gets_each_answer_once() -> None:
    """It raises at every third answer; whoever called makes the call again."""
    given: dict[str, list[int]] = {}
    calls = 0

    def sink(name: str, table: pa.Table) -> None:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise OSError("disk full")
        given.setdefault(name, []).extend(ends(table))

    reg = panes.register("s", lateness=0, hand_over=sink)
    for name, text in {"count": COUNT, "all": ALL, "over": over_peaks(5), "peaks": PEAKS}.items():
        reg.add(name, text)
    steps: list[Callable[[], object]] = [
        lambda: reg.push(rows(1, 7)), lambda: reg.push(rows(12, 22)), reg.finish,
    ]  # fmt: skip
    for call in steps:
        for _ in range(9):
            try:
                call()
                break
            except OSError:
                continue
    assert calls > 9
    assert given == {"count": [5, 10, 15, 25], "peaks": [5, 10, 15, 25], "over": [5, 10, 15, 25],
                     "all": [5, 10, 15, 20, 25]}  # fmt: skip


def test_a_batch_that_fits_no_query_is_refused_and_blames_none() -> None:
    reg = panes.register("s", lateness=0)
    for name, text in {"a": COUNT, "b": ALL, "c": over_peaks(10)}.items():
        reg.add(name, text)
    with pytest.raises(panes.PanesError, match="no column `at`"):
        reg.push(pa.table({"time": [1]}))
    assert not reg.failed
    assert ends(reg.push(rows(1, 6))["b"]) == [5]


def test_what_could_never_be_answered_is_refused_when_it_is_added() -> None:
    reg = panes.register("s", lateness=0)
    with pytest.raises(panes.QueryError, match="gives only final answers"):
        reg.add("early", f"SELECT sum(m) AS n FROM ({PEAKS} EMIT EARLY) [TUMBLING 10]")
    with pytest.raises(panes.QueryError, match="promise nothing of `m`"):
        reg.add("open", f"SELECT sum(m) AS n FROM ({PEAKS}) [TUMBLING 10 WATTR m]")
    with pytest.raises(panes.OptionError, match="a deadline is for sliding windows"):
        reg.add("soon", ALL, deadline="1 second")
    assert reg.queries() == {}


def test_nodes_are_stepped_behind_those_that_they_read_once() -> None:
    reg = panes.register("s", lateness=0)
    for name in ("one", "two"):
        reg.add(name, over_peaks(10).replace("sum(m)", f"sum(m) + {len(name)}"))
    reg.push(rows(1))
    nodes = list(reg._graph.running.nodes.values())
    names = list(reg._graph.running.nodes)
    assert [isinstance(node, QueryNode) for node in nodes] == [False, True, False]
    assert nodes[2].reads == (names[1],)
