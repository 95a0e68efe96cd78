"""What a join is told: which rows are partners, which kind of join it is, what pairs are asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.axis import BEGINNING
from panes.join.key_codes import equal_keys, key_codes
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

    def sorted(
        self, rows: Arrivals, marks: NDArray[np.int64] | None = None
    ) -> tuple[SortedRows, SortedRows]:
        """Rows in order, and those without a key, which have no partner anywhere."""
        code, valid = key_codes(rows.keys, len(rows.at))
        columns = (*rows.columns, *(rows.keys if self.hashed else ()))
        if valid is None or valid.all():
            nowhere = SortedRows(_NOWHERE, _NOWHERE, _NOWHERE, columns)
            return SortedRows.of(code, rows.at, columns, marks), nowhere
        lone, which = np.flatnonzero(~valid), np.flatnonzero(valid)
        own = [c.take(pa.array(which)) for c in columns]
        marks = None if marks is None else marks[which]
        found = SortedRows.of(code[which], rows.at[which], own, marks)
        return found, SortedRows(code[lone], rows.at[lone], lone, columns)

    def accepted(
        self, left: SortedRows, right: SortedRows, i: Numbers, j: Numbers
    ) -> tuple[Numbers, Numbers]:
        """Of pairs, by their places, those whose keys are equal and that pass the conditions."""
        hashed, accepts = self.hashed, self.accepts
        if not len(i) or (not hashed and accepts is None):
            return i, j
        one, other = left.taken(i), right.taken(j)
        if hashed:
            same = equal_keys(one[-hashed:], other[-hashed:])
            one, other = one[:-hashed], other[:-hashed]
            if not same.all():
                which = pa.array(np.flatnonzero(same))
                i, j = i[same], j[same]
                one, other = [c.take(which) for c in one], [c.take(which) for c in other]
        if accepts is not None and len(i):
            passing = accepts(one, other)
            i, j = i[passing], j[passing]
        return i, j


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
