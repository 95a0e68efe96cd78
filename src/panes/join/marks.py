"""What rows have been joined with so far, as far as outer, semi and anti joins must know it.

A row of a band is joined or it is not. A row of common windows is joined in some of its windows: it
has a bit for each of them, from its oldest on. A landmark window that once holds both rows of a
pair does so for ever, so there it is enough to know the first window in which a row is joined.
Marks are columns of 64-bit numbers, one row of numbers for each row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.axis import FOREVER
from panes.windows.extent import first_wid, last_wid, ruler
from panes.windows.limit import require_room
from panes.windows.partners import Band, Partners
from panes.windows.spec import Landmark

Numbers = NDArray[np.int64]
_BITS = 64


def no_marks(partners: Partners, rows: int) -> Numbers:
    """The marks of rows that have been joined with nothing."""
    if isinstance(partners, Band):
        return np.zeros((rows, 1), dtype=np.int64)
    if isinstance(partners.spec, Landmark):
        return np.full((rows, 1), FOREVER)
    words = -(-partners.spec.overlap // _BITS)
    require_room(float(rows) * words)
    return np.zeros((rows, words), dtype=np.int64)


def mark_all(partners: Partners, marks: Numbers, at: Numbers, before: int) -> None:
    """Take rows for joined, in their windows before `before`; a row of a band has just one."""
    if isinstance(partners, Band):
        marks[:] = 1
    elif isinstance(partners.spec, Landmark):
        marks[:] = np.minimum(marks, before)
    else:
        size, slide, origin = ruler(partners.spec)
        oldest = first_wid(at, slide, origin)
        upto = np.minimum(last_wid(at, size, slide, origin), before - 1)
        _set_bits(marks, np.arange(len(at)), oldest, oldest, upto)


def mark(
    partners: Partners,
    marks: Numbers,
    at: Numbers,
    rows: Numbers,
    windows: tuple[Numbers, Numbers] | None,
) -> None:
    """Note that rows, by their places, have been joined, in windows from a first to a last one."""
    if isinstance(partners, Band):
        marks[rows] = 1
        return
    assert windows is not None
    first, last = windows
    if isinstance(partners.spec, Landmark):
        np.minimum.at(marks[:, 0], rows, first)
        return
    _, slide, origin = ruler(partners.spec)
    require_room(float((last - first + 1).sum(dtype=np.float64)))
    _set_bits(marks, rows, first_wid(at[rows], slide, origin), first, last)


def not_joined(
    partners: Partners, marks: Numbers, at: Numbers, begin: int, end: int
) -> tuple[Numbers, Numbers | None]:
    """Rows that are not joined, by their places: once in a band, else for each window of theirs.

    Of the windows, those from `begin` on and before `end`.
    """
    if isinstance(partners, Band):
        return np.flatnonzero(marks[:, 0] == 0), None
    size, slide, origin = ruler(partners.spec)
    oldest = first_wid(at, slide, origin)
    low = np.maximum(oldest, begin)
    if isinstance(partners.spec, Landmark):
        return _spans(low, np.minimum(marks[:, 0], end))
    high = np.minimum(last_wid(at, size, slide, origin) + 1, end)
    return _listed(marks, oldest, low, high)


def newly_joined(
    partners: Partners, before: Numbers, after: Numbers, at: Numbers, end: int
) -> tuple[Numbers, Numbers | None]:
    """Rows that were joined between two states of marks: once in a band, else for each window."""
    if isinstance(partners, Band):
        return np.flatnonzero(after[:, 0] & ~before[:, 0]), None
    size, slide, origin = ruler(partners.spec)
    oldest = first_wid(at, slide, origin)
    if isinstance(partners.spec, Landmark):
        return _spans(after[:, 0], np.minimum(before[:, 0], end))
    high = np.minimum(last_wid(at, size, slide, origin) + 1, end)
    return _listed(~(after & ~before), oldest, oldest, high)


def all_windows(
    partners: Partners, at: Numbers, begin: int, end: int
) -> tuple[Numbers, Numbers | None]:
    """Rows that can never be joined, for each window of theirs from `begin` on and before `end`."""
    return not_joined(partners, no_marks(partners, len(at)), at, begin, end)


def _spans(low: Numbers, high: Numbers) -> tuple[Numbers, Numbers]:
    """Every window of ``[low, high)``, of each row."""
    count = np.maximum(high - low, 0)
    require_room(float(count.sum(dtype=np.float64)))
    rows = np.repeat(np.arange(len(low)), count)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    return rows, low[rows] + within


def _listed(
    marks: Numbers, oldest: Numbers, low: Numbers, high: Numbers
) -> tuple[Numbers, Numbers]:
    require_room(float(np.maximum(high - low, 0).sum(dtype=np.float64)))
    total = _count_clear(marks, oldest, low, high)
    rows, wids = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    _list_clear(marks, oldest, low, high, rows, wids)
    return rows, wids


@compiled
def _set_bits(marks, rows, oldest, first, last):  # type: ignore[no-untyped-def]
    for k in range(rows.shape[0]):
        for w in range(first[k], last[k] + 1):
            bit = w - oldest[k]
            if bit >= 0:
                marks[rows[k], bit >> 6] |= np.int64(1) << np.int64(bit & 63)


@compiled
def _count_clear(marks, oldest, low, high):  # type: ignore[no-untyped-def]
    total = 0
    for i in range(low.shape[0]):
        for w in range(low[i], high[i]):
            bit = w - oldest[i]
            total += (marks[i, bit >> 6] >> np.int64(bit & 63)) & 1 == 0
    return total


@compiled
def _list_clear(marks, oldest, low, high, rows, wids):  # type: ignore[no-untyped-def]
    k = 0
    for i in range(low.shape[0]):
        for w in range(low[i], high[i]):
            bit = w - oldest[i]
            if (marks[i, bit >> 6] >> np.int64(bit & 63)) & 1 == 0:
                rows[k], wids[k] = i, w
                k += 1
