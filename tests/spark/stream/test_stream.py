"""On Spark, streaming: what one process gives, in any split, and nothing late by a batch."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import panes
import panes.spark
from panes.errors import OptionError
from tests.spark.streaming import (
    START,
    as_batches,
    at_seconds,
    found,
    in_thirds,
    metrics,
    nearly_ordered,
    read_stream,
    run_to_end,
    some_rows,
)
from tests.support import AGGREGATES, SKETCHES, assert_rows, select, slow

WINDOWS = (
    "RANGE 20 SLIDE 10 WATTR at",
    "RANGE 7 SLIDE 4 WATTR at",
    "RANGE 3 SLIDE 10 WATTR at",
    "RANGE ALL SLIDE 10 WATTR at",
    "RANGE 20 SLIDE 7 WATTR at ORIGIN 3 ALIGN START",
)


@pytest.mark.parametrize("window", [*WINDOWS[:1], *WINDOWS[3:], *map(slow, WINDOWS[1:3])])
def test_every_kind_of_window(spark: SparkSession, tmp_path: Path, window: str) -> None:
    """Rows lie at most 30 out of order, so none is late and every answer is the oracle's."""
    rows = nearly_ordered(some_rows(), "at", within=30)
    text = f"SELECT k, count(*) AS n, sum(i) AS total, max(x) AS x FROM s [{window}] GROUP BY k"
    stream = read_stream(spark, as_batches(tmp_path / "in", in_thirds(rows)))
    query = run_to_end(panes.sql(text, lateness=30, bounded=True, s=stream), tmp_path)
    assert_rows(found(spark, tmp_path / "out"), panes.oracle(text, s=rows))
    assert sum(m["late"] for m in metrics(query)) == 0
    answered = [m["answers"] for m in metrics(query)]
    assert len(answered) == 4, "three batches of rows and the end"
    assert answered[0] > 0, "windows close before the end"


@pytest.mark.parametrize("aggregates", [AGGREGATES, SKETCHES], ids=["exact", "sketches"])
def test_every_aggregate(spark: SparkSession, tmp_path: Path, aggregates: tuple[str, ...]) -> None:
    rows = nearly_ordered(some_rows(), "at", within=30)
    text = f"SELECT k, {select(aggregates)} FROM s [RANGE 20 SLIDE 7 WATTR at] GROUP BY k"
    stream = read_stream(spark, as_batches(tmp_path / "in", in_thirds(rows)))
    run_to_end(panes.sql(text, lateness=30, bounded=True, s=stream), tmp_path)
    assert_rows(found(spark, tmp_path / "out"), panes.oracle(text, s=rows))


