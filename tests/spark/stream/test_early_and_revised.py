"""On Spark, streaming: early and revised answers, smoothing, reasons, and SELECTs inside FROM."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import panes
from panes.errors import QueryError
from tests.spark.streaming import (
    as_batches,
    found,
    in_thirds,
    metrics,
    nearly_ordered,
    read_stream,
    run_to_end,
    some_rows,
)
from tests.support import assert_rows, newest_of_each


def by_batch(answers: pa.Table) -> pa.Table:
    """Answers in the order in which their status can follow: early, final, revised."""
    return answers.sort_by([("n", "ascending"), ("status", "ascending")])


def test_a_reader_of_early_and_revised_answers_ends_with_the_oracles(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Rows up to 60 out of order with a lateness of 5: many are late, all are counted."""
    rows = nearly_ordered(some_rows(), "at", within=60)
    plain = "SELECT k, count(*) AS n, count(i) AS m FROM s [RANGE 20 SLIDE 10 WATTR at] GROUP BY k"
    stream = read_stream(spark, as_batches(tmp_path / "in", in_thirds(rows)))
    text = f"{plain} EMIT EARLY"
    answers = panes.sql(text, lateness=5, late="revise", bounded=True, s=stream)
    query = run_to_end(answers, tmp_path)
    given = found(spark, tmp_path / "out")
    assert set(given["status"].to_pylist()) == {"early", "final", "revised"}
    assert sum(m["late"] for m in metrics(query)) > 0
    newest = newest_of_each(by_batch(given), 1)
    assert_rows(newest, panes.oracle(plain, s=rows))


@pytest.mark.slow
def test_a_flush_spreads_the_answers_of_a_window_over_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = "SELECT k, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY k"
    many = pa.table({"at": [1] * 100, "k": list(range(100))})
    few = [pa.table({"at": [11 + i], "k": [0]}) for i in range(3)]
    stream = read_stream(spark, as_batches(tmp_path / "in", [many, *few]))
    answers = panes.sql(
        text, lateness=0, flush=panes.SlowFlush(at_most=20), why=True, bounded=True, s=stream
    )
    query = run_to_end(answers, tmp_path)
    given = [m["answers"] for m in metrics(query)]
    assert max(given[:-1]) <= 20
    assert sum(given) == 101
    told = found(spark, tmp_path / "out")["closed_by"].to_pylist()
    assert set(told) == {"lateness of s", "the end of the stream"}


INNER = (
    "SELECT k, count(*) AS n, sum(i) AS total FROM (SELECT at + 2 AS at, k, i * 2 AS i FROM s "
    "WHERE i > 0) [RANGE 20 SLIDE 10 WATTR at] GROUP BY k"
)


def test_a_select_inside_from_is_sparks_own(spark: SparkSession, tmp_path: Path) -> None:
    rows = nearly_ordered(some_rows(), "at", within=30)
    stream = read_stream(spark, as_batches(tmp_path / "in", in_thirds(rows)))
    run_to_end(panes.sql(INNER, lateness=30, bounded=True, s=stream), tmp_path)
    assert_rows(found(spark, tmp_path / "out"), panes.oracle(INNER, s=rows))
    distinct = "SELECT count(*) AS n FROM (SELECT DISTINCT at, k FROM s) [TUMBLING 10 WATTR at]"
    bounded = spark.read.parquet(str(tmp_path / "in"))
    assert_rows(panes.sql(distinct, s=bounded).toArrow(), panes.oracle(distinct, s=rows))
    run_to_end(panes.sql(distinct, lateness=30, bounded=True, s=stream), tmp_path / "distinct")
    given = found(spark, tmp_path / "distinct" / "out")
    assert_rows(given, panes.oracle(distinct, s=rows))


def test_what_spark_cannot_do_is_refused_before_anything_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]"
    folder = as_batches(tmp_path / "in", [pa.table({"at": [1]})])
    bounded, stream = spark.read.parquet(str(folder)), read_stream(spark, folder)
    with pytest.raises(QueryError, match="store='eager' is not available on Spark"):
        panes.sql(text, lateness=0, store="eager", s=stream)
    with pytest.raises(QueryError, match="EMIT EARLY is for streams"):
        panes.sql(f"{text} EMIT EARLY", s=bounded)
