"""What a register does, one behaviour at a time: sharing, live changes, refusals.

That every answer is the oracle's is proved in ``tests/reference/test_register.py``.
"""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

import panes
from panes.axis import SECOND
from panes.planning.shared_cut import choose_cut
from panes.windows.many import Rulers
from panes.windows.spec import Sliding
from tests.process import pictures
from tests.process.pictures import counts, rows

COUNT = "SELECT count(*) AS n FROM t [TUMBLING 10 WATTR at]"


def test_only_queries_with_new_answers_are_named() -> None:
    reg = panes.register("t", lateness=0)
    reg.add("ten", COUNT)
    reg.add("hundred", COUNT.replace("10", "100"))
    assert reg.push(rows(3)) == {}
    assert counts(reg.push(rows(12)), "ten") == [(0, 1)]
    assert reg.punctuate(20).keys() == {"ten"}
    assert counts(reg.finish(), "hundred") == [(0, 2)]


def test_a_window_without_rows_of_the_query_is_not_answered() -> None:
    """The store holds rows there, of which WHERE lets none through."""
    reg = panes.register("t", lateness=0)
    reg.add("all", COUNT)
    reg.add("none", COUNT + " WHERE x > 5")
    assert reg.push(rows(3, 14)).keys() == {"all"}


def test_pieces_that_several_queries_need_are_kept_once() -> None:
    reg = panes.register("t", lateness=0)
    for name, what in {"a": "sum(x)", "b": "count(x)", "c": "avg(x)"}.items():
        reg.add(name, f"SELECT k, {what} AS n FROM t [RANGE 20 SLIDE 5 WATTR at] GROUP BY k")
    reg.push(rows(1))
    (store,) = reg.stores
    assert ["+".join(p.monoid.names) for p in store.panes.pieces] == [
        "count",
        "count",
        "limb0+limb1",
    ]


def test_asking_and_explaining_change_nothing() -> None:
    """No column, piece or cut is added for a question, and a refused one leaves nothing either."""
    reg = panes.register("t", lateness=0)
    reg.add("short", "SELECT k, sum(x) AS n FROM t [RANGE 20 SLIDE 5 WATTR at] GROUP BY k")
    reg.push(rows(*range(0, 100, 3)))
    reg.add("other", "SELECT k, sum(x) AS n FROM t [RANGE 21 SLIDE 7 WATTR at] GROUP BY k")
    (store,) = reg.stores

    def seen() -> object:
        cuts = store.completeness
        columns = dict(store.rows.expressions), store.rows.end, dict(store.needs.since)
        return columns, list(store.shapes), cuts.shared_cut, cuts.is_current, dict(cuts.cuts_before)

    before = seen()
    reg.explain()
    for what in ("sum(x) AS n", "max(x) AS n", "sum(x) FILTER (WHERE x > 1) AS n"):
        for size in (10, 11, 50):
            with suppress(panes.QueryError):
                reg.ask(f"SELECT k, {what} FROM t [RANGE {size} WATTR at] GROUP BY k")
    assert seen() == before


def test_each_grouping_has_a_store_of_its_own() -> None:
    reg = panes.register("t", lateness=0)
    reg.add("all", COUNT)
    reg.add("by k", COUNT + " GROUP BY k")
    reg.push(rows(1))
    assert reg.state["stores"] == 2


# at     0    5    10   15   20   25   30
#        x    x    x    x    |                 rows at 1, 6, 11, 16: the newest is 16
#        [   first  )        |
#                            17                nothing with a new piece before here


def test_a_query_that_comes_later_is_answered_from_the_panes_already_there() -> None:
    reg = panes.register("t", lateness=0)
    reg.add("first", "SELECT count(*) AS n FROM t [RANGE 20 SLIDE 5 WATTR at]")
    reg.push(rows(1, 6, 11, 16))
    added = reg.add("second", "SELECT count(*) AS n FROM t [RANGE 15 SLIDE 5 WATTR at]")
    assert added.exact_from == 5, "[5, 20) is open, and its panes have been kept"
    assert counts(reg.push(rows(21)), "second") == [(5, 3)]


