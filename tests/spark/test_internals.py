"""What Spark does not document and we rely on: these tests fail when Spark changes it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

import panes
from panes.errors import QueryError
from panes.spark import column_parts, internals
from panes.spark.column_parts import Alias, ColumnCall, Item, Name, Text, WhenChoice
from panes.spark.session import DEFAULTS_WHERE_LOCAL
from tests.spark.streaming import as_batches, read_stream, run_to_end

ROWS = pa.table({"k": ["a", "b"], "Exchange": pa.array([1, 2], pa.int64())})


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    return read_stream(spark, as_batches(tmp_path / "in", [ROWS]))


def test_functions_that_cannot_be_imported_are_sent() -> None:
    found = pickle.loads(internals.dumps(lambda x: x + 1))
    assert found(2) == 3


def test_types_are_those_in_which_rows_come(spark: SparkSession) -> None:
    """Every type there and back, and the same as what `toArrow` and `mapInArrow` have."""
    frame = spark.sql(
        "SELECT 1 AS i, 1.5D AS x, 'a' AS s, true AS b, X'00' AS y, current_timestamp() AS t,"
        " current_date() AS d, 1.25BD AS m, array(1L) AS a, struct(1 AS f) AS r"
    )
    schema = internals.to_arrow_schema(frame.schema)
    assert schema.types == frame.toArrow().schema.types
    assert [internals.spark_type(t) for t in schema.types] == [f.dataType for f in frame.schema]


def test_a_local_frame_does_not_change_the_active_session(spark: SparkSession) -> None:
    other = spark.newSession()
    schema = T.StructType().add("x", "long")
    frame = internals.local_frame(other, pa.table({"x": [1, 2]}), schema)
    assert [row.x for row in frame.collect()] == [1, 2]
    assert SparkSession.getActiveSession() is spark
    other.createDataFrame(pa.table({"x": [1]}), schema)
    try:
        assert SparkSession.getActiveSession() is other, "why it has to be set back"
    finally:
        spark.createDataFrame(pa.table({"x": [1]}), schema)


# Inside a task


def numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.record_batch([pa.array([internals.batch_number()])], names=["number"])


def test_a_task_knows_the_number_of_its_batch(spark: SparkSession, tmp_path: Path) -> None:
    frame = read_stream(spark, as_batches(tmp_path / "in", [ROWS] * 3))
    run_to_end(frame.mapInArrow(numbers, "number long"), tmp_path)
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row.number for row in found) == [1, 2, 3]


def test_a_tag_tells_a_task_the_number_of_its_batch(spark: SparkSession) -> None:
    """As through Spark Connect; without it, there is no batch."""
    counted = spark.range(1).mapInArrow(numbers, "number long")
    spark.addTag(internals.tag_of(41))
    try:
        assert counted.collect()[0].number == 42
    finally:
        spark.removeTag(internals.tag_of(41))
    with pytest.raises(QueryError, match="outside of a micro-batch"):
        internals.batch_number()


# A stream's plan


def test_a_watermark_is_noted_in_its_column(stream: DataFrame) -> None:
    watched = stream.withColumn("ts", F.current_timestamp()).withWatermark("ts", "3 seconds")
    assert internals.watermark_delay(watched.schema["ts"]) == 3_000
    assert internals.watermark_delay(watched.schema["k"]) is None


def names(frame: DataFrame) -> DataFrame:
    return frame.sparkSession.createDataFrame([("a",), ("b",)], "k string")


def rate(frame: DataFrame) -> DataFrame:
    """A source whose rows are all read, with the same columns."""
    rows = frame.sparkSession.readStream.format("rate-micro-batch").option("rowsPerBatch", 9).load()
    return rows.selectExpr("'a' AS k", "value AS Exchange")


Shape = Callable[[DataFrame], DataFrame]
PER_ROW: dict[str, Shape] = {
    "read": lambda s: s,
    "columns": lambda s: s.selectExpr("k", "Exchange + 1 AS y").withColumnRenamed("y", "z"),
    "filter": lambda s: s.where("Exchange > 1"),
    "alias": lambda s: s.alias("a"),
}
OTHERS: dict[str, Shape] = {
    "union": lambda s: s.union(s),
    "subquery": lambda s: s.where("Exchange IN (SELECT id FROM range(5))"),
    "broadcast": lambda s: s.join(F.broadcast(names(s)), "k"),
    "join": lambda s: s.join(names(s).hint("merge"), "k"),
    "distinct": lambda s: s.dropDuplicates(["k"]),
    "repartition": lambda s: s.repartition(3),
    "function": lambda s: s.mapInArrow(lambda batches: batches, s.schema),
}
SHAPES = {**PER_ROW, **OTHERS}


@pytest.mark.parametrize("shape", SHAPES)
def test_which_streams_are_read_row_by_row(stream: DataFrame, shape: str) -> None:
    """Filtered files are not: a filter on folders leaves out whole files, and their tasks."""
    of_files = shape in PER_ROW and shape != "filter"
    for source, per_row in ((rate(stream), shape in PER_ROW), (stream, of_files)):
        frame = SHAPES[shape](source)
        plan = internals.streaming_plan(frame)
        assert plan.per_row == per_row
        assert all(s.isStreaming for s in plan.sources)
        assert len(plan.sources) == (2 if shape == "union" else 1)


@pytest.mark.parametrize("shape", PER_ROW)
def test_tasks_over_such_a_stream_run_only_with_data(
    stream: DataFrame, tmp_path: Path, shape: str
) -> None:
    """Batch 0 has the data, batch 1 has none."""
    assert batches_of_tasks(SHAPES[shape](rate(stream)), tmp_path) == {1}


@pytest.mark.parametrize("shape", OTHERS)
def test_tasks_over_the_sources_run_only_with_data(
    stream: DataFrame, tmp_path: Path, shape: str
) -> None:
    """Whatever lies over them."""
    (source, *_) = internals.streaming_plan(SHAPES[shape](stream)).sources
    assert source.schema == stream.schema
    assert batches_of_tasks(source, tmp_path) == {1}


def test_tasks_over_a_shuffle_run_without_data(stream: DataFrame, tmp_path: Path) -> None:
    """If this ends, `streaming_plan` need not look for sources any more."""
    assert batches_of_tasks(SHAPES["distinct"](stream), tmp_path) == {1, 2}


def batches_of_tasks(frame: DataFrame, place: Path) -> set[int]:
    """The batches in which tasks over a stream ran: the first has data, the second none."""
    log = place / "ran"

    def note(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number, rows = internals.batch_number(), sum(batch.num_rows for batch in batches)
        with log.open("a") as file:
            file.write(f"{number}\n")
        if rows:
            when = pa.array([number * 1_000_000], pa.timestamp("us", "UTC"))
            yield pa.record_batch([when], names=["when"])

    noted = frame.mapInArrow(note, "when timestamp").withWatermark("when", "0 seconds")
    query = run_to_end(noted.groupBy("when").count(), place)
    assert [p["batchId"] for p in query.recentProgress] == [0, 1]
    return set(map(int, log.read_text().split()))


# A checkpoint


def test_a_checkpoint_is_used_and_then_has_a_commit(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "checkpoint")
    assert not internals.is_used(spark, place)
    assert not internals.has_commit(spark, place)
    run_to_end(read_stream(spark, as_batches(tmp_path / "in", [ROWS])), tmp_path)
    assert internals.is_used(spark, place)
    assert internals.has_commit(spark, place)
    for path in (tmp_path / "checkpoint" / "commits").iterdir():
        path.unlink()
    assert not internals.has_commit(spark, place), "a batch that was not finished has no state"
    with pytest.raises(Py4JJavaError, match="nowhere"):
        internals.lines(spark, "nowhere://at/all")


def test_the_state_operator_is_found_by_its_name(spark: SparkSession, tmp_path: Path) -> None:
    stream = read_stream(spark, as_batches(tmp_path / "in", [ROWS]))
    text = "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR Exchange]"
    run_to_end(panes.sql(text, lateness=0, s=stream), tmp_path)
    known = spark.read.format("state-metadata").load(str(tmp_path / "checkpoint")).collect()
    assert [r.operatorName.startswith(internals.STATE_OPERATOR) for r in known] == [True]


def test_the_class_that_writes_checkpoints_is_there(spark: SparkSession) -> None:
    """Spark falls back to another one without a word if it is not."""
    assert internals.CHECKPOINT_FILES in DEFAULTS_WHERE_LOCAL.values()
    jvm: Any = spark._jvm
    assert jvm.java.lang.Class.forName(internals.CHECKPOINT_FILES) is not None


# A Column


def parts_of(column: Column) -> object:
    """A Column as nested tuples, its children taken apart too."""
    part = column_parts.take_apart(column)
    if isinstance(part, Alias):
        return ("alias", part.name, parts_of(part.child))
    if isinstance(part, ColumnCall):
        return (part.name, part.distinct, part.star, *map(parts_of, part.arguments))
    if isinstance(part, Name):
        return part.name
    if isinstance(part, Item):
        return ("item", parts_of(part.child), parts_of(part.key))
    if isinstance(part, WhenChoice):
        pairs = [(parts_of(a), parts_of(b)) for a, b in part.branches]
        return ("when", pairs, None if part.otherwise is None else parts_of(part.otherwise))
    return ("sql", part.sql) if isinstance(part, Text) else column_parts.text_of(column)


COLUMNS: dict[str, object] = {
    'F.max("x").alias("high")': ("alias", "high", ("max", False, False, "x")),
    'F.count("*")': ("count", False, True),
    'F.count_distinct("x", "y")': ("count", True, False, "x", "y"),
    'F.expr("sum(x) + 1")': ("sql", "sum(x) + 1"),
    'F.percentile("x", 0.25)': ("percentile", False, False, "x", "0.25", "1"),
    'F.col("a.b")': "a.b",
    'F.max("x")["i"]': ("item", ("max", False, False, "x"), "'i'"),
    'F.when(F.col("x") > 1, 2)': ("when", [((">", False, False, "x", "1"), "2")], None),
    'F.when(F.col("b"), 2).otherwise(3)': ("when", [("b", "2")], "3"),
    "F.lit(1)": "1",
}


@pytest.mark.parametrize("text", COLUMNS)
def test_a_column_is_taken_apart(spark: SparkSession, text: str) -> None:
    found = parts_of(eval(text))
    assert json.dumps(found) == json.dumps(COLUMNS[text])
    assert (column_parts.take_apart(eval(text)) is None) == text.startswith("F.lit")


def test_what_is_no_column_is_refused() -> None:
    with pytest.raises(QueryError, match="no Column"):
        column_parts.take_apart("x")  # type: ignore[arg-type]


def test_a_streaming_query_can_be_started_without_snapshots(spark: SparkSession) -> None:
    """The setting is one that Spark knows: an unknown one has no value before it is set."""
    before = spark.conf.get(internals._DELTAS)
    with internals.without_snapshots(spark):
        assert spark.conf.get(internals._DELTAS) == str(2**31 - 1)
    assert spark.conf.get(internals._DELTAS) == before == "10"


def test_a_frame_can_refuse_output_modes(stream: DataFrame) -> None:
    own = type(stream)
    frame = stream.select("k")
    internals.append_only(frame, lambda mode: QueryError(f"not {mode}"))
    with pytest.raises(QueryError, match="not Complete"):
        frame.writeStream.format("noop").outputMode("Complete")
    frame.writeStream.outputMode("append").format("noop")
    assert isinstance(frame, own)
    assert type(frame.select("k")) is type(stream) is own


def test_a_local_frame_has_the_rows_of_all_chunks(spark: SparkSession) -> None:
    """Also of those behind a chunk without rows, where Spark itself stops reading."""
    parts = [
        pa.table({"a": list(range(n))}, schema=pa.schema({"a": pa.int64()})) for n in (9, 0, 5)
    ]
    schema = T.StructType().add("a", "long")
    assert internals.local_frame(spark, pa.concat_tables(parts), schema).count() == 14
