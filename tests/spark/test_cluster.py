"""On two executors in processes of their own: plans travel, answers are the oracle's."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import pathlib, tempfile
import panes, panes.spark
from panes.sample_streams import bids
from panes.reference.compare import difference
from tests.spark.streaming import as_batches, found, read_stream, run_to_end

spark = panes.spark.session(
    master="local-cluster[2,1,1024]",
    spark__ui__enabled="false",
    spark__executor__extraJavaOptions="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    spark__sql__shuffle__partitions="4",
)
rows = bids(2_000, keys=20, hours=0.5)
text = (
    "SELECT item, max(price) AS high, median(price) AS mid, count(*) AS n "
    "FROM bids [RANGE 5 minutes SLIDE 1 minute WATTR ts] GROUP BY item"
)
want = panes.oracle(text, bids=rows)

def told(answers):
    return difference(answers.sort_by([(n, "ascending") for n in want.column_names[:3]]), want)

print("batch:", told(panes.sql(text, bids=spark.createDataFrame(rows).repartition(4)).toArrow()))
folder = pathlib.Path(tempfile.mkdtemp())
files = as_batches(folder / "in", [rows.slice(i, 500) for i in range(0, 2_000, 500)])
stream = read_stream(spark, files).repartition(3)
run_to_end(panes.sql(text, lateness="10 seconds", bounded=True, bids=stream), folder)
print("stream:", told(found(spark, folder / "out")))
spark.stop()
"""


@pytest.mark.slow
def test_a_query_runs_on_executors_of_their_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert "batch: None" in done.stdout, done.stderr[-3000:]
    assert "stream: None" in done.stdout, done.stderr[-3000:]
