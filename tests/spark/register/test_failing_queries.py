"""A query that fails in a register on Spark is set aside, and the others get all their answers.

Catches: a failing query that takes others along, one that is answered once more after it was set
aside, answers that are lost or doubled where a batch is run again, and a sink's failure that is
blamed on a query.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import panes
import panes.spark
from panes.errors import FailedQueryWarning, QueryError
from panes.process.register import Register
from panes.spark.register.register import SparkRegister
from tests.failing_aggregates import brittle, picky, shaky
from tests.spark.streaming import as_batches, metrics, read_stream
from tests.support import assert_rows

GOOD = {
    "by k": "SELECT k, sum(x) AS a FROM s [RANGE 20 SLIDE 5 WATTR at] GROUP BY k",
    "few": "SELECT k, 60 / sum(x) AS a FROM s [TUMBLING 10 WATTR at] GROUP BY k HAVING sum(x) > 0",
}
BAD = {
    "argument": "SELECT k, sum(1 / (x - 7)) AS a FROM s [TUMBLING 10 WATTR at] GROUP BY k",
    "key": "SELECT CAST(d AS INT) AS i, sum(x) AS a FROM s [TUMBLING 10 WATTR at] "
    "GROUP BY CAST(d AS INT)",
    "where": "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at] WHERE CAST(d AS INT) > 0",
    "overflow": "SELECT sum(x + 9223372036854775000) AS a FROM s [TUMBLING 20 WATTR at]",
    "lift": "SELECT shaky(x) AS a FROM s [TUMBLING 10 WATTR at]",
    "combine": "SELECT brittle(x) AS a FROM s [RANGE 20 SLIDE 10 WATTR at]",
    "function": "SELECT picky(x) AS a FROM s [TUMBLING 10 WATTR at]",
    "answer": "SELECT k, CAST(max(d) AS INT) AS a FROM s [TUMBLING 10 WATTR at] GROUP BY k",
    "having": "SELECT k, sum(x) AS a FROM s [TUMBLING 10 WATTR at] GROUP BY k "
    "HAVING 1 / (sum(x) - sum(x)) > 0",
}


def batch(first: int, *, d: str = "5") -> pa.Table:
    at = list(range(first, first + 30))
    return pa.table(
        {
            "at": pa.array(at, pa.int64()),
            "k": [("a", "b")[i % 2] for i in at],
            "x": pa.array([i % 5 + (3 if d != "5" else 0) for i in at], pa.int64()),
            "d": [d] * 30,
        }
    )


BATCHES = [batch(0), batch(30, d="five"), batch(60)]


def registered(spark: SparkSession, folder: Path, *bad: str, **more: str) -> SparkRegister:
    """The bad query comes between the good ones, so that halves of all have some of both."""
    frame = read_stream(spark, folder)
    reg: SparkRegister = panes.register(
        "s", frame, lateness=0, aggregates=[shaky, brittle, picky], name="seen"
    )
    first, *others = GOOD.items()
    for name, text in (first, *((b, BAD[b]) for b in bad), *others, *more.items()):
        reg.add(name, text)
    return reg


def alone(texts: dict[str, str]) -> dict[str, pa.Table]:
    """What the good queries are answered by a register in one process."""
    reg: Register = panes.register("s", lateness=0)
    for name, text in texts.items():
        reg.add(name, text)
    given: dict[str, list[pa.Table]] = {}
    for answers in (*map(reg.push, BATCHES), reg.finish()):
        for name, table in answers.items():
            given.setdefault(name, []).append(table)
    return {name: pa.concat_tables(tables) for name, tables in given.items()}


@contextmanager
def noting() -> Iterator[list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", FailedQueryWarning)
        yield warned


def placed(folder: Path) -> dict[str, Any]:
    return {"checkpoint": str(folder / "state"), "sink": str(folder / "out")}


@pytest.mark.slow
def test_the_others_go_on_and_a_query_can_be_put_back(spark: SparkSession, tmp_path: Path) -> None:
    """Spark evaluates `argument` before the shuffle, a shard `overflow`, and Spark `answer`."""
    bad = ("argument", "overflow", "answer")
    files, place = as_batches(tmp_path / "in", BATCHES[:2]), placed(tmp_path)
    reg = registered(spark, files, *bad)
    with noting() as warned:
        reg.start(**place).process_all_available()
    assert [w.category for w in warned] == [FailedQueryWarning] * 3
    assert {w.filename for w in warned} == {__file__}
    assert set(reg.failed) == set(bad)
    assert "Division by zero" in reg.failed["argument"]
    assert "does not fit" in reg.failed["overflow"]
    assert "'five'" in reg.failed["answer"]
    assert list(reg.queries()) == list(GOOD)
    assert reg.query is not None
    assert metrics(reg.query, "seen")[-1]["failed"] == 3
    reg.stop()

    again = registered(spark, files, *bad)
    again.start(**place)
    assert set(again.failed) == set(bad), "the checkpoint remembers"
    assert list(again.queries()) == list(GOOD)
    with pytest.raises(QueryError, match="was set aside"):
        again.put_back("few")
    again.remove("overflow")
    added = again.put_back("argument")
    assert set(again.failed) == {"answer"}
    mirror = in_one_process({**GOOD, "argument": BAD["argument"]})
    assert added.exact_from == mirror.exact_from
    as_batches(files, BATCHES[2:], first=2)
    again.process_all_available()
    again.stop()
    for name, want in mirror.answers.items():
        got = spark.read.parquet(str(tmp_path / "out" / f"query={name}")).drop("batch").toArrow()
        assert_rows(got, want)


@dataclass
class Mirror:
    answers: dict[str, pa.Table]
    exact_from: object


def in_one_process(texts: dict[str, str]) -> Mirror:
    """The same in one process: `argument` is not there while the second batch comes."""
    reg: Register = panes.register("s", lateness=0)
    for name, text in texts.items():
        reg.add(name, text)
    given = [reg.push(BATCHES[0])]
    reg.remove("argument")
    given.append(reg.push(BATCHES[1]))
    exact_from = reg.add("argument", texts["argument"]).exact_from
    given.append(reg.push(BATCHES[2]))
    answers = {
        name: pa.concat_tables([one[name] for one in given if name in one]) for name in texts
    }
    return Mirror(answers, exact_from)


@pytest.mark.slow
def test_many_queries_fail_for_all_reasons(spark: SparkSession, tmp_path: Path) -> None:
    files, place = as_batches(tmp_path / "in", BATCHES), placed(tmp_path)
    reg = registered(spark, files, *BAD)
    with noting() as warned:
        assert reg.start(**place, bounded=True).await_end(600)
    assert len(warned) == len(BAD)
    assert set(reg.failed) == set(BAD)
    for name in ("lift", "combine", "function"):
        assert "no such luck" in reg.failed[name]
    want = alone(GOOD)
    for name in GOOD:
        got = spark.read.parquet(str(tmp_path / "out" / f"query={name}")).drop("batch").toArrow()
        assert_rows(got, want[name])


@pytest.mark.slow
def test_a_sink_that_raises_blames_no_query(spark: SparkSession, tmp_path: Path) -> None:
    """It raises at every third call. Answers that it keeps by batch are all there once, at last."""
    files = as_batches(tmp_path / "in", BATCHES)
    calls = count(1)
    kept: dict[tuple[str, int], list[pa.Table]] = {}

    def take(name: str, answers: DataFrame, batch_id: int) -> None:
        kept[name, batch_id] = [answers.toArrow()]
        if next(calls) % 3 == 0:
            raise OSError("disk full")

    for _ in range(9):
        reg = registered(spark, files)
        reg.start(checkpoint=str(tmp_path / "state"), sink=take, bounded=True)
        if ended_well(reg):
            break
    else:
        pytest.fail("it never ended")
    assert next(calls) > 6
    want = alone(GOOD)
    for name in GOOD:
        given = [table for (of, _), tables in kept.items() for table in tables if of == name]
        assert_rows(pa.concat_tables(given), want[name])


def ended_well(reg: SparkRegister) -> bool:
    """Whether it did not fail of its sink."""
    try:
        return reg.await_end(300)
    except StreamingQueryException as failure:
        if "disk full" not in str(failure) or reg.failed:
            raise
        return False


@pytest.mark.slow
def test_nobody_is_left(spark: SparkSession, tmp_path: Path) -> None:
    files = as_batches(tmp_path / "in", BATCHES)
    frame = read_stream(spark, files)
    reg: SparkRegister = panes.register("s", frame, lateness=0)
    reg.add("argument", BAD["argument"])
    with pytest.warns(FailedQueryWarning, match="argument"):
        assert reg.start(**placed(tmp_path), bounded=True).await_end(300)
    assert set(reg.failed) == {"argument"}
    assert not reg.queries()
