"""Forms of basic windows for an index of values, and all that they have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from panes.index.basic_windows import BasicWindow, Summary
from panes.index.domain import Domain, Keys
from panes.index.index import Nulls
from panes.index.row_ring import RowRing


class Form(ABC):
    """The store of the newest basic window while it fills, until it is given to the index.

    `stores_entries` says whether rows carry entries (domain storage) or keys.
    """

    stores_entries: ClassVar[bool] = False

    def __init__(self, rows: RowRing, domain: Domain) -> None:
        self.rows, self.domain = rows, domain

    @abstractmethod
    def add(self, first: int, keys: Keys, is_null: Nulls) -> None:
        """Rows from number `first` on."""

    @abstractmethod
    def seal(self) -> Summary | None:
        """Count the hidden rows in the index; gives what takes them out again."""

    def evict(self, window: BasicWindow) -> None:
        """Take a basic window's rows out of the index."""
        if window.summary is not None:
            self.domain.add_counts(window.summary.entries, window.summary.counts, sign=-1)

    def _entered(self, keys: Keys, counts: NDArray[np.signedinteger], nulls: int) -> Summary:
        """Count values in the index: different ones, how often each, and how many NULLs."""
        entries = self.domain.enter(keys)
        if nulls:
            entries = np.append(entries, np.int32(0))
            counts = np.append(counts, nulls)
        summary = Summary(entries, counts.astype(np.int32))
        self.domain.add_counts(summary.entries, summary.counts)
        return summary
