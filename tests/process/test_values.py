"""Types at the edges: what goes in comes out, exactly, as in Spark SQL."""

from __future__ import annotations

import datetime as dt
import math
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import panes
from tests.support import answers_to

W = "[TUMBLING 10 WATTR at]"
ONE = "[TUMBLING 100 WATTR a]"


def ask(aggregates: str, **columns: object) -> dict[str, object]:
    """Aggregates over all rows of a table, as one answer."""
    size = len(next(iter(columns.values())))  # type: ignore[arg-type]
    table = pa.table({"a": pa.array(range(size), pa.int64()), **columns})
    [answer] = panes.sql(f"SELECT {aggregates} FROM s {ONE}", s=table).to_pylist()
    return {k: v for k, v in answer.items() if not k.startswith("window")}


def test_integer_sums_are_exact_beyond_doubles_and_refuse_to_overflow() -> None:
    big = 2**62
    assert ask("sum(x) AS s, avg(x) AS m", x=[big, big - 1, -big]) == {
        "s": big - 1,
        "m": (big - 1) / 3,
    }
    with pytest.raises(ArithmeticError, match="does not fit bigint"):
        ask("sum(x) AS s", x=[2**63 - 1, 1])
    unsigned = pa.array([2**64 - 1, 3], pa.uint64())
    assert ask("max(x) AS h, min(x) AS l", x=unsigned) == {"h": 2**64 - 1, "l": 3}


def test_extreme_integers_are_not_taken_for_nothing() -> None:
    low, high = -(2**63), 2**63 - 1
    assert ask("min(x) AS l, max(x) AS h", x=[high, high]) == {"l": high, "h": high}
    assert ask("min(x) AS l, max(x) AS h", x=[low, low]) == {"l": low, "h": low}
    nothing = pa.array([None, None], pa.int64())
    assert ask("min(x) AS l, max(x) AS h, sum(x) AS s, count(x) AS n", x=nothing) == {
        "l": None, "h": None, "s": None, "n": 0,
    }  # fmt: skip


def test_decimals_keep_every_digit() -> None:
    wide = pa.decimal128(38, 2)
    x = pa.array([Decimal("99999999999999999999999999999999999.99"), Decimal("-0.01")], wide)
    assert ask("sum(x) AS s", x=x)["s"] == Decimal("99999999999999999999999999999999999.98")
    small = pa.array([Decimal("0.05"), Decimal("0.10"), Decimal("0.10")], pa.decimal128(5, 2))
    assert ask("avg(x) AS m", x=small)["m"] == Decimal("0.083333")
    with pytest.raises(ArithmeticError, match="does not fit"):
        ask(
            "sum(x) AS s",
            x=pa.array([Decimal(10) ** 37 * 9, Decimal(10) ** 37 * 9], pa.decimal128(38)),
        )


def test_a_float_sum_carries_what_a_double_would_lose() -> None:
    assert ask("sum(x) AS s", x=[1e16, 1.0, -1e16])["s"] == 1.0
    assert ask("sum(x) AS s", x=[0.1] * 10)["s"] == 1.0


def test_a_window_never_remembers_a_float_that_has_left_it() -> None:
    """Subtracting 1e16 out of a running sum would leave the small ones wrong."""
    table = pa.table({"a": [0, 10, 20, 30], "x": [1e16, 0.3, 0.3, 0.3]})
    answers = panes.sql("SELECT sum(x) AS s FROM s [RANGE 20 SLIDE 10 WATTR a]", s=table)
    assert answers["s"].to_pylist()[2:] == [0.6, 0.6, 0.3]


def test_nan_and_infinity_behave_as_in_spark() -> None:
    nan, inf = math.nan, math.inf
    got = ask("max(x) AS h, min(x) AS l, sum(x) AS s, count(x) AS n", x=[1.0, nan, None])
    assert str(got) == "{'h': nan, 'l': 1.0, 's': nan, 'n': 2}"
    assert ask("sum(x) AS s, max(x) AS h", x=[inf, 1.0]) == {"s": inf, "h": inf}
    assert math.isnan(ask("sum(x) AS s", x=[inf, -inf])["s"])  # type: ignore[arg-type]
    assert ask("count(DISTINCT x) AS n", x=[nan, nan, 0.0, -0.0])["n"] == 2


def test_nan_minus_zero_and_null_are_keys_like_any_other() -> None:
    table = pa.table({"a": range(6), "k": [math.nan, None, 0.0, -0.0, math.nan, None]})
    answers = panes.sql(f"SELECT k, count(*) AS n FROM s {ONE} GROUP BY k", s=table)
    assert answers["n"].to_pylist() == [2, 2, 2]
    assert answers["k"].to_pylist()[:2] == [None, 0.0]


