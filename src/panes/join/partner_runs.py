"""The partners of each row on the left as one run of rows on the right: pairs are never made.

Rows on the right stand by key and position, so the partners of a row on the left are neighbours. A
query that only aggregates them needs where the run begins and how long it is; partial results of
runs come from the kernels that roll windows over panes. A million rows with a thousand partners
each cost two million steps and not a billion pairs.

A row on the left waits until both streams have passed: then its run is complete, and so are all
rows of its group. A row without a key waits as well, for others of its group may have one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from panes.join.key_codes import equal_keys
from panes.join.matches import reached
from panes.join.progress import individual
from panes.join.rule import Arrivals, JoinRule, Numbers, Progress
from panes.join.sorted_rows import SortedRows
from panes.join.time_blocks import TimeBlocks
from panes.join.waiting_rows import WaitingRows, codes_collide, take_due


@dataclass(frozen=True, slots=True)
class PartnerRuns:
    """Rows on the left, and the run of `right` that each is joined with: so many from `begin` on.

    `right` is None where there is no row on the right at all.
    """

    left: SortedRows
    right: SortedRows | None
    begin: Numbers
    count: Numbers


class PartnerRunsJoin:
    """The state of a join that finds runs of partners."""

    def __init__(self, rule: JoinRule) -> None:
        self.rule, self._rows = rule, WaitingRows(rule)
        self.left, self.right = self._rows.left, self._rows.right
        self._without_key = TimeBlocks(rule.partners.width)

    def step(
        self, left: Arrivals, right: Arrivals, before: Progress, after: Progress
    ) -> Iterator[PartnerRuns]:
        """Take in rows of both sides; gives the rows on the left whose partners are all there.

        A row on the left whose group is complete already comes too late to be given.
        """
        self.right.add(self.rule.sorted(right)[0])
        new, lone = self.rule.sorted(left)
        closed = individual(self._rows.band, before, "left")
        self.left.add(new.where(new.at >= closed) if (new.at < closed).any() else new)
        self._without_key.add(lone.where(lone.at >= closed))
        due_before = individual(self._rows.band, after, "left")
        for due in take_due(self.left, due_before):
            yield from self._found(due)
        for due in take_due(self._without_key, due_before):
            none = np.zeros(len(due), dtype=np.int64)
            yield PartnerRuns(due, None, none, none)
        self.right.drop_before(self._rows.band.right_from(due_before))

    def _found(self, due: SortedRows) -> Iterator[PartnerRuns]:
        pool = self._rows.partners_of(due)
        if pool is None:
            none = np.zeros(len(due), dtype=np.int64)
            yield PartnerRuns(due, None, none, none)
            return
        begin, count = reached(due, self._rows.band.reach(due.at, of_left=True), pool)
        if self.rule.hashed:
            pool, begin, count = self._with_equal_keys(due, pool, begin, count)
        yield PartnerRuns(due, pool, begin, count)

    def _with_equal_keys(
        self, due: SortedRows, pool: SortedRows, begin: Numbers, count: Numbers
    ) -> tuple[SortedRows, Numbers, Numbers]:
        """The same runs; where different keys have one hash, of the rows that are equal only."""
        hashed = self.rule.hashed
        some = np.flatnonzero(count)
        mine = equal_keys(due.taken(some)[-hashed:], pool.taken(begin[some])[-hashed:])
        if mine.all() and not codes_collide(pool, hashed):
            return pool, begin, count
        rows = np.repeat(np.arange(len(due)), count)
        first = np.cumsum(count) - count
        places = np.arange(len(rows)) - np.repeat(first, count) + np.repeat(begin, count)
        equal = equal_keys(due.taken(rows)[-hashed:], pool.taken(places)[-hashed:])
        kept = places[equal]
        lengths = np.bincount(rows[equal], minlength=len(due))
        copied = SortedRows(pool.code[kept], pool.at[kept], pool.row[kept], pool.columns)
        return copied, np.cumsum(lengths) - lengths, lengths
