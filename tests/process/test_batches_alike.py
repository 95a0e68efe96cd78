"""Batches that differ in what does not matter are taken; what would change a value is refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pandas as pd
import pyarrow as pa
import pytest

import panes
from panes.batches_alike import alike
from panes.errors import PanesError

SUM = "SELECT sum(price) AS paid, count(*) AS n FROM bids [TUMBLING 10 WATTR at]"
FIRST = pa.table({"at": [1], "price": [2.5]})
TAKEN = {
    "columns in another order": pa.table({"price": [1.5], "at": [2]}),
    "a column more": pa.table({"at": [2], "note": ["x"], "price": [1.5]}),
    "nothing but NULLs": pa.table({"at": [2], "price": pa.nulls(1)}),
    "an int where a double was": pa.table({"at": [2], "price": [4]}),
    "a short int": pa.table({"at": pa.array([2], pa.int16()), "price": [1.5]}),
    "whole doubles where an int was": pa.table({"at": [2.0], "price": [1.5]}),
    "a list of dicts": [{"price": 1.5, "at": 2}, {"at": 3, "note": "without price"}],
    "an empty list": [],
    "a dict of lists": {"at": [2], "price": [1.5]},
    "pandas, with a column of objects": pd.DataFrame({"at": [2], "price": [None]}),
}
PAID = {
    "nothing but NULLs": (2.5, 2),
    "an int where a double was": (6.5, 2),
    "a list of dicts": (4.0, 3),
    "an empty list": (2.5, 1),
    "pandas, with a column of objects": (2.5, 2),
}


def by_query() -> tuple[Callable[[object], object], Callable[[], pa.Table]]:
    query = panes.open(SUM)
    return (lambda batch: query.push(bids=batch)), query.finish


def by_register() -> tuple[Callable[[object], object], Callable[[], pa.Table]]:
    reg = panes.register("bids")
    reg.add("q", SUM)
    return reg.push, lambda: reg.finish()["q"]


@pytest.mark.parametrize("host", [by_query, by_register])
@pytest.mark.parametrize("name", TAKEN)
def test_a_batch_is_brought_to_the_columns_of_the_first(
    name: str, host: Callable[[], tuple[Callable[[object], object], Callable[[], pa.Table]]]
) -> None:
    push, finish = host()
    push(FIRST)
    push(TAKEN[name])
    paid, n = PAID.get(name, (4.0, 2))
    [answer] = finish().to_pylist()
    assert (answer["paid"], answer["n"]) == (paid, n)


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (pa.table({"at": [2]}), "no column `price`, and the stream has"),
        (
            pa.table({"at": [2], "price": ["1.5"]}),
            "`price` of stream `bids` is double, and string in this batch",
        ),
        (
            pa.table({"at": [2.5], "price": [1.0]}),
            "is int64, and double in this batch, with values that int64",
        ),
        (
            pa.table({"at": [2], "price": [2**53 + 1]}),
            "is double, and int64 in this batch, with values that double",
        ),
        (pa.table({"at": [2], "price": [True]}), "is double, and bool in this batch"),
        ([{"at": 2, "price": 1.5}, 7], "is a list, which holds no rows"),
    ],
)
def test_what_would_change_a_value_is_refused(batch: object, said: str) -> None:
    query = panes.open(SUM)
    query.push(bids=FIRST)
    with pytest.raises(panes.PanesError, match=said):
        query.push(bids=batch)
    assert query.finish()["n"].to_pylist() == [1]


def test_floats_are_narrowed_only_if_they_stay_the_same() -> None:
    narrow = pa.schema([("x", pa.float32())])
    exact = pa.table({"x": [0.5, None, float("nan")]})
    assert alike(exact, narrow, "s")["x"].to_pylist()[:2] == [0.5, None]
    with pytest.raises(panes.PanesError, match="is float, and double in this batch, with values"):
        alike(pa.table({"x": [0.1]}), narrow, "s")


def test_times_are_the_same_in_other_units_and_not_with_another_kind_of_clock() -> None:
    day = dt.datetime(2026, 1, 1)
    seconds = pa.table({"ts": pa.array([day], pa.timestamp("s"))})
    micros = pa.schema([("ts", pa.timestamp("us"))])
    assert alike(seconds, micros, "s")["ts"].to_pylist() == [day]
    with pytest.raises(panes.PanesError, match=r"timestamp\[us, tz=UTC\]"):
        alike(seconds, pa.schema([("ts", pa.timestamp("us", "UTC"))]), "s")


@pytest.mark.parametrize("zones", [(None, "UTC"), ("UTC", None), ("Europe/Berlin", None)])
def test_a_time_with_and_without_a_zone_is_cast_as_the_hint_says(
    zones: tuple[str | None, str | None],
) -> None:
    given, known = (pa.timestamp("us", zone) for zone in zones)
    rows = pa.table({"ts": pa.array([3_600_000_000], given)})
    with pytest.raises(panes.PanesError, match="Hint") as refused:
        alike(rows, pa.schema([("ts", known)]), "s")
    written = str(refused.value).rsplit(": ", 1)[1]
    cast = eval(written, {"pyarrow": pa, "rows": rows})
    assert alike(pa.table({"ts": cast}), pa.schema([("ts", known)]), "s").num_rows == 1


def test_a_column_without_a_type_yet_is_named() -> None:
    query = panes.open("SELECT count(*) AS n FROM bids [TUMBLING 10 WATTR at]")
    query.push(bids=pa.table({"at": [1], "note": pa.nulls(1)}))
    with pytest.raises(
        panes.PanesError, match="had nothing but NULLs in the first batch"
    ) as failed:
        query.push(bids=pa.table({"at": [1], "note": ["x"]}))
    assert "schema=" in str(failed.value)


@pytest.mark.parametrize("host", [by_query, by_register])
def test_an_empty_list_comes_first_where_columns_are_said(
    host: Callable[[], tuple[Callable[[object], object], Callable[[], pa.Table]]],
) -> None:
    push, _ = host()
    with pytest.raises(panes.PanesError, match="neither rows nor columns") as failed:
        push([])
    assert "schema=" in str(failed.value)
    query = panes.open(SUM, schema=FIRST.schema)
    assert len(query.push(bids=[])) == 0
    query.push(bids=FIRST)
    assert query.finish()["paid"].to_pylist() == [2.5]


class TestSchema:
    """`schema=` says what is meant before the first batch comes."""

    def test_the_first_batch_is_brought_to_it(self) -> None:
        columns = pa.schema([("at", pa.int64()), ("price", pa.float64())])
        query = panes.open(SUM, schema=columns)
        query.push(bids=[{"at": 1, "price": 2}])
        assert query.finish()["paid"].to_pylist() == [2.0]

    def test_the_query_is_checked_at_once(self) -> None:
        with pytest.raises(panes.PanesError, match="no column `price`"):
            panes.open(SUM, schema=pa.schema([("at", pa.int64())]))

    def test_a_join_is_told_of_each_stream(self) -> None:
        text = "SELECT l.x, r.y FROM l JOIN r ON r.at BETWEEN l.at AND l.at + 1"
        sides = {
            "l": pa.schema([("at", pa.int64()), ("x", pa.float64())]),
            "r": pa.schema([("at", pa.int64()), ("y", pa.float64())]),
        }
        query = panes.open(text, schema=sides)
        query.push(l=[{"at": 1, "x": 1}])
        assert query.push(r=[{"y": 2, "at": 2}]).to_pylist() == [{"x": 1.0, "y": 2.0}]

    @pytest.mark.parametrize(
        ("schema", "said"),
        [
            ({"asks": pa.schema([])}, "`asks`"),
            ({"bids": [("at", "int64")]}, "schema must be a pyarrow.Schema"),
        ],
    )
    def test_what_is_no_schema_of_a_stream_is_refused(self, schema: object, said: str) -> None:
        with pytest.raises(panes.PanesError, match=said):
            panes.open(SUM, schema=schema)
        with pytest.raises(panes.PanesError, match="say whose it is"):
            panes.open("SELECT l.x FROM l JOIN r ON l.at = r.at", schema=pa.schema([]))


def test_the_version_is_that_of_the_package() -> None:
    assert panes.__version__.count(".") == 2


@pytest.mark.parametrize("name", ["late", "name", "text", "frames", "run", "store"])
def test_a_stream_may_be_called_like_an_option(name: str) -> None:
    """By a mapping, wherever streams are given by name; `push` has no options at all."""
    text = f"SELECT count(*) AS n FROM {name} [TUMBLING 10 WATTR at]"
    rows = pa.table({"at": [1, 5, 12]})
    want = [2, 1]
    assert panes.sql(text, {name: rows})["n"].to_pylist() == want
    assert panes.oracle(text, {name: rows})["n"].to_pylist() == want
    assert f"streams    {name}" in panes.explain(text, {name: rows})
    query = panes.open(text, lateness=0)
    given = pa.concat_tables([query.push(**{name: rows}), query.finish()])
    assert given["n"].to_pylist() == want


def test_a_stream_given_twice_is_refused() -> None:
    rows = pa.table({"at": [1]})
    with pytest.raises(PanesError, match="`s` is given twice"):
        panes.sql("SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]", {"s": rows}, s=rows)
    with pytest.raises(PanesError, match="a mapping from the names of streams"):
        panes.sql("SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]", rows)
