"""As-of join: every row on the left with the last row on the right that is not after it.

A row on the left waits until the right stream has passed it: then no later candidate can come. Of
several candidates at one position the greatest is taken, column by column, NULL being least and
NaN greatest, so that the order of arrival reaches no answer.

A row on the right is stored while a row on the left may come, or waits, that it is in reach of. A
late row on the left looks no further back than rows are stored for those that come in time; if it
finds nothing there it is not given, because what it should have found may be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.arrays import order_keys
from panes.axis import BEGINNING
from panes.join.key_codes import equal_keys
from panes.join.matches import matches, reached
from panes.join.rule import Arrivals, JoinedRows, JoinRule, Numbers, Progress
from panes.join.sorted_rows import SortedRows
from panes.join.time_blocks import TimeBlocks
from panes.join.waiting_rows import WaitingRows, codes_collide, take_due
from panes.windows.partners import Reach

_NONE = np.empty(0, dtype=np.int64)


class AsOfJoin:
    """The state of an as-of join."""

    def __init__(self, rule: JoinRule) -> None:
        self.rule, self._rows = rule, WaitingRows(rule)

    @property
    def left(self) -> TimeBlocks:
        """The rows on the left that wait."""
        return self._rows.left

    @property
    def right(self) -> TimeBlocks:
        """The rows on the right that may be found."""
        return self._rows.right

    def keep_in(self, left: TimeBlocks, right: TimeBlocks) -> None:
        """Keep the rows of both sides there from now on."""
        self._rows.left, self._rows.right = left, right

    def step(
        self, left: Arrivals, right: Arrivals, before: Progress, after: Progress
    ) -> Iterator[JoinedRows]:
        """Take in rows of both sides; gives the rows on the left whose last partner is known."""
        self.right.add(self.rule.sorted(right)[0])
        floor = self._rows.band.right_from(before.left)
        seen_from = np.where(left.at < before.left, floor, BEGINNING)
        new, lone = self.rule.sorted(left, seen_from.reshape(-1, 1))
        if self.rule.how == "left" and len(lone):
            yield JoinedRows(lone, np.arange(len(lone)), None, _NONE)
        self.left.add(new)
        for due in take_due(self.left, self._rows.band.left_from(after.right)):
            yield from self._answered(due)
        self.right.drop_before(self._needed_from(after))

    def _needed_from(self, after: Progress) -> int:
        """From here on, rows on the right may be found by a row on the left."""
        return self._rows.band.right_from(min(after.left, self.left.oldest))

    def _answered(self, due: SortedRows) -> Iterator[JoinedRows]:
        """Rows on the left with their last partner, all partners being there."""
        pool = self._rows.partners_of(due)
        found = np.full(len(due), -1, dtype=np.int64)
        if pool is not None:
            rows, partners = self._last_partners(due, pool)
            found[rows] = partners
        has_one = np.flatnonzero(found >= 0)
        if len(has_one):
            yield JoinedRows(due, has_one, pool, found[has_one])
        if self.rule.how == "left":
            assert due.marks is not None
            alone = np.flatnonzero((found < 0) & (due.marks[:, 0] <= BEGINNING))
            yield JoinedRows(due, alone, None, _NONE)

    def _last_partners(self, due: SortedRows, pool: SortedRows) -> tuple[Numbers, Numbers]:
        """Rows that have a partner, and the last partner of each."""
        assert due.marks is not None
        first, last = self._rows.band.of_left(due.at)
        within = Reach(np.maximum(first, due.marks[:, 0]), 0, last, 0)
        hashed = self.rule.hashed
        if self.rule.accepts is not None or (hashed and codes_collide(pool, hashed)):
            return _greatest(*self._candidates(due, within, pool), pool)
        begin, count = reached(due, within, pool)
        rows = np.flatnonzero(count)
        partners = _greatest_of_ties(begin[rows] + count[rows] - 1, pool)
        if hashed:
            same = equal_keys(due.taken(rows)[-hashed:], pool.taken(partners)[-hashed:])
            rows, partners = rows[same], partners[same]
        return rows, partners

    def _candidates(
        self, due: SortedRows, within: Reach, pool: SortedRows
    ) -> tuple[Numbers, Numbers]:
        """The last partners of each row that pass all conditions: one, or several in one place."""
        rows, candidates = self.rule.accepted(due, pool, *matches(due, within, pool))
        newest = np.full(len(due), BEGINNING)
        np.maximum.at(newest, rows, pool.at[candidates])
        is_newest = pool.at[candidates] == newest[rows]
        return rows[is_newest], candidates[is_newest]


def _greatest_of_ties(newest: Numbers, pool: SortedRows) -> Numbers:
    """For each place of a last row of its key and position, the greatest row of these.

    Ties are decided once for each key and position, however many rows ask.
    """
    begins = np.ones(len(pool), dtype=np.bool_)
    begins[1:] = (pool.code[1:] != pool.code[:-1]) | (pool.at[1:] != pool.at[:-1])
    first = np.maximum.accumulate(np.where(begins, np.arange(len(pool)), 0))
    last, which = np.unique(newest, return_inverse=True)
    count = last - first[last] + 1
    if not len(last) or count.max() == 1:
        return newest
    number = np.repeat(np.arange(len(last)), count)
    within = np.arange(len(number)) - np.repeat(np.cumsum(count) - count, count)
    _, greatest = _greatest(number, first[last][number] + within, pool)
    return greatest[which]


def _greatest(rows: Numbers, candidates: Numbers, pool: SortedRows) -> tuple[Numbers, Numbers]:
    """One candidate for each row: the greatest in the order of its columns."""
    repeated = np.zeros(len(rows), dtype=np.bool_)
    repeated[1:] = rows[1:] == rows[:-1]
    if not repeated.any():
        return rows, candidates
    tied = repeated.copy()
    tied[:-1] |= repeated[1:]
    which = np.flatnonzero(tied)
    columns = {"row": pa.array(rows[which])}
    for number, column in enumerate(pool.taken(candidates[which])):
        columns |= _ordered(column, number)
    table = pa.table(columns)
    by = [(name, "ascending", "at_start") for name in table.column_names]
    order = which[pc.sort_indices(table, sort_keys=by).to_numpy()]
    is_last = np.ones(len(order), dtype=np.bool_)
    is_last[:-1] = rows[order][1:] != rows[order][:-1]
    kept = np.sort(np.concatenate([np.flatnonzero(~tied), order[is_last]]))
    return rows[kept], candidates[kept]


def _ordered(column: pa.Array, number: int) -> dict[str, pa.Array]:
    """A column as Arrow sorts it in the order of SQL; columns without an order say nothing."""
    if pa.types.is_nested(column.type) or pa.types.is_null(column.type):
        return {}
    if order_keys.has_key(column.type):
        missing = pc.is_null(column).to_numpy(zero_copy_only=False)
        return {str(number): pa.array(order_keys.encode(column), mask=missing)}
    return {str(number): column}
