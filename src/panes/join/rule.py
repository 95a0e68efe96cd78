"""What a join is told: which rows are partners, which kind of join it is, what pairs are asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.axis import BEGINNING
from panes.join.sorted_rows import SortedRows
from panes.windows.partners import Partners

How: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti"]
Numbers: TypeAlias = NDArray[np.int64]
Columns: TypeAlias = Sequence[pa.Array]
Accepts: TypeAlias = Callable[[Columns, Columns], NDArray[np.bool_]]
_NOWHERE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class JoinRule:
    """Which pairs of rows are joined, and what becomes of rows without a partner.

    The last columns of rows, `hashed` of them, are keys whose codes are hashes. `accepts` tells
    which pairs pass the conditions that are neither keys nor positions.
    """

    partners: Partners
    how: How = "inner"
    hashed: int = 0
    accepts: Accepts | None = None

    @property
    def gives_pairs(self) -> bool:
        """Whether pairs themselves are given."""
        return self.how not in ("semi", "anti")

    @property
    def gives_lone_left(self) -> bool:
        """Whether rows on the left are given that have no partner."""
        return self.how in ("left", "full", "anti")

    @property
    def gives_lone_right(self) -> bool:
        """Whether rows on the right are given that have no partner."""
        return self.how in ("right", "full")


class Progress(NamedTuple):
    """What both sides have promised: no later row lies before."""

    left: int = BEGINNING
    right: int = BEGINNING


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Rows of one side that have come, in any order: positions, keys, and their columns."""

    at: Numbers = field(default_factory=lambda: _NOWHERE)
    keys: Columns = ()
    columns: Columns = ()

    def part(self, begin: int, end: int | None = None) -> Arrivals:
        """The rows from `begin` on, up to `end`."""
        end = len(self.at) if end is None else end
        keys, columns = (
            tuple(column.slice(begin, end - begin) for column in some)
            for some in (self.keys, self.columns)
        )
        return Arrivals(self.at[begin:end], keys, columns)


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """Rows that are joined, by their places among the rows of each side.

    A side that is None has nothing: these are rows of the other one without a partner. `wid` are
    the windows that they are joined in, of a join by windows.
    """

    left: SortedRows | None
    left_index: Numbers
    right: SortedRows | None
    right_index: Numbers
    wid: Numbers | None = None

    def __len__(self) -> int:
        return len(self.left_index if self.left is not None else self.right_index)
