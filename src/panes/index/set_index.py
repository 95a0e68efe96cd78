"""Set-valued indexes: L-, T- and H-INDEX over basic windows of some form.

They hold values and counts (a domain), which the form of the basic windows keeps up to date. They
answer by themselves which values a window holds and how often. Rows have to be read through.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.arrays.slots import distinct
from panes.index.basic_windows import Summary
from panes.index.domain import Keys
from panes.index.index import DomainIndex, KeyedRows


class SetIndex(KeyedRows, DomainIndex):
    """A domain over basic windows that are values and their counts; rows carry their keys."""

    def _entered(self, keys: Keys, counts: NDArray[np.signedinteger], nulls: int) -> Summary:
        """Count values in the index: different ones, how often each, and how many NULLs."""
        entries = self.domain.enter(keys)
        if nulls:
            entries = np.append(entries, np.int32(0))
            counts = np.append(counts, nulls)
        summary = Summary(entries, counts.astype(np.int32))
        self.domain.add_counts(summary.entries, summary.counts)
        return summary

    def live_keys(self) -> Keys:
        return distinct(np.concatenate([KeyedRows.live_keys(self), DomainIndex.live_keys(self)]))

    def rekey(self, number_of: NDArray[np.int64]) -> None:
        DomainIndex.rekey(self, number_of)
        KeyedRows.rekey(self, number_of)
