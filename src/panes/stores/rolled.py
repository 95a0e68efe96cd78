"""Partials that a store hands over when windows are due, to be lowered to answers elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.monoid import Columns
from panes.kernels.sliding_multiset import SlidingMultiset
from panes.windows.cover import Cover


@dataclass(frozen=True, slots=True)
class AnswerPartials:
    """One partial per answer for each piece of the store, and each multiset under the answers."""

    partials: tuple[Columns, ...]
    multisets: tuple[SlidingMultiset, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPartials(AnswerPartials):
    """The same, with the window and the key of every answer, group by group.

    `keys` has one row for each group of the `cover`. `order` rearranges the answers by window; None
    leaves them as they are.
    """

    keys: Sequence[pa.Array]
    cover: Cover
    order: NDArray[np.int64] | None

    def __len__(self) -> int:
        return len(self.cover)
