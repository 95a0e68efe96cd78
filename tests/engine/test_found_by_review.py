"""Faults that a reader found once, and that must not come back."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import panes
from panes.errors import OptionError, QueryError

W = "[TUMBLING 10 WATTR at]"


def ask(text: str, **streams: Any) -> list[dict[str, object]]:
    rows = panes.sql(text, **streams).to_pylist()
    return [{k: v for k, v in r.items() if not k.startswith("window_")} for r in rows]


def test_having_may_ask_for_an_aggregate_that_is_not_selected() -> None:
    t = pa.table({"at": [1, 2, 11], "x": [60, 70, 5]})
    assert ask(f"SELECT count(*) AS n FROM t {W} HAVING sum(x) < 100", t=t) == [{"n": 1}]


def test_a_polars_categorical_is_a_column_like_any_other() -> None:
    frame = pl.DataFrame({"at": [1, 2], "c": pl.Series(["a", "b"], dtype=pl.Categorical)})
    assert ask(f"SELECT c, count(*) AS n FROM t {W} GROUP BY c", t=frame) == [
        {"c": "a", "n": 1},
        {"c": "b", "n": 1},
    ]


def test_a_stream_may_have_a_column_named_reason() -> None:
    query = panes.open(f"SELECT count(*) AS n FROM t {W}", lateness=0)
    query.push(t=pa.table({"at": [15, None], "reason": ["a", "b"]}))
    assert query.rejected.column_names == ["at", "reason", "reason_"]
    assert query.rejected["reason"].to_pylist() == ["b"]


def test_streams_of_a_union_need_only_agree_on_what_is_read() -> None:
    a = pa.table({"at": [1], "x": [1], "z": ["text"]})
    b = pa.table({"AT": [2], "X": [2], "z": [7]})
    assert ask(f"SELECT sum(x) AS s FROM a UNION b {W}", a=a, b=b) == [{"s": 3}]


def test_a_stream_that_comes_later_is_checked_too() -> None:
    query = panes.open(f"SELECT sum(x) AS s FROM a UNION b {W}")
    query.push(a=pa.table({"at": [1], "x": [1]}))
    with pytest.raises(panes.PanesError, match="`x` is int64 in stream `a` and string in `b`"):
        query.push(b=pa.table({"at": [1], "x": ["1"]}))
    query.push(b=pa.table({"at": [1], "x": [5]}))
    assert query.finish()["s"].to_pylist() == [6]


def test_literals_are_compared_as_written() -> None:
    t = pa.table({"at": [1, 2], "s": ["a", "A"]})
    with pytest.raises(panes.QueryError, match="neither grouped nor aggregated"):
        ask(f"SELECT s = 'a' AS f, count(*) AS n FROM t {W} GROUP BY s = 'A'", t=t)


def test_a_column_of_the_stream_comes_before_an_alias() -> None:
    t = pa.table({"at": [1, 2], "item": ["a", "A"], "price": [4.0, 9.0]})
    text = f"SELECT lower(item) AS item, count(*) AS n FROM t {W} GROUP BY item"
    assert ask(text, t=t) == [{"item": "a", "n": 1}, {"item": "a", "n": 1}]
    again = f"SELECT max(price) AS price FROM t {W} HAVING max(price) > 5"
    assert ask(again, t=t) == [{"price": 9.0}]


def test_a_key_selected_twice_is_there_twice() -> None:
    t = pa.table({"at": [1], "s": ["a"]})
    text = f"SELECT s, s AS again, count(*) AS n FROM t {W} GROUP BY s"
    assert ask(text, t=t) == [{"s": "a", "again": "a", "n": 1}]


def test_a_qualifier_is_the_stream_or_a_struct_and_nothing_else() -> None:
    t = pa.table({"at": [1], "x": [200], "p": [{"x": 2}]})
    assert ask(f"SELECT max(p.x) AS a, max(b.x) AS c FROM t b {W}", t=t) == [{"a": 2, "c": 200}]
    with pytest.raises(panes.PanesError, match="no column `asks` in stream `t`"):
        ask(f"SELECT max(asks.x) AS a FROM t {W}", t=t)


def test_columns_may_be_called_as_we_call_ours() -> None:
    t = pa.table(
        {"at": [1, 2, 3], "x": [10, 20, 30], "__row": [2, 2, 0], "__k0": [1, 1, 1], "c0": [5, 5, 5]}
    )
    text = (
        f"SELECT __row, __k0, c0, sum(x) AS s FROM t {W} WHERE __row > 1 GROUP BY __row, __k0, c0"
    )
    assert ask(text, t=t) == [{"__row": 2, "__k0": 1, "c0": 5, "s": 30}]
    with pytest.raises(panes.QueryError, match="a column that every answer has"):
        ask(f"SELECT max(x) AS window_end FROM t {W}", t=t)


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


def test_an_error_speaks_of_the_query_and_not_of_our_columns() -> None:
    t = pa.table({"at": [1], "x": pa.array([100], pa.int8())})
    with pytest.raises(panes.PanesError, match=r"cannot evaluate `max\(x\) \* max\(x\)`"):
        ask(f"SELECT max(x) * max(x) AS m FROM t {W}", t=t)


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_nanoseconds_are_read_exactly_or_refused(zone: str | None) -> None:
    """A position that was cut would put a row into a window that does not hold it."""
    text = "SELECT count(*) AS n, max(hour(ts)) AS h FROM t [TUMBLING 1 hour WATTR ts]"
    whole = pa.array([-1_000, 3_600_000_001_000], pa.int64()).view(pa.timestamp("ns", zone))
    assert ask(text, t=pa.table({"ts": whole})) == [{"n": 1, "h": 23}, {"n": 1, "h": 1}]
    finer = pa.array([0, 3_600_000_000_001], pa.int64()).view(pa.timestamp("ns", zone))
    with pytest.raises(panes.PanesError, match="`ts` has times finer than a microsecond, as in r"):
        ask(text, t=pa.table({"ts": finer}))


def test_rows_that_cannot_be_counted_in_order_are_reported() -> None:
    t = pa.table({"seq": [3, None, 1, 2]})
    with pytest.warns(panes.RejectedRowsWarning, match="left out 1 rows: `seq` is NULL"):
        assert len(panes.sql("SELECT count(*) AS n FROM t [ROWS 2 WATTR seq]", t=t)) == 3


def test_sundays_are_the_first_day_as_in_spark() -> None:
    t = pa.table({"ts": [dt.datetime(2026, 11, 15)]})
    assert ask("SELECT max(dayofweek(ts)) AS d FROM t [TUMBLING 1 day WATTR ts]", t=t) == [{"d": 1}]


@pytest.mark.parametrize("at", [np.int64(20), 20])
def test_a_promise_may_be_any_whole_number(at: int) -> None:
    query = panes.open(f"SELECT count(*) AS n FROM t {W}")
    query.push(t=pa.table({"at": [1]}))
    assert len(query.punctuate(t=at)) == 1


@pytest.mark.parametrize("at", [20.5, None, "2026-01-01", 2**70, {"item": 7}])
def test_a_promise_that_is_none_is_refused_and_changes_nothing(at: object) -> None:
    query = panes.open(f"SELECT count(*) AS n FROM t {W}")
    query.push(t=pa.table({"at": [1]}))
    with pytest.raises(panes.PanesError):
        query.punctuate(t=at)  # type: ignore[arg-type]
    assert not len(query.punctuate(t=5))


REFUSED = {
    "SELECT stddev(s) FROM t [TUMBLING 10 WATTR at]": "needs numbers, got string",
    "SELECT weighted_mean(x, s) FROM t [TUMBLING 10 WATTR at]": "weighted_mean needs numbers",
    "SELECT count(DISTINCT *) FROM t [TUMBLING 10 WATTR at]": "has no meaning",
    "SELECT count(*) FROM t [TUMBLING 10 WATTR at] GROUP BY 1.5": "GROUP BY 1.5 names no selected",
    "SELECT count(*) FROM t [TUMBLING 99999999999999999999 WATTR at]": "longer than the axis",
    "SELECT count(*) FROM t [RANGE 5 RANGE 6 SLIDE 1 WATTR at]": "says RANGE twice",
    "SELECT approx_top_k(f, 2) FROM t [TUMBLING 10 WATTR at]": "needs integers or text",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_would_have_failed_later_is_refused_at_once(text: str) -> None:
    t = pa.table({"at": [1], "x": [1], "s": ["a"], "f": [1.0]})
    with pytest.raises(panes.PanesError, match=REFUSED[text]):
        panes.sql(text, t=t)


def test_many_open_queries_share_their_threads() -> None:
    import threading

    text = f"SELECT sum(x * 2) AS s FROM t {W} WHERE x > 0"
    queries = [panes.open(text) for _ in range(40)]
    for query in queries:
        query.push(t=pa.table({"at": [1], "x": [1]}))
    assert threading.active_count() < 40


def test_late_rows_can_be_taken_and_are_then_forgotten() -> None:
    query = panes.open(f"SELECT count(*) AS n FROM t {W}", lateness=0)
    query.push(t=pa.table({"at": [50]}))
    query.push(t=pa.table({"at": [1]}))
    assert query.take_late()["at"].to_pylist() == [1]
    assert not len(query.late)


def test_integers_of_ones_own_stay_integers() -> None:
    total = panes.CustomAggregate(
        name="total", lift=lambda x: np.asarray(x)[None, :], combine=np.add,
        lower=lambda p: p[0], empty=(0,), type=pa.int64(),
    )  # fmt: skip
    t = pa.table({"at": [1, 2], "x": [2**53, 1]})
    answers = panes.sql(f"SELECT total(x) AS s FROM t {W}", aggregates=[total], t=t)
    assert answers["s"].to_pylist() == [2**53 + 1]


STORES = ("panes", "eager", "buffered", "adaptive", "adaptive-panes")


def keyed(*rows: tuple[int, str]) -> pa.Table:
    return pa.table({"at": pa.array([a for a, _ in rows], pa.int64()), "k": [k for _, k in rows]})


@pytest.mark.parametrize("store", STORES)
def test_a_partition_that_comes_after_others_have_closed_windows_loses_none(
    store: str,
) -> None:
    """a's first window is closed when b's first row comes; b has a first window too."""
    query = panes.open("SELECT count(*) AS n FROM s [ROWS 1 SLIDE 1 ROW PA k]", store=store)
    assert query.push(s=keyed((1, "a")))["k"].to_pylist() == ["a"]
    assert query.push(s=keyed((2, "b")))["k"].to_pylist() == ["b"]


@pytest.mark.parametrize("store", STORES)
def test_a_key_that_comes_after_a_promise_for_another_one_loses_no_row(store: str) -> None:
    """a is promised up to 100; b, which comes later, is not. Dense, so that it turns eager."""
    text = "SELECT k, count(*) AS n FROM s [RANGE 20 SLIDE 10 WATTR at] GROUP BY k"
    query = panes.open(text, store=store)
    query.push(s=keyed((1, "a"), (30, "a")))
    query.punctuate(s=100, key={"k": "a"})
    query.push(s=keyed(*[(5, "b")] * 10, *[(95, "b")] * 10, *[(105, "b")] * 300))
    answers = query.finish()
    found = dict(zip(answers["window_end"].to_pylist(), answers["n"].to_pylist(), strict=True))
    assert found == {10: 10, 20: 10, 100: 10, 110: 310, 120: 300}


@pytest.mark.parametrize("store", STORES)
def test_a_promise_for_a_key_may_come_when_all_keys_are_forgotten(store: str) -> None:
    text = "SELECT k, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY k"
    query = panes.open(text, store=store)
    many = 20_000
    query.push(s=pa.table({"at": np.full(many, 5), "k": np.arange(many)}))
    query.punctuate(s=100)
    assert query.state["keys"] == 0
    assert not len(query.punctuate(s=200, key={"k": 5}))
    query.push(s=pa.table({"at": [300], "k": [7]}))
    assert query.finish()["n"].to_pylist() == [1]


def test_a_late_row_in_the_first_batch_finds_its_windows_closed() -> None:
    query = panes.open("SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]")
    query.punctuate(s=100)
    assert not len(query.push(s=pa.table({"at": [5]})))
    assert query.late["reason"].to_pylist() == ["behind progress 100; all its windows are closed"]
    assert not len(query.finish())


def test_a_late_row_does_not_set_the_origin() -> None:
    query = panes.open("SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at ORIGIN FIRST]")
    query.punctuate(s=100)
    query.push(s=pa.table({"at": [5, 103]}))
    assert query.finish()["window_start"].to_pylist() == [103]


def test_a_key_is_not_rounded() -> None:
    query = panes.open("SELECT k, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY k")
    query.push(s=pa.table({"at": [1], "k": [1]}))
    with pytest.raises(panes.PanesError, match=r"1\.5 is none"):
        query.punctuate(s=10, key={"k": 1.5})


def test_an_unrelated_keys_promise_is_not_named_as_the_reason() -> None:
    text = "SELECT k, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY k"
    query = panes.open(text, lateness=0, why=True)
    query.push(s=pa.table({"at": [1], "k": [1]}))
    query.punctuate(s=100, key={"k": 7})
    answers = query.push(s=pa.table({"at": [15], "k": [1]}))
    assert answers["closed_by"].to_pylist() == ["lateness of s"]


def test_answers_of_row_windows_do_not_wait_for_ever() -> None:
    query = panes.open("SELECT count(*) AS n FROM s [ROWS 2]", flush=panes.LazyFlush(within=5))
    given = [len(query.push(s=pa.table({"x": [i]}))) for i in range(20)]
    assert sum(given) >= 14


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


@pytest.mark.parametrize(
    "options",
    [{"rows_late": "3"}, {"rows_late": 2.5}, {"flush": 5}, {"store": "foo"}],
)
def test_options_of_the_wrong_kind_are_refused_when_the_query_is_opened(
    options: dict[str, object],
) -> None:
    with pytest.raises(OptionError):
        panes.open("SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]", **options)  # type: ignore[arg-type]


def test_lengths_are_measured_as_positions_are() -> None:
    text = "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]"
    table = pa.table({"at": [1]})
    with pytest.raises(OptionError, match="revise_within is a whole number"):
        panes.open(text, late="revise", revise_within="5 minutes").push(s=table)
    with pytest.raises(QueryError, match="EVERY takes a whole number"):
        panes.open(f"{text} EMIT EARLY EVERY 5 minutes").push(s=table)
