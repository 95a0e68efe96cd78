"""Joins of bounded DataFrames give what the oracle gives, pair by pair."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import panes
import panes.spark
from panes.errors import PanesError, QueryError
from panes.language.expressions import quoted
from tests.hostile import ATTACKS, HOSTILE_NAMES
from tests.join_queries import ABOVE, AS_OF, BANDS, CHAINS, ONE_STREAM, THIRD, WINDOWS, L, R
from tests.spark.streaming import assert_equal
from tests.support import read, slow

TABLES = {"l": L, "r": R, "t": THIRD}
QUERIES = (*BANDS, *WINDOWS, *AS_OF, *ABOVE, *CHAINS)


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> dict[str, Any]:
    return {name: spark.createDataFrame(table).coalesce(1) for name, table in TABLES.items()}


@pytest.mark.parametrize("text", [q if i % 3 == 0 else slow(q) for i, q in enumerate(QUERIES)])
def test_a_join_of_dataframes_equals_the_oracle(frames: dict[str, Any], text: str) -> None:
    names = read(text).streams
    want = panes.oracle(text, **{name: TABLES[name] for name in names})
    assert_equal(panes.sql(text, **{name: frames[name] for name in names}), want)


def test_one_stream_twice_is_what_spark_says_itself(
    spark: SparkSession, frames: dict[str, Any]
) -> None:
    """The engine, the oracle, and Spark's own join of the same text over rows with a position."""
    for name in "lr":
        frames[name].where("at IS NOT NULL").createOrReplaceTempView(name)
    for text in ONE_STREAM:
        streams = {name: frames[name] for name in read(text).streams}
        want = panes.oracle(text, **{name: TABLES[name] for name in streams})
        assert_equal(panes.sql(text, **streams), want)
        if "[" not in text:
            assert_equal(spark.sql(text), want)
    for name in "lr":
        spark.catalog.dropTempView(name)


def test_fields_made_of_columns_have_the_names_of_the_columns(spark: SparkSession) -> None:
    left = spark.createDataFrame([(0, [1, 2])], "at BIGINT, a ARRAY<BIGINT>")
    right = spark.createDataFrame([(1, [3])], "at BIGINT, b ARRAY<BIGINT>")
    text = (
        "SELECT arrays_zip(l.a, r.b) AS z, struct(l.a, r.at) AS s, (l.at, b) AS p "
        "FROM l [RANGE 5 WATTR at], r [RANGE 5 WATTR at]"
    )
    streams: dict[str, Any] = {"l": left, "r": right}
    want = panes.oracle(text, **{name: frame.toArrow() for name, frame in streams.items()})
    got = panes.sql(text, **streams).toArrow()
    assert got.to_pylist() == want.to_pylist()
    assert got.to_pylist()[0]["z"] == [{"a": 1, "b": 3}, {"a": 2, "b": None}]


def test_a_hot_key_meets_only_its_neighbours_in_time(spark: SparkSession) -> None:
    """One key, 20,000 rows a side, a band of one: a cross product would be 400 million pairs."""
    rows = spark.range(20_000).selectExpr("id", "id AS at", "1 AS k")
    text = "SELECT l.id, r.id AS j FROM l JOIN r ON l.k = r.k AND r.at BETWEEN l.at AND l.at + 1"
    joined = panes.sql(text, l=rows, r=rows)
    assert joined.count() == 39_999


def test_explain_says_how_a_join_is_compiled(frames: dict[str, Any]) -> None:
    said = panes.explain(BANDS[0], l=frames["l"], r=frames["r"])
    assert "buckets of 11 seconds are part of the key; rows of r are in the two" in said
    said = panes.explain(WINDOWS[0], l=frames["l"], r=frames["r"])
    assert "both sides once for each window, whose number is part of the key" in said
    said = panes.explain(AS_OF[0], l=frames["l"], r=frames["r"])
    assert "the last row of r among both sides in one order" in said


