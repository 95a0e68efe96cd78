"""Texts that atheris chooses by what they reach: ``python -m tests.torture.guided -runs=1000``.

Bytes that atheris makes decide the mutations of `tests.fuzz.mutations`, so most of its texts are
nearly queries. Stops at the first fault, with the text, and leaves a file that repeats it. Takes
the options of libFuzzer: ``-runs``, ``-max_total_time``, or such a file. Only ``make torture`` has
atheris, so nothing imports it before `main`.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Callable
from typing import Any


class FaultError(Exception):
    """A text that ended in something else than an answer or an error of ours."""


def trier(atheris: Any) -> Callable[[bytes], None]:
    """What tries one text, in one of the ways in; the code that reads texts is watched."""
    with atheris.instrument_imports(include=["panes.language", "panes.planning"]):
        corpus = importlib.import_module("tests.fuzz.corpus").corpus
        mutated = importlib.import_module("tests.fuzz.mutations").mutated
        outcomes = importlib.import_module("tests.fuzz.outcomes")
    ways = sorted(outcomes.WAYS)

    def try_one(data: bytes) -> None:
        given: Any = atheris.FuzzedDataProvider(data)

        def choose(count: int) -> int:
            number: int = given.ConsumeIntInRange(0, count - 1)
            return number

        way, text = ways[choose(len(ways))], mutated(corpus(), choose)
        found = outcomes.outcome(way, text)
        if found.is_fault:
            raise FaultError(f"{way}, {found.seconds:.1f} s: {text!r}") from found.error

    return try_one


def main() -> None:
    """Hand over to libFuzzer."""
    atheris: Any = importlib.import_module("atheris")
    quiet = ["-verbosity=0", "-print_final_stats=1", "-timeout=60", "-rss_limit_mb=8192"]
    quiet.append(f"-artifact_prefix={tempfile.gettempdir()}/panes-")
    atheris.Setup([sys.argv[0], *quiet, *sys.argv[1:]], trier(atheris))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
