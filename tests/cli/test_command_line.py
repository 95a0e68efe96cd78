"""The real entry point, as a user calls it: exit code, stdout and stderr apart."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import panes
from panes.cli import verify
from panes.crash.kills import VICTIMS
from panes.sample_streams import bids
from tests.cli.call import QUERY, call, call_here, run
from tests.support import slow

Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli")
    table = bids(2_000, keys=5, hours=1)
    pq.write_table(table, path / "bids.parquet", row_group_size=300)
    csv.write_csv(table, path / "bids.csv")
    lines = (
        json.dumps({"ts": r["ts"].isoformat(), "item": r["item"], "price": r["price"]})
        for r in table.to_pylist()
    )
    (path / "bids.ndjson").write_text("\n".join(lines))
    (path / "parts").mkdir()
    pq.write_table(table.slice(0, 900), path / "parts" / "a.parquet")
    pq.write_table(table.slice(900), path / "parts" / "b.parquet")
    (path / "busy.sql").write_text(QUERY)
    return path


@pytest.mark.parametrize("source", ["bids.parquet", "bids.csv", "bids.ndjson", "parts"])
def test_run_answers_over_every_kind_of_file(folder: Path, source: str) -> None:
    done = call(
        "run", "busy.sql", "--input", f"bids={source}", "--output", "o.parquet", "--overwrite",
        folder=folder,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    want = panes.sql(QUERY, bids=pq.read_table(folder / "bids.parquet"))
    got = pq.read_table(folder / "o.parquet")
    assert got.equals(want)
    assert f"{len(want):,} answers" in done.stderr


def test_run_writes_csv_to_stdout_and_ndjson_to_a_file(folder: Path) -> None:
    shown = run("run", "-", "-i", "bids=bids.parquet", folder=folder, stdin=QUERY)
    assert shown.stdout.splitlines()[0] == "window_start,window_end,item,high,n"
    done = run("run", "busy.sql", "-i", "bids=bids.parquet", "-o", "o.ndjson", folder=folder)
    assert done.returncode == 0
    lines = (folder / "o.ndjson").read_text().splitlines()
    assert len(lines) == len(shown.stdout.splitlines()) - 1
    assert set(json.loads(lines[0])) == {"window_start", "window_end", "item", "high", "n"}


def test_run_as_a_stream_reports_late_rows(folder: Path) -> None:
    rows = pa.table({"at": [1, 50, 2, 60], "x": [1, 2, 3, 4]})
    pq.write_table(rows, folder / "late.parquet", row_group_size=1)
    (folder / "late.sql").write_text("SELECT sum(x) AS s FROM t [TUMBLING 10 WATTR at]")
    done = call(
        "run", "late.sql", "-i", "t=late.parquet", "--lateness", "0", "--late", "drop",
        "--late-output", "late.ndjson", folder=folder,
    )  # fmt: skip
    assert done.returncode == 0
    reported = (folder / "late.ndjson").read_text()
    assert ("1 rows late: behind progress 50; dropped" in done.stderr) == ('"at":2' in reported)


def test_explain_draws_how_queries_slide(folder: Path) -> None:
    for slide in (10, 15, 60):
        window = f"[RANGE 1 hour SLIDE {slide} seconds WATTR ts]"
        (folder / f"every{slide}.sql").write_text(f"SELECT count(*) AS n FROM bids {window}")
    files = [f"every{slide}.sql" for slide in (10, 15, 60)]
    drawn = call("explain", *files, "--slides", "text", folder=folder).stdout
    assert drawn.splitlines() == [
        "5 seconds (dummy)",
        "├─ 10 seconds: every10",
        "└─ 15 seconds: every15",
        "   └─ 1 minute: every60 (also within 10 seconds)",
    ]
    assert call("explain", *files, "--slides", "dot", folder=folder).stdout.startswith("digraph")
    assert "one query" in call("explain", *files, folder=folder).stderr


def test_explain_says_why(folder: Path) -> None:
    done = call("explain", "busy.sql", "-i", "bids=bids.parquet", "--details", folder=folder)
    assert done.returncode == 0
    for said in ("10 panes per window", "two stacks", "bytes per key", "value int64: max(price)"):
        assert said in done.stdout
    unbound = call("explain", "busy.sql", "--details", folder=folder)
    assert unbound.stdout.endswith("kernels and sizes\n")


def test_explain_is_for_people_who_have_read_the_readme(folder: Path) -> None:
    done = call("explain", "busy.sql", "-i", "bids=bids.parquet", "--run", folder=folder)
    assert done.returncode == 0
    for said in ("10 panes per window", "bytes per key", "chosen; measured"):
        assert said in done.stdout
    for internal in ("two stacks", "limb0", "int64: max(price)", "(6.1", "differential"):
        assert internal not in done.stdout


def test_verify_compares_every_engine_with_the_oracle(folder: Path) -> None:
    done = call("verify", "--rows", "150", "--no-spark", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 queries x 2 engines: all equal" in done.stderr


@pytest.mark.slow
def test_verify_compares_spark_too(spark: SparkSession, folder: Path) -> None:
    """In one process at once and in batches, on Spark bounded and as a stream."""
    given = call_here("verify", "busy.sql", "-i", "bids=bids.csv", "--rows", "200", folder=folder)
    assert given.returncode == 0
    assert [line.split()[-1] for line in given.stdout.splitlines()[1:]] == ["equal"] * 4


def test_verify_tells_which_answers_differ(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that leaves out the first answer, counts one too few, and has one twice."""

    def wrong(text: str, streams: dict[str, pa.Table]) -> pa.Table:
        right = panes.sql(text, streams)
        less = right.set_column(2, "n", pc.subtract(right["n"], 1))
        return pa.concat_tables([less.slice(1, 1), right.slice(2), right.slice(2, 1)])

    monkeypatch.setitem(verify.LOCAL, "wrong", wrong)
    (folder / "few.sql").write_text("SELECT count(*) AS n FROM few [TUMBLING 10 WATTR at]")
    (folder / "few.csv").write_text("at\n1\n2\n12\n25\n")
    words = ("verify", "few.sql", "-i", "few=few.csv", "--no-spark")
    done = call_here(*words, folder=folder)
    assert done.returncode == 1
    assert done.stdout.splitlines()[3:] == [
        "         wrong            differs: 3 answers, the oracle has 3",
        "           window_start=0, window_end=10, n=2 is missing",
        "           window_start=10, window_end=20: n is 0 instead of 1",
        "           window_start=20, window_end=30, n=1 is too many",
    ]
    assert "1 differ" in done.stderr


