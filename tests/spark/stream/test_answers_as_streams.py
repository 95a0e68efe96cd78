"""Answers into a query, and several queries in one streaming query.

Catches: answers that are not taken for a DataFrame, late answers where windows close in the same
batch, an end that only the inner query notices, and metrics of two queries under one name.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import panes
from panes.errors import QueryError
from panes.frames import is_spark
from tests.spark.streaming import as_batches, at_seconds, found, read_stream, run_to_end
from tests.support import assert_rows

INNER = "SELECT k, sum(v) AS s FROM ev [TUMBLING 1 minute WATTR ts] GROUP BY k"
MIDDLE = (
    "SELECT count(*) AS n, max(s) AS m FROM mins [RANGE 5 minutes SLIDE 1 minute WATTR window_end]"
)
OUTER = "SELECT sum(n) AS n, max(m) AS m FROM fives [TUMBLING 10 minutes WATTR window_end]"


def rows(first: int, end: int) -> pa.Table:
    """A row every seven seconds; every fifth comes with those of a minute before it."""
    at = [7 * i - (25 if i % 5 == 0 else 0) for i in range(first, end)]
    return at_seconds(*at, k=[str(i % 3) for i in range(first, end)], v=list(range(first, end)))


BATCHES = [rows(10, 50), rows(50, 60), rows(60, 200), rows(200, 400)]
ALL = pa.concat_tables(BATCHES)


def three_levels(ev: pa.Table) -> tuple[pa.Table, pa.Table, pa.Table]:
    inner = panes.oracle(INNER, ev=ev)
    middle = panes.oracle(MIDDLE, mins=inner)
    return inner, middle, panes.oracle(OUTER, fives=middle)


def test_answers_of_tables_are_tables_at_any_level(spark: SparkSession) -> None:
    mins = panes.sql(INNER, ev=spark.createDataFrame(ALL.to_pandas()))
    fives = panes.sql(MIDDLE, mins=mins)
    for got, want in zip((mins, fives, panes.sql(OUTER, fives=fives)), three_levels(ALL),
                         strict=True):  # fmt: skip
        assert_rows(got.toArrow(), want)


@pytest.mark.slow
def test_answers_of_a_stream_are_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Two levels: every answer whose window is complete, and none is late without any lateness."""
    ev = read_stream(spark, as_batches(tmp_path / "in", BATCHES))
    mins = panes.sql(INNER, lateness="1 minute", ev=ev)
    assert is_spark(mins)
    fives = panes.sql(MIDDLE, lateness="0 seconds", mins=mins)
    query = run_to_end(fives, tmp_path)
    told = [name for name in query.recentProgress[-1]["observedMetrics"] if name[:5] == "panes"]
    assert len(told) == 2
    late = [p["observedMetrics"][n]["late"] for p in query.recentProgress for n in told]
    assert sum(late) == 0
    _, want, _ = three_levels(ALL)
    got = found(spark, tmp_path / "out").sort_by("window_end")
    assert len(got) > 20
    assert_rows(got, want.sort_by("window_end").slice(0, len(got)))
    assert len(want) - len(got) <= 7, "those that are not complete yet"


def test_what_cannot_be_a_stream_in_a_query_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    ev = read_stream(spark, as_batches(tmp_path / "in", BATCHES[:1]))
    for lateness in (None, "1 minute"):
        mins = panes.sql(INNER, bounded=True, lateness=lateness, ev=ev)
        with pytest.raises(QueryError, match="bounded=True over `mins`") as refused:
            panes.sql(MIDDLE, bounded=True, mins=mins)
        assert "spark.readStream.parquet" in str(refused.value)
        with pytest.raises(QueryError, match="bounded=True over `mins`"):
            panes.sql(
                "SELECT a.k FROM mins a JOIN ev b ON a.k = b.k AND b.ts BETWEEN a.window_start "
                "AND a.window_end",
                bounded=True, mins=mins.where("s > 1"), ev=ev,
            )  # fmt: skip
    for early in (
        panes.sql(f"{INNER} EMIT EARLY", lateness="1 minute", ev=ev),
        panes.sql(INNER, lateness="1 minute", late="revise", revise_within="1 minute", ev=ev),
    ):
        with pytest.raises(QueryError, match="given early or revised later"):
            panes.sql(MIDDLE, lateness="1 minute", mins=early.select("*"))
    own = panes.sql(INNER.replace("k,", "k AS status,"), lateness="1 minute", ev=ev)
    assert panes.sql(MIDDLE, lateness="1 minute", mins=own).isStreaming


@pytest.mark.slow
def test_several_queries_go_into_one_streaming_query(spark: SparkSession, tmp_path: Path) -> None:
    """Two texts over one stream; one text over two streams can be planned, too."""
    one = read_stream(spark, as_batches(tmp_path / "one", BATCHES[:2]))
    two = read_stream(spark, as_batches(tmp_path / "two", BATCHES[:2]))
    most = INNER.replace("sum", "max")

    def asked(text: str, stream: DataFrame) -> DataFrame:
        answers: DataFrame = panes.sql(text, bounded=True, ev=stream)
        return answers

    assert asked(INNER, one).unionByName(asked(INNER, two)).isStreaming
    query = run_to_end(asked(INNER, one).unionByName(asked(most, one)), tmp_path)
    told = query.recentProgress[-1]["observedMetrics"]
    assert len(told) == 2
    want = [panes.oracle(text, ev=pa.concat_tables(BATCHES[:2])) for text in (INNER, most)]
    assert_rows(found(spark, tmp_path / "out"), pa.concat_tables(want))
    answers = [p["observedMetrics"][n]["answers"] for p in query.recentProgress for n in told]
    assert sum(answers) == sum(map(len, want))
