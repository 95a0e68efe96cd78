"""What a join promises of the rows that it gives (thesis 7.1 and 7.2).

A joined row has two positions. Every joined row to come has at least one row that is yet to come,
so two promises of the input bound it::

    a new row on the left     left >= b0,  and its partner  right >= right_from(b0)
    a new row on the right    right >= b1, and its partner  left >= left_from(b1)

*Individual* punctuation says this of one position alone: a slab. *Joint* punctuation says that no
joined row will come with ``left < b0`` and ``right < b1`` both: a box, which does not wait for the
width of the band, and is complete earlier than any slab that covers it (Fig. 7-5).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from panes.join.rule import How, Progress
from panes.windows.partners import Partners

Of: TypeAlias = Literal["left", "right", "max", "min"]


def individual(
    partners: Partners, promised: Progress, of: Of, *, how: How = "inner", as_of: bool = False
) -> int:
    """No joined row to come has a position before this: of one side, or the later or earlier one.

    Rows that are given without a partner wait for the other side, and count here with the only
    position they have. So do all rows of an as-of join, which may find a partner that came long
    before.

    >>> from panes.windows.partners import Band
    >>> individual(Band(-2, 2), Progress(10, 7), "left")
    5
    >>> individual(Band(-2, 2), Progress(10, 7), "max")
    7
    >>> individual(Band(-2, 2), Progress(10, 7), "max", how="left")
    5
    """
    left, right = promised
    if as_of:
        passed = min(left, partners.left_from(right))
        return passed if of in ("left", "max") else partners.right_from(passed)
    partner_of_left, partner_of_right = partners.right_from(left), partners.left_from(right)
    of_left, of_right = min(left, partner_of_right), min(right, partner_of_left)
    if of == "left":
        return of_left
    if of == "right":
        return of_right
    if of == "min":
        return min(of_left, of_right)
    bounds = [max(left, partner_of_left), max(right, partner_of_right)]
    bounds += [of_left] * (how in ("left", "full")) + [of_right] * (how in ("right", "full"))
    return min(bounds)


def joint(
    promised: Progress, left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which pairs of positions are complete: neither of their rows can come any more.

    >>> joint(Progress(2, 1), np.array([0, 0, 2]), np.array([0, 1, 0])).tolist()
    [True, False, False]
    """
    complete: NDArray[np.bool_] = (left < promised.left) & (right < promised.right)
    return complete
