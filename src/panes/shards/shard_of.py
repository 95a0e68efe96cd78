"""Which shard a key lives in: by a hash of its values that never changes.

The same key goes to the same shard from every task, in every process and after every restart, so
the hash is part of what a checkpoint means.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.key_hashes import key_hashes


def shards_of(keys: Sequence[pa.Array], count: int) -> NDArray[np.int64]:
    """The shard of each key, in ``[0, count)``; keys are given column by column.

    >>> shards_of([pa.array(["a", "b", None, "a"])], 8).tolist()
    [7, 4, 4, 7]
    """
    if not keys:
        return np.zeros(1, dtype=np.int64)
    return (key_hashes(keys) % np.uint64(count)).astype(np.int64)