def test_first_and_last_go_by_time_and_ties_by_value() -> None:
    table = pa.table({"a": [5, 1, 5, 1], "x": ["c", None, "d", "b"]})
    text = f"SELECT first(x) AS f, last(x) AS l FROM s {ONE}"
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
        assert panes.sql(text, s=table.take(order)).to_pylist()[0]["f"] == "b"
        assert panes.sql(text, s=table.take(order)).to_pylist()[0]["l"] == "d"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("(x + z) / y", Decimal("2.000000")),
        ("z * x / y", Decimal("1.7500000")),
        ("day BETWEEN '2020-01-01' AND '2020-12-31' AND x < y AND z > y", True),
        ("n BETWEEN '1' AND '7'", False),
        ("x IN ('1', '2') AND y BETWEEN '3' AND '5'", True),
    ],
)
def test_a_value_worked_out_first_is_not_taken_for_a_column(expression: str, value: object) -> None:
    """Names that DuckDB is given for such values hide columns of the same name."""
    numbers = {
        c: pa.array([Decimal(v)], pa.decimal128(4, 1)) for c, v in zip("xyz", "147", strict=True)
    }
    table = pa.table({"a": [1], "n": [9], "day": [dt.date(2020, 5, 1)], **numbers})
    got = panes.sql(f"SELECT max({expression}) AS v FROM s {ONE}", s=table)
    assert got["v"].to_pylist() == [value]


def test_an_average_of_nothing_is_null() -> None:
    assert ask("sum(x) / count(x) AS mean", x=pa.array([None], pa.float64())) == {"mean": None}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_timestamps_of_any_unit_and_zone_give_the_same_windows(unit: str, zone: str | None) -> None:
    at = pa.array([0, 90, -1], pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp(unit))
    table = pa.table({"a": at.cast(pa.timestamp(unit, zone)) if zone else at})
    answers = panes.sql("SELECT count(*) AS n FROM s [TUMBLING 1 minute WATTR a]", s=table)
    assert answers.schema.field("window_start").type == pa.timestamp("us", zone)
    assert answers["window_start"].cast(pa.int64()).to_pylist() == [-60_000_000, 0, 60_000_000]


def test_dates_are_days() -> None:
    table = pa.table({"a": [dt.date(2026, 3, 29), dt.date(2026, 3, 30)]})
    answers = panes.sql("SELECT count(*) AS n FROM s [TUMBLING 1 day WATTR a]", s=table)
    assert answers["window_start"].to_pylist() == [
        dt.datetime(2026, 3, 29),
        dt.datetime(2026, 3, 30),
    ]


def test_rows_without_a_place_are_left_out_and_counted() -> None:
    far = pa.array([0, None, 2**62], pa.int64()).cast(pa.timestamp("us"), safe=False)
    with pytest.warns(panes.RejectedRowsWarning, match="left out 2 rows: `a` is NULL or outside"):
        answers = panes.sql(
            "SELECT count(*) AS n FROM s [TUMBLING 1 day WATTR a]", s=pa.table({"a": far})
        )
    assert answers["n"].to_pylist() == [1]


def test_frames_of_every_library_are_streams() -> None:
    columns = {"a": [1, 2, 12], "k": ["x", "y", "x"], "v": [1.0, 2.0, None]}
    text = "SELECT k, sum(v) AS s, count(*) AS n FROM s [TUMBLING 10 WATTR a] GROUP BY k"
    table = pa.table(columns)
    want = panes.sql(text, s=table).to_pylist()
    categories = table.set_column(1, "k", table["k"].dictionary_encode())
    frames = [
        table.to_batches()[0],
        pd.DataFrame(columns),
        pd.DataFrame(columns).astype({"k": "category"}),
        pl.DataFrame(columns),
        pl.LazyFrame(columns),
        pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
        categories,
    ]
    for frame in frames:
        got = panes.sql(text, s=frame).to_pylist()
        assert [(g["k"], g["n"]) for g in got] == [(w["k"], w["n"]) for w in want]


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(panes.PanesError, match="is a list, which holds no rows"):
        panes.sql(f"SELECT count(*) FROM s {ONE}", s=[1, 2])
    twice = pa.table([[1], [2]], names=["a", "a"])
    with pytest.raises(panes.PanesError, match="two columns named `a`"):
        panes.sql(f"SELECT count(*) FROM s {ONE}", s=twice)


