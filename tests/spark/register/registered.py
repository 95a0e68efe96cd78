"""Registers on Spark for tests: queries beside those of `tests.sharing.workload`, and places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import panes
from panes.spark.register.register import SparkRegister
from tests.sharing.workload import QUERIES
from tests.spark.streaming import read_stream

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
