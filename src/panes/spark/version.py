"""The oldest Spark that Panes is tested with. Nothing here imports Spark."""

from __future__ import annotations

import re

from panes.errors import PanesError

OLDEST = (4, 3)


def require_version(found: str) -> None:
    """Refuse a Spark that is too old, in one line instead of an import that fails.

    >>> require_version("4.3.0.dev1")
    >>> require_version("4.0.1")
    Traceback (most recent call last):
    panes.errors.PanesError: panes needs Spark 4.3 or newer, and pyspark 4.0.1 is installed
    """
    numbers = tuple(map(int, re.findall(r"\d+", found)[: len(OLDEST)]))
    if numbers < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise PanesError(f"panes needs Spark {oldest} or newer, and pyspark {found} is installed")