@pytest.mark.slow
def test_verify_kills_a_query(folder: Path) -> None:
    """Three kills, at random: of the driver, of a worker and of an executor."""
    words = ("verify", "busy.sql", "-i", "bids=bids.parquet", "--rows", "60", "--crash", "3")
    done = run(*words, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    head, *lines = (line.split() for line in done.stdout.splitlines())
    assert head[-5:] == ["kills", "runs", "lost", "twice", "wrong"]
    killed = [(line[0], line[-5], line[-3:]) for line in lines]
    assert killed == [(victim, "1", ["0"] * 3) for victim in VICTIMS]
    assert "3 kills" in done.stderr
    (folder / "rows.sql").write_text("SELECT count(*) AS n FROM bids [ROWS 5]")
    refused = run("verify", "rows.sql", *words[2:], folder=folder)
    assert refused.returncode == 2
    assert "WATTR" in refused.stderr


@pytest.mark.parametrize("how", [call_here, slow(run)], ids=["here", "process"])
def test_run_on_spark_gives_the_same_file(
    spark: SparkSession, folder: Path, tmp_path: Path, how: Call
) -> None:
    rows = f"bids={folder / 'bids.parquet'}"
    for engine in ("local", "spark"):
        output = str(tmp_path / f"{engine}.csv")
        done = how("run", "busy.sql", "-i", rows, "-o", output, "--engine", engine, folder=folder)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "local.csv").read_text() == (tmp_path / "spark.csv").read_text()


def test_bench_checks_and_measures_and_keeps_the_numbers(folder: Path) -> None:
    done = call(
        "bench", "in-process", "--rows", "20000", "--repeat", "1", "--results", "r", folder=folder
    )
    assert done.returncode in (0, 1), done.stderr
    assert "at least 8 x Polars" in done.stdout
    raw = json.loads((folder / "r" / "in-process.json").read_text())
    assert {t["contender"] for t in raw["timings"]} == {"panes", "polars", "duckdb", "recompute"}


REFUSED = {
    ("run", "nope.sql", "-i", "bids=bids.csv"): (2, "no query file at nope.sql"),
    ("run", "busy.sql", "-i", "bids=nope.csv"): (2, "--input bids: nope.csv is no file or folder"),
    ("run", "busy.sql", "-i", "bids"): (2, "--input takes name=path"),
    ("run", "busy.sql", "-i", "bids.csv"): (2, "--input bids=bids.csv"),
    ("run", "busy.sql", "-i", "asks=bids.csv"): (2, "reads a stream `bids`, which was not given"),
    ("run", "busy.sql"): (2, "--input"),
    ("run", "busy.sql", "-i", "bids=bids.csv", "-o", "o.xlsx"): (2, "write .parquet, .csv"),
    ("run", "busy.sql", "-i", "bids=bids.csv", "-o", "no/o.csv"): (2, "there is no folder no"),
    ("run", "busy.sql", "-i", "bids=bids.csv", "--lateness", "soon"): (2, "lateness must be a duration"),
    ("run", "busy.sql", "-i", "bids=bids.csv", "--late", "never"): (2, "'never' is not one of"),
    ("run", "busy.sql", "-i", "bids=empty.csv"): (1, "empty.csv is empty, not even a header"),
    ("run", "busy.sql", "-i", "bids=header.csv"): (1, "has no rows, so its columns have no types"),
    ("run", "busy.sql", "-i", "bids=broken.parquet"): (1, "cannot read broken.parquet"),
    ("run", "busy.sql", "-i", "bids=mixed"): (1, "b.parquet has no column `a`, and mixed/a.parquet has"),
    ("run", "busy.sql", "-i", "bids=busy.sql"): (1, "neither Parquet, CSV nor NDJSON"),
    ("run", "wrong.sql", "-i", "bids=bids.csv"): (2, "no column `prise` in stream `bids`"),
    ("verify", "busy.sql"): (2, "--input name=path"),
    ("verify", "--crash", "9"): (2, "--crash kills one query"),
    ("verify", "busy.sql", "-i", "bids=bids.csv", "--crash", "0"): (2, "a number of kills from 1 on"),
    ("explain", "bad.sql"): (2, "line 1, column 1"),
    ("frobnicate",): (2, "No such command"),
}  # fmt: skip