def test_an_empty_table_has_answers_columns_and_no_answers() -> None:
    empty = pa.table({"a": pa.array([], pa.int64()), "x": pa.array([], pa.float64())})
    answers = panes.sql(f"SELECT max(x) AS m, median(x) AS d FROM s {ONE}", s=empty)
    assert answers.schema.names == ["window_start", "window_end", "m", "d"]
    assert len(answers) == 0


def test_ones_own_aggregates_are_handed_over_and_answered() -> None:
    geometric = panes.CustomAggregate(
        name="geo",
        lift=lambda x: np.stack([np.log(x), np.ones(len(x))]),
        combine=np.add,
        lower=lambda p: np.exp(p[0] / np.maximum(p[1], 1)),
        empty=(0.0, 0.0),
        type=pa.float64(),
    )
    spread = panes.WindowFunction(
        name="spread", function=lambda v: v[-1].as_py() - v[0].as_py(), type=pa.float64()
    )
    table = pa.table({"a": [1, 2, 11, 14], "x": [1.0, 4.0, 9.0, None]})
    text = "SELECT geo(x) AS g, spread(x) AS s FROM s [RANGE 20 SLIDE 10 WATTR a]"
    mine = (geometric, spread)
    got = panes.sql(text, aggregates=mine, s=table).to_pylist()
    assert [round(g["g"], 6) for g in got] == [2.0, round(36 ** (1 / 3), 6), 9.0]
    assert [g["s"] for g in got] == [3.0, 8.0, 0.0]
    oracle = panes.oracle(text, aggregates=mine, s=table).to_pylist()
    assert [round(o["g"], 9) for o in oracle] == [round(g["g"], 9) for g in got]


def test_an_aggregate_of_ones_own_takes_two_columns_as_a_struct_as_its_refusal_says() -> None:
    """
    price     5  7  9
    quantity  1  4  1    half of the quantity is reached at 7
    """

    def half(trades: pa.Array) -> object:
        up_to = np.cumsum(trades.field(1).to_numpy())
        return trades.field(0)[int(np.searchsorted(up_to, up_to[-1] / 2))].as_py()

    mine = (panes.WindowFunction(name="half", function=half, type=pa.int64()),)
    table = pa.table({"a": [1, 2, 3], "price": [9, 5, 7], "quantity": [1, 1, 4]})
    text = f"SELECT half({{}}) AS h FROM s {ONE}"
    with pytest.raises(panes.QueryError, match=r"takes 1 column, got 2.*\n\nHint: half\(struct\("):
        panes.sql(text.format("price, quantity"), aggregates=mine, s=table)
    for answer in (panes.sql, panes.oracle):
        found = answer(text.format("struct(price, quantity)"), aggregates=mine, s=table)
        assert found["h"].to_pylist() == [7]
    with pytest.raises(panes.QueryError, match=r"Hint: .*aggregates=\[\.\.\.\]"):
        panes.sql(text.format("price"), s=table)


def test_sketches_stay_within_their_stated_error() -> None:
    rng = np.random.default_rng(5)
    rows = 20_000
    table = pa.table(
        {
            "a": np.sort(rng.integers(0, 1000, rows)),
            "x": rng.normal(0, 1, rows),
            "k": rng.zipf(1.5, rows),
        }
    )
    text = (
        "SELECT approx_count_distinct(k) AS d, count(DISTINCT k) AS exact, "
        "approx_quantile(x, 0.9) AS q, approx_top_k(k, 3) AS top, top_k(k, 3) AS heavy "
        "FROM s [RANGE 400 SLIDE 50 WATTR a]"
    )
    x, a = table["x"].to_numpy(), table["a"].to_numpy()
    for answer in panes.sql(text, s=table).to_pylist():
        assert abs(answer["d"] - answer["exact"]) <= 4 * 0.016 * answer["exact"] + 1
        held = x[(a >= answer["window_start"]) & (a < answer["window_end"])]
        assert abs((held <= answer["q"]).mean() - 0.9) <= 3 * 0.0133
        assert [t["item"] for t in answer["top"]] == [t["item"] for t in answer["heavy"]]


def test_a_clean_query_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        panes.sql(
            f"SELECT max(try_divide(x, 0)) AS m, sum(try_mod(x, 0)) AS r FROM s {ONE}",
            s=pa.table({"a": [1], "x": [1]}),
        )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("max(x / 0)", "division by zero.*try_divide"),
        ("max(x % 0)", "division by zero.*try_mod"),
        ("max(1 / (x - 1))", "division by zero"),
        ("max(x) / (max(x) - 1)", "division by zero"),
        ("max(CAST(k AS INT))", "cannot be cast.*try_cast"),
        ("max(x + 9223372036854775807)", "Overflow.*try_add"),
        ("max(CAST(x + 300 AS TINYINT))", "out of range.*try_cast"),
    ],
)
def test_what_has_no_value_is_an_error_as_in_spark(asked: str, said: str) -> None:
    rows = pa.table({"a": [1], "x": [1], "k": ["one"]})
    with pytest.raises(panes.PanesError, match=f"(?s){said}"):
        panes.sql(f"SELECT {asked} AS m FROM s {ONE}", s=rows)


