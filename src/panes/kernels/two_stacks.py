"""A queue of panes as two stacks, so that a window slides in constant combines.

The classic two-stack queue, run over each group in turn: the front stack holds suffix results
of older panes, `back` one running result of newer ones. When the front runs out, the newer
panes are turned over into it.

Needs compiled lanes. At most three combines per answer, no subtraction, one pass over memory:
the fastest kernel for numbers whenever windows overlap.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from panes.aggregates.lanes import Scalar, combine, load, store
from panes.aggregates.monoid import Columns, Lanes
from panes.arrays.compiled import compiled
from panes.windows.cover import Cover


def two_stacks(monoid: Lanes, panes: Columns, cover: Cover) -> Columns:
    """One partial per answer of `cover`."""
    answers = np.empty((len(panes), len(cover)), dtype=panes.dtype)
    longest = int((cover.last - cover.first).max(initial=0))
    front = np.empty((len(panes), longest), dtype=panes.dtype)
    slide = _slide(int(monoid.op), len(panes))
    slide(monoid.empty(1), panes, cover.offsets, cover.first, cover.last, front, answers)
    return answers


@cache
def _slide(op: int, lanes: int) -> Scalar:
    @compiled
    def slide(empty, panes, offsets, firsts, lasts, front, answers):  # type: ignore[no-untyped-def]
        neutral = load(empty, 0, lanes)
        for g in range(offsets.shape[0] - 1):
            bottom = np.int64(0)  # the pane that the front stack's first place stands for
            turned = np.int64(-1)  # panes before this are in the front stack
            reached = np.int64(-1)  # panes before this have been taken in
            back = neutral
            for k in range(offsets[g], offsets[g + 1]):
                first, last = firsts[k], lasts[k]
                if first >= turned:
                    suffix = neutral
                    for i in range(last - 1, first - 1, -1):
                        suffix = combine(op, load(panes, i, lanes), suffix)
                        store(front, i - first, suffix)
                    bottom, turned = first, last
                    back = neutral
                else:
                    for i in range(reached, last):
                        back = combine(op, back, load(panes, i, lanes))
                reached = last
                store(answers, k, combine(op, load(front, first - bottom, lanes), back))

    return slide