@pytest.mark.slow
@pytest.mark.parametrize("late", ["open", "drop"])
def test_late_and_rejected_rows_go_to_their_own_sinks(
    spark: SparkSession, tmp_path: Path, late: panes.Late
) -> None:
    """Batch by batch as in one process: answers, late rows with reasons, rejected rows."""
    far = dt.timedelta(days=40_000).total_seconds()
    batches = [
        at_seconds(5, 62, 130, k=["a", "b", "a"]),
        at_seconds(40, 125, None, 20, k=["a", "b", "b", "c"]),
        at_seconds(300, far, 61, k=["a", "a", "c"]),
    ]
    text = (
        "SELECT k, count(*) AS n FROM s [RANGE 2 minutes SLIDE 1 minute WATTR ts] "
        "WHERE k <> 'c' GROUP BY k"
    )
    here = panes.open(text, lateness="1 minute", late=late)
    first = [here.push(s=b) for b in batches[:2]]
    with pytest.warns(panes.RejectedRowsWarning, match="1 row is further ahead"):
        last = here.push(s=batches[2])
    want = pa.concat_tables([*first, last, here.finish()])
    stream = read_stream(spark, as_batches(tmp_path / "in", batches))
    tagged = panes.sql(text, lateness="1 minute", late=late, bounded=True, with_late=True, s=stream)
    folders = {name: tmp_path / name for name in ("answers", "late", "rejected")}
    query = (
        tagged.writeStream.foreachBatch(panes.spark.split(**folders))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert_rows(found(spark, folders["answers"]).drop_columns(["batch"]), want)
    assert_rows(found(spark, folders["late"]).drop_columns(["batch"]), here.late)
    assert_rows(found(spark, folders["rejected"]).drop_columns(["batch"]), here.rejected)
    assert len(here.late) == 1
    assert len(here.rejected) == 2
    assert [m["late"] for m in metrics(query)] == [0, 1, 0, 0]
    assert [m["rejected"] for m in metrics(query)] == [0, 1, 1, 0]


def test_one_absurd_position_closes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """As in one process: the row is rejected, and those after it are not late."""
    batches = [pa.table({"at": at}) for at in ([1, 5, 12], [13, 2**60, 14], [21, 22, 23])]
    stream = read_stream(spark, as_batches(tmp_path / "s", batches))
    text = "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]"
    query = run_to_end(panes.sql(text, s=stream, lateness=2, bounded=True), tmp_path)
    answers = found(spark, tmp_path / "out").sort_by("window_end")
    assert answers.column("n").to_pylist() == [2, 3, 3]
    assert sum(m["rejected"] for m in metrics(query)) == 1
    assert sum(m["late"] for m in metrics(query)) == 0


def test_a_union_waits_for_its_slowest_stream(spark: SparkSession, tmp_path: Path) -> None:
    """`v` has come to 0:40 only, so nothing after that is closed before the end."""
    u = [at_seconds(0, 30), at_seconds(200), at_seconds(210)]
    v = [at_seconds(5), at_seconds(40), at_seconds(290)]
    text = "SELECT count(*) AS n FROM (u UNION ALL v) [TUMBLING 20 seconds WATTR ts]"
    here = panes.open(text, lateness="0 seconds")
    want = [here.push(u=a, v=b) for a, b in zip(u, v, strict=True)] + [here.finish()]
    streams: dict[str, Any] = {
        name: read_stream(spark, as_batches(tmp_path / name, tables))
        for name, tables in {"u": u, "v": v}.items()
    }
    query = run_to_end(panes.sql(text, lateness="0 seconds", bounded=True, **streams), tmp_path)
    assert_rows(found(spark, tmp_path / "out"), pa.concat_tables(want))
    assert [m["answers"] for m in metrics(query)] == list(map(len, want))


def test_a_stream_is_split_and_united_again(spark: SparkSession, tmp_path: Path) -> None:
    """Both places see all its rows, in a table and in a stream that goes on."""
    s = [at_seconds(0, 30, 5), at_seconds(40, 33), at_seconds(90)]
    text = (
        "SELECT count(*) AS n FROM (SELECT ts FROM s WHERE second(ts) < 30 UNION ALL "
        "SELECT ts + INTERVAL 5 SECONDS AS ts FROM s) [TUMBLING 20 seconds WATTR ts]"
    )
    here = panes.open(text, lateness="5 seconds")
    want = [here.push(s=batch) for batch in s] + [here.finish()]
    folder = as_batches(tmp_path / "s", s)
    stream = read_stream(spark, folder)
    run_to_end(panes.sql(text, lateness="5 seconds", bounded=True, s=stream), tmp_path)
    assert_rows(found(spark, tmp_path / "out"), pa.concat_tables(want))
    table = spark.read.parquet(str(folder))
    assert_rows(panes.sql(text, s=table).toArrow(), panes.sql(text, s=pa.concat_tables(s)))


def test_promises_of_the_stream_itself_close_windows(spark: SparkSession, tmp_path: Path) -> None:
    """No lateness, no end: only what the column promises is answered."""
    batches = [
        at_seconds(3, 12, promise=at_seconds(None, None)["ts"]),
        at_seconds(None, 25, promise=at_seconds(20, None)["ts"]),
        at_seconds(14, 31, promise=at_seconds(None, 30)["ts"]),
    ]
    text = "SELECT count(*) AS n FROM s [RANGE 20 seconds SLIDE 10 seconds WATTR ts]"
    here = panes.open(text, punctuation="promise")
    want = [here.push(s=b) for b in batches]
    stream = read_stream(spark, as_batches(tmp_path / "in", batches))
    query = run_to_end(panes.sql(text, punctuation="promise", s=stream), tmp_path)
    assert_rows(found(spark, tmp_path / "out"), pa.concat_tables(want))
    assert [m["answers"] for m in metrics(query)] == [0, 2, 1] == list(map(len, want))
    assert [m["late"] for m in metrics(query)] == [0, 0, 1]
    assert [m["rejected"] for m in metrics(query)] == [0, 0, 0]


def test_a_heartbeat_bridges_a_lull(spark: SparkSession, tmp_path: Path) -> None:
    """After the last row nothing more comes, and yet its windows are answered."""
    rows = at_seconds(3, 12, 14)
    text = "SELECT count(*) AS n FROM s [TUMBLING 10 seconds WATTR ts]"
    stream = read_stream(spark, as_batches(tmp_path / "in", [rows]))
    answers = panes.sql(text, heartbeat="1 minute", s=stream)
    query = (
        answers.writeStream.format("memory")
        .queryName("beats")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="200 milliseconds")
        .start()
    )
    try:
        for _ in range(300):
            if spark.table("beats").count() == 2:
                break
            query.awaitTermination(1)
    finally:
        query.stop()
    assert_rows(spark.table("beats").toArrow(), panes.oracle(text, s=rows))