@pytest.mark.parametrize("asked", ["max(1 / x)", "max(1 / x) FILTER (WHERE x <> 0)"])
def test_what_a_condition_leaves_out_is_not_worked_out(asked: str) -> None:
    rows = pa.table({"a": [1, 2], "x": [0, 2]})
    text = f"SELECT {asked} AS m FROM s {ONE}" + "WHERE x <> 0" * ("FILTER" not in asked)
    assert panes.sql(text, s=rows)["m"].to_pylist() == [0.5]
    assert panes.oracle(text, s=rows)["m"].to_pylist() == [0.5]
    register = panes.register("s")
    register.add("q", text)
    register.push(rows)
    assert register.finish()["q"]["m"].to_pylist() == [0.5]


def test_explain_prints_the_same_text_every_time() -> None:
    table = pa.table({"a": [1], "x": [1.0]})
    text = "SELECT avg(x), median(x), approx_count_distinct(x) FROM s [RANGE 600 SLIDE 10 WATTR a]"
    first = panes.explain(text, details=True, s=table)
    assert first == panes.explain(text, details=True, s=table)
    assert "60 panes per window" in first
    assert "avg(x): bounded, full-differential" in first
    assert "median(x): holistic, pseudo-differential" in first
    assert "1.6 % relative standard error" in first
    assert "two stacks for sum+carry, count (numbers, combined by compiled code)" in first


def test_a_polars_categorical_is_a_column_like_any_other() -> None:
    frame = pl.DataFrame({"at": [1, 2], "c": pl.Series(["a", "b"], dtype=pl.Categorical)})
    assert answers_to(f"SELECT c, count(*) AS n FROM t {W} GROUP BY c", t=frame) == [
        {"c": "a", "n": 1},
        {"c": "b", "n": 1},
    ]


@pytest.mark.parametrize("call", [
    "bitmap_or_agg(b)", "bitmap_and_agg(b)", "count_min_sketch(b, 0.1, 0.9, 1)", "listagg(b)",
    "count_min_sketch(s, 0.1, 0.9, 1)", "listagg(s)", "hll_sketch_agg(b)", "theta_sketch_agg(s)",
])  # fmt: skip
def test_text_and_bytes_of_polars_are_those_of_arrow(call: str) -> None:
    columns = {"at": [1, 2], "b": [b"p", b"q"], "s": ["p", "q"]}
    text = f"SELECT {call} AS r FROM t {W}"
    polars, arrow = (answers_to(text, t=t) for t in (pl.DataFrame(columns), pa.table(columns)))
    assert polars == arrow


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_nanoseconds_are_read_exactly_or_refused(zone: str | None) -> None:
    """A position that was cut would put a row into a window that does not hold it."""
    text = "SELECT count(*) AS n, max(hour(ts)) AS h FROM t [TUMBLING 1 hour WATTR ts]"
    whole = pa.array([-1_000, 3_600_000_001_000], pa.int64()).view(pa.timestamp("ns", zone))
    assert answers_to(text, t=pa.table({"ts": whole})) == [{"n": 1, "h": 23}, {"n": 1, "h": 1}]
    finer = pa.array([0, 3_600_000_000_001], pa.int64()).view(pa.timestamp("ns", zone))
    with pytest.raises(panes.PanesError, match="`ts` has times finer than a microsecond, as in r"):
        answers_to(text, t=pa.table({"ts": finer}))


def test_sundays_are_the_first_day_as_in_spark() -> None:
    t = pa.table({"ts": [dt.datetime(2026, 11, 15)]})
    assert answers_to("SELECT max(dayofweek(ts)) AS d FROM t [TUMBLING 1 day WATTR ts]", t=t) == [
        {"d": 1}
    ]


def test_integers_of_ones_own_stay_integers() -> None:
    total = panes.CustomAggregate(
        name="total", lift=lambda x: np.asarray(x)[None, :], combine=np.add,
        lower=lambda p: p[0], empty=(0,), type=pa.int64(),
    )  # fmt: skip
    t = pa.table({"at": [1, 2], "x": [2**53, 1]})
    answers = panes.sql(f"SELECT total(x) AS s FROM t {W}", aggregates=[total], t=t)
    assert answers["s"].to_pylist() == [2**53 + 1]
