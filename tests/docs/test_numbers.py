"""The numbers on the README's first screen are those of the files beside them."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = " ".join((ROOT / "README.md").read_text().split())
RESULTS = ROOT / "benchmarks" / "results"


def bar(benchmark: str, says: str) -> str:
    """What a benchmark has measured against one of its bars."""
    bars = json.loads((RESULTS / f"{benchmark}.json").read_text())["bars"]
    [measured] = [found for name, found, _ in bars if says in name]
    return str(measured)


def times(benchmark: str, says: str) -> float:
    """How many times as much or as fast, as in ``8.5 x``."""
    return float(bar(benchmark, says).split()[0])


def state_bytes(contender: str) -> int:
    found = re.search(
        rf"{re.escape(contender)} ([\d,]+) bytes", bar("spark-stream", "state no larger")
    )
    assert found
    return int(found[1].replace(",", ""))


def seconds(benchmark: str, contender: str, point: str) -> float:
    timings = json.loads((RESULTS / f"{benchmark}.json").read_text())["timings"]
    [first, *_] = [
        t["seconds"] for t in timings if (t["contender"], t["point"]) == (contender, point)
    ]
    return statistics.median(first)


SAID = {
    "a fortieth of the time of `window()`": (40, times("spark-batch", "faster than window()")),
    "1.2 times that of tumbling windows": (1.2, times("spark-batch", "overlap 60: at most 1.5 x")),
    "an eighth of the time of `window()`": (8, times("spark-stream", "faster than window()")),
    "with a sixth of its state": (6, state_bytes("window()") / state_bytes("panes")),
    "take 3.1 times as long as one": (3.1, times("spark-many", "10,000 queries")),
    "11 times faster than Polars": (11, times("in-process", "Polars group_by_dynamic")),
    "take 0.24 seconds": (0.24, seconds("in-process", "panes", "3600/10")),
}


@pytest.mark.parametrize("words", SAID)
def test_what_the_readme_says_was_measured(words: str) -> None:
    number, measured = SAID[words]
    assert words in README
    assert measured == pytest.approx(number, rel=0.11)  # "a fortieth" is 1/44


def test_every_number_stands_beside_the_command_that_its_file_names() -> None:
    told = re.findall(r"`(panes bench [^`]+)`[^`]{0,9}\[numbers\]\(([^)]+)\)", README)
    assert len(told) == README.count("[numbers]") == 4
    for command, path in told:
        measured_by = json.loads((ROOT / path).read_text())["command"]
        words = command.split()
        assert measured_by.split()[:3] == words[:3]
        for option, value in zip(words[3::2], words[4::2], strict=True):
            assert f"{option} {value}" in measured_by
