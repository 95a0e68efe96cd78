"""Queries that are added to a register of joins while rows come: only what is whole is answered."""

from __future__ import annotations

import datetime as dt
import random
from itertools import pairwise

import pyarrow as pa
import pytest

import panes
from tests.process.registered_joins import require_whole_windows

BAND = "FROM l [RANGE 3 WATTR at], r [RANGE 3 WATTR at] WHERE l.k = r.k"
QUERIES = {
    "over left": f"SELECT r.x, count(*) AS n [TUMBLING 5 WATTR l.at] {BAND} GROUP BY r.x",
    "over both": f"SELECT sum(r.x) AS s [RANGE 10 SLIDE 5 WATTR max(l.at, r.at)] {BAND}",
    "filtered": f"SELECT count(*) AS n [TUMBLING 4 WATTR r.at] {BAND} AND r.x > 2",
    "windows": "SELECT count(*) AS n FROM l JOIN r ON l.k = r.k [RANGE 6 SLIDE 3 WATTR at]",
    "spent": "SELECT l.at, sum(r.x) AS s FROM l LEFT JOIN r ON l.k = r.k AND r.at BETWEEN l.at - 5 "
    "AND l.at GROUP BY l.at",
    "positions": f"SELECT l.at, r.at AS other, count(*) AS n {BAND} GROUP BY l.at, r.at",
}
NEAR = "SELECT l.at FROM l JOIN r ON r.at BETWEEN l.at AND l.at + 1"
Answer = dict[str, int]


def rows(rng: random.Random, column: str) -> pa.Table:
    at = [max(a - rng.randrange(4), 0) for a in sorted(rng.randrange(60) for _ in range(25))]
    columns = {
        "at": at,
        "k": [rng.randrange(3) for _ in at],
        column: [rng.randrange(9) for _ in at],
    }
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def position(answer: Answer) -> int:
    """Where an answer begins: its window, or the later of the positions of its group."""
    if "window_start" in answer:
        return answer["window_start"]
    return max(answer["at"], answer.get("other", 0))


@pytest.mark.parametrize("seed", range(12))
def test_from_where_a_query_says_on_it_is_answered_as_if_it_had_always_been_there(
    seed: int,
) -> None:
    rng = random.Random(seed)
    left, right = rows(rng, "id"), rows(rng, "x")
    names = rng.sample(list(QUERIES), len(QUERIES))
    reg = panes.register(("l", "r"), lateness=8)
    begins = {names[0]: reg.add(names[0], QUERIES[names[0]]).exact_from}
    given: dict[str, list[Answer]] = {name: [] for name in names}
    cuts = [0, *sorted(rng.randrange(26) for _ in range(3)), 25]
    for turn, (a, b) in enumerate(pairwise(cuts)):
        for name, table in reg.push(l=left.slice(a, b - a), r=right.slice(a, b - a)).items():
            given[name] += table.to_pylist()
        for name in names[2 * turn + 1 : 2 * turn + 3]:
            begins[name] = reg.add(name, QUERIES[name]).exact_from
    for name, table in reg.finish().items():
        given[name] += table.to_pylist()
    for name, text in QUERIES.items():
        first = begins[name]
        assert first is None or isinstance(first, int)
        wanted = panes.oracle(text, l=left, r=right).to_pylist()
        wanted = [answer for answer in wanted if first is None or position(answer) >= first]
        assert sorted(given[name], key=repr) == sorted(wanted, key=repr), name


def test_a_window_that_misses_rows_is_not_answered() -> None:
    require_whole_windows()


def test_windows_over_all_rows_are_for_queries_that_see_all() -> None:
    everything = f"SELECT count(*) AS n [RANGE ALL SLIDE 5 WATTR l.at] {BAND}"
    reg = panes.register(("l", "r"), lateness=0)
    reg.add("all", everything)
    rng = random.Random(1)
    reg.push(l=rows(rng, "id"), r=rows(rng, "x"))
    with pytest.raises(panes.QueryError, match="windows over ALL rows would miss them"):
        reg.add("again", everything)


def test_rows_of_a_stream_that_no_query_reads_are_refused() -> None:
    reg = panes.register(("l", "r", "m"))
    reg.add("near", NEAR)
    with pytest.raises(panes.QueryError, match="no query reads `m`"):
        reg.push(m=pa.table({"at": [1]}))


