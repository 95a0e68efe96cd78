"""Prefix and suffix scans over blocks as long as a window.

van Herk 1992, Gil and Werman 1993: cut the axis into blocks of the window's size; a window
crosses at most one block boundary, so it is the suffix of one block and the prefix of the next::

    blocks   |. . . a b c|d e . . . .|        window = suffix(a) combined with prefix(e)

Any monoid, three combines per answer whatever the overlap, no subtraction. Blocks are cut by
position and not by count, so panes may be missing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.aggregates.monoid import Columns, Monoid
from panes.windows.cover import Cover


def block_scan(
    monoid: Monoid,
    panes: Columns,
    cover: Cover,
    *,
    starts: NDArray[np.int64],
    groups: NDArray[np.int64],
    size: int,
) -> Columns:
    """One partial per answer of `cover`, whose windows are `size` long."""
    begin = _block_begins(starts // size, groups)
    length = np.diff(np.r_[begin, len(starts)])
    block = np.repeat(np.arange(len(begin)), length)
    left, right = cover.first, cover.last - 1
    is_prefix = (block[left] == block[right]) & (left == begin[block[left]])
    is_suffix = (block[left] == block[right]) & ~is_prefix

    prefix = _scan(monoid, panes, begin, length, step=1)
    suffix = _scan(monoid, panes, begin + length - 1, length, step=-1)
    answers = suffix[:, left]
    answers[:, is_prefix] = prefix[:, right[is_prefix]]
    both = np.flatnonzero(~is_prefix & ~is_suffix)
    answers[:, both] = monoid.combine(suffix[:, left[both]], prefix[:, right[both]])
    return answers


def _block_begins(blocks: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first pane of every block of every group."""
    changes = np.ones(len(blocks), dtype=np.bool_)
    changes[1:] = blocks[1:] != blocks[:-1]
    changes[groups[:-1][np.diff(groups) > 0]] = True
    return np.flatnonzero(changes)


def _scan(
    monoid: Monoid,
    panes: Columns,
    origin: NDArray[np.int64],
    length: NDArray[np.int64],
    *,
    step: int,
) -> Columns:
    """Running combine inside every block at once, from `origin` in direction `step`."""
    scanned = panes.copy()
    for distance in range(1, int(length.max(initial=0))):
        here = (origin + step * distance)[length > distance]
        before, own = scanned[:, here - step], panes[:, here]
        scanned[:, here] = monoid.combine(before, own) if step > 0 else monoid.combine(own, before)
    return scanned
