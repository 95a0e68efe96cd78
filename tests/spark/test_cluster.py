"""On two executors in processes of their own: plans travel, answers are the oracle's."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import panes, panes.spark
from panes.bench.workloads import bids
from panes.reference.compare import difference

spark = panes.spark.session(
    master="local-cluster[2,1,1024]",
    spark__ui__enabled="false",
    spark__sql__shuffle__partitions="4",
)
rows = bids(2_000, keys=20, hours=0.5)
text = (
    "SELECT item, max(price) AS high, median(price) AS mid, count(*) AS n "
    "FROM bids [RANGE 5 minutes SLIDE 1 minute WATTR ts] GROUP BY item"
)
answers = panes.sql(text, bids=spark.createDataFrame(rows).repartition(4)).toArrow()
answers = answers.sort_by([(name, "ascending") for name in answers.column_names[:3]])
print("difference:", difference(answers, panes.oracle(text, bids=rows)))
spark.stop()
"""


def test_a_query_runs_on_executors_of_their_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert "difference: None" in done.stdout, done.stderr[-3000:]