def test_windows_close_one_batch_before_sparks(spark: SparkSession, tmp_path: Path) -> None:
    """Ours in the batch that proves them complete; Spark's watermark is always one later."""
    batches = [at_seconds(5), at_seconds(15), at_seconds(25), at_seconds(35)]
    stream = read_stream(spark, as_batches(tmp_path / "in", batches))
    text = "SELECT count(*) AS n FROM s [TUMBLING 10 seconds WATTR ts]"
    ours = run_to_end(panes.sql(text, lateness="0 seconds", s=stream), tmp_path / "ours")
    window = F.window("ts", "10 seconds")
    counted = stream.withWatermark("ts", "0 seconds").groupBy(window).count()
    counted = counted.observe("theirs", F.count(F.lit(1)).alias("answers"))
    theirs = run_to_end(counted, tmp_path / "theirs")
    assert [m["answers"] for m in metrics(ours)] == [0, 1, 1, 1]
    assert [m["answers"] for m in metrics(theirs, "theirs")] == [0, 0, 1, 1, 1]


UNSHUFFLED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "read": lambda s: s,
    "repartition": lambda s: s.repartition(3),
    "coalesce": lambda s: s.coalesce(1),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", UNSHUFFLED)
def test_a_file_without_rows_is_not_the_end(
    spark: SparkSession, tmp_path: Path, shape: str
) -> None:
    batches = [at_seconds(5, 15), at_seconds(), at_seconds(8, 31), at_seconds()]
    text = "SELECT count(*) AS n FROM s [TUMBLING 10 seconds WATTR ts]"
    stream = UNSHUFFLED[shape](read_stream(spark, as_batches(tmp_path / "in", batches)))
    query = run_to_end(panes.sql(text, lateness="1 minute", bounded=True, s=stream), tmp_path)
    assert_rows(found(spark, tmp_path / "out"), panes.oracle(text, s=pa.concat_tables(batches)))
    assert [m["answers"] for m in metrics(query)] == [0, 0, 0, 0, 3]


