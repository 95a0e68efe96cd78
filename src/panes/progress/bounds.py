"""How much disorder a source has, and therefore what each batch promises (thesis 8.1).

A bound looks at positions in the order they came and says what cannot come any more. It is asked
after every batch and answers with the low-watermark, which need not grow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Bound(Protocol):
    """What rows that have come say about those that have not."""

    @property
    def why(self) -> str:
        """The name of the bound, for answers that tell why their window closed."""
        ...

    def after(self, positions: NDArray[np.int64]) -> int | None:
        """No later row lies before this; None if nothing can be said yet."""
        ...


@dataclass(slots=True)
class Unbounded:
    """Rows say nothing: only punctuation does."""

    why: str = "nothing"

    def after(self, positions: NDArray[np.int64]) -> int | None:  # noqa: ARG002
        """Nothing."""
        return None


@dataclass(slots=True)
class WithinLateness:
    """No row lies more than `lateness` behind the greatest position before it.

    An ordered source has a lateness of zero.

    >>> WithinLateness(10).after(np.array([7, 25, 20]))
    15
    """

    lateness: int
    why: str = "lateness"

    def after(self, positions: NDArray[np.int64]) -> int | None:
        """The newest position, less the lateness."""
        return int(positions.max()) - self.lateness


@dataclass(slots=True)
class WithinRows:
    """No row comes more than `rows` rows later than it would in order.

    So everything before the greatest position of all rows but the last `rows` has come.

    >>> bound = WithinRows(2)
    >>> bound.after(np.array([5, 9]))
    >>> bound.after(np.array([7, 8]))
    9
    """

    rows: int
    why: str = "rows_late"
    _last: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _greatest: int | None = None

    def after(self, positions: NDArray[np.int64]) -> int | None:
        """The greatest position of all rows but the last."""
        known = np.concatenate([self._last, positions])
        settled = known[: max(len(known) - self.rows, 0)]
        self._last = known[len(settled) :]
        if len(settled):
            greatest = int(settled.max())
            self._greatest = greatest if self._greatest is None else max(greatest, self._greatest)
        return self._greatest
