"""Very many mutated texts, counted: ``python -m tests.torture.texts --count 100000``.

Each text is made by a generator with a seed of its own, so that one that fails can be made again by
its number. Ends with 1 if anything but answers and errors of ours was seen, or took too long.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
import traceback
from collections import Counter

from tests.fuzz.corpus import corpus
from tests.fuzz.mutations import mutated
from tests.fuzz.outcomes import MOST_SECONDS, WAYS, outcome

_MOST_MEMORY = 12 << 30


def made(number: int) -> str:
    """The text of a number."""
    return mutated(corpus(), random.Random(number).randrange)


def main() -> int:
    """Try texts until the count or the time is used up, and say what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first text")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    begun = time.monotonic()
    kinds: Counter[str] = Counter()
    slowest, faults, tried = 0.0, 0, 0
    ways = list(WAYS)
    for number in range(asked.first, asked.first + asked.count):
        if time.monotonic() - begun > asked.seconds:
            break
        text = made(number)
        tried += 1
        if tried % 5_000 == 0:
            print(f"{tried:,} texts, {faults} faults", file=sys.stderr, flush=True)  # noqa: T201
        # Every text is asked of tables, and of one more way in turn.
        for way in ("table", ways[1 + number % (len(ways) - 1)]):
            found = outcome(way, text)
            kinds[f"{way}: {found.kind}"] += 1
            slowest = max(slowest, found.seconds)
            if found.is_fault:
                faults += 1
                _tell(number, found.way, text, found.seconds, found.error)
    print(f"{tried:,} texts, {faults} faults, slowest {slowest:.1f} s of {MOST_SECONDS:.0f} s")  # noqa: T201
    for kind, count in sorted(kinds.items()):
        print(f"  {kind}: {count:,}")  # noqa: T201
    return 1 if faults else 0


def _tell(number: int, way: str, text: str, seconds: float, error: BaseException | None) -> None:
    shown = ascii(text if len(text) < 2_000 else f"{text[:1_000]} ... {text[-1_000:]}")
    print(f"text {number}, {way}, {seconds:.1f} s: {shown}")  # noqa: T201
    if error is not None:
        print("".join(traceback.format_exception(error)[-3:]))  # noqa: T201
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