def test_a_promise_waits_for_nothing() -> None:
    """Before the columns of all sides are known, nobody could say whether it can be meant."""
    query, reg = panes.open(NEAR), panes.register(("l", "r"))
    reg.add("near", NEAR)
    some = pa.table({"at": [1]})
    query.push(l=some)
    reg.push(l=some)
    for promise in (query.punctuate, reg.punctuate):
        with pytest.raises(panes.PanesError, match="no batch of `r`, so a promise cannot"):
            promise(l="2026-01-01")
    assert query.push(r=some).num_rows == reg.push(r=some)["near"].num_rows == 1


def test_a_query_whose_streams_never_came_is_set_aside_at_the_end() -> None:
    reg = panes.register(("l", "r"))
    reg.add("near", NEAR)
    reg.push(l=pa.table({"at": [1]}))
    with pytest.warns(panes.FailedQueryWarning, match="no batch of `r`"):
        assert reg.finish() == {}
    assert list(reg.failed) == ["near"]


def test_options_of_windows_are_refused_for_joined_rows() -> None:
    with pytest.raises(panes.PanesError, match="flush and why are for windows"):
        panes.open(NEAR, why=True)
    with pytest.raises(panes.PanesError, match="flush and why are for windows"):
        panes.open(NEAR, flush=panes.LazyFlush(within="1 minute"))


LATER = {
    "lone": ("SELECT l.id, r.x FROM l LEFT JOIN r ON r.at BETWEEN l.at - 3 AND l.at", 13),
    "far": ("SELECT l.id, r.x FROM l LEFT JOIN r ON r.at BETWEEN l.at + 3 AND l.at + 4", 10),
    "right": ("SELECT l.id, r.x FROM l RIGHT JOIN r ON r.at BETWEEN l.at - 3 AND l.at", 10),
    "anti": ("SELECT l.id FROM l ANTI JOIN r ON r.at BETWEEN l.at - 3 AND l.at AND r.x > 19", 13),
    "as of": ("SELECT l.id, r.x FROM l ASOF LEFT JOIN r [RANGE 3 WATTR at]", 13),
    "pairs": ("SELECT l.id, r.x FROM l JOIN r ON r.at BETWEEN l.at - 3 AND l.at", 10),
    "counted": (
        "SELECT l.at, count(*) AS n FROM l JOIN r ON r.at BETWEEN l.at - 3 AND l.at GROUP BY l.at",
        13,
    ),
    "windows": ("SELECT l.id, r.x FROM l LEFT JOIN r ON l.id = r.x [TUMBLING 4 WATTR at]", 12),
}


@pytest.mark.parametrize("name", LATER)
def test_a_row_is_alone_only_if_no_row_before_the_query_could_have_been_its_partner(
    name: str,
) -> None:
    """A query that comes after position 9, and its join with it.

    at   0 ....... 9 | 10 11 12 13 14 ...
    r    x x x x x x |                       not stored: a partner of l at 10, 11 and 12
    l                |  ?  ?  ?  x            the first of which nobody misses anything
    """
    text, begins = LATER[name]
    table = pa.table({"at": range(30), "id": range(30), "x": range(30)})
    reg = panes.register(("l", "r"), lateness=0)
    reg.add("first", NEAR)
    reg.push(l=table.slice(0, 10), r=table.slice(0, 10))
    assert reg.add(name, text).exact_from == begins
    given = [reg.push(l=table.slice(10), r=table.slice(10))[name], reg.finish()[name]]
    got = pa.concat_tables(given).to_pylist()
    wanted = panes.oracle(text, l=table, r=table).to_pylist()
    assert all(answer in wanted for answer in got)
    sure = [a for a in wanted if lies_behind(name, a, begins)]
    assert sure
    assert all(answer in got for answer in sure)


def lies_behind(name: str, answer: Answer, begins: int) -> bool:
    if name == "counted":
        return answer["at"] >= begins
    if "window_start" in answer:
        return answer["window_start"] >= begins
    return all(at >= begins for at in (answer["id"], answer.get("x")) if at is not None)


