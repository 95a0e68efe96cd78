"""A bounded run over three minutes of rows that can be held at a moment, and be killed there.

``python -m tests.spark.stream.held_run FOLDER`` is that run in a process of its own.
"""

from __future__ import annotations

import datetime as dt
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

import panes
import panes.spark
from tests.spark.streaming import START, at_seconds, read_stream, run_to_end

TEXT = (
    "SELECT k, count(*) AS n, max(x) AS high, median(x) AS mid "
    "FROM s [RANGE 2 minutes SLIDE 1 minute WATTR ts] GROUP BY k"
)


LATENESS = dt.timedelta(seconds=10)


def minute(number: int) -> pa.Table:
    """Rows of one minute, and one of the minute before that is not late yet."""
    seconds = [number * 60 + s for s in (-15, 0, 7, 14, 21, 28, 35, 49)]
    values = range(number * 10, number * 10 + len(seconds))
    return at_seconds(*seconds, k=["abc"[v % 3] for v in values], x=list(values))


MINUTES = [minute(number) for number in range(3)]


def held(frame: DataFrame, flag: Path, column: str, value: object) -> DataFrame:
    """The same rows; while there is a file `flag`, a task that comes to `value` waits."""

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if value in batch.column(column).to_pylist():
                give_up = time.monotonic() + 60
                while flag.exists() and time.monotonic() < give_up:
                    flag.with_suffix(".waits").touch()
                    time.sleep(0.01)
                context = TaskContext.get()
                assert context is not None
                flag.with_suffix(".attempt").write_text(str(context.attemptNumber()))
            yield batch

    return frame.mapInArrow(wait, frame.schema)


def run_held(spark: SparkSession, place: Path) -> None:
    """A bounded run that can be held: before rows are shuffled, while windows are answered.

    Batch 1 has the rows, batch 2 the answers, batch 3 the last answers, at the end.
    """
    frame = held(read_stream(spark, place / "in"), place / "rows", "x", 15)
    frame = panes.sql(TEXT, lateness=LATENESS, bounded=True, s=frame)
    for moment, minutes in (("answers", 2), ("end", 4)):
        end = START + dt.timedelta(minutes=minutes)
        frame = held(frame, place / moment, "window_end", end)
    run_to_end(frame, place)


def main() -> None:
    scratch = tempfile.gettempdir()
    spark = panes.spark.session(
        master="local[2, 4]",
        spark__ui__enabled="false",
        spark__sql__shuffle__partitions="2",
        spark__driver__memory="1g",
        spark__driver__extraJavaOptions=f"-Djava.io.tmpdir={scratch}",
        spark__local__dir=scratch,
    )
    run_held(spark, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
