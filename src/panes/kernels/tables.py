"""Runs over several tables of panes: which of them read which.

The tables have the same panes, and say something else of them: a piece under several filters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.aggregates.monoid import Columns

_NARROW = 1 << 16


def by_table(
    tables: Columns, of: NDArray[np.integer] | None, runs: int
) -> tuple[Columns, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """All tables as one array; runs in the order of theirs, the tables, and where each begins.

    `tables` are one table, lanes by panes, or several, lanes by tables by panes; `of` names the
    table of each run.

    >>> by_table(np.zeros((1, 3, 8)), np.array([2, 0, 2]), 3)[1:]
    (array([1, 0, 2]), array([0, 2]), array([0, 1, 3]))
    """
    stack = tables[:, None] if tables.ndim == 2 else tables
    if of is None:
        return stack, np.arange(runs), np.zeros(1, dtype=np.int64), np.array([0, runs])
    counts = np.bincount(of, minlength=1)
    which = np.flatnonzero(counts)
    begins = np.concatenate([[0], np.cumsum(counts[which])])
    keys = of.astype(np.uint16) if len(counts) <= _NARROW else of  # narrow ones sort by digits
    return stack, np.argsort(keys, kind="stable"), which, begins