def test_streams_and_tables_are_not_joined(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "value AS k")
    table = spark.createDataFrame(pa.table({"ts": L["ts"], "k": L["k"]}))
    text = "SELECT l.k FROM l [RANGE 1 second WATTR ts], r [RANGE 1 second WATTR ts]"
    said = r"`l` is a streaming DataFrame and `r` is a table\n\nHint: join it with Spark first"
    with pytest.raises(QueryError, match=said) as refused:
        panes.sql(text, l=stream, r=table)
    with pytest.raises(QueryError, match=said):
        panes.register(("l", "r"), {"l": stream, "r": table})
    with pytest.raises(QueryError, match=r"Hint: Spark's own join is for that: left.join"):
        panes.spark.join(stream, table, on="k", within=("0 seconds", "1 second"), at="ts")
    line = str(refused.value).partition("ask the result: ")[2].partition(";")[0]
    assert line == 'l = l.join(r, "k")'
    names: dict[str, Any] = {"l": stream, "r": table.drop("ts")}
    exec(line, names)
    asked = "SELECT k, count(*) AS n FROM l [TUMBLING 1 second WATTR ts] GROUP BY k"
    answers = panes.sql(asked, lateness="1 second", l=names["l"])
    assert answers.isStreaming
    assert answers.columns == ["window_start", "window_end", "k", "n"]


def test_what_is_for_streams_is_refused(frames: dict[str, Any]) -> None:
    with pytest.raises(QueryError, match="bounded, so no row of them is late"):
        panes.sql(BANDS[0], with_late=True, l=frames["l"], r=frames["r"])
    with pytest.raises(QueryError, match="EMIT EARLY is for streams"):
        panes.sql(f"{ABOVE[0]} EMIT EARLY", l=frames["l"], r=frames["r"])
    with pytest.raises(QueryError, match="why is for streams, and these DataFrames are bounded"):
        panes.sql(ABOVE[0], why=True, l=frames["l"], r=frames["r"])
    with pytest.raises(QueryError, match="store='eager' is not available on Spark"):
        panes.sql(BANDS[0], store="eager", l=frames["l"], r=frames["r"])


def test_any_name_is_a_name(spark: SparkSession) -> None:
    """Columns, keys, positions and aliases of a band, of windows above it, and as of."""
    name = "".join(HOSTILE_NAMES[1:])
    at, key, value, alias = (quoted(n) for n in (f"t{name}", f"k{name}", f"x{name}", f"{name}!"))
    table = pa.table({f"t{name}": [1, 2, 11], f"k{name}": ["a"] * 3, f"x{name}": [1, 2, 3]})
    rows = list(zip(*table.to_pydict().values(), strict=True))
    frame = spark.createDataFrame(rows, table.column_names)
    bands = f"FROM l [RANGE 5 WATTR {at}], r [RANGE 5 WATTR {at}] WHERE l.{key} = r.{key}"
    for text in (
        f"SELECT l.{value} + 1 AS {alias}, r.{value} {bands} AND l.{value} <= r.{value}",
        f"SELECT l.{key}, count(*) AS {alias} [TUMBLING 10 WATTR l.{at}] {bands} GROUP BY l.{key}",
        f"SELECT l.{value}, r.{value} AS {alias} FROM l ASOF JOIN r [RANGE 5 WATTR {at}] "
        f"ON l.{key} = r.{key}",
    ):
        assert_equal(panes.sql(text, l=frame, r=frame), panes.oracle(text, l=table, r=table))


def test_no_expression_of_a_join_reaches_spark(spark: SparkSession) -> None:
    bids = spark.createDataFrame([(1, "a", 1.0)], "at long, item string, price double")
    for attack in ATTACKS.values():
        for place in (
            "SELECT l.at, {} AS x FROM l [RANGE 5 WATTR at], r [RANGE 5 WATTR at]",
            "SELECT l.at FROM l JOIN r ON {} = l.item AND r.at BETWEEN l.at AND l.at + 1",
            "SELECT l.at FROM l [RANGE 5 WATTR at], r [RANGE 5 WATTR at] WHERE {} = r.item",
        ):
            with pytest.raises(PanesError):
                panes.sql(place.format(attack), l=bids, r=bids)
