"""A register on Spark that changes its queries and dies while the answers of a batch are written.

``python -m tests.spark.register.killed_run FOLDER`` is that run in a process of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import panes
import panes.spark
from panes.spark.register.register import SparkRegister
from tests.register.workload import QUERIES, rows
from tests.spark.streaming import as_batches, read_stream

LATENESS = 4


MORE = {
    "ratio": "SELECT k, sum(x) / count(*) AS mean, max(x) - min(x) AS spread "
    "FROM s [RANGE 25 SLIDE 5 WATTR at] GROUP BY k HAVING sum(x) / count(*) > 2",
    "guarded": "SELECT sum(10 / x) AS inverse FROM s [TUMBLING 15 WATTR at] WHERE x <> 0",
    "distinct": "SELECT x % 3 AS rest, count(DISTINCT k) AS keys "
    "FROM s [RANGE 10 SLIDE 10 WATTR at] GROUP BY x % 3",
}


def registered(spark: SparkSession, folder: Path, *names: str, **options: Any) -> SparkRegister:
    frame = read_stream(spark, folder)
    register: SparkRegister = panes.register("s", frame, **{"lateness": LATENESS, **options})
    for name in names:
        register.add(name, {**QUERIES, **MORE}[name])
    return register


def placed(folder: Path) -> dict[str, Any]:
    return {"checkpoint": str(folder / "state"), "sink": str(folder / "out")}


def killed(spark: SparkSession, folder: Path) -> None:
    """Run, change the queries, and die while the answers of a batch are written."""
    register = registered(spark, folder / "in", "all", "keyed")
    place = placed(folder)
    register.start(**place)
    register.process_all_available()
    register.change(remove=["keyed"], add={"dear": QUERIES["dear"]})
    as_batches(folder / "in", [rows(2, 60, 60)], first=2)
    register.process_all_available()
    register.stop()

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    as_batches(folder / "in", [rows(3, 60, 90)], first=3)
    register = registered(spark, folder / "in", "all", "keyed")
    register.start(checkpoint=place["checkpoint"], sink=die)
    register.process_all_available()


def main() -> None:
    scratch = tempfile.gettempdir()
    spark = panes.spark.session(
        master="local[2]",
        spark__ui__enabled="false",
        spark__sql__shuffle__partitions="2",
        spark__driver__memory="1g",
        spark__driver__extraJavaOptions=f"-Djava.io.tmpdir={scratch}",
        spark__local__dir=scratch,
    )
    killed(spark, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
