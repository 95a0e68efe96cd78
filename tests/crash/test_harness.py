"""The harness itself: what it calls lost, twice and wrong, and kills that happen once."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from panes.crash import processes
from panes.crash.jobs import QueryJob, RegisterJob
from panes.crash.kills import CHANGE, DRIVER, END, STATE, VICTIMS, WORKER, KillPlan, Kills
from panes.crash.place import JobPlace, answers_in, cut
from panes.crash.sample import BATCHES, sample
from panes.crash.trials import cells
from panes.crash.verdict import Verdict, judge
from panes.crash.written import read, written
from panes.errors import StateError
from tests.crash.cases import CASES, KINDS

WANT = pa.table({"end": [10, 20, 30], "k": ["a", "a", "b"], "n": [1.5, 2.0, 3.0]})


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([(10, "a", 1.5), (20, "a", 2.0), (30, "b", 3.0)], Verdict()),
        ([(30, "b", 3.0), (20, "a", 2.0 + 1e-12), (10, "a", 1.5)], Verdict()),
        ([(10, "a", 1.5), (30, "b", 3.0)], Verdict(lost=1)),
        ([(10, "a", 1.5), (10, "a", 1.5), (20, "a", 2.0), (30, "b", 3.0)], Verdict(twice=1)),
        ([(10, "a", 1.5), (20, "a", 9.0), (30, "b", 3.0)], Verdict(wrong=1)),
        ([(10, "a", 1.5), (20, "a", 2.0), (20, "a", 9.0), (30, "b", 3.0)], Verdict(wrong=1)),
        ([(10, "b", 1.5), (20, "a", 2.0), (30, "b", 3.0)], Verdict(lost=1, wrong=1)),
        ([], Verdict(lost=3)),
    ],
)
def test_what_is_lost_twice_and_wrong(rows: list[tuple[object, ...]], verdict: Verdict) -> None:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    got = pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, WANT.schema, strict=True)], WANT.schema
    )
    assert judge(got, WANT, ["end", "k"]) == verdict


def test_no_answers_at_all_are_all_lost() -> None:
    assert judge(None, WANT, ["end"]) == Verdict(lost=3)


def test_a_kill_strikes_once_and_not_before_its_batch(tmp_path: Path) -> None:
    """Three processes come to the point in batch 2, and one of them dies."""
    Kills(tmp_path).plan(STATE, KillPlan(WORKER, batch=2))
    program = (
        "import sys; from pathlib import Path; from panes.crash.kills import Kills; "
        "Kills(Path(sys.argv[1])).reach('state', int(sys.argv[2]))"
    )

    def died(batch: int) -> bool:
        command = [sys.executable, "-c", program, str(tmp_path), str(batch)]
        return subprocess.run(command, check=False).returncode == -9

    assert [died(1), died(2), died(2)] == [False, True, False]
    assert Kills(tmp_path).struck(STATE) == 2


def test_cells_are_where_a_job_can_be_killed() -> None:
    query, register = CASES["sliding"].job, CASES["a register that changes"].job
    points = {victim: {c.point for c in cells(query, (victim,))} for victim in VICTIMS}
    assert END in points[WORKER]
    assert CHANGE not in points[DRIVER]
    assert points[WORKER] < points[DRIVER]
    changes = {c.victim for c in cells(register) if c.point == CHANGE}
    assert changes == {DRIVER}
    assert END not in {c.point for c in cells(register)}


def test_a_sample_has_the_lateness_that_its_rows_need() -> None:
    at = [dt.datetime(2026, 1, 1) + dt.timedelta(seconds=s) for s in (0, 30, 20, 90, 81, 100)]
    bids = pa.table({"ts": pa.array(at, pa.timestamp("us")), "item": list("aabbab")})
    text = "SELECT item, count(*) AS n FROM bids [TUMBLING 1 minute WATTR ts] GROUP BY item"
    made = sample(text, {"bids": bids})
    assert isinstance(made.query, QueryJob)
    assert made.query.options["lateness"] == dt.timedelta(seconds=10)
    assert isinstance(made.register, RegisterJob)
    assert len(made.streams["bids"]) == BATCHES
    early = sample(f"{text} EMIT EARLY", {"bids": bids})
    assert early.register is None
    assert early.refused


def test_a_table_is_cut_without_losing_a_row() -> None:
    table = pa.table({"x": list(range(7))})
    assert pa.concat_tables(cut(table, 3)) == table
    assert [len(t) for t in cut(table.slice(0, 2), 5)] == [1, 1]


def test_answers_of_a_file_sink_are_those_in_its_log(tmp_path: Path) -> None:
    """A file that no batch has committed is not there; a log that was written anew begins it."""
    for number in range(3):
        pq.write_table(pa.table({"n": [number]}), tmp_path / f"part-{number}.parquet")
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    entry = '{{"path":"file://{}/part-{}.parquet"}}'
    (log / "0").write_text("v1\n" + entry.format(tmp_path, 2))
    (log / "9.compact").write_text("v1\n" + entry.format(tmp_path, 0))
    (log / "10").write_text("v1\n" + entry.format(tmp_path, 1))
    found = answers_in(tmp_path)
    assert found is not None
    assert sorted(found["n"].to_pylist()) == [0, 1]


def test_a_run_tells_how_it_goes(tmp_path: Path) -> None:
    place = JobPlace(tmp_path)
    assert place.said() == {}
    place.say(started=True)
    assert place.said() == {"started": True}
    place.hush()
    assert place.said() == {}


def test_processes_know_their_sessions() -> None:
    started = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        assert list(processes.of_driver(started.pid)) == [started.pid]
    finally:
        processes.kill_driver(started.pid)
        assert started.stdin is not None
        started.stdin.close()
        assert started.wait() == -9
    assert not processes.of_driver(started.pid)


@pytest.mark.parametrize("name", CASES)
def test_a_job_is_told_to_a_driver_as_plain_text(name: str) -> None:
    assert read(written(CASES[name].job, KINDS), KINDS) == CASES[name].job


def test_a_duration_is_told_to_the_microsecond() -> None:
    job = QueryJob("SELECT", {"lateness": dt.timedelta(days=-3, seconds=7, microseconds=11)})
    assert read(written(job)) == job


def test_what_is_no_job_is_not_run() -> None:
    with pytest.raises(StateError, match="a job is a query or a register, got dict"):
        read('{"text": "SELECT"}')
