"""`panes` as a user calls it, in a process of its own; and a query to call it with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PANES = [sys.executable, "-c", "from panes.cli.main import main; main()"]


QUERY = (
    "SELECT item, max(price) AS high, count(*) AS n\n"
    "FROM bids [RANGE 10 minutes SLIDE 1 minute WATTR ts]\n"
    "WHERE price > 20 GROUP BY item\n"
)


def run(*arguments: str, folder: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PANES, *arguments], cwd=folder, input=stdin, capture_output=True, text=True, check=False
    )
