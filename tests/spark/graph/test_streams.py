"""Queries inside queries over streams on Spark: one streaming query, batch by batch as one process.

Catches: answers that come a batch late or are counted twice, answers of an inner query that are
late for the outer one, promises that are not told to a node, ends that only the innermost query
notices, late rows that are lost on their way, and state that is not all in the checkpoint.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import panes
import panes.spark
from panes.errors import OptionError, QueryError
from tests.spark.streaming import as_batches, found, metrics, read_stream, run_to_end
from tests.support import assert_rows, rows_in_order

LATENESS = 25
PEAKS = "SELECT k, max(x) AS m FROM s [RANGE 20 SLIDE 10 WATTR at] GROUP BY k"
COUNTS = "SELECT k, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY k"
JOINED = (
    f"SELECT a.k AS k, a.m AS m, b.n AS n, a.window_end AS e FROM ({PEAKS}) a LEFT JOIN "
    f"({COUNTS}) b ON a.k = b.k AND a.window_end = b.window_end"
)
EXACT = PEAKS.replace("AS m", "AS m, 12 / coalesce(0 * max(x) + 1, 0) AS d")
THREE = (
    f"SELECT sum(a) AS t, count(*) AS n FROM (SELECT k, avg(m + d) AS a FROM ({EXACT}) z "
    "WHERE 12 / coalesce(m + 1, 0) < 4 [TUMBLING 20] GROUP BY k HAVING avg(m) > 3) "
    "[TUMBLING 40 WATTR window_end]"
)
"""Whatever is evaluated of what is no answer divides by zero here."""


def rows(first: int, end: int) -> pa.Table:
    """A row every three ticks; every seventh is twenty behind, and every eleventh comes twice."""
    which = [i for i in range(first, end) for _ in range(1 + (i % 11 == 0))]
    return pa.table(
        {
            "at": [3 * i - (20 if i % 7 == 0 else 0) for i in which],
            "k": [i % 3 for i in which],
            "x": [i % 11 for i in which],
        }
    )


LATE = pa.table({"at": [5, 100, 7, None], "k": [0, 1, 2, 1], "x": [9, 9, 9, 9]})
"""Rows that came too late: some of their windows may be open. One has no position."""
BATCHES = [rows(10, 30), rows(30, 31), rows(31, 60), LATE, rows(60, 75), rows(75, 120)]
ALL = pa.concat_tables([b for b in BATCHES if b is not LATE])


def by_batch(spark: SparkSession, folder: Path, batches: int) -> list[list[dict[str, object]]]:
    """What a sink of `panes.spark.split` holds, micro-batch by micro-batch."""
    return [
        rows_in_order(spark.read.parquet(f"{folder}/batch={n}").toArrow()) for n in range(batches)
    ]


@pytest.mark.slow
def test_every_batch_gives_what_one_process_gives_also_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Three levels: what closes an inner window answers the outer one in the same micro-batch.

    The stream stops in the middle and goes on from its checkpoint; late and rejected rows of the
    source come out at the end.
    """
    running = panes.open(THREE, lateness=LATENESS)
    wanted = [rows_in_order(running.push(s=batch)) for batch in BATCHES]
    assert sum(map(len, wanted)) > 5
    for part in (BATCHES[:3], BATCHES[3:]):
        first = 0 if part[0] is BATCHES[0] else 3
        source = read_stream(spark, as_batches(tmp_path / "in", part, first=first))
        asked = panes.sql(THREE, lateness=LATENESS, with_late=True, s=source)
        write = panes.spark.split(
            answers=str(tmp_path / "out"), late=str(tmp_path / "late"),
            rejected=str(tmp_path / "rejected"),
        )  # fmt: skip
        query = (
            asked.writeStream.foreachBatch(write)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        for name in query.recentProgress[-1]["observedMetrics"]:
            late = sum(m["late"] or 0 for m in metrics(query, name))
            assert not late or name.endswith("inner_1"), "nothing between two nodes is late"
    assert by_batch(spark, tmp_path / "out", len(BATCHES)) == wanted
    late = spark.read.parquet(f"{tmp_path}/late/*").toArrow()
    assert_rows(late, running.late)
    rejected = spark.read.parquet(f"{tmp_path}/rejected/*").toArrow()
    assert_rows(rejected, running.rejected)


@pytest.mark.slow
def test_bounded_streams_of_different_length_end_together(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Windows over a join of windows: one stream has no data long before the other one ends."""
    joined = JOINED.replace("FROM s [TUMBLING", "FROM t [TUMBLING")
    text = f"SELECT k, sum(n) AS n, max(m) AS m FROM ({joined}) [TUMBLING 30 WATTR e] GROUP BY k"
    batches = {"s": [rows(10, 40), rows(40, 41), rows(41, 70), rows(70, 100)],
               "t": [rows(12, 90), rows(90, 95)]}  # fmt: skip
    given: dict[str, Any] = {
        name: read_stream(spark, as_batches(tmp_path / name, tables))
        for name, tables in batches.items()
    }
    run_to_end(panes.sql(text, bounded=True, **given), tmp_path)
    wanted = panes.oracle(text, **{name: pa.concat_tables(b) for name, b in batches.items()})
    assert len(wanted) > 5
    assert_rows(found(spark, tmp_path / "out"), wanted)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, count(*) AS n, sum(x) AS t FROM (SELECT DISTINCT at, k, x FROM s) "
        "[RANGE 30 SLIDE 10 WATTR at] GROUP BY k",
        f"SELECT count(*) AS n, sum(m) AS m FROM (SELECT m, window_end FROM ({PEAKS}) UNION ALL "
        f"SELECT DISTINCT n AS m, window_end FROM ({COUNTS}) UNION ALL "
        "SELECT x AS m, at AS window_end FROM s) [TUMBLING 40 WATTR window_end]",
        f"WITH p AS ({PEAKS}) SELECT count(*) AS n, sum(m) AS m FROM (SELECT m, window_end FROM p "
        "UNION ALL SELECT 0 - m AS m, window_end FROM p WHERE k = 1) "
        "[TUMBLING 40 WATTR window_end]",
    ],
    ids=["DISTINCT", "union of parts and a stream", "a part that is read twice"],
)
def test_bounded_streams_answer_everything_at_their_end(
    spark: SparkSession, tmp_path: Path, text: str
) -> None:
    batches = [b for b in BATCHES if b is not LATE][1:]
    source = read_stream(spark, as_batches(tmp_path / "in", batches))
    run_to_end(panes.sql(text, lateness=LATENESS, bounded=True, s=source), tmp_path)
    wanted = panes.oracle(text, s=pa.concat_tables(batches))
    assert len(wanted) > 5
    assert_rows(found(spark, tmp_path / "out"), wanted)


READ_TWICE = {
    "one level apart": "SELECT a.window_end AS e, a.k AS k, a.n AS n, b.m AS m FROM x a JOIN "
    "(SELECT k, avg(n) AS m FROM x [RANGE 40 SLIDE 10] GROUP BY k) b "
    "ON a.k = b.k AND a.window_end = b.window_end",
    "union": "SELECT k, count(*) AS n, sum(n) AS t FROM (SELECT k, CAST(n AS DOUBLE) AS n, "
    "window_end FROM x) UNION ALL "
    "(SELECT k, m AS n, window_end FROM (SELECT k, avg(n) AS m FROM x [RANGE 40 SLIDE 10] "
    "GROUP BY k) z) [TUMBLING 20 WATTR window_end] GROUP BY k",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", READ_TWICE)
def test_every_reader_of_a_bounded_part_is_told_its_end(
    spark: SparkSession, tmp_path: Path, what: str
) -> None:
    text = f"WITH x AS ({COUNTS}) {READ_TWICE[what]}"
    source = read_stream(spark, as_batches(tmp_path / "in", [rows(10, 40)]))
    run_to_end(panes.sql(text, lateness=LATENESS, bounded=True, s=source), tmp_path)
    wanted = panes.oracle(text, s=rows(10, 40))
    assert len(wanted) > 5
    assert_rows(found(spark, tmp_path / "out"), wanted)


@pytest.mark.slow
def test_joins_of_windows_answer_batch_by_batch(spark: SparkSession, tmp_path: Path) -> None:
    """A stream united with itself under windows, joined with windows over different rows."""
    both = "SELECT k, count(*) AS n FROM s UNION ALL s [TUMBLING 10 WATTR at] GROUP BY k"
    text = (
        f"WITH twice AS ({both}), once AS (SELECT k, count(*) AS n FROM (SELECT DISTINCT at, k "
        "FROM s) [TUMBLING 10 WATTR at] GROUP BY k) SELECT a.k AS k, a.n AS n, b.n AS m, "
        "a.window_end AS e FROM twice a JOIN once b ON a.k = b.k AND a.window_end = b.window_end"
    )
    batches = [b for b in BATCHES if b is not LATE]
    running = panes.open(text, lateness=LATENESS)
    wanted = [rows_in_order(running.push(s=batch)) for batch in batches]
    source = read_stream(spark, as_batches(tmp_path / "in", batches))
    asked = panes.sql(text, lateness=LATENESS, with_late=True, s=source)
    write = panes.spark.split(answers=str(tmp_path / "out"))
    query = asked.writeStream.foreachBatch(write).trigger(availableNow=True).start()
    query.awaitTermination()
    assert by_batch(spark, tmp_path / "out", len(batches)) == wanted
    assert sum(map(len, wanted)) > 20


# What cannot be


REFUSED: dict[str, tuple[str, dict[str, Any], type[Exception], str]] = {
    "revised": (THREE, {"late": "revise"}, OptionError, "would answer a window again"),
    "no promise": (
        f"SELECT max(m) AS m FROM ({PEAKS}) [TUMBLING 40 WATTR m]", {}, QueryError,
        "promise nothing of `m`",
    ),
    "no promise of a join": (
        f"SELECT max(m) AS m FROM ({JOINED}) [TUMBLING 40 WATTR n]", {}, QueryError,
        "promise nothing of `n`",
    ),
    "no promise of a sum": (
        f"SELECT max(m) AS m FROM (SELECT m, window_end + k AS b FROM ({PEAKS}) z) "
        "[TUMBLING 40 WATTR b]", {}, QueryError, "could put answers in another order",
    ),
    "out of order": (
        f"SELECT max(m) AS m FROM (SELECT m, 0 - window_end AS b FROM ({PEAKS}) z) "
        "[TUMBLING 40 WATTR b]", {}, QueryError, "could put answers in another order",
    ),
    "flush of rows": (
        f"SELECT m, sum(m) AS t FROM ({PEAKS}) [RANGE 30 SLIDE 1 ROW RATTR window_end]",
        {"flush": panes.SlowFlush(at_most=1)}, QueryError, "a per-row window has one answer",
    ),
    "no progress": (THREE, {"lateness": None}, OptionError, "nothing says how the stream"),
    "nested values": (
        "SELECT count(*) AS n FROM (SELECT DISTINCT at, array(k) AS ks FROM s) "
        "[TUMBLING 10 WATTR at]", {}, panes.errors.ColumnTypeError, "cannot compare `ks`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_asked_of_streams_is_refused(spark: SparkSession, what: str) -> None:
    text, options, kind, said = REFUSED[what]
    given = {"lateness": LATENESS, **options}
    frame = spark.readStream.format("rate").load().selectExpr("value AS at", "value AS k", "1 AS x")
    with pytest.raises(kind, match=said):
        panes.sql(text, **given, s=frame)


def test_a_bounded_join_of_a_part_with_itself_is_refused(spark: SparkSession) -> None:
    frame = spark.readStream.format("rate").load().selectExpr("value AS at", "value AS k")
    text = (
        f"WITH x AS ({COUNTS}) SELECT a.k AS k, a.n AS n, b.n AS m FROM x a JOIN x b "
        "ON a.k = b.k AND a.window_end = b.window_end"
    )
    assert panes.sql(text, lateness=LATENESS, s=frame).isStreaming
    with pytest.raises(QueryError, match="two sides of a join read the same answers, `x`"):
        panes.sql(text, bounded=True, s=frame)


def test_a_bounded_stream_needs_no_promise(spark: SparkSession) -> None:
    frame = spark.readStream.format("rate").load().selectExpr("value AS at", "value AS k", "1 AS x")
    text = f"SELECT max(m) AS m FROM ({PEAKS}) [TUMBLING 40 WATTR m]"
    assert panes.sql(text, bounded=True, s=frame).isStreaming


def test_explain_shows_every_node(spark: SparkSession) -> None:
    rate = spark.readStream.format("rate").load()
    frame = rate.selectExpr("value AS at", "value AS k", "1 AS x")
    text = (
        f"WITH p AS ({PEAKS}) SELECT count(*) AS n FROM (SELECT DISTINCT m, window_end FROM p) "
        "UNION ALL (SELECT m, window_end FROM p) [TUMBLING 40 WATTR window_end]"
    )
    said = panes.explain(text, s=frame)
    assert said.endswith(
        "spark      one streaming query; each of these is a shuffle and a state:\n"
        "           p: windows over s; 2 times, once for each place that reads it\n"
        "           the different rows of p\n"
        "           asked: windows over p\n"
    )
    assert "spark" not in panes.explain(
        text, s=spark.range(3).selectExpr("id AS at", "id AS k", "1 AS x")
    )
