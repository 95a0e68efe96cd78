"""Promises about a stream: from its source, or from how late its rows may be.

A promise `p` says that no later row lies before `p`. It only ever grows. Promises move between
batches: a row is late only if it breaks one that was made before its batch came.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NOTHING = -(1 << 62)
"""The promise before anything is promised."""
EVERYTHING = 1 << 62
"""The promise at the end of a stream."""


@dataclass(slots=True)
class Promise:
    """The progress of one source.

    With a `lateness`, every batch promises that nothing comes more than that behind its greatest
    position.

    >>> source = Promise(lateness=10)
    >>> source.observe(25)
    >>> source.at
    15
    """

    lateness: int | None = None
    at: int = NOTHING

    def observe(self, newest: int) -> None:
        """A batch has come whose greatest position is `newest`."""
        if self.lateness is not None:
            self.punctuate(newest - self.lateness)

    def punctuate(self, at: int) -> None:
        """The source promises that nothing before `at` will come."""
        self.at = max(self.at, at)


def meld(promises: Iterable[Promise]) -> int:
    """What a union of sources promises: the least of what each does (thesis 8.2)."""
    return min(promise.at for promise in promises)
