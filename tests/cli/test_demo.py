"""The demo as a user runs it, and its live view from made-up progress reports."""

from __future__ import annotations

import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from panes.axis import BEGINNING
from panes.cli.live_view import LiveReading, LiveView, read_panes

DEMO = [sys.executable, "-c", "from panes.cli.main import main; main()", "demo"]
NOON = 1_767_268_800_000_000  # 2026-01-01T12:00:00Z, in microseconds


def assert_shown(done: subprocess.CompletedProcess[str], rows: str) -> None:
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("checked: every answer is the oracle's") == 2
    assert "every answer was checked" in done.stdout
    late = re.findall(r"before the end; (\d+) late rows", done.stdout)
    assert len(late) == 2
    assert int(late[0]) > 0
    assert_raced(done.stdout)
    assert re.search(r"live page.*\n  http://127\.0\.0\.1:\d+/\?token=", done.stdout)
    assert re.search(rf"packets per source.*: micro-batch \d+, {rows} rows", done.stderr)


def assert_raced(told: str) -> None:
    """It opens with the race: both times, then how often the one fits into the other."""
    ours, theirs = (
        float(re.search(rf"^  {re.escape(t)} +([\d.]+) s  #+$", told, re.M)[1])  # type: ignore[index]
        for t in ("panes", "window()")
    )
    said = re.search(
        r"(\d[\d,]*) answers each, the same row for row\. window\(\) took ([\d.]+)", told
    )
    assert said
    assert int(said[1].replace(",", "")) > 0
    assert float(said[2]) == pytest.approx(theirs / ours, rel=0.2, abs=0.2)
    assert told.index("window() took") < told.index("three links")


@pytest.mark.slow
def test_the_demo_checks_every_answer_and_races_sparks_window(tmp_path: Path) -> None:
    short = ("--bids", "100000", "--rows", "4000")
    done = subprocess.run(
        [*DEMO, *short], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert_shown(done, "4,000")
    assert "TransformWithState" not in done.stderr, "Spark's workers do not talk into the view"
    assert "leaked" not in done.stderr, "nor do libraries at the end"
    assert not list(tmp_path.iterdir())


def report(batch: int, **metrics: int) -> dict[str, Any]:
    """A progress report as Spark gives it, of a query named `q` that reads two streams."""
    sources = [
        {"description": "FileStreamSource[file:/links/main1]", "numInputRows": 1_500},
        {"description": "FileStreamSource[file:/links/main2]", "numInputRows": 500},
        {"description": "RatePerMicroBatchStream[...]", "numInputRows": 1},
    ]
    return {"batchId": batch, "sources": sources, "observedMetrics": {"q": metrics}}


def test_a_reading_sums_batches_and_takes_the_state_of_the_last_one() -> None:
    first = report(0, answers=3, late=1, partials=40, bytes=2_048, progress=BEGINNING)
    second = report(1, answers=4, late=0, partials=30, bytes=1_024, progress=NOON)
    reading = read_panes([first, second], "q")
    assert reading.cells() == ("2", "4,000", "30", "1.0 KiB", "12:00:00", "7", "1")
    assert read_panes([first], "another") == LiveReading()
    assert read_panes([first], "q").cells()[4] == "-", "nothing is promised yet"


def test_where_nothing_can_be_redrawn_only_what_changed_is_said() -> None:
    said = StringIO()
    with LiveView(2, Console(file=said, width=200)) as view:
        for _ in range(2):
            view.show({"q": LiveReading(batches=1, rows=2_000), "r": LiveReading()})
    assert said.getvalue().splitlines() == [
        "q: micro-batch 1, 2,000 rows, 0 stored in 0.0 KiB, at -, 0 answers, 0 late"
    ]


def test_on_a_terminal_it_is_a_table() -> None:
    said = StringIO()
    with LiveView(9, Console(file=said, width=160, force_terminal=True)) as view:
        view.show({"packets per source": LiveReading(batches=3, rows=2_000, answers=7)})
    assert "packets per source" in said.getvalue()
    assert "3 of 9" in said.getvalue()
