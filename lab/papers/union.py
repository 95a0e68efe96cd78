"""Union, twice: `Meld`, which lets rows pass, and `Merge`, which keeps them in order.

Meld (thesis 8.2, Fig. 8-2) passes rows on at once and holds nothing but a promise per input; what
comes out promises the least of what its inputs do, and never the same twice. Merge is the
order-preserving union of in-order systems: a row waits until no input can send an older one. It
is here for comparison.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.ordering import stable_order
from panes.axis import BEGINNING
from panes.progress.promise import Promise, meld


class Meld:
    """The order-insensitive union.

    >>> union = Meld(["r", "s"])
    >>> union.punctuate("r", 20), union.punctuate("s", 19)
    (None, 19)
    >>> [union.punctuate("s", at) for at in (20, 21, 22)]
    [20, None, None]
    """

    def __init__(self, inputs: Iterable[str]) -> None:
        self._promised = {name: Promise() for name in inputs}
        self._last = BEGINNING

    def push(self, source: str, rows: pa.Table) -> pa.Table:  # noqa: ARG002
        """The rows, whatever the other inputs do."""
        return rows

    def punctuate(self, source: str, at: int) -> int | None:
        """What the output promises from now on; None if it did already."""
        self._promised[source].punctuate(at)
        least, _ = meld(self._promised)
        if least <= self._last:
            return None
        self._last = least
        return least

    @property
    def waiting(self) -> int:
        """How many rows wait: none, ever."""
        return 0

    @property
    def nbytes(self) -> int:
        """Bytes of what is held: a number per input, and one for the output."""
        return 8 * (len(self._promised) + 1)


class Merge:
    """The order-preserving union of inputs that are each in order.

    >>> union = Merge(["r", "s"])
    >>> ticks = lambda *at: (pa.table({"t": at}), np.array(at))
    >>> len(union.push("r", *ticks(1, 5)))
    0
    >>> union.push("s", *ticks(3))["t"].to_pylist()
    [1, 3]
    """

    def __init__(self, inputs: Iterable[str]) -> None:
        self._reached = dict.fromkeys(inputs, BEGINNING)
        self._rows: list[pa.Table] = []
        self._at: list[NDArray[np.int64]] = []

    def push(self, source: str, rows: pa.Table, at: NDArray[np.int64]) -> pa.Table:
        """Take in rows of an ordered input; gives those that are next in the order of all."""
        if len(at):
            self._rows.append(rows)
            self._at.append(at)
            self._reached[source] = max(self._reached[source], int(at.max()))
        return self._released(rows)

    def punctuate(self, source: str, at: int) -> pa.Table:
        """An input promises that it sends nothing older; gives the rows that frees."""
        self._reached[source] = max(self._reached[source], at)
        return self._released(None)

    @property
    def progress(self) -> int:
        """Every row before this has come out."""
        return min(self._reached.values())

    @property
    def waiting(self) -> int:
        """How many rows wait."""
        return sum(map(len, self._at))

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that wait."""
        return sum(t.nbytes for t in self._rows) + sum(at.nbytes for at in self._at)

    def _released(self, like: pa.Table | None) -> pa.Table:
        if not self._rows:
            return pa.table({}) if like is None else like.slice(0, 0)
        rows, at = pa.concat_tables(self._rows), np.concatenate(self._at)
        order = stable_order(at)
        due = int(np.searchsorted(at[order], self.progress, side="right"))
        rest = pa.array(order[due:])
        self._rows, self._at = [rows.take(rest)], [at[order[due:]]]
        return rows.take(pa.array(order[:due]))