@pytest.mark.slow
def test_a_batch_whose_rows_are_all_filtered_out_is_not_the_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Nor is the last one; and a run without anything new ends too, and answers nothing twice."""
    batches = [at_seconds(5, 15), at_seconds(700, 800), at_seconds(8, 31), at_seconds(900)]
    text = "SELECT count(*) AS n FROM s [TUMBLING 10 seconds WATTR ts]"
    stream = read_stream(spark, as_batches(tmp_path / "in", batches))
    early = stream.where(F.col("ts") < F.lit(START + dt.timedelta(seconds=600)))
    for answered in ([0, 0, 0, 0, 3], [0, 0]):
        query = run_to_end(panes.sql(text, lateness="1 minute", bounded=True, s=early), tmp_path)
        assert [m["answers"] for m in metrics(query)] == answered
        want = panes.oracle(text, s=at_seconds(5, 15, 8, 31))
        assert_rows(found(spark, tmp_path / "out"), want)


LEFT_OUT: dict[str, Callable[[DataFrame], DataFrame]] = {
    "broadcast join": lambda s: s.join(F.broadcast(known(s)), "k"),
    "shuffled join": lambda s: s.join(known(s).hint("merge"), "k"),
    "duplicates": lambda s: s.dropDuplicates(["at", "k"]).where("k <> 'z'"),
    "folders": lambda s: s.where("folder < 9"),
}


def known(frame: DataFrame) -> DataFrame:
    return frame.sparkSession.createDataFrame([("a",), ("b",)], "k string")


@pytest.mark.slow
@pytest.mark.parametrize("shape", LEFT_OUT)
def test_a_batch_of_which_no_row_is_left_is_not_the_end(
    spark: SparkSession, tmp_path: Path, shape: str
) -> None:
    """Neither amid others nor as the last one, whether Spark runs tasks over it or not."""
    left_out = at_seconds(300, 300, k=["z", "z"], at=[1, 1])
    batches = [
        at_seconds(5, 15, k=["a", "b"], at=[1, 2]),
        left_out,
        at_seconds(8, 31, k=["b", "a"], at=[3, 4]),
        left_out,
    ]
    for number, batch in enumerate(batches):
        folder = tmp_path / f"in/folder={9 if number % 2 else number}"
        folder.mkdir(parents=True, exist_ok=True)
        as_batches(folder, [batch], first=number)
    text = "SELECT k, count(*) AS n FROM s [TUMBLING 10 seconds WATTR ts] GROUP BY k"
    stream = LEFT_OUT[shape](read_stream(spark, tmp_path / "in"))
    run_to_end(panes.sql(text, lateness="10 minutes", bounded=True, s=stream), tmp_path)
    want = panes.oracle(text, s=pa.concat_tables(batches[::2]))
    assert_rows(found(spark, tmp_path / "out"), want)


def test_a_stream_without_any_row_ends(spark: SparkSession, tmp_path: Path) -> None:
    text = "SELECT count(*) AS n FROM s [TUMBLING 10 seconds WATTR ts]"
    stream = read_stream(spark, as_batches(tmp_path / "in", [at_seconds()]))
    run_to_end(panes.sql(text, bounded=True, s=stream), tmp_path)
    assert not len(found(spark, tmp_path / "out"))


@pytest.mark.slow
def test_sparks_own_aggregation_goes_on_from_the_answers(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A DataFrame comes out: it can have a watermark and a streaming aggregation of its own."""
    batches = [at_seconds(*range(0, 60, 5)), at_seconds(*range(60, 120, 5)), at_seconds(400)]
    text = "SELECT count(*) AS n FROM s [RANGE 20 seconds SLIDE 10 seconds WATTR ts]"
    stream = read_stream(spark, as_batches(tmp_path / "in", batches))
    answers = panes.sql(text, lateness="0 seconds", s=stream)
    peak = (
        answers.withWatermark("window_end", "0 seconds")
        .groupBy(F.window("window_end", "1 minute"))
        .agg(F.max("n").alias("peak"))
        .select("window.end", "peak")
    )
    run_to_end(peak, tmp_path)
    rows = {
        r["end"].strftime("%M:%S"): r["peak"] for r in found(spark, tmp_path / "out").to_pylist()
    }
    assert rows["01:00"] == 4


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "nothing says how the stream progresses"),
        ({"lateness": "10 seconds", "shards": 0}, "shards must be at least 1"),
        ({"lateness": "ten"}, "lateness must be a duration"),
        ({"punctuation": "nope"}, "no column `nope`"),
        ({"punctuation": "k"}, "cannot order a window"),
    ],
)
def test_what_makes_no_sense_is_refused_before_it_runs(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], told: str
) -> None:
    stream = read_stream(spark, as_batches(tmp_path / "in", [at_seconds(1, k=["a"])]))
    text = "SELECT count(*) AS n FROM s [TUMBLING 10 seconds WATTR ts]"
    with pytest.raises(panes.PanesError, match=told):
        panes.sql(text, s=stream, **options)


def test_fields_of_a_struct_are_the_axis_and_the_key(spark: SparkSession, tmp_path: Path) -> None:
    """As a Kafka topic has them: all in one column of JSON."""
    batches = [at_seconds(1, 12, k=["a", "b"]), at_seconds(14, 31, k=["b", "a"])]
    folder = as_batches(tmp_path / "in", batches)
    text = """SELECT k, count(*) AS n FROM (SELECT p.ts AS at, s.p.k AS k FROM s)
        [TUMBLING 10 seconds WATTR at] GROUP BY k"""
    stream, table = (
        f.select(F.struct("ts", "k").alias("p"))
        for f in (read_stream(spark, folder), spark.read.parquet(str(folder)))
    )
    want = panes.oracle(text, s=table.toArrow())
    assert_rows(panes.sql(text, s=table).toArrow(), want)
    run_to_end(panes.sql(text, bounded=True, s=stream), tmp_path)
    assert_rows(found(spark, tmp_path / "out"), want)


