"""Dense numbers for sparse codes.

Codes (a pane and a group packed into one integer) become consecutive slots in the order of the
codes. A table is used where the codes are dense enough to afford one, sorting otherwise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_AFFORDABLE = 8
_MOST = (1 << 31) - 1


def is_dense(rows: int, domain: int) -> bool:
    """Whether a table over the whole domain costs little more than the rows themselves."""
    return domain <= min(_AFFORDABLE * rows + 65_536, _MOST)


def compact_slots(
    codes: NDArray[np.int64], domain: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The slot of each code, and the code of each slot, ascending.

    >>> compact_slots(np.array([7, 3, 7]), 10)
    (array([1, 0, 1]), array([3, 7]))
    """
    if not is_dense(len(codes), domain):
        distinct, slots = np.unique(codes, return_inverse=True)
        return slots, distinct
    present = np.zeros(domain, dtype=np.bool_)
    present[codes] = True
    distinct = np.flatnonzero(present)
    slot_of = np.cumsum(present, dtype=np.int64) - 1
    return slot_of[codes], distinct
