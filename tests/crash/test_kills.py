"""Streams that are killed and started again lose nothing, repeat nothing and get nothing wrong.

Catches: state that is committed without its batch or a batch without its state, a task that runs
again and counts or answers again, an end or a change of queries that is forgotten or done twice.

Python workers are killed in the suite's own session. Drivers and executors are processes of their
own; ``make torture-kills`` kills them, too, a hundred times in each cell.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from panes.crash.kills import (
    BLOCK,
    CHANGE,
    DRIVER,
    END,
    EXECUTOR,
    RANDOM,
    STATE,
    STORED,
    SUNK,
    WORKER,
    KillPlan,
)
from panes.crash.place import JobPlace
from panes.crash.trials import Cell, Torment, drivers_for
from panes.crash.verdict import Verdict
from tests.crash.cases import CASES, KINDS
from tests.support import slow, torture


def endured(spark: SparkSession, name: str, folder: Path, *kills: tuple[str, int]) -> Verdict:
    """A run in which a worker dies at these points of these batches, until it ends."""
    case, place = CASES[name], JobPlace(folder / "run")
    place.make(case.streams, case.job.hidden)
    for point, batch in kills:
        place.kills.plan(point, KillPlan(WORKER, batch))
        with pytest.raises(StreamingQueryException):  # with one try a task, the stream fails
            case.job.run(spark, place)
        assert place.kills.struck(point) is not None, "it failed of what was planned"
    case.job.run(spark, place)
    return case.job.judged(place, case.streams)


KILLED = {
    "sliding": ((BLOCK, 1), (END, 0)),
    "a register that changes": ((STORED, 1),),
    "a join": ((BLOCK, 1), (STORED, 2)),
    "windows above an outer join": ((STATE, 1), (END, 0)),
    "windows over a join of windows": ((STATE, 1), (END, 0)),
    "a register over joins": ((STATE, 1), (STORED, 2)),
    "holistic": ((STORED, 1),),
    "landmark": ((BLOCK, 2),),
    "partitioned rows": ((STORED, 1), (END, 0)),
    "SlowFlush": ((BLOCK, 2), (END, 0)),
}
OTHERS = {
    "rows": ((STATE, 1),),
    "per row": ((BLOCK, 1), (END, 0)),
    "EMIT EARLY": ((STORED, 1), (END, 0)),
    "late='revise'": ((STATE, 2),),
    "split": ((STORED, 2),),
    "Spark's file sink": ((STORED, 1), (END, 0)),
    "DISTINCT": ((BLOCK, 1), (STORED, 2)),
    "a union": ((STATE, 1), (STORED, 2)),
    "a register": ((BLOCK, 1), (END, 0)),
}


def test_every_case_is_killed() -> None:
    assert {*KILLED, *OTHERS} == {*CASES}


@pytest.mark.parametrize("name", [*map(slow, KILLED), *map(torture, OTHERS)])
def test_workers_killed_at_named_points(spark: SparkSession, tmp_path: Path, name: str) -> None:
    kills = {**KILLED, **OTHERS}[name]
    assert endured(spark, name, tmp_path, *kills) == Verdict()


@pytest.mark.torture
@pytest.mark.parametrize(
    ("name", "victim", "points"),
    [
        ("partitioned rows", DRIVER, (RANDOM, STATE, STORED, SUNK, END)),
        ("a register that changes", DRIVER, (CHANGE, CHANGE, BLOCK)),
        ("sliding", EXECUTOR, (BLOCK, STORED, RANDOM)),
        ("a join", DRIVER, (RANDOM, STORED, SUNK, END)),
        ("a join", EXECUTOR, (BLOCK, RANDOM)),
    ],
    ids=["driver", "change", "executor", "driver of a join", "executor of a join"],
)
def test_processes_killed(name: str, victim: str, points: tuple[str, ...]) -> None:
    """Drivers die with their JVM; after executors, others of the same driver go on."""
    case = CASES[name]
    torment = Torment(case.job, case.streams, seed=5)
    with drivers_for(victim, KINDS) as drivers:
        assert torment.calm(drivers) == Verdict()
        for point in points:
            tally = torment.tally(drivers, Cell(victim, point), 1)
            assert (tally.kills, tally.verdict) == (1, Verdict()), point
