"""As-of join: every row on the left with the last row on the right that is not after it.

A row on the left waits until the right stream has passed it: then no later candidate can come. Of
several candidates at one position the greatest is taken, column by column, NULL being least and
NaN greatest, so that the order of arrival reaches no answer.

A row on the right is stored while a row on the left may come, or waits, that it is in reach of. A
late row on the left looks no further back than rows are stored for those that come in time; if it
finds nothing there it is not given, because what it should have found may be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.arrays import order_keys
from panes.axis import BEGINNING
from panes.join.key_codes import equal_keys, key_codes
from panes.join.matches import matches, reached
from panes.join.rule import Arrivals, JoinedRows, JoinRule, Numbers, Progress
from panes.join.sorted_rows import SortedRows
from panes.join.time_blocks import TimeBlocks
from panes.windows.partners import Band, Reach

_NONE = np.empty(0, dtype=np.int64)


class AsOfJoin:
    """Rows on the left that wait for the right stream, and rows on the right they may find."""

    def __init__(self, rule: JoinRule) -> None:
        assert isinstance(rule.partners, Band)
        self.rule, self._band = rule, rule.partners
        self.left, self.right = TimeBlocks(rule.partners.width), TimeBlocks(rule.partners.width)

    @property
    def waiting(self) -> int:
        """How many rows wait for an answer of their own."""
        return len(self.left)

    def step(
        self, left: Arrivals, right: Arrivals, before: Progress, after: Progress
    ) -> Iterator[JoinedRows]:
        """Take in rows of both sides; gives the rows on the left whose last partner is known."""
        self.right.add(self._sorted(right, None)[0])
        floor = self._band.right_from(before.left)
        seen_from = np.where(left.at < before.left, floor, BEGINNING)
        new, lone = self._sorted(left, seen_from.reshape(-1, 1))
        if self.rule.how == "left" and len(lone):
            yield JoinedRows(lone, np.arange(len(lone)), None, _NONE)
        self.left.add(new)
        for run in list(self.left.runs(BEGINNING, after.right - 1)):
            is_due = run.at < after.right
            due = run if is_due.all() else run.where(is_due)
            if len(due):
                yield from self._answered(due)
                self.left.replace(run, run.where(~is_due))
        self.right.drop_before(self._needed_from(after))

    def _sorted(
        self, rows: Arrivals, marks: NDArray[np.int64] | None
    ) -> tuple[SortedRows, SortedRows]:
        """Rows in order, and those without a key."""
        code, valid = key_codes(rows.keys, len(rows.at))
        columns = (*rows.columns, *(rows.keys if self.rule.hashed else ()))
        at, index = rows.at, np.arange(len(rows.at))
        lone = _NONE
        if valid is not None:
            lone, index = np.flatnonzero(~valid), np.flatnonzero(valid)
        found = SortedRows.of(
            code[index],
            at[index],
            [c.take(pa.array(index)) for c in columns] if len(lone) else columns,
            None if marks is None else marks[index],
        )
        return found, SortedRows(code[lone], at[lone], lone, columns)

    def _needed_from(self, after: Progress) -> int:
        """From here on, rows on the right may be found by a row on the left."""
        return self._band.right_from(min(after.left, self.left.oldest))

    def _answered(self, due: SortedRows) -> Iterator[JoinedRows]:
        """Rows on the left with their last partner, all partners being there."""
        low, high = int(due.at.min()), int(due.at.max())
        runs = list(self.right.runs(*self._band.span(low, high, of_left=True)))
        pool = runs[0] if len(runs) == 1 else _together(runs)
        found = np.full(len(due), -1, dtype=np.int64)
        if pool is not None:
            rows, candidates = self._candidates(due, pool)
            rows, candidates = _greatest(rows, candidates, pool)
            found[rows] = candidates
        has_one = np.flatnonzero(found >= 0)
        if len(has_one):
            yield JoinedRows(due, has_one, pool, found[has_one])
        if self.rule.how == "left":
            assert due.marks is not None
            alone = np.flatnonzero((found < 0) & (due.marks[:, 0] <= BEGINNING))
            yield JoinedRows(due, alone, None, _NONE)

    def _candidates(self, due: SortedRows, pool: SortedRows) -> tuple[Numbers, Numbers]:
        """The last partners of each row: one, or several at the same position."""
        assert due.marks is not None
        first, last = self._band.of_left(due.at)
        within = Reach(np.maximum(first, due.marks[:, 0]), 0, last, 0)
        if self.rule.accepts is None and not self.rule.hashed:
            begin, count = reached(due, within, pool)
            rows = np.flatnonzero(count)
            newest = begin[rows] + count[rows] - 1
            # All rows of the key at the newest position, so that ties can be decided.
            at = np.full(len(due), BEGINNING)
            at[rows] = pool.at[newest]
            until = np.where(at > BEGINNING, at, BEGINNING - 1)
            return matches(due, Reach(at, 0, until, 0), pool)
        rows, candidates = matches(due, within, pool)
        one, other = due.taken(rows), pool.taken(candidates)
        passing = np.ones(len(rows), dtype=np.bool_)
        if self.rule.hashed:
            passing = equal_keys(one[-self.rule.hashed :], other[-self.rule.hashed :])
            one, other = one[: -self.rule.hashed], other[: -self.rule.hashed]
        if self.rule.accepts is not None and len(rows):
            passing &= self.rule.accepts(one, other)
        rows, candidates = rows[passing], candidates[passing]
        newest = np.full(len(due), BEGINNING)
        np.maximum.at(newest, rows, pool.at[candidates])
        is_newest = pool.at[candidates] == newest[rows]
        return rows[is_newest], candidates[is_newest]


def _together(runs: Sequence[SortedRows]) -> SortedRows | None:
    """Runs as one."""
    pool: SortedRows | None = None
    for run in runs:
        pool = run if pool is None else pool.merged(run)
    return pool


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
