"""The demo as a user runs it, and its live view from made-up progress reports."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

DEMO = [sys.executable, "-c", "from panes.cli.main import main; main()", "demo"]
NOON = 1_767_268_800_000_000  # 2026-01-01T12:00:00Z, in microseconds


def test_the_demo_checks_every_answer_and_races_sparks_window(tmp_path: Path) -> None:
    done = subprocess.run(
        [*DEMO, "--rows", "4000"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("checked: every answer is the oracle's") == 3
    assert "every answer was checked" in done.stdout
    late = re.findall(r"before the end; (\d+) late rows", done.stdout)
    assert len(late) == 3
    assert int(late[0]) > 0
    assert re.search(r"window\(\) took \d+\.\d times as long", done.stdout)
    assert re.search(r"packets per source.*: micro-batch \d+, 4,000 rows", done.stderr)
    assert "TransformWithState" not in done.stderr, "Spark's workers do not talk into the view"
    assert not list(tmp_path.iterdir())


def report(batch: int, **metrics: int) -> dict[str, Any]:
    """A progress report as Spark gives it, of a query named `q` that reads two streams."""
    sources = [
        {"description": "FileStreamSource[file:/tmp/main1]", "numInputRows": 1_500},
        {"description": "FileStreamSource[file:/tmp/main2]", "numInputRows": 500},
        {"description": "RatePerMicroBatchStream[...]", "numInputRows": 1},
    ]
    return {"batchId": batch, "sources": sources, "observedMetrics": {"q": metrics}}