def test_groups_by_one_position_are_whole_or_not_answered() -> None:
    """The later row of a pair says nothing of a group by the earlier one."""
    text = (
        "SELECT l.at, count(*) AS n FROM l JOIN r ON r.at BETWEEN l.at AND l.at + 3 GROUP BY l.at"
    )
    table = pa.table({"at": range(20)})
    reg = panes.register(("l", "r"), lateness=0)
    reg.add("first", text)
    reg.push(l=table.slice(0, 10), r=table.slice(0, 10))
    assert reg.add("again", text).exact_from == 10
    given = [reg.push(l=table.slice(10), r=table.slice(10))["again"], reg.finish()["again"]]
    counts = {row["at"]: row["n"] for one in given for row in one.to_pylist()}
    assert counts == {at: min(4, 20 - at) for at in range(10, 20)}


def test_rows_that_other_queries_leave_out_have_come_all_the_same() -> None:
    """Their join does not store them, so whoever asks for them has missed them."""
    picky = "SELECT l.at FROM l JOIN r ON r.at BETWEEN l.at AND l.at + 1 AND r.x > 100"
    table = pa.table({"at": range(30), "x": range(30)})
    reg = panes.register(("l", "r"), lateness=0)
    reg.add("picky", picky)
    reg.push(l=table.slice(0, 5), r=table.slice(0, 20))
    assert reg.add("all", picky.replace(" AND r.x > 100", "")).exact_from == 20


def test_a_query_may_lay_a_stream_on_another_column_than_those_before_it() -> None:
    table = pa.table({"at": range(10), "other": range(100, 110)})
    reg = panes.register(("l", "r"), lateness=0)
    reg.add("first", NEAR)
    reg.push(l=table, r=table)
    assert reg.add("other", NEAR.replace(".at", ".other")).exact_from == 110
    derived = "SELECT d.at FROM (SELECT other + 7 AS at FROM l) d JOIN r ON r.at BETWEEN d.at "
    assert reg.add("derived", f"{derived}AND d.at + 1").exact_from == 117


def test_a_row_that_nobody_believes_moves_nothing() -> None:
    """One from the year 2100 is set aside by every query."""
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    at = [now, now + dt.timedelta(seconds=5), now.replace(year=2100)]
    table = pa.table({"at": pa.array(at, pa.timestamp("us", "UTC"))})
    near = "SELECT l.at FROM l JOIN r ON r.at BETWEEN l.at AND l.at + INTERVAL 1 SECOND"
    reg = panes.register(("l", "r"), lateness="1 second", max_ahead="1 day")
    reg.add("first", near)
    with pytest.warns(panes.RejectedRowsWarning):
        reg.push(l=table, r=table)
    later = reg.add("later", near.replace("1 SECOND", "2 SECONDS")).exact_from
    assert later == at[1] + dt.timedelta(microseconds=1)


def test_queries_that_waited_for_the_same_stream_have_missed_the_same() -> None:
    reg = panes.register(("l", "r", "m"), lateness=0)
    third = "SELECT l.at FROM l JOIN m ON m.at BETWEEN l.at AND l.at + 1"
    reg.add("first", NEAR)
    some = pa.table({"at": range(4)})
    reg.push(l=some, r=some)
    for name in ("one", "two"):
        reg.add(name, third)
    reg.push(l=pa.table({"at": [4]}))
    reg.push(m=pa.table({"at": [5]}))
    assert [reg.exact_from(name) for name in ("one", "two")] == [4, 4]


@pytest.mark.parametrize("of_both", [False, True], ids=["told by its windows", "told by a join"])
def test_late_rows_meet_what_they_would_meet_had_the_query_always_been_there(of_both: bool) -> None:
    """At 12 both are behind what `l` has promised, so the one is forgotten when the other comes."""
    near = "SELECT l.at AS a, r.at AS b FROM l JOIN r ON r.at BETWEEN l.at - 1 AND l.at + 3"
    reg = panes.register(("l", "r"), lateness=6)
    for stream in "lr":
        text = f"SELECT count(*) AS n FROM {stream} [TUMBLING 5 WATTR at]"
        reg.add(stream, f"{near} AND l.at < 0" if of_both else text)
    first = {"l": pa.table({"at": [21]}), "r": pa.table({"at": [5]})}
    second = {"l": pa.table({"at": [12, 20]}), "r": pa.table({"at": [12, 18, 19]})}
    alone = panes.open(near, lateness=6)
    for query in (reg, alone):
        query.push(**first)
    reg.add("pairs", near)
    assert alone.push(**second).to_pylist() == [{"a": 20, "b": 19}]
    assert reg.push(**second)["pairs"].to_pylist() == [{"a": 20, "b": 19}]
