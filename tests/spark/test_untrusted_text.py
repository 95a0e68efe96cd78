"""Strangers' query text on Spark: refused by the same rule, before Spark sees any of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import panes
import panes.spark
from panes.errors import PanesError
from panes.language.expressions import quoted
from tests.hostile import ATTACKS, HOSTILE_NAMES, PLACES
from tests.spark.streaming import as_batches, found, read_stream


def test_no_expression_reaches_spark(spark: SparkSession) -> None:
    bids = spark.createDataFrame([(1, "a", 1.0)], "at long, item string, price double")
    for place in PLACES.values():
        for attack in ATTACKS.values():
            with pytest.raises(PanesError):
                panes.sql(place.format(attack), bids=bids)


@pytest.mark.slow
def test_any_name_is_a_name(spark: SparkSession, tmp_path: Path) -> None:
    """Columns, keys, aliases and the axis; rows set aside beside the answers."""
    for number, name in enumerate(HOSTILE_NAMES):
        at, key, value = (quoted(n) for n in (f"t{name}", f"k{name}", f"x{name}"))
        text = (
            f"SELECT {key}, max({value} + 1) AS {quoted(name + '!')} FROM s "
            f"[TUMBLING 10 WATTR {at}] WHERE {value} < 9 GROUP BY {key}"
        )
        table = pa.table({f"t{name}": [1, 2, 11], f"k{name}": ["a"] * 3, f"x{name}": [1, 2, 3]})
        frame = spark.createDataFrame(
            list(zip(*table.to_pydict().values(), strict=True)), table.column_names
        )
        answers = panes.sql(text, s=frame).sort("window_start").toArrow()
        assert answers.to_pylist() == panes.oracle(text, s=table).to_pylist()
        if number % 4 == 0:
            _stream(spark, tmp_path / str(number), table, text)


def _stream(spark: SparkSession, place: Path, table: pa.Table, text: str) -> None:
    place.mkdir()
    late = table.slice(0, 1)
    # Parquet takes any name; Spark's reader is told the schema of what was written.
    folder = as_batches(place / "in", [table, late])
    stream = panes.sql(text, s=read_stream(spark, folder), lateness=0, with_late=True, bounded=True)
    sinks = panes.spark.split(answers=str(place / "answers"), late=str(place / "late"))
    query = (
        stream.writeStream.foreachBatch(sinks)
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    answers = found(spark, place / "answers").drop_columns(["batch"])
    assert answers.sort_by("window_start").to_pylist() == panes.oracle(text, s=table).to_pylist()
    apart = found(spark, place / "late").drop_columns(["batch", "reason"])
    assert apart.to_pylist() == late.to_pylist()
