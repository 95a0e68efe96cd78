"""What a source has promised of itself, and what several sources promise together.

A punctuation at `p` promises that no later row lies before `p`. It only ever grows. Promises move
between batches: a row is late only if it breaks one that was made before its batch came.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from panes.axis import BEGINNING
from panes.progress.bounds import Bound, Unbounded


@dataclass(slots=True)
class Promise:
    """The progress of one source, and what moved it last.

    With a `bound` on its disorder, every batch that comes is a promise too.

    >>> from panes.progress.bounds import WithinLateness
    >>> source = Promise(WithinLateness(10))
    >>> source.observe(np.array([25, 20]))
    >>> source.at, source.why
    (15, 'lateness')
    """

    bound: Bound = field(default_factory=Unbounded)
    at: int = BEGINNING
    why: str = "nothing"

    def observe(self, positions: NDArray[np.int64]) -> None:
        """A batch has come, with rows at these positions, in this order."""
        if len(positions):
            low = self.bound.after(positions)
            if low is not None:
                self.punctuate(low, self.bound.why)

    def punctuate(self, at: int, why: str = "punctuation") -> None:
        """The source promises that nothing before `at` will come."""
        if at > self.at:
            self.at, self.why = at, why


def meld(promises: Mapping[str, Promise]) -> tuple[int, str]:
    """What a union of sources promises, and why: the least of what each does (thesis 8.2).

    >>> meld({"a": Promise(at=5, why="lateness"), "b": Promise(at=3, why="punctuation")})
    (3, 'punctuation of b')
    """
    name, least = min(promises.items(), key=lambda item: item[1].at)
    return least.at, f"{least.why} of {name}"
