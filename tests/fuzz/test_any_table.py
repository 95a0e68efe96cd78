"""Any table is answered or refused in our own words: types, extremes, sizes."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.errors import PanesError, RejectedRowsWarning

EDGES: dict[str, tuple[pa.DataType, list[object]]] = {
    "int8": (pa.int8(), [-128, 127, None]),
    "uint64": (pa.uint64(), [0, (1 << 64) - 1, None]),
    "int64": (pa.int64(), [-(1 << 63), (1 << 63) - 1, (1 << 61), 0, None]),
    "float": (pa.float64(), [math.nan, math.inf, -math.inf, 5e-324, -0.0, None]),
    "half": (pa.float16(), [1.5, None]),
    "bool": (pa.bool_(), [True, False, None]),
    "text": (pa.string(), ["", "a" * 1_000, "\0", "é", None]),
    "large text": (pa.large_string(), ["x", None]),
    "view": (pa.string_view(), ["x" * 30, None]),
    "binary": (pa.binary(), [b"\xff", b"", None]),
    "fixed": (pa.binary(2), [b"ab", None]),
    "decimal": (pa.decimal128(38, 0), [Decimal(10**38 - 1), Decimal(-(10**38) + 1), None]),
    "wide decimal": (pa.decimal256(76, 0), [Decimal(10**75), None]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "time of day": (pa.time64("us"), [dt.time(23, 59), None]),
    "second": (pa.timestamp("s"), [-(1 << 63), (1 << 63) - 1, 0, None]),
    "nanosecond": (pa.timestamp("ns", "UTC"), [1, 0, (1 << 62), None]),
    "zone": (pa.timestamp("us", "Europe/Berlin"), [0, 10**15, None]),
    "duration": (pa.duration("us"), [1, None]),
    "list": (pa.list_(pa.int64()), [[1, 2], [], None]),
    "struct": (pa.struct([("a", pa.int64())]), [{"a": 1}, None]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)], None]),
    "null": (pa.null(), [None]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", None]),
    "runs": (pa.run_end_encoded(pa.int32(), pa.int64()), [1, None]),
}
TEXTS = (
    "SELECT k, count(*) AS n, max(x) AS m FROM s [RANGE 20 SLIDE 10 WATTR at] GROUP BY k",
    "SELECT k, sum(x) AS n FROM s [RANGE 1 hour SLIDE 1 minute WATTR at] GROUP BY k",
    "SELECT median(x) AS m, count(DISTINCT k) AS d FROM s [TUMBLING 1 day WATTR at]",
    "SELECT k, first(x) AS f, min_by(k, x) AS b FROM s [RANGE 3 ROWS SLIDE 1 ROW WATTR at PA k]"
    " GROUP BY k",
    "SELECT at, k, x, avg(x) AS a FROM s [RANGE 10 RATTR at SLIDE 1 ROW]",
    "SELECT count(*) AS n FROM s [RANGE ALL SLIDE 1 day WATTR at] WHERE x > k",
    "SELECT k, approx_count_distinct(x) AS n FROM s [RANGE 4 ROWS SLIDE 2 ROWS] GROUP BY k",
)


def registered(text: str, table: pa.Table) -> None:
    """Pushed into a register that has been told the columns."""
    register = panes.register("s", rows_late=1, schema=table.schema, max_answers=10_000)
    register.add("any", text)
    register.push(table)
    register.finish()


def column(data: st.DataObject, rows: int) -> pa.Array:
    data_type, values = EDGES[data.draw(st.sampled_from(sorted(EDGES)))]
    drawn = data.draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows))
    if pa.types.is_timestamp(data_type):
        return pa.array(drawn, pa.int64()).view(data_type)
    return pa.array(drawn, data_type)


@pytest.mark.filterwarnings("ignore::panes.RejectedRowsWarning")
@given(data=st.data(), text=st.sampled_from(TEXTS), rows=st.integers(0, 5))
@settings(max_examples=120)
def test_any_table_is_answered_or_refused(data: st.DataObject, text: str, rows: int) -> None:
    table = pa.table({name: column(data, rows) for name in ("at", "k", "x")})

    def in_batches() -> None:
        panes.sql(text, s=table, batches=True, max_answers=10_000).read_all()

    ways: list[Callable[[], object]] = [
        lambda: panes.sql(text, s=table, max_answers=10_000),
        in_batches,
        lambda: panes.explain(text, s=table),
        lambda: panes.oracle(text, s=table),
        lambda: panes.open(text, rows_late=1, schema=table.schema).push(s=table),
        lambda: registered(text, table),
    ]
    for way in ways:
        with contextlib.suppress(PanesError):
            way()


@pytest.mark.parametrize("values", [["a", "b"], pa.array(["a", "b"]).dictionary_encode()])
def test_runs_of_equal_values_are_their_values(values: pa.Array) -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), values)
    table = pa.table({"at": [1, 2, 3, 4], "k": runs}).slice(1)
    text = "SELECT k, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY k"
    assert panes.sql(text, s=table).to_pydict()["n"] == [1, 2]


def test_columns_that_are_said_are_those_that_come() -> None:
    """In the plain layout that tables are brought to."""
    table = pa.table({"at": [1, 2], "k": pa.array(["a", "b"]).dictionary_encode()})
    register = panes.register("s", lateness=0, schema=table.schema)
    register.add("all", "SELECT k, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY k")
    register.push(table)
    assert register.finish()["all"]["k"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize("way", ["sql", "oracle", "open", "register"])
def test_a_column_of_a_type_without_empty_arrays_is_refused_by_name(way: str) -> None:
    codes, offsets = pa.array([0], pa.int8()), pa.array([0], pa.int32())
    table = pa.table({"at": [1], "u": pa.UnionArray.from_dense(codes, offsets, [pa.array([1])])})
    text = "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]"
    ways: dict[str, Callable[[], object]] = {
        "sql": lambda: panes.sql(text, s=table),
        "oracle": lambda: panes.oracle(text, s=table),
        "open": lambda: panes.open(text, schema=table.schema),
        "register": lambda: panes.register("s", schema=table.schema),
    }
    with pytest.raises(PanesError, match="`u` of stream `s` is of type dense_union"):
        ways[way]()


def test_a_row_of_the_year_9999_is_like_any_other() -> None:
    at = pa.array([0, 253_402_300_799_000_000], pa.timestamp("us", "UTC"))
    table = pa.table({"at": at})
    text = "SELECT count(*) AS n FROM s [RANGE 1 hour SLIDE 1 minute WATTR at]"
    assert len(panes.sql(text, s=table)) == 120
    assert len(panes.sql(text, s=table, batches=True).read_all()) == 120
    query = panes.open(text, lateness="1 minute")
    with pytest.warns(RejectedRowsWarning, match="1 row is further ahead than max_ahead"):
        query.push(s=table)
    assert len(query.rejected) == 1
    assert len(query.finish()) == 60