def test_a_new_piece_is_answered_from_the_rows_to_come() -> None:
    reg = panes.register("t", lateness=0)
    reg.add("first", "SELECT count(*) AS n FROM t [RANGE 20 SLIDE 5 WATTR at]")
    reg.push(rows(1, 6, 11, 16))
    added = reg.add("second", "SELECT max(x) AS n FROM t [RANGE 10 SLIDE 5 WATTR at]")
    assert added.exact_from == 20
    reg.push(rows(18, 21))
    assert counts(reg.push(rows(31, x=7)), "second") == [(20, 1)]


def test_finer_panes_exist_from_the_rows_to_come() -> None:
    reg = panes.register("t", lateness=0)
    reg.add("first", "SELECT count(*) AS n FROM t [RANGE 20 SLIDE 5 WATTR at]")
    reg.push(rows(1, 6, 11, 16))
    assert reg.add("second", "SELECT count(*) AS n FROM t [TUMBLING 4 WATTR at]").exact_from == 20
    assert reg.add("third", "SELECT count(*) AS n FROM t [TUMBLING 5 WATTR at]").exact_from == 15


def test_panes_that_were_coarser_once_answer_no_finer_window() -> None:
    """When the third comes panes are fine, but those before 17 were cut for the first alone."""
    reg = panes.register("t", lateness=0)
    reg.add("first", "SELECT count(*) AS n FROM t [RANGE 20 SLIDE 5 WATTR at]")
    reg.push(rows(1, 6, 11, 16))
    reg.add("second", "SELECT count(*) AS n FROM t [TUMBLING 4 WATTR at]")
    reg.push(rows(17))
    third = reg.add("third", "SELECT count(*) AS n FROM t [RANGE 8 SLIDE 4 WATTR at]")
    assert third.exact_from == 20
    assert counts(reg.push(rows(21, 29)), "third") == [(20, 1)]


def test_panes_that_are_gone_answer_no_longer_window() -> None:
    reg = panes.register("t", lateness=0)
    reg.add("short", COUNT)
    reg.push(rows(1, 11, 21, 35))
    longer = reg.add("long", "SELECT count(*) AS n FROM t [RANGE 30 SLIDE 10 WATTR at]")
    assert longer.exact_from == 30, "[10, 40) is open, but its first two panes are evicted"


def sliding(size: int, slide: int) -> str:
    return f"SELECT count(*) AS n FROM t [RANGE {size} SLIDE {slide} WATTR at]"


def test_folding_does_not_hide_that_panes_were_coarse_before() -> None:
    """Panes before 38 were cut for the long windows; those before 20 are now folded to the same."""
    reg = panes.register("t")
    reg.add("long", sliding(100, 20))
    reg.push(rows(*range(38)))
    reg.add("short", sliding(2, 1))
    reg.push(rows(5, 39))
    reg.punctuate(22)
    assert reg.add("middle", sliding(5, 5)).exact_from == 40


def test_no_row_is_missing_where_progress_is_ahead_of_the_newest() -> None:
    """[20, 40) is open; panes are evicted up to 22, but the newest row was at 19."""
    reg = panes.register("t", lateness=0)
    reg.add("short", sliding(1, 1))
    reg.push(rows(*range(20)))
    reg.punctuate(22)
    assert reg.add("long", sliding(20, 20)).exact_from == 20
    reg.push(rows(22))
    assert reg.add("twin", sliding(20, 20)).exact_from == 20


def test_where_the_first_answer_begins_is_known_after_the_end() -> None:
    reg = panes.register("t", lateness=0)
    reg.add("short", COUNT)
    reg.push(rows(1, 11, 21, 35))
    longer = reg.add("long", sliding(30, 10))
    reg.finish()
    assert longer.exact_from == 30


def test_asking_for_panes_that_are_all_evicted_is_refused() -> None:
    """The window would hold the row at 5, which is no longer known."""
    reg = panes.register("t")
    reg.add("q", COUNT)
    reg.push(rows(5))
    reg.punctuate(10)
    with pytest.raises(panes.QueryError, match="do not reach back"):
        reg.ask("SELECT count(*) AS n FROM t [RANGE 10 WATTR at]")


def test_the_moment_is_shown_as_the_axis_shows_it() -> None:
    reg = panes.register("t", lateness="0 seconds", max_ahead=None)
    reg.add("first", "SELECT count(*) AS n FROM t [TUMBLING 1 minute WATTR ts]")
    reg.push(pa.table({"ts": pa.array([90 * SECOND], pa.timestamp("us", "UTC"))}))
    added = reg.add("second", "SELECT max(ts) AS n FROM t [TUMBLING 1 minute WATTR ts]")
    assert added.exact_from == dt.datetime(1970, 1, 1, 0, 2, tzinfo=dt.UTC)


