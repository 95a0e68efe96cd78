"""What is not needed is not loaded: every Python worker of Spark imports Panes anew.

Catches a module that loads pandas, which takes as long as all of Panes, before there is a row.
PyArrow loads it, too, for every array that is made of Python values.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pandas", "polars", "ssl", "pyarrow.dataset", "matplotlib", "rich")


@pytest.mark.parametrize("room", ["panes", "panes.spark.register.stream"])
def test_importing_loads_nothing_heavy(room: str) -> None:
    script = f"import sys, {room}; print(*(m for m in {HEAVY} if m in sys.modules))"
    python = [sys.executable, "-c", script]
    said = subprocess.run(python, capture_output=True, text=True, check=True)
    assert said.stdout.split() == []


def test_panes_leads_to_its_spark_half_when_that_is_asked_for() -> None:
    script = (
        "import sys, panes; before = 'pyspark' in sys.modules; panes.spark.session; print(before)"
    )
    python = [sys.executable, "-c", script]
    said = subprocess.run(python, capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False"]