def test_what_is_no_dataframe_beside_one_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    stream = read_stream(spark, as_batches(tmp_path / "in", [at_seconds(1)]))
    text = "SELECT count(*) AS n FROM (u UNION ALL v) [TUMBLING 10 seconds WATTR ts]"
    with pytest.raises(panes.InputError, match="`v` is a Table, and `u` is a Spark DataFrame"):
        panes.sql(text, lateness="1 second", u=stream, v=at_seconds(1))
    with pytest.raises(panes.PanesError, match="`comment` was given, which the query does not"):
        panes.sql(text, lateness="1 second", u=stream, v=stream, comment="x")


def test_a_watermark_on_another_column_is_told(spark: SparkSession, tmp_path: Path) -> None:
    stream = read_stream(spark, as_batches(tmp_path / "in", [at_seconds(1)]))
    other = stream.withColumn("sent", F.col("ts")).withWatermark("sent", "1 minute")
    text = "SELECT count(*) AS n FROM s [TUMBLING 10 seconds WATTR ts]"
    with pytest.raises(OptionError, match="is on `sent`, and the window lies on `ts`"):
        panes.sql(text, s=other)
    with pytest.raises(OptionError, match="is on `sent`, and the window lies on `ts`"):
        panes.spark.group_by(other, F.window("ts", "10 seconds")).count()


def test_streams_and_tables_do_not_mix(spark: SparkSession, tmp_path: Path) -> None:
    folder = as_batches(tmp_path / "in", [at_seconds(1)])
    stream, table = read_stream(spark, folder), spark.read.parquet(str(folder))
    text = "SELECT count(*) AS n FROM (u UNION ALL v) [TUMBLING 10 seconds WATTR ts]"
    with pytest.raises(panes.QueryError, match="some are not"):
        panes.sql(text, lateness="1 second", u=stream, v=table)
    with pytest.raises(panes.QueryError, match="ORIGIN FIRST"):
        panes.sql(
            "SELECT count(*) FROM s [TUMBLING 10 seconds WATTR ts ORIGIN FIRST]",
            lateness="1 second",
            s=stream,
        )
    with pytest.raises(OptionError, match="takes only one"):
        panes.sql(
            "SELECT count(*) FROM s [TUMBLING 10 seconds WATTR ts]",
            bounded=True,
            s=stream.withWatermark("ts", "1 second"),
        )


def test_late_rows_have_the_columns_that_the_query_reads(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = read_stream(spark, as_batches(tmp_path / "in", [pa.table({"ms": [1], "k": [2]})]))
    text = (
        "SELECT count(*) AS n FROM (SELECT timestamp_millis(ms) AS ts, k FROM s WHERE k > 1) "
        "[TUMBLING 1 minute WATTR ts]"
    )
    both = panes.sql(text, lateness="10 seconds", with_late=True, s=stream)
    assert both.select("apart.row.*").columns == ["ts", "k"]


@pytest.mark.parametrize("expression", ["timestamp_millis(ms)", "to_timestamp(s)"])
def test_numbers_and_text_are_time(spark: SparkSession, tmp_path: Path, expression: str) -> None:
    """Lateness is about the time that is read, row by row: the first minute closes at 61 - 10."""
    seconds = [[0, 1], [61], [125, 66]]
    batches = [
        pa.table({
            "ms": [1000 * s for s in some],
            "s": [f"1970-01-01 00:{s // 60:02}:{s % 60:02}" for s in some],
        })
        for some in seconds
    ]  # fmt: skip
    text = (
        f"SELECT count(*) AS n FROM (SELECT {expression} AS ts FROM s WHERE ms <> 1000) "
        "[TUMBLING 1 minute WATTR ts]"
    )
    stream = read_stream(spark, as_batches(tmp_path / "in", batches))
    query = run_to_end(panes.sql(text, lateness="10 seconds", bounded=True, s=stream), tmp_path)
    whole = pa.concat_tables(batches)
    assert_rows(found(spark, tmp_path / "out"), panes.oracle(text, s=whole))
    assert_rows(
        panes.sql(text, s=spark.createDataFrame(whole)).toArrow(), panes.oracle(text, s=whole)
    )
    assert [m["answers"] for m in metrics(query)] == [0, 0, 1, 2]
    assert sum(m["late"] for m in metrics(query)) == 0