def test_removing_a_query_frees_what_only_it_needed() -> None:
    reg = panes.register("t", lateness=0)
    reg.add("short", COUNT)
    reg.add("long", "SELECT max(x) AS n FROM t [RANGE 1000 SLIDE 1 WATTR at] WHERE x > 0")
    reg.push(rows(*range(0, 500, 3)))
    before = reg.state
    reg.remove("long")
    (store,) = reg.stores
    assert reg.state["partials"] < before["partials"] / 10
    assert [p.monoid.names for p in store.panes.pieces] == [("count",)]
    assert store.rows.filters == []
    assert store.cut.grid == 10
    reg.remove("short")
    assert reg.state == {**reg.state, "queries": 0, "stores": 0, "partials": 0, "bytes": 0}


def test_late_rows_are_those_of_the_stream() -> None:
    """WHERE is each query's own, so a row is late whether or not anybody looks at it."""
    reg = panes.register("t", lateness=0)
    reg.add("none", COUNT + " WHERE x > 5")
    reg.push(rows(25))
    reg.push(rows(3))
    (late,) = reg.late.to_pylist()
    assert late["at"] == 3
    assert late["reason"] == "behind progress 25; all its windows are closed"


def test_late_rows_can_be_taken() -> None:
    reg = panes.register("t", lateness=0)
    reg.add("all", COUNT)
    reg.push(rows(12))
    reg.push(rows(3))
    assert reg.take_late()["at"].to_pylist() == [3]
    assert len(reg.late) == 0


@pytest.mark.parametrize("option", [{"heartbeat": "5 seconds"}, {"shards": 4}])
def test_options_of_spark_are_refused_here(option: dict[str, Any]) -> None:
    with pytest.raises(panes.PanesError, match="is for a register on Spark"):
        panes.register("t", **option)


def test_old_panes_that_only_long_windows_need_are_folded() -> None:
    reg = panes.register("t", lateness=0)
    reg.add("short", "SELECT count(*) AS n FROM t [RANGE 5 SLIDE 1 WATTR at]")
    reg.add("long", "SELECT count(*) AS n FROM t [RANGE 1000 SLIDE 100 WATTR at]")
    answers = reg.push(rows(*range(998)))
    assert reg.state["partials"] < 120, "9 of the long window, and those of the last 100"
    assert counts(answers, "long")[-1] == (-100, 900)
    rest = reg.finish()
    assert counts(rest, "long")[0] == (0, 998)
    assert counts(rest, "short") == [(993, 5), (994, 4), (995, 3), (996, 2), (997, 1)]


def test_panes_that_were_folded_answer_no_finer_window() -> None:
    pictures.panes_that_were_folded_answer_no_finer_window()


def test_panes_that_a_new_query_needs_are_not_folded() -> None:
    pictures.panes_that_a_new_query_needs_are_not_folded()


def test_the_cheapest_cut_is_chosen_and_the_others_are_priced() -> None:
    seconds = choose_cut(Rulers.of([Sliding(size=60, slide=s) for s in range(2, 60)]))
    assert (seconds.way, seconds.cut.grid) == ("gcd", 1)
    windows = [Sliding(size=10_007, slide=10_000), Sliding(size=20_003, slide=10_000)]
    odd = choose_cut(Rulers.of(windows))
    assert odd.way == "union"
    assert {o.way for o in odd.options} >= {"union", "gcd"}


def test_explain_says_what_is_shared_with_whom() -> None:
    reg = panes.register("t", schema=rows(0).schema)
    for i in range(5):
        reg.add(f"q{i}", f"SELECT avg(x) AS n FROM t [RANGE {10 * (i + 1)} SLIDE 5 WATTR at]")
    reg.add("dear", "SELECT sum(x) AS n FROM t [RANGE 20 SLIDE 5 WATTR at] WHERE x > 5")
    said = reg.explain(details=True)
    assert said == reg.explain(details=True)
    assert "store      GROUP BY nothing: q0, q1, q2 and 3 more\n" in said
    assert "filters    `x` > 5: dear\n" in said
    assert "limb0+limb1 for q0, q1, q2 and 3 more\n" in said
    assert "pieces               3 instead of 12\n" in said
    for_users = reg.explain()
    assert for_users == reg.explain()
    assert "store      GROUP BY nothing: q0, q1, q2 and 3 more\n" in for_users
    assert "filters    `x` > 5: dear\n" in for_users
    assert "limb" not in for_users


