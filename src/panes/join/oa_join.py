"""OA-Join: rows are joined as they come, in any order, and forgotten by promises (thesis ch. 7).

    arrivals ──► probe the other side ──► pairs, at once
        │                │
        ▼                ▼
    stored, if it    marks: who has
    can still match  a partner
        │
        ▼  the other side's promise: nothing more can match
    dropped, and given without a partner if the join says so

Each side is forgotten by the progress of the other. A row is stored only while a row of the other
side that it matches may still come. Pairs are given when their second row comes; a row without a
partner is given as soon as progress proves that it has none. Every pair is given once.

A late row, one that breaks what its own stream has promised, is joined with rows that are not
forgotten: which these are follows from promises alone, not from what happens to be stored still.
It is not given as a row without partner, because nobody knows whether it had one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from panes.arrays.spread import spread
from panes.arrays.workers import workers
from panes.axis import BEGINNING, FOREVER
from panes.join.marks import all_windows, mark, mark_all, newly_joined, no_marks, not_joined
from panes.join.matches import matches
from panes.join.rule import Arrivals, JoinedRows, JoinRule, Numbers, Progress
from panes.join.slices import slices
from panes.join.sorted_rows import SortedRows
from panes.join.time_blocks import TimeBlocks
from panes.windows.extent import windows_closed, windows_reached
from panes.windows.limit import require_room
from panes.windows.partners import Band, CommonWindows, common_wids
from panes.windows.spec import Landmark

_NONE = np.empty(0, dtype=np.int64)


class OAJoin:
    """The rows of two streams that may still be joined."""

    def __init__(self, rule: JoinRule) -> None:
        self.rule = rule
        self.left, self.right = TimeBlocks(rule.partners.width), TimeBlocks(rule.partners.width)
        self._newest = BEGINNING

    @property
    def nbytes(self) -> int:
        """Bytes of rows that are stored."""
        return self.left.nbytes + self.right.nbytes

    def keep_in(self, left: TimeBlocks, right: TimeBlocks) -> None:
        """Keep the rows of both sides there from now on."""
        self.left, self.right = left, right

    def step(
        self, left: Arrivals, right: Arrivals, before: Progress, after: Progress
    ) -> Iterator[JoinedRows]:
        """Take in rows of both sides; gives what is joined now, or proved to be alone.

        `before` is what was promised when the rows came, `after` what is promised from now on.
        """
        for rows in (left, right):
            self._newest = max(self._newest, int(rows.at.max(initial=BEGINNING)))
        reach = self.rule.partners.width
        for part in slices(left, right, before, after, reach=reach):
            yield from self._step(*part)

    def _step(
        self, left: Arrivals, right: Arrivals, before: Progress, after: Progress
    ) -> Iterator[JoinedRows]:
        step = _Step(self.rule, before, after, self._end())
        (new_left, lone_left), (new_right, lone_right) = spread(
            workers(),
            lambda side: step.sorted_rows(side[0], is_left=side[1]),
            ((left, True), (right, False)),
            rows=min(len(left.at), len(right.at)),
        )
        mine = [_Marked(run) for run in self._reached(self.left, new_right.rows, of_left=False)]
        others = [_Marked(run) for run in self._reached(self.right, new_left.rows, of_left=True)]
        for other in (*others, new_right):
            yield from step.pairs(new_left, other)
        for one in mine:
            yield from step.pairs(one, new_right)
        yield from step.newly([*mine, new_left])
        self._put_back(self.left, mine)
        self._put_back(self.right, others)
        yield from step.alone(self.left, new_left, lone_left, is_left=True)
        yield from step.alone(self.right, new_right, lone_right, is_left=False)
        step.store(self.left, new_left, is_left=True)
        step.store(self.right, new_right, is_left=False)

    def _end(self) -> int:
        """The windows that there are end before this one: only landmark windows have an end."""
        partners = self.rule.partners
        if isinstance(partners, CommonWindows) and isinstance(partners.spec, Landmark):
            return windows_reached(partners.spec, self._newest) if self._newest > BEGINNING else 0
        return FOREVER

    def _reached(
        self, blocks: TimeBlocks, probe: SortedRows, *, of_left: bool
    ) -> Iterator[SortedRows]:
        """The stored runs that new rows of the other side may reach."""
        if len(probe):
            low, high = int(probe.at.min()), int(probe.at.max())
            yield from blocks.runs(*self.rule.partners.span(low, high, of_left=of_left))

    @staticmethod
    def _put_back(blocks: TimeBlocks, runs: list[_Marked]) -> None:
        for run in runs:
            if run.is_changed:
                blocks.replace(run.rows, run.rows.marked(run.marks))


class _Marked:
    """Rows while they are joined, new or stored; marks are copied when they first change."""

    def __init__(self, rows: SortedRows, *, is_new: bool = False) -> None:
        self.rows, self.is_new = rows, is_new
        self.is_changed = False
        self._marks = rows.marks

    @property
    def has_marks(self) -> bool:
        return self._marks is not None

    @property
    def marks(self) -> NDArray[np.int64]:
        assert self._marks is not None
        return self._marks

    def writable(self) -> NDArray[np.int64]:
        if not self.is_changed:
            self._marks, self.is_changed = self.marks.copy(), True
        return self.marks


@dataclass(slots=True)
class _Step:
    """One step of a join: its rule, and the promises before and after."""

    rule: JoinRule
    before: Progress
    after: Progress
    end: int = FOREVER

    def sorted_rows(self, rows: Arrivals, *, is_left: bool) -> tuple[_Marked, SortedRows]:
        """New rows in order, and those without a key, which have no partner anywhere."""
        found, lone = self.rule.sorted(rows)
        if self._marks(is_left=is_left):
            found = replace(found, marks=self._first_marks(found, is_left=is_left))
        return _Marked(found, is_new=True), lone

    def pairs(self, left: _Marked, right: _Marked) -> Iterator[JoinedRows]:
        """Join rows of both sides, of which at least one is new."""
        i, j = self.rule.accepted(left.rows, right.rows, *self._matches(left, right))
        windows = self._windows(left, right, i, j)
        if windows is not None:
            held = windows[1] >= windows[0]
            if not held.all():
                i, j, windows = i[held], j[held], (windows[0][held], windows[1][held])
        if not len(i):
            return
        if left.has_marks:
            mark(self.rule.partners, left.writable(), left.rows.at, i, windows)
        if right.has_marks:
            mark(self.rule.partners, right.writable(), right.rows.at, j, windows)
        if self.rule.gives_pairs:
            yield _in_windows(JoinedRows(left.rows, i, right.rows, j), windows)

    def newly(self, left: list[_Marked]) -> Iterator[JoinedRows]:
        """Rows on the left that have found their first partner, for a semi join."""
        if self.rule.how != "semi":
            return
        for run in left:
            if run.is_changed and run.rows.marks is not None:
                at = run.rows.at
                rows, wid = newly_joined(
                    self.rule.partners, run.rows.marks, run.marks, at, self.end
                )
                yield JoinedRows(run.rows, rows, None, _NONE, wid)

    def alone(
        self, blocks: TimeBlocks, new: _Marked, lone: SortedRows, *, is_left: bool
    ) -> Iterator[JoinedRows]:
        """Rows of one side that are proved to have no partner, if the join gives such rows."""
        gives = self.rule.gives_lone_left if is_left else self.rule.gives_lone_right
        if not gives:
            return
        own, partners = (self.before.left if is_left else self.before.right), self.rule.partners
        since, upto = self._proved(is_left=is_left)
        if len(lone):
            begin = BEGINNING if isinstance(partners, Band) else self._closed(own)
            yield _one_side(lone, *all_windows(partners, lone.at, begin, self.end), is_left=is_left)
        if isinstance(partners, Band):
            threshold = self._stays_from(is_left=is_left)
            runs = [*blocks.runs(BEGINNING, threshold - 1), new.rows.marked(new.marks)]
            for run in runs:
                marks = run.marks
                assert marks is not None
                passed = np.flatnonzero(run.at < threshold)
                rows, _ = not_joined(partners, marks[passed], run.at[passed], 0, 0)
                yield _one_side(run, passed[rows], None, is_left=is_left)
            return
        if upto > since:
            for run in blocks.everything():
                assert run.marks is not None
                yield _one_side(
                    run, *not_joined(partners, run.marks, run.at, since, upto), is_left=is_left
                )
        yield _one_side(
            new.rows,
            *not_joined(partners, new.marks, new.rows.at, BEGINNING, upto),
            is_left=is_left,
        )

    def store(self, blocks: TimeBlocks, new: _Marked, *, is_left: bool) -> None:
        """Keep new rows that may still find a partner, and forget those that cannot any more."""
        threshold, rows = self._stays_from(is_left=is_left), new.rows
        if new.is_changed:
            rows = rows.marked(new.marks)
        blocks.drop_before(threshold, exactly=rows.marks is not None)
        if threshold >= FOREVER:
            return
        stays = rows.at >= threshold
        if isinstance(self.rule.partners, CommonWindows):
            first, last = self.rule.partners.of_left(rows.at)
            stays &= last >= first
        blocks.add(rows if stays.all() else rows.where(stays))

    def _marks(self, *, is_left: bool) -> bool:
        """Whether it matters which rows of a side have a partner."""
        if is_left:
            return self.rule.gives_lone_left or self.rule.how == "semi"
        return self.rule.gives_lone_right

    def _first_marks(self, rows: SortedRows, *, is_left: bool) -> NDArray[np.int64]:
        """No marks; but late rows count as joined wherever partners may be forgotten."""
        marks = no_marks(self.rule.partners, len(rows))
        own = self.before.left if is_left else self.before.right
        late = np.flatnonzero(rows.at < own)
        if len(late) and self.rule.how != "semi":
            theirs = marks[late]
            mark_all(self.rule.partners, theirs, rows.at[late], self._closed(own))
            marks[late] = theirs
        return marks

    def _matches(self, left: _Marked, right: _Marked) -> tuple[Numbers, Numbers]:
        """Pairs within reach, of rows that were not forgotten when the new ones came.

        Rows that come in time reach none that is forgotten, so this leaves out pairs of late rows.
        """
        partners, one, other = self.rule.partners, left.rows, right.rows
        left_from = partners.left_from(self.before.right) if right.is_new else BEGINNING
        right_from = partners.right_from(self.before.left) if left.is_new else BEGINNING
        if len(one) <= len(other):  # the shorter side probes: its rows leap over the longer one's
            i, j = matches(one, partners.reach(one.at, of_left=True), other, floor=right_from)
            probe, found, since = one, i, left_from
        else:
            j, i = matches(other, partners.reach(other.at, of_left=False), one, floor=left_from)
            probe, found, since = other, j, right_from
        if since > BEGINNING and len(i) and probe.at.min() < since:
            stored = probe.at[found] >= since
            i, j = i[stored], j[stored]
        return i, j

    def _windows(
        self, left: _Marked, right: _Marked, i: Numbers, j: Numbers
    ) -> tuple[Numbers, Numbers] | None:
        """The windows that hold both rows of each pair, without those that had ended before.

        A window has ended for a new row when its own stream has passed it.
        """
        partners = self.rule.partners
        if isinstance(partners, Band):
            return None
        first, last = common_wids(partners.spec, left.rows.at[i], right.rows.at[j], end=self.end)
        ended = max(
            self._closed(self.before.left) if left.is_new else BEGINNING,
            self._closed(self.before.right) if right.is_new else BEGINNING,
        )
        return np.maximum(first, ended), last

    def _closed(self, progress: int) -> int:
        """The windows before this one have ended, as far as a promise says."""
        partners = self.rule.partners
        if isinstance(partners, Band) or progress <= BEGINNING:
            return BEGINNING
        return windows_closed(partners.spec, progress)

    def _stays_from(self, *, is_left: bool) -> int:
        """Rows of a side before this position cannot find a partner any more."""
        partners = self.rule.partners
        if is_left:
            return partners.left_from(self.after.right)
        return partners.right_from(self.after.left)

    def _proved(self, *, is_left: bool) -> tuple[int, int]:
        """The windows ``[since, upto)`` for which it is known from now on who has no partner."""
        other = (self.before.right, self.after.right)
        if not is_left:
            other = (self.before.left, self.after.left)
        upto = self.end if other[1] >= FOREVER else min(self._closed(other[1]), self.end)
        return self._closed(other[0]), upto


def _one_side(
    rows: SortedRows, index: Numbers, wid: Numbers | None, *, is_left: bool
) -> JoinedRows:
    if is_left:
        return JoinedRows(rows, index, None, _NONE, wid)
    return JoinedRows(None, _NONE, rows, index, wid)


def _in_windows(pairs: JoinedRows, windows: tuple[Numbers, Numbers] | None) -> JoinedRows:
    """Pairs as often as there are windows that hold both."""
    if windows is None:
        return pairs
    first, last = windows
    count = last - first + 1
    require_room(float(count.sum(dtype=np.float64)))
    which = np.repeat(np.arange(len(first)), count)
    within = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    return replace(
        pairs,
        left_index=pairs.left_index[which],
        right_index=pairs.right_index[which],
        wid=first[which] + within,
    )
