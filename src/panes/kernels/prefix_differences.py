"""Running totals, and the difference of two of them: any run of panes in one subtraction.

For exact integers only (`Op.ADD`): nothing is ever subtracted out of a float. Totals may wrap
around 64 bits; differences that fit do not. One addition per pane under any run, one subtraction
per answer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.algebra.lanes import Op
from panes.algebra.monoid import Columns, Lanes
from panes.compiled import compiled


def prefix_differences(
    monoid: Lanes,
    panes: Columns,
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    *,
    groups: int = 1,
) -> Columns:
    """One partial per run ``[first, last)`` and group, as `panes.kernels.disjoint_table` gives it.

    >>> count = Lanes(Op.ADD, ("n",), (0,))
    >>> panes = np.array([[1, 10, 2, 20, 3, 30]])
    >>> prefix_differences(count, panes, np.array([0, 1]), np.array([3, 2]), groups=2)
    array([[ 6, 60,  2, 20]])
    """
    if monoid.op is not Op.ADD:
        raise AssertionError(f"{monoid.op.name} cannot be subtracted exactly")
    answers = np.empty((len(panes), len(first) * groups), dtype=panes.dtype)
    if not len(first):
        return answers
    low = min(int(first.min()), int(last.min()))
    length = max(int(first.max()), int(last.max())) - low
    totals = np.empty((length + 1) * groups, dtype=panes.dtype)
    for lane, to in zip(panes, answers, strict=True):
        _totals(lane[low * groups : (low + length) * groups], groups, totals)
        _differences(totals, first, last, low, groups, to)
    return answers


@compiled
def _totals(lane, groups, totals):  # type: ignore[no-untyped-def]
    totals[:groups] = 0
    for i in range(lane.shape[0]):
        totals[i + groups] = totals[i] + lane[i]


@compiled
def _differences(totals, first, last, low, groups, answers):  # type: ignore[no-untyped-def]
    for w in range(first.shape[0]):
        a, b = (first[w] - low) * groups, (last[w] - low) * groups
        for g in range(groups):
            answers[w * groups + g] = totals[b + g] - totals[a + g]
