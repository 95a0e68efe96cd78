"""Progress and lateness: when answers come, and what becomes of rows that come too late."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.errors import RejectedRowsWarning
from panes.nodes import set_aside
from panes.planning.terms import StreamOptions
from panes.process.running_query import OpenQuery
from tests.support import answers_to, assert_same

W = "[TUMBLING 10 WATTR at]"

COUNT = "SELECT count(*) AS n FROM s [RANGE 20 SLIDE 10 WATTR at]"


def at(*positions: int | None) -> pa.Table:
    return pa.table({"at": pa.array(positions, pa.int64())})


def ends(answers: pa.Table) -> list[tuple[int, int]]:
    return list(zip(answers["window_end"].to_pylist(), answers["n"].to_pylist(), strict=True))


def test_a_window_is_answered_by_the_batch_that_proves_it_complete() -> None:
    """lateness 5: after 26 came, nothing before 21 is promised to come.

    0    5    10   15   20  |25
    [-------- 0..20 -------]|          promised up to 21: ends 10 and 20 are due
    """
    query = panes.open(COUNT, lateness=5)
    assert ends(query.push(s=at(3, 12))) == []
    assert ends(query.push(s=at(26))) == [(10, 1), (20, 2)]
    assert ends(query.finish()) == [(30, 2), (40, 1)]


def test_a_punctuation_closes_what_ends_at_it_and_nothing_more() -> None:
    query = panes.open(COUNT)
    query.push(s=at(3, 12))
    assert ends(query.punctuate(s=19)) == [(10, 1)]
    assert ends(query.punctuate(s=20)) == [(20, 2)]
    assert ends(query.punctuate(s=20)) == []


def test_rows_within_the_lateness_bound_are_on_time_in_any_split() -> None:
    """Progress moves between batches: one batch may hold any disorder."""
    query = panes.open(COUNT, lateness=0)
    assert ends(query.push(s=at(35, 3, 21))) == [(10, 1), (20, 1), (30, 1)]
    assert not len(query.late)


@pytest.mark.parametrize(
    ("late", "last"), [("open", [(30, 2), (40, 2), (50, 1)]), ("drop", [(40, 1), (50, 1)])]
)
def test_a_late_row_counts_in_open_windows_or_in_none(
    late: panes.Late, last: list[tuple[int, int]]
) -> None:
    """Promised up to 25 when 24 comes: its window [0, 20) is not concerned, [10, 30) is open."""
    query = panes.open(COUNT, lateness=10, late=late)
    assert ends(query.push(s=at(35))) == []
    assert ends(query.push(s=at(24, 12))) == []
    assert ends(query.finish()) == last


def test_late_rows_are_kept_with_the_reason() -> None:
    query = panes.open(COUNT, lateness=10)
    query.push(s=at(35))
    query.push(s=at(24, 2))
    assert query.late.to_pylist() == [
        {"at": 24, "reason": "behind progress 25; counted in its open windows"},
        {"at": 2, "reason": "behind progress 25; all its windows are closed"},
    ]


def test_rows_that_where_leaves_out_are_not_late_but_do_make_progress() -> None:
    query = panes.open(
        "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at] WHERE at < 30", lateness=0
    )
    assert ends(query.push(s=at(5, 99))) == [(10, 1)]
    query.push(s=at(50, 20))
    assert query.late["at"].to_pylist() == [20]


def test_a_union_progresses_with_its_slowest_stream() -> None:
    query = panes.open("SELECT count(*) AS n FROM a UNION b [TUMBLING 10 WATTR at]", lateness=0)
    assert ends(query.push(a=at(5, 45))) == []
    assert ends(query.push(b=at(12, 23))) == [(10, 1), (20, 1)]
    assert ends(query.punctuate(b=40)) == [(30, 1)]
    assert ends(query.finish()) == [(50, 1)]


def test_a_row_is_late_only_for_its_own_stream() -> None:
    query = panes.open("SELECT count(*) AS n FROM a UNION b [TUMBLING 10 WATTR at]", lateness=0)
    query.push(a=at(45), b=at(5))
    query.push(b=at(6), a=at(44))
    assert query.late["at"].to_pylist() == [44]


def test_rows_without_a_place_are_rejected_and_counted_and_the_query_goes_on() -> None:
    query = panes.open(COUNT)
    query.push(s=at(3, None, 1 << 62, 4))
    assert query.rejected["at"].to_pylist() == [None, 1 << 62]
    assert ends(query.finish()) == [(10, 2), (20, 2)]


def test_an_absurd_future_closes_nothing() -> None:
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    rows = pa.table({"at": pa.array([now, now + dt.timedelta(days=2)], pa.timestamp("us", "UTC"))})
    query = OpenQuery(
        "SELECT count(*) AS n FROM s [TUMBLING 1 minute WATTR at]",
        StreamOptions(lateness="1 minute"),
        now=lambda: int(now.timestamp() * 1e6),
    )
    with pytest.warns(RejectedRowsWarning, match="1 row is further ahead") as warned:
        assert not len(query.push(s=rows))
    assert warned[0].filename == __file__
    query.push(s=rows)  # it is told once
    assert query.state["rejected_rows"] == 2
    assert (
        query.rejected["reason"].to_pylist()
        == ["`at` is further ahead of the clock than max_ahead"] * 2
    )
    assert query.finish()["n"].to_pylist() == [2]


def test_only_the_first_late_rows_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_aside, "MOST_ROWS", 5)
    query = panes.open(COUNT, lateness=0)
    query.push(s=at(1000))
    for _ in range(3):
        query.push(s=at(1, 2, None))
    assert (len(query.late), len(query.rejected)) == (5, 3)
    assert (query.state["late_rows"], query.state["rejected_rows"]) == (6, 3)
    assert query.state["set_aside_bytes"] > 0
    assert len(query.take_late()) == 5
    query.push(s=at(3))
    assert query.late["at"].to_pylist() == [3]
    assert query.state["late_rows"] == 7


def test_origin_first_waits_until_nothing_older_can_come() -> None:
    """The first row seen is 8, the oldest 5: windows begin at 5 in any order of arrival."""
    query = panes.open(
        "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at ORIGIN FIRST]", lateness=10
    )
    assert ends(query.push(s=at(8))) == []
    assert ends(query.push(s=at(5, 14))) == []
    assert query.state["waiting_rows"] == 3
    assert ends(query.push(s=at(17, 30))) == [(15, 3)]
    assert ends(query.finish()) == [(25, 1), (35, 1)]


def test_a_landmark_window_past_the_last_row_waits_for_a_later_row() -> None:
    query = panes.open("SELECT count(*) AS n FROM s [RANGE ALL SLIDE 10 WATTR at]")
    query.push(s=at(5))
    assert ends(query.punctuate(s=45)) == [(10, 1)]
    assert ends(query.push(s=at(47))) == [(20, 1), (30, 1), (40, 1)]
    assert ends(query.punctuate(s=50)) == [(50, 2)]
    assert not len(query.finish())


def test_a_year_of_silence_costs_nothing() -> None:
    year = 365 * 86_400 * 1_000_000
    query = panes.open("SELECT count(*) AS n FROM s [RANGE 5 SLIDE 1 WATTR at]", lateness=0)
    first = query.push(s=at(0, year))
    assert len(first) + len(query.finish()) == 10


def test_the_state_follows_panes_and_keys_and_returns_to_zero() -> None:
    query = panes.open(COUNT, lateness=0)
    for batch in range(50):
        query.push(s=at(*range(100 * batch, 100 * batch + 100)))
        assert query.state["partials"] <= 3
    query.finish()
    assert not any(query.state.values())


def test_keys_that_are_gone_are_forgotten() -> None:
    """A hundred thousand keys, each seen once: only those in open windows are remembered."""
    text = (
        "SELECT k, count(DISTINCT v) AS n, max(v) AS m FROM s [RANGE 20 SLIDE 10 WATTR at] "
        "GROUP BY k"
    )
    query = panes.open(text, lateness=0)
    found = []
    for batch in range(10):
        keys = [f"key{i}" for i in range(10_000 * batch, 10_000 * batch + 10_000)]
        rows = {"at": [10 * batch] * 10_000, "k": keys, "v": list(range(10_000))}
        found.append(query.push(s=pa.table(rows)))
    found.append(query.finish())
    answers = pa.concat_tables(found)
    assert len(answers) == 200_000
    assert set(answers["n"].to_pylist()) == {1}
    assert query.state["keys"] <= 40_000


@settings(max_examples=60)
@given(
    batches=st.lists(st.lists(st.integers(0, 100), max_size=6), max_size=8),
    lateness=st.integers(0, 30),
    late=st.sampled_from(["open", "drop"]),
)
def test_late_rows_do_exactly_what_was_said(
    batches: list[list[int]], lateness: int, late: panes.Late
) -> None:
    """Against a model that keeps every row and a list of windows already answered."""
    query = panes.open(COUNT, lateness=lateness, late=late)
    kept: list[int] = []
    promised, closed = -(10**9), -(10**9)
    expected: list[tuple[int, int]] = []
    found: list[tuple[int, int]] = []
    late_rows: list[int] = []

    def answer(until: int) -> None:
        for end in range(10, 140, 10):
            held = sum(end - 20 <= r < end for r in kept)
            if closed < end <= until and held:
                expected.append((end, held))

    for batch in batches:
        found += ends(query.push(s=at(*batch)))
        late_rows += [r for r in batch if r < promised]
        kept += [r for r in batch if late == "open" or r >= promised]
        promised = max([promised, *(r - lateness for r in batch)])
        answer(promised)
        closed = max(closed, promised)
    if batches:
        found += ends(query.finish())
        answer(10**9)
    assert found == expected
    assert query.late["reason"].length() == len(late_rows)


def test_the_answers_of_a_stream_are_those_of_the_table() -> None:
    table = pa.table({"at": [1, 5, 12, 31], "x": [1.5, None, 2.0, 4.0]})
    text = "SELECT sum(x) AS s, median(x) AS m FROM s [RANGE 20 SLIDE 10 WATTR at]"
    query = panes.open(text, lateness=100)
    parts = [query.push(s=batch) for batch in table.to_batches(max_chunksize=1)]
    assert_same(pa.concat_tables([*parts, query.finish()]), panes.sql(text, s=table))


class TestRefusals:
    """Bad input gets a clear error and loses nothing."""

    def test_a_stream_the_query_does_not_read(self) -> None:
        query = panes.open(COUNT)
        with pytest.raises(panes.PanesError, match="`t` was given"):
            query.push(t=at(1))

    def test_a_batch_with_other_columns_changes_nothing(self) -> None:
        query = panes.open(COUNT)
        query.push(s=at(3))
        with pytest.raises(panes.PanesError, match="has no column `at`"):
            query.push(s=pa.table({"ts": [1]}))
        assert ends(query.finish()) == [(10, 1), (20, 1)]

    def test_a_finished_query(self) -> None:
        query = panes.open(COUNT)
        query.push(s=at(3))
        query.finish()
        with pytest.raises(panes.QueryError, match="has finished"):
            query.push(s=at(4))

    def test_finishing_before_any_batch(self) -> None:
        with pytest.raises(panes.PanesError, match="has seen no batch of `s`"):
            panes.open(COUNT).finish()

    @pytest.mark.parametrize("lateness", ["soon", "10 parsecs", "-1 second", -5, "1 month"])
    def test_a_lateness_that_is_no_duration(self, lateness: str) -> None:
        with pytest.raises(panes.PanesError, match="lateness"):
            panes.open(COUNT, lateness=lateness)

    def test_an_unknown_way_with_late_rows(self) -> None:
        with pytest.raises(panes.PanesError, match="late must be 'open', 'drop' or 'revise'"):
            panes.open(COUNT, late="ignore")  # type: ignore[arg-type]

    def test_an_exact_median_that_would_keep_every_value(self) -> None:
        query = panes.open("SELECT median(at) FROM s [RANGE ALL SLIDE 10 WATTR at]")
        with pytest.raises(panes.QueryError, match="would keep every value for ever"):
            query.push(s=at(1))


def test_streams_of_a_union_need_only_agree_on_what_is_read() -> None:
    a = pa.table({"at": [1], "x": [1], "z": ["text"]})
    b = pa.table({"AT": [2], "X": [2], "z": [7]})
    assert answers_to(f"SELECT sum(x) AS s FROM a UNION b {W}", a=a, b=b) == [{"s": 3}]


def test_a_stream_that_comes_later_is_checked_too() -> None:
    query = panes.open(f"SELECT sum(x) AS s FROM a UNION b {W}")
    query.push(a=pa.table({"at": [1], "x": [1]}))
    with pytest.raises(panes.PanesError, match="`x` is int64 in stream `a` and string in `b`"):
        query.push(b=pa.table({"at": [1], "x": ["1"]}))
    query.push(b=pa.table({"at": [1], "x": [5]}))
    assert query.finish()["s"].to_pylist() == [6]


def test_a_push_is_all_or_nothing() -> None:
    """b's batch fails in DuckDB (100 * 100 does not fit a byte): a's rows must not stay in."""

    def batch(*x: int | None) -> pa.Table:
        return pa.table({"at": [1] * len(x), "x": pa.array(x, pa.int8())})

    query = panes.open(f"SELECT count(*) AS n, sum(x * x) AS s FROM a UNION b {W}")
    with pytest.raises(panes.PanesError, match="cannot evaluate"):
        query.push(a=batch(3), b=batch(100))
    query.push(a=batch(3), b=batch(1))
    assert query.finish().select(["n", "s"]).to_pylist() == [{"n": 2, "s": 10}]

    rows = panes.open("SELECT count(*) AS n, sum(x * x) AS s FROM t [RANGE 2 ROWS SLIDE 2 ROWS]")
    with pytest.raises(panes.PanesError, match="cannot evaluate"):
        rows.push(t=batch(100))
    assert rows.push(t=batch(1, 2)).select(["n", "s"]).to_pylist() == [{"n": 2, "s": 5}]


def test_a_first_batch_that_is_refused_leaves_no_trace() -> None:
    query = panes.open(f"SELECT sum(x) AS s FROM t {W}")
    with pytest.raises(panes.PanesError, match="no column `x`"):
        query.push(t=pa.table({"at": [1]}))
    query.push(t=pa.table({"at": [1], "x": [4]}))
    assert query.finish()["s"].to_pylist() == [4]


def test_many_open_queries_share_their_threads() -> None:
    import threading

    text = f"SELECT sum(x * 2) AS s FROM t {W} WHERE x > 0"
    queries = [panes.open(text) for _ in range(40)]
    for query in queries:
        query.push(t=pa.table({"at": [1], "x": [1]}))
    assert threading.active_count() < 40


def test_a_batch_that_cannot_be_turned_into_partials_leaves_no_trace() -> None:
    def lift(x: pa.Array) -> np.ndarray:
        if min(x.to_pylist(), default=0) < 0:
            raise ValueError("negative")
        return x.to_numpy()[None, :].astype(np.int64)

    total = panes.CustomAggregate(
        name="mysum",
        empty=(0,),
        lift=lift,
        combine=np.add,
        lower=lambda partial: partial[0],
        type=pa.int64(),
    )
    text = "SELECT mysum(x) AS s FROM s [TUMBLING 10 WATTR at]"
    for store in ("panes", "eager", "adaptive", "adaptive-panes"):
        query = panes.open(text, aggregates=[total], store=store)
        query.push(s=pa.table({"at": [1] * 9, "x": [1] * 9}))
        with pytest.raises(Exception, match="negative"):
            query.push(s=pa.table({"at": [2] * 9, "x": [-1] * 9}))
        assert query.finish()["s"].to_pylist() == [9], store


NESTED = "SELECT sum(n) AS m FROM (SELECT count(*) AS n FROM s [TUMBLING 4 WATTR at]) [TUMBLING 8]"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT count(*) AS n FROM s [TUMBLING 4 WATTR at]", "s={}"),
        ("SELECT l.at FROM l JOIN r ON r.at BETWEEN l.at AND l.at + 1", "l={}, r={}"),
        (NESTED, "s={}"),
    ],
)
def test_what_belongs_to_no_stream_is_refused_with_the_names(text: str, named: str) -> None:
    for verb, unnamed in (("push", pa.table({"at": [1]})), ("punctuate", 5)):
        what = "table" if verb == "push" else "instant"
        with pytest.raises(panes.OptionError, match=f"{verb} takes each {what}") as refused:
            getattr(panes.open(text), verb)(unnamed)
        assert refused.value.hint == f"{verb}({named.replace('{}', what)})"


def test_a_column_that_a_query_inside_does_not_give_is_told_of_that_query() -> None:
    unnamed = NESTED.replace("sum(n)", "sum(nope)")
    for text in (unnamed, unnamed.replace(") [TUMBLING 8", ") p [TUMBLING 8")):
        with pytest.raises(panes.UnknownColumnError, match="`nope` in the query inside FROM"):
            panes.sql(text, s=pa.table({"at": [1]}))


def test_an_expression_that_fails_is_written_as_in_the_query() -> None:
    for written in ("1 / x", "1 / (x - `a b`)"):
        text = f"SELECT sum({written}) AS s FROM t [TUMBLING 4 WATTR at]"
        with pytest.raises(panes.PanesError) as failed:
            panes.sql(text, t=pa.table({"at": [1], "x": [0], "a b": [0]}))
        assert failed.value.message.startswith(f"cannot evaluate `{written}`:")
