"""Keys as 64-bit codes: equal keys have equal codes, in every process.

Rows are sorted by code, and rows of one code stand together whatever the type of the key. The code
of a single number, time or boolean is the value itself, so that equal codes are equal keys. Other
keys, and keys of several columns, are hashed; their pairs are compared once more
(`panes.join.oa_join`). NULL equals nothing: a row with a NULL in its key has no code.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.arrays import order_keys
from panes.arrays.key_hashes import key_hashes


def are_exact(types: Sequence[pa.DataType]) -> bool:
    """Whether equal codes of such keys mean equal keys."""
    return not types or (len(types) == 1 and order_keys.has_key(types[0]))


def key_codes(
    keys: Sequence[pa.Array], rows: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """The code of each row's key, and which rows have one; None: all of them.

    >>> key_codes([pa.array([7, None, 7])], 3)
    (array([7, 0, 7]), array([ True, False,  True]))
    """
    if not keys:
        return np.zeros(rows, dtype=np.int64), None
    valid: NDArray[np.bool_] | None = None
    for column in keys:
        if column.null_count:
            here = pc.is_valid(column).to_numpy(zero_copy_only=False)
            valid = here if valid is None else valid & here
    if are_exact([column.type for column in keys]):
        return order_keys.encode(keys[0]), valid
    return key_hashes(keys).view(np.int64), valid


def equal_keys(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> NDArray[np.bool_]:
    """Which pairs of keys without NULLs are equal, as SQL says: NaN is NaN, -0.0 is 0.0."""
    same: NDArray[np.bool_] = np.ones(len(left[0]), dtype=np.bool_)
    for one, other in zip(left, right, strict=True):
        if order_keys.has_key(one.type):
            same &= order_keys.encode(one) == order_keys.encode(other)
        else:
            same &= pc.equal(one, other).to_numpy(zero_copy_only=False)
    return same
