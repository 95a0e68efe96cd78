"""A loop on disk is compiled anew if anything it was compiled from has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOOP = """
from panes.arrays.compiled import compiled
from elsewhere import STEP, TABLE, doubled, tripled

@compiled
def loop(n):
    total = 0
    for i in range(n):
        total += below(i) + STEP + TABLE[1]
    return total

@compiled
def below(i):
    return doubled(tripled(i))

print(loop(10), sum(loop.stats.cache_hits.values()))
"""
ELSEWHERE = """
import numpy as np
from numba.extending import register_jitable
from panes.arrays.compiled import compiled

STEP = 5
TABLE = np.array([1, 2])

@register_jitable
def doubled(i):
    return 2 * i

@compiled
def tripled(i):
    return 3 * i
"""
AT_FIRST = sum(6 * i + 5 + 2 for i in range(10))
CHANGES = {
    "a constant": ("STEP = 5", "STEP = 7", AT_FIRST + 20),
    "an array": ("[1, 2]", "[1, 3]", AT_FIRST + 10),
    "a function": ("2 * i", "i", sum(3 * i + 7 for i in range(10))),
    "a compiled function": ("3 * i", "5 * i", sum(10 * i + 7 for i in range(10))),
}


def run(folder: Path) -> list[int]:
    """What the loop gives, and whether it came from the cache."""
    place = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    place.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, str(folder / "loop.py")],
        env=place, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [int(word) for word in done.stdout.split()]


@pytest.mark.long
def test_a_change_in_another_file_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "loop.py").write_text(LOOP)
    for what, (before, after, given) in {"nothing": ("", "", AT_FIRST), **CHANGES}.items():
        (tmp_path / "elsewhere.py").write_text(ELSEWHERE.replace(before, after))
        assert run(tmp_path) == [given, 0], what
        assert run(tmp_path) == [given, 1], what


STAMPS = """
import importlib, pkgutil, sys
import panes
from panes.arrays.compiled import _StampedFile

for module in pkgutil.walk_packages(panes.__path__, "panes."):
    if not module.name.startswith(("panes.spark", "panes.cli")):
        importlib.import_module(module.name)
for name in sorted(n for n in sys.modules if n.startswith("panes.")):
    for loop in vars(sys.modules[name]).values():
        file = getattr(getattr(loop, "_cache", None), "_cache_file", None)
        if isinstance(file, _StampedFile):
            print(name, loop.py_func.__qualname__, *file._source_stamp)
"""


@pytest.mark.long
def test_the_stamp_of_a_loop_is_the_same_in_every_process() -> None:
    """Or it would be compiled in every process."""
    told = [
        subprocess.run(
            [sys.executable, "-c", STAMPS],
            env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
        ).stdout.splitlines()
        for seed in ("1", "2")
    ]  # fmt: skip
    assert told[0] == told[1]
    assert len(told[0]) > 50
