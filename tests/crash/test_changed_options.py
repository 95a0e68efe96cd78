"""A batch that was not committed runs again, and its first state is nowhere to be seen.

    batch 0      batch 1 (killed after its state was written)
    batch 1      again, with another lateness: closes other windows, leaves another state
    batch 2      another start: goes on from the second state, not from the first

Spark writes the state of the second attempt under the names of the first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import panes
from panes.crash.jobs import ANSWERS, QueryJob
from panes.crash.kills import STORED, WORKER, Plan
from panes.crash.place import Place, answers_in, release
from panes.crash.verdict import Verdict, judge
from tests.crash.cases import SLIDING, STREAM

PATIENT: dict[str, Any] = {"lateness": 40}
HASTY: dict[str, Any] = {"lateness": 20}


def wanted() -> pa.Table:
    """No row is late by either lateness, so all that counts is which one was the last."""
    query = panes.open(SLIDING, **HASTY)
    answers = pa.concat_tables([query.push(s=batch) for batch in STREAM["s"]])
    assert not len(query.late)
    return answers


@pytest.mark.slow
def test_another_lateness_after_a_batch_that_was_not_committed(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = Place(tmp_path / "run")
    place.make(STREAM, 2)
    place.kills.plan(STORED, Plan(WORKER, 1))
    with pytest.raises(StreamingQueryException):
        QueryJob(SLIDING, PATIENT).run(spark, place)
    assert place.kills.struck(STORED) == 1
    QueryJob(SLIDING, HASTY).run(spark, place)
    release(place.rows / "s", 2)
    QueryJob(SLIDING, HASTY).run(spark, place)
    found = judge(answers_in(place.out / ANSWERS), wanted(), ["window_start", "window_end", "k"])
    assert found == Verdict()
