"""What a page shows of a stream on Spark: reports of Spark, answers and late rows that pass by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import panes.spark
from panes.errors import OptionError
from tests.live.spark_streams import streamed
from tests.live.streams import TEXT, ask

pytestmark = pytest.mark.slow


def once(url: str, holds: Callable[[Any], bool]) -> Any:
    """The first snapshot of which something holds: a listener is told a moment after the batch."""
    for _ in range(600):
        shown = ask(url)[2]
        if holds(shown):
            return shown
    raise AssertionError("it never held")


def test_a_stream_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    with streamed(spark, tmp_path, is_register=False) as (page, put):
        put([1, 3, 12, 25])
        put([60, 61])
        put([5, 90])
        shown = once(page.url, lambda s: s["counts"]["rows"] == 9)
        assert shown["kind"] == "spark"
        assert (shown["progress"], shown["newest"]) == (85, 90)
        assert (shown["counts"]["late"], shown["arrivals"]["late_at"]) == (1, [5])
        assert shown["arrivals"]["promise_at"][-2:] == [56, 85]
        assert shown["answers"]["window"] == 80
        assert shown["answers"]["lines"][0]["key"] == "a"
        assert shown["set_aside"]["rows"][0][1] == 5
        assert [e for e, c in zip(shown["windows"]["end"], shown["windows"]["closed"], strict=True)
                if not c] == [90, 100, 110, 120, 130]  # fmt: skip
    assert "does not answer" not in page.url


def test_a_register_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    with streamed(spark, tmp_path, is_register=True) as (page, put):
        put([1, 3, 12, 25])
        put([60])
        put([5, 90])
        shown = once(page.url, lambda s: s["counts"]["rows"] == 8)
        assert [q["name"] for q in shown["register"]["queries"]] == ["one"]
        assert (shown["counts"]["late"], shown["newest"]) == (1, 90)
        assert set(shown["windows"]["of"]) == {"one"}


def test_rows_of_a_rate_source_are_counted_and_ours_are_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Panes keeps a bounded query going by one row of such a source of its own."""
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 50).load()
    frame = rate.selectExpr("value AS at", "'a' AS item", "1.0D AS price")
    answers = panes.sql(TEXT, lateness=5, bounded=True, bids=frame)
    writer = answers.writeStream.option("checkpointLocation", str(tmp_path / "state"))
    query = writer.trigger(availableNow=True).start(str(tmp_path / "out"), format="parquet")
    with panes.spark.live(query) as page:
        query.awaitTermination()
        shown = once(page.url, lambda s: s["status"] == "finished")
    assert (shown["title"], shown["counts"]["rows"]) == ("a stream on Spark", 50)


def test_one_stream_cannot_be_edited(spark: SparkSession, tmp_path: Path) -> None:
    with streamed(spark, tmp_path, is_register=False) as (page, put):
        put([1])
        (query,) = spark.streams.active
        with pytest.raises(OptionError, match="edit=True is for a register"):
            panes.spark.live(query, edit=True)
        asked = {"name": "a", "text": TEXT}
        assert ask(page.url, "/api/queries", method="POST", body=asked)[0] == 403


def test_only_streams_are_shown(spark: SparkSession) -> None:
    with pytest.raises(OptionError, match="shows a streaming query"):
        panes.spark.live(spark.range(3))
