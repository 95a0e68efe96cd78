"""A batch of rows as a pipeline takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Arrival:
    """Rows that have a place, in arrival order.

    `columns` are the projected columns of the rows that WHERE keeps and that count, `kept` says
    which ones those are. `partition` are the partitioning columns of all rows, if any window
    counts rows: then a row counts before WHERE, as it does in the papers.
    """

    at: NDArray[np.int64]
    kept: NDArray[np.int64]
    columns: Sequence[pa.Array]
    partition: Sequence[pa.Array]
