"""Far more answers than memory holds: a million keys, windows of an hour every minute.

Each contender runs in a process of its own, whose greatest resident memory is measured. A reader is
read to its end and what it gives is added up; the command writes a Parquet file. Before that, fewer
rows give the same answers in batches and in one table.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import panes
from lab.bench.measure import Report, Timing

TEXT = (
    "SELECT item, max(price) AS high, count(*) AS n "
    "FROM bids [RANGE 1 hour SLIDE 1 minute WATTR ts] GROUP BY item"
)
FEWER = 50_000
MOST_BYTES = 2 << 30
_MINUTES = 180
_PANES = "from panes.cli.main import main; main()"
_BEGIN = 1_767_225_600_000_000


def bids(rows: int) -> pa.Table:
    """Bids over three hours, five for each item, in the order of time."""
    rng = np.random.default_rng(11)
    at = np.sort(rng.integers(0, _MINUTES * 60_000_000, rows))
    return pa.table(
        {
            "ts": pa.array(_BEGIN + at).view(pa.timestamp("us", "UTC")),
            "item": rng.permutation(rows) % max(rows // 5, 1),
            "price": rng.random(rows),
        }
    )


STEPS = 3
"""How often `run` says what it does."""


def run(rows: int, repeat: int, say: Callable[[str], None]) -> Report:
    """Check on few rows, then run each contender once in a process of its own."""
    del repeat  # memory is the same every time, and a run takes a minute
    report = Report("batches", f"panes bench batches --rows {rows}")
    say("checking that batches are the answers of one table")
    few = bids(min(rows, FEWER))
    want, got = panes.sql(TEXT, bids=few), panes.sql(TEXT, bids=few, batches=True).read_all()
    if not got.equals(want):
        raise AssertionError("answers in batches differ from those in one table")
    counted = []
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(bids(rows), Path(folder) / "bids.parquet")
        for contender in ("reader", "command"):
            say(f"running the {contender}")
            found = _in_its_own_process(contender, rows, folder)
            counted.append((found["answers"], found["rows_in_answers"]))
            point = f"{found['answers']:,} answers"
            report.timings.append(Timing(contender, point, (found["seconds"],), f"{rows} rows"))
            peak = found["peak_bytes"]
            what = f"{contender}: {point} in at most 2 GiB of memory"
            report.bar(what, f"{peak / (1 << 30):.2f} GiB", met=peak <= MOST_BYTES)
    if len(set(counted)) > 1:
        raise AssertionError(f"reader and command differ: {counted}")
    return report


def _in_its_own_process(contender: str, rows: int, folder: str) -> dict[str, float]:
    command = [sys.executable, "-m", "lab.bench.batches", contender, str(rows), folder]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def _read(rows: int, folder: str) -> tuple[int, int]:  # noqa: ARG001
    """How many answers a reader gives, and how many rows they count."""
    answers = counted = 0
    for batch in panes.sql(TEXT, bids=bids(rows), batches=True):
        answers += len(batch)
        counted += pc.sum(batch.column("n")).as_py() or 0
    return answers, counted


def _write(rows: int, folder: str) -> tuple[int, int]:  # noqa: ARG001
    """The same of a file that the command has written."""
    query, given, output = (Path(folder) / n for n in ("q.sql", "bids.parquet", "answers.parquet"))
    query.write_text(TEXT)
    asked = ["run", str(query), "-i", f"bids={given}", "-o", str(output)]
    subprocess.run([sys.executable, "-c", _PANES, *asked], check=True)
    answers = counted = 0
    for batch in pq.ParquetFile(output).iter_batches(columns=["n"]):
        answers += len(batch)
        counted += pc.sum(batch.column("n")).as_py() or 0
    return answers, counted


def main() -> None:
    """One contender, in this process; what was measured is printed as JSON."""
    contender, rows, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    begun = time.perf_counter()
    answers, counted = {"reader": _read, "command": _write}[contender](rows, folder)
    who = resource.RUSAGE_CHILDREN if contender == "command" else resource.RUSAGE_SELF
    peak = resource.getrusage(who).ru_maxrss * 1_024
    measured = {
        "answers": answers,
        "rows_in_answers": counted,
        "seconds": time.perf_counter() - begun,
        "peak_bytes": peak,
    }
    sys.stdout.write(json.dumps(measured) + "\n")


if __name__ == "__main__":
    main()