def test_deadlines_order_answers_and_lateness_is_told_beforehand() -> None:
    handed: list[str] = []
    reg = panes.register("t", lateness=0, hand_over=lambda name, table: handed.append(name))
    reg.add("later", COUNT, deadline="1 hour")
    reg.add("now", "SELECT max(x) AS n FROM t [TUMBLING 10 WATTR at]", deadline=1)
    reg.push(rows(1, 12))
    assert handed == ["now", "later"]
    assert reg.behind == [], "what answering costs is not known yet"
    reg.push(rows(25))
    assert [b.name for b in reg.behind] == ["now"]


def test_asking_now_is_answered_from_panes_and_from_the_last_rows() -> None:
    reg = panes.register("t", lateness=0, keep_rows=3)
    reg.add("q", "SELECT count(*) AS n FROM t [RANGE 20 SLIDE 5 WATTR at]")
    reg.push(rows(1, 6, 11, 16))
    asked = reg.ask("SELECT count(*) AS n FROM t [RANGE 10 WATTR at]")
    assert asked.to_pylist() == [{"window_start": 10, "window_end": 20, "n": 2}]
    asked = reg.ask("SELECT max(at) AS high, min(at) AS low FROM t [ROWS 2]")
    assert asked.to_pylist() == [{"window_start": 2, "window_end": 4, "high": 16, "low": 11}]
    with pytest.raises(panes.QueryError, match="RANGE 5 or 10 is exact"):
        reg.ask("SELECT count(*) AS n FROM t [RANGE 7 WATTR at]")
    with pytest.raises(panes.QueryError, match="nothing is stored"):
        reg.ask("SELECT max(x) AS n FROM t [RANGE 10 WATTR at]")
    with pytest.raises(panes.QueryError, match="keep_rows=9"):
        reg.ask("SELECT max(x) AS n FROM t [ROWS 9]")
    assert counts(reg.finish(), "q")[0] == (0, 4), "asking has changed nothing"


def test_a_batch_that_is_refused_changes_nothing() -> None:
    reg = panes.register("t", lateness=0)
    reg.add("n", COUNT)
    reg.push(rows(1))
    with pytest.raises(panes.PanesError, match="has no column `x`"):
        reg.push(rows(50).drop_columns(["x"]))
    assert reg.progress == 1
    assert counts(reg.finish(), "n") == [(0, 1)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT count(*) AS n FROM u [TUMBLING 5 WATTR at]", "over `t` alone"),
        ("SELECT count(*) AS n FROM t [TUMBLING 1 minute WATTR x]", "`x`"),
        ("SELECT sum(y) AS n FROM t [ROWS 5]", "no column `y`"),
        ("SELECT sum(y) AS n FROM t [TUMBLING 5 WATTR at]", "no column `y`"),
    ],
)
def test_what_cannot_be_answered_is_refused_when_it_is_added(text: str, said: str) -> None:
    reg = panes.register("t", schema=rows(0).schema)
    reg.add("q", COUNT)
    with pytest.raises(panes.PanesError, match=said):
        reg.add("other", text)
    assert reg.queries() == {"q": COUNT}


def test_names_and_options_are_checked() -> None:
    with pytest.raises(panes.PanesError, match="must be 'open', 'drop' or 'revise'"):
        panes.register("t", late="never").add("q", COUNT)  # type: ignore[call-overload]
    reg = panes.register("t")
    with pytest.raises(panes.PanesError, match="has no query yet"):
        reg.push(rows(1))
    reg.add("gone", COUNT)
    reg.remove("gone")
    with pytest.raises(panes.PanesError, match="has no query yet"):
        reg.push(rows(1))
    reg.add("q", COUNT)
    with pytest.raises(panes.QueryError, match="already registered"):
        reg.add("q", COUNT)
    with pytest.raises(panes.QueryError, match="queries: q"):
        reg.remove("p")
    reg.finish()
    with pytest.raises(panes.QueryError, match="has finished"):
        reg.push(rows(1))
