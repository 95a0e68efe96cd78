"""A queue of panes as two stacks, so that a window slides in constant combines.

The classic two-stack queue, run over each group in turn: the front stack holds suffix results
of older panes, `back` one running result of newer ones. When the front runs out, the newer
panes are turned over into it.

Needs compiled lanes. At most three combines per answer, no subtraction, one pass over memory:
the fastest kernel for numbers whenever windows overlap.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from panes.algebra.lanes import fold
from panes.algebra.monoid import Columns, Lanes
from panes.windows.cover import Cover


def two_stacks(monoid: Lanes, panes: Columns, cover: Cover) -> Columns:
    """One partial per answer of `cover`."""
    answers = np.empty((len(panes), len(cover)), dtype=panes.dtype)
    _slide(
        int(monoid.op), monoid.empty(1), panes, cover.offsets, cover.first, cover.last, answers
    )
    return answers


@njit(cache=True, nogil=True)
def _slide(op, empty, panes, offsets, firsts, lasts, answers):  # type: ignore[no-untyped-def]
    lanes = panes.shape[0]
    front = np.empty_like(panes)
    back = np.empty((lanes, 1), dtype=panes.dtype)
    for g in range(offsets.shape[0] - 1):
        turned = np.int64(-1)  # panes before this are in the front stack
        reached = np.int64(-1)  # panes before this have been taken in
        for k in range(offsets[g], offsets[g + 1]):
            first, last = firsts[k], lasts[k]
            if first >= turned:
                for i in range(last - 1, first - 1, -1):
                    for lane in range(lanes):
                        front[lane, i] = panes[lane, i]
                    if i < last - 1:
                        fold(op, front, i, front, i + 1)
                turned = last
                for lane in range(lanes):
                    back[lane, 0] = empty[lane, 0]
            else:
                for i in range(reached, last):
                    fold(op, back, 0, panes, i)
            reached = last
            for lane in range(lanes):
                answers[lane, k] = front[lane, first]
            if last > turned:
                fold(op, answers, k, back, 0)
