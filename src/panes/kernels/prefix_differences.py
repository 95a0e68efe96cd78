"""Running totals, and the difference of two of them: any run of panes in one subtraction.

For exact integers only (`Op.ADD`): nothing is ever subtracted out of a float. Totals may wrap
around 64 bits; differences that fit do not. One addition per pane under any run, one subtraction
per answer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.aggregates.lanes import Op
from panes.aggregates.monoid import Columns, Lanes
from panes.arrays.compiled import compiled
from panes.kernels.tables import by_table


def prefix_differences(
    monoid: Lanes,
    tables: Columns,
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    *,
    of: NDArray[np.integer] | None = None,
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
    stack, order, which, begins = by_table(tables, of, len(first))
    answers = np.empty((stack.shape[0], len(first) * groups), dtype=stack.dtype)
    if not len(first):
        return answers
    low = min(int(first.min()), int(last.min()))
    length = max(int(first.max()), int(last.max())) - low
    totals = np.empty((length + 1) * groups, dtype=stack.dtype)
    _answer(stack, first, last, low, length, groups, order, which, begins, totals, answers)
    return answers


@compiled
def _answer(stack, first, last, low, length, groups, order, which, begins, totals, answers):  # type: ignore[no-untyped-def]
    for part in range(which.shape[0]):
        for lane in range(stack.shape[0]):
            panes = stack[lane, which[part]]
            to = answers[lane]
            totals[:groups] = 0
            for i in range(length * groups):
                totals[i + groups] = totals[i] + panes[low * groups + i]
            for k in range(begins[part], begins[part + 1]):
                w = order[k]
                a, b = (first[w] - low) * groups, (last[w] - low) * groups
                for g in range(groups):
                    to[w * groups + g] = totals[b + g] - totals[a + g]