@pytest.mark.parametrize("arguments", REFUSED, ids=" ".join)
def test_a_wrong_call_gets_one_clear_message(folder: Path, arguments: tuple[str, ...]) -> None:
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("ts,item,price\n")
    (folder / "broken.parquet").write_text("this is not Parquet")
    (folder / "wrong.sql").write_text(QUERY.replace("max(price)", "max(prise)"))
    (folder / "bad.sql").write_text("INSERT INTO x VALUES (1)")
    (folder / "mixed").mkdir(exist_ok=True)
    pq.write_table(pa.table({"a": [1]}), folder / "mixed" / "a.parquet")
    pq.write_table(pa.table({"b": ["x"]}), folder / "mixed" / "b.parquet")
    code, message = REFUSED[arguments]
    done = call(*arguments, folder=folder)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "command", ["run", "register", "explain", "verify", "bench", "demo", "live", "papers"]
)
def test_every_help_ends_with_an_example(folder: Path, command: str) -> None:
    done = call(command, "--help", folder=folder)
    assert done.returncode == 0
    assert done.stdout.strip().splitlines()[-1].strip().startswith(f"Example: panes {command}")


def test_ctrl_c_stops_with_a_word_and_leaves_no_half_written_file(folder: Path) -> None:
    """A real SIGINT, sent at the moment the command asks for its query."""
    interrupted = (
        "import signal, panes.cli.run as run\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # as in a terminal
        "run.read_query = lambda path: signal.raise_signal(signal.SIGINT)\n"
        "from panes.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", interrupted, "run", "-", "-i", "bids=bids.csv", "-o", "stopped.csv"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 130
    assert "stopped; nothing was written" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(folder.glob("*stopped*"))


@pytest.mark.parametrize("how", [slow(call_here), slow(run)], ids=["here", "process"])
def test_run_streams_files_on_spark_and_goes_on_from_a_checkpoint(
    spark: SparkSession, tmp_path: Path, how: Call
) -> None:
    """The command line declares the end itself; late rows go to their own file."""
    batches = tmp_path / "in"
    batches.mkdir()
    for number, seconds in enumerate(([5, 70], [200], [15, 130])):
        at = [dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=s) for s in seconds]
        path = batches / f"{number}.parquet"
        pq.write_table(pa.table({"ts": pa.array(at, pa.timestamp("us", "UTC"))}), path)
        os.utime(path, (1_700_000_000 + number,) * 2)
    query = tmp_path / "minutes.sql"
    query.write_text("SELECT count(*) AS n FROM s [TUMBLING 1 minute WATTR ts]")
    common = ["run", str(query), "--input", f"s={batches}", "--lateness", "1 minute"]
    common += ["--engine", "spark"]
    kept = ["--output", str(tmp_path / "kept"), "--checkpoint", str(tmp_path / "state")]
    done = how(*common, "--output", "all.csv", "--late-output", "late.csv", folder=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    counts = [
        line.rsplit(",", 1)[1] for line in (tmp_path / "all.csv").read_text().splitlines()[1:]
    ]
    assert counts == ["1", "1", "1", "1"]
    assert "2 rows late" in done.stderr
    assert "all its windows are closed" in (tmp_path / "late.csv").read_text()
    done = how(*common, *kept, folder=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    answers = pads.dataset(tmp_path / "kept", partitioning="hive").to_table()
    assert sorted(answers["n"].to_pylist()) == [1, 1, 1, 1]
    query.write_text("SELECT count(*) AS n FROM s [TUMBLING 2 minutes WATTR ts]")
    refused = how(*common, *kept, folder=tmp_path)
    assert refused.returncode == 1
    assert "the window was tumbling, RANGE 1 minute" in refused.stderr


def test_python_runs_the_package_as_the_command(folder: Path) -> None:
    """`python -m panes`, where the folder of commands is not on the PATH."""
    words = [sys.executable, "-m", "panes", "--version"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, panes.__version__)
