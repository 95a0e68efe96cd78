"""Texts that atheris chooses by what they reach: ``python -m tests.torture.guided -runs=1000``.

Bytes that atheris makes decide the mutations of `tests.fuzz.mutations`, so most of its texts are
nearly queries. Stops at the first fault, with the text, and leaves a file that repeats it. Takes
the options of libFuzzer: ``-runs``, ``-max_total_time``, or such a file.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import atheris

with atheris.instrument_imports(include=["panes.language", "panes.planning"]):
    from tests.fuzz.corpus import corpus
    from tests.fuzz.mutations import mutated
    from tests.fuzz.outcomes import WAYS, outcome

_WAYS = sorted(WAYS)


class FaultError(Exception):
    """A text that ended in something else than an answer or an error of ours."""


def try_one(data: bytes) -> None:
    """One text, in one of the ways in."""
    given: Any = atheris.FuzzedDataProvider(data)

    def choose(count: int) -> int:
        number: int = given.ConsumeIntInRange(0, count - 1)
        return number

    way, text = _WAYS[choose(len(_WAYS))], mutated(corpus(), choose)
    found = outcome(way, text)
    if found.is_fault:
        raise FaultError(f"{way}, {found.seconds:.1f} s: {text!r}") from found.error


def main() -> None:
    """Hand over to libFuzzer."""
    quiet = ["-verbosity=0", "-print_final_stats=1", "-timeout=60", "-rss_limit_mb=8192"]
    quiet.append(f"-artifact_prefix={tempfile.gettempdir()}/panes-")
    atheris.Setup([sys.argv[0], *quiet, *sys.argv[1:]], try_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
