"""What a page shows of a stream on Spark: reports of Spark, answers and late rows that pass by."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import panes
import panes.spark
from panes.errors import OptionError
from tests.live.spark_streams import streamed
from tests.live.streams import TEXT, ask, once

pytestmark = pytest.mark.slow
REASONS = {
    "late": "behind progress; all its windows are closed",
    "rejected": "`at` is NULL or outside the axis",
}


def apart(shown: Any) -> dict[str, str]:
    """The reason why rows were set aside, of each kind."""
    return {reason["kind"]: reason["reason"] for reason in shown["set_aside"]["reasons"]}


def test_a_stream_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    with streamed(spark, tmp_path, is_register=False) as (page, put):
        put([1, 3, 12, 25])
        put([60, 61])
        put([5, 90])
        put([None, 91])
        shown = once(page.url, lambda s: s["counts"]["rows"] == 11)
        assert shown["kind"] == "spark"
        assert (shown["progress"], shown["newest"]) == (86, 91)
        assert (shown["counts"]["late"], shown["arrivals"]["late_at"]) == (1, [5])
        assert shown["arrivals"]["promise_at"][-3:] == [56, 85, 86]
        assert shown["answers"]["window"] == 80
        assert shown["answers"]["lines"][0]["key"] == "a"
        assert apart(shown) == REASONS
        assert [row[:2] for row in shown["set_aside"]["rows"]] == [["rejected", None], ["late", 5]]
        assert shown["counts"]["rejected"] == 1
        assert [e for e, c in zip(shown["windows"]["end"], shown["windows"]["closed"], strict=True)
                if not c] == [90, 100, 110, 120, 130]  # fmt: skip
    assert "does not answer" not in page.url


def test_a_register_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """One is answered for every window of 40 every 10, two for every 20, before HAVING."""
    with streamed(spark, tmp_path, is_register=True) as (page, put):
        put([1, 3, 12, 25])
        put([60])
        put([5, 90, None])
        shown = once(page.url, lambda s: s["counts"]["rows"] == 9)
        assert (shown["counts"]["late"], shown["newest"]) == (1, 90)
        assert shown["counts"]["rejected"] == 1
        assert set(shown["windows"]["of"]) == {"one", "two"}
        found = {q["name"]: q for q in shown["register"]["queries"]}
        assert [q["name"] for q in shown["register"]["queries"]] == ["one", "two"]
        assert found["one"]["cost"] == 2 * found["one"]["answers"]  # count and max
        assert found["two"]["cost"] == found["two"]["answers"] == 3
        assert sum(q["answers"] for q in found.values()) == shown["counts"]["answers"]
        assert "before HAVING" in shown["register"]["cost"]
        written = spark.read.parquet(str(tmp_path / "answers")).groupBy("query").count().collect()
        assert dict(map(tuple, written)) == {"one": found["one"]["answers"], "two": 1}


def test_the_answers_of_a_register_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    with streamed(spark, tmp_path, is_register=True) as (page, put):
        put([1, 3, 12, 25])
        put([60])
        shown = once(page.url, lambda s: s["answers"]["rows"])["answers"]
        assert (shown["of"], shown["window"], shown["lines"][0]["key"]) == ("one", 50, "a")
        assert shown["columns"] == ["window_start", "window_end", "item", "n", "high"]
        ask(page.url, of="two")
        put([61, 62, 63, 100])
        shown = once(page.url, lambda s: s["answers"]["rows"], of="two")["answers"]
        assert (shown["of"], shown["rows"]) == ("two", [[60, 80, 4]])
        assert ask(page.url)[2]["answers"]["of"] == "one"


def test_rows_set_aside_by_a_register_on_spark_say_why(spark: SparkSession, tmp_path: Path) -> None:
    with streamed(spark, tmp_path, is_register=True) as (page, put):
        put([60])
        put([5, 90, None])
        shown = once(page.url, lambda s: len(s["set_aside"]["rows"]) == 2)
        assert apart(shown) == REASONS
        assert shown["set_aside"]["columns"] == ["", "at", "item", "price", "reason"]
        assert {(row[0], row[1], row[2]) for row in shown["set_aside"]["rows"]} == {
            ("late", 5, "a"),
            ("rejected", None, "a"),
        }


def test_a_register_over_joins_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Both queries share the join of orders and ships; one counts what the other gives."""
    schema = "at long, k long"
    for name in ("l", "r"):
        (tmp_path / name).mkdir()
    frames = {n: spark.readStream.schema(schema).parquet(str(tmp_path / n)) for n in ("l", "r")}
    reg = panes.register(("l", "r"), frames, lateness=0)
    band = "FROM l [RANGE 3 WATTR at], r [RANGE 3 WATTR at] WHERE l.k = r.k"
    reg.add("pairs", f"SELECT l.at AS a, r.at AS b, l.k {band}")
    reg.add("counted", f"SELECT l.k, count(*) AS n [TUMBLING 10 WATTR l.at] {band} GROUP BY l.k")
    with pytest.raises(OptionError, match="does not run yet"):
        panes.spark.live(reg)
    reg.start(checkpoint=str(tmp_path / "state"), sink=str(tmp_path / "answers"))
    try:
        with panes.spark.live(reg) as page:
            ask(page.url, of="counted")
            for name, at in (("l", [1, 5, 9, 40]), ("r", [2, 6, 30, 41])):
                rows = pa.table({"at": at, "k": [1, 2, 1, 1]})
                pq.write_table(rows, tmp_path / "waiting")
                os.rename(tmp_path / "waiting", tmp_path / name / "0.parquet")
            reg.process_all_available()
            shown = once(page.url, lambda s: s["counts"]["rows"] == 8, of="counted")
    finally:
        reg.stop()
    found = {q["name"]: q for q in shown["register"]["queries"]}
    assert {name: (q["answers"], q["window"]) for name, q in found.items()} == {
        "pairs": (3, "joined rows"),
        "counted": (2, "10"),
    }
    assert found["pairs"]["shape"] == found["counted"]["shape"]
    assert shown["register"]["shares"] == "1 join"
    assert shown["counts"]["answers"] == 5
    assert (shown["title"], shown["progress"]) == ("l + r", 40)
    assert sorted(shown["answers"]["rows"]) == [[0, 10, 1, 1], [0, 10, 2, 1]]


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
