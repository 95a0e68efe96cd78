"""Joins that give their rows in the order of the left side: what OA-Join is compared with.

*Output-buffered* (OPOB, thesis 7.3): rows are joined as they come, and joined rows are held back
until none with an earlier left position can come; then they leave in order. *Input-buffered*
(OPIB): rows on the left wait until all their partners are there, and are joined then, in order.
Both give the pairs of an inner band join, and both wait where OA-Join does not. They are baselines
for measuring, and nothing else uses them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from panes.join.matches import matches
from panes.join.oa_join import OAJoin
from panes.join.progress import individual
from panes.join.rule import Arrivals, JoinedRows, JoinRule, Numbers, Progress
from panes.join.sorted_rows import SortedRows
from panes.join.waiting_rows import WaitingRows, take_due

_INDEXES = 2 * 8
"""Bytes of a buffered pair beside its rows: a place on each side."""


class OutputBufferedJoin:
    """OPOB-Join: an OA-Join behind which joined rows wait to be put in order."""

    def __init__(self, rule: JoinRule) -> None:
        self.rule, self._join = rule, OAJoin(rule)
        self.left, self.right = self._join.left, self._join.right
        self._waiting: list[JoinedRows] = []

    @property
    def buffered(self) -> int:
        """How many joined rows wait."""
        return sum(len(joined) for joined in self._waiting)

    @property
    def nbytes(self) -> int:
        """Bytes of rows that are stored, and of joined rows that wait, each with its columns."""
        pairs = sum(len(j) * (_INDEXES + _width(j.left) + _width(j.right)) for j in self._waiting)
        return self.left.nbytes + self.right.nbytes + pairs

    def step(
        self, left: Arrivals, right: Arrivals, before: Progress, after: Progress
    ) -> Iterator[JoinedRows]:
        """Take in rows of both sides; gives joined rows in the order of the left positions."""
        self._waiting += [j for j in self._join.step(left, right, before, after) if len(j)]
        complete = individual(self.rule.partners, after, "left")
        ready: list[JoinedRows] = []
        waiting: list[JoinedRows] = []
        for joined in self._waiting:
            is_ready = _left_at(joined) < complete
            for found, which in ((ready, is_ready), (waiting, ~is_ready)):
                if which.any():
                    found.append(_some(joined, np.flatnonzero(which)))
        self._waiting = waiting
        yield from _in_order(ready)


class InputBufferedJoin:
    """OPIB-Join: rows on the left wait, and are joined in order when their partners are there."""

    def __init__(self, rule: JoinRule) -> None:
        self.rule, self._rows = rule, WaitingRows(rule)
        self.left, self.right = self._rows.left, self._rows.right

    @property
    def nbytes(self) -> int:
        """Bytes of rows that are stored."""
        return self.left.nbytes + self.right.nbytes

    def step(
        self,
        left: Arrivals,
        right: Arrivals,
        before: Progress,  # noqa: ARG002 - the interface of all joins
        after: Progress,
    ) -> Iterator[JoinedRows]:
        """Take in rows of both sides; gives joined rows in the order of the left positions."""
        self.left.add(self.rule.sorted(left)[0])
        self.right.add(self.rule.sorted(right)[0])
        complete = individual(self.rule.partners, after, "left")
        found: list[JoinedRows] = []
        for due in take_due(self.left, complete):
            pool = self._rows.partners_of(due)
            if pool is not None:
                i, j = matches(due, self._rows.band.reach(due.at, of_left=True), pool)
                found.append(JoinedRows(due, i, pool, j))
        self.right.drop_before(self._rows.band.right_from(complete))
        yield from _in_order(found)


def _left_at(joined: JoinedRows) -> Numbers:
    assert joined.left is not None
    return joined.left.at[joined.left_index]


def _some(joined: JoinedRows, which: Numbers) -> JoinedRows:
    return JoinedRows(
        joined.left, joined.left_index[which], joined.right, joined.right_index[which]
    )


def _in_order(found: list[JoinedRows]) -> Iterator[JoinedRows]:
    """Joined rows by the position of their left row, written out one after the other."""
    if not found:
        return
    order = np.argsort(np.concatenate([_left_at(joined) for joined in found]), kind="stable")
    every = np.arange(len(order))
    left = _written([(joined.left, joined.left_index) for joined in found], order)
    right = _written([(joined.right, joined.right_index) for joined in found], order)
    yield JoinedRows(left, every, right, every)


def _written(parts: list[tuple[SortedRows | None, Numbers]], order: Numbers) -> SortedRows:
    """One side of joined rows, in the order asked for and not in that of their keys."""
    sides = [(rows, index) for rows, index in parts if rows is not None]
    columns = zip(*(rows.taken(index) for rows, index in sides), strict=True)
    which = pa.array(order)
    return SortedRows(
        np.concatenate([rows.code[index] for rows, index in sides])[order],
        np.concatenate([rows.at[index] for rows, index in sides])[order],
        np.arange(len(order)),
        tuple(pa.concat_arrays(pieces).take(which) for pieces in columns),
    )


def _width(rows: SortedRows | None) -> int:
    """Bytes of the columns of one row."""
    return 0 if rows is None or not len(rows) else sum(c.nbytes for c in rows.columns) // len(rows)
