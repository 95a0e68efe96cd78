"""`panes bench` and `panes papers`: the commands of the repository's `lab/`, which no wheel has.

They run as ``python -m lab`` in a process of their own, so that nothing here imports the lab.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import typer

from panes.errors import PanesError

FORWARDED = {"ignore_unknown_options": True, "allow_extra_args": True}
"""The settings with which every word of a command is passed on."""


def bench(context: typer.Context) -> None:
    """Measure Panes against other tools (in a checkout of the repository)."""
    _hand_over("bench", context.args)


def papers(context: typer.Context) -> None:
    """Run the experiments of the papers again (in a checkout of the repository)."""
    _hand_over("papers", context.args)


def _hand_over(command: str, words: list[str]) -> None:
    root = Path(__file__).parents[3]
    if not (root / "lab" / "__main__.py").is_file():
        raise PanesError(
            f"`panes {command}` runs what is in the folder lab/ of the repository, "
            "which an installed package does not have",
            hint=f"clone the repository, then: make setup && .venv/bin/panes {command}",
        )
    paths = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", "lab", command, *words],
        env=os.environ | {"PYTHONPATH": paths},
        check=False,
    )
    raise typer.Exit(done.returncode)
