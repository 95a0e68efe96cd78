"""The pane store: one partial per pane and group, forgotten once its last window is answered.

Partials come in as fragments (`panes.stores.fragments`). They are only appended until something is
asked for; then they are merged into one, and the windows that are due are rolled from the panes
under them. Size follows panes x groups, never rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from panes.aggregates.monoid import Columns, Monoid
from panes.arrays.compiled import compiled
from panes.arrays.slots import is_dense, moved
from panes.arrays.spread import spread
from panes.kernels.choose import roll
from panes.stores.fragment import Fragment, merged
from panes.stores.fragments import Fragments
from panes.windows.cover import Cover, Wids, cover, runs_under
from panes.windows.extent import edges_of, extent, windows_closed
from panes.windows.spec import Landmark, PanedSpec

GroupOrder: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.int64]]
"""Puts groups into the order in which their answers are wanted."""


@dataclass(frozen=True, slots=True)
class Rolled:
    """Answers, group by group and oldest window first.

    `groups` are the groups that have any, in the order asked for; `cover` names the windows of
    each. `partials` has one column per answer.
    """

    groups: NDArray[np.int64]
    cover: Cover
    partials: tuple[Columns, ...]


class PaneStore(Fragments):
    """Partials of one stream, for the windows of one spec."""

    def __init__(self, spec: PanedSpec, monoids: Sequence[Monoid], executor: Executor) -> None:
        super().__init__(monoids)
        self.spec = spec
        self._executor = executor

    def holds(self, starts: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The pairs of a pane and a group that there are."""
        stored = self._merge()
        panes = np.unique(stored.starts)
        width = int(max(stored.groups.max(initial=0), groups.max(initial=0))) + 1
        known = np.searchsorted(panes, stored.starts) * width + stored.groups
        index = np.searchsorted(panes, starts)
        is_pane = np.isin(starts, panes, assume_unique=False)
        return is_pane & np.isin(index * width + groups, known)

    def under(self, first_due: int, end_due: int) -> Fragment:
        """The panes under the windows ``[first_due, end_due)``."""
        merged = self._merge()
        if end_due <= first_due:
            return merged.between(0, 0)
        oldest = windows_closed(self.spec, int(merged.starts[0])) if len(merged) else first_due
        low = extent(self.spec, max(first_due, oldest)).start
        high = extent(self.spec, end_due - 1).end
        return merged.between(low, high)

    def answer(self, first_due: Wids, end_due: Wids, order: GroupOrder) -> Rolled:
        """Roll the windows ``[first_due, end_due)`` that hold a pane.

        Both bounds are one window for all groups, or one for each group, by its number.
        """
        due = self.under(int(np.min(first_due)), int(np.max(end_due)))
        groups = order(np.flatnonzero(np.bincount(due.groups)))
        targets, offsets = by_group(due.groups, groups)
        starts = moved(due.starts, targets, int(offsets[-1]))
        first, end = (d if isinstance(d, int) else d[groups] for d in (first_due, end_due))
        answers = cover(self.spec, starts=starts, groups=offsets, first_due=first, end_due=end)
        return self._rolled(due, targets, starts, offsets, groups, answers)

    def answer_at(
        self, groups: NDArray[np.int64], offsets: NDArray[np.int64], wid: NDArray[np.int64]
    ) -> Rolled:
        """Roll windows named one by one, ascending within each of the groups.

        Each of them holds a pane. `offsets` tells where each group's windows begin.
        """
        due = self.under(int(wid.min()), int(wid.max()) + 1)
        targets, begins = by_group(due.groups, groups)
        starts = moved(due.starts, targets, int(begins[-1]))
        first, last = runs_under(self.spec, wid, offsets, starts=starts, groups=begins)
        answers = Cover(offsets, wid, first, last)
        return self._rolled(due, targets, starts, begins, groups, answers)

    def _rolled(
        self,
        due: Fragment,
        targets: NDArray[np.int32],
        starts: NDArray[np.int64],
        offsets: NDArray[np.int64],
        groups: NDArray[np.int64],
        answers: Cover,
    ) -> Rolled:
        """Answers from panes moved to their `targets`: group by group, each at its start."""

        def roll_one(monoid: Monoid, partial: Columns) -> Columns:
            panes = moved(partial, targets, len(starts))
            return roll(monoid, self.spec, panes, answers, starts=starts, groups=offsets)

        distinct = {id(p): (m, p) for m, p in zip(self.monoids, due.partials, strict=True)}
        rolled = spread(
            self._executor, lambda pair: roll_one(*pair), distinct.values(), rows=len(answers)
        )
        of = dict(zip(distinct, rolled, strict=True))
        return Rolled(groups, answers, tuple(of[id(p)] for p in due.partials))

    def evict(self, first_open: Wids) -> bool:
        """Forget panes that no window from `first_open` on holds; says whether there were any.

        `first_open` is one window for all groups, or one for each group, by its number. A
        landmark window holds every pane for ever; there, closed panes become one per group.
        """
        before = len(self)
        if not isinstance(first_open, int):
            lows = edges_of(self.spec, first_open)[0]
            assert lows is not None
            self._fragments = [_from(f, lows) for f in self._fragments]
            self._journal = None
            return len(self) < before
        low, high = extent(self.spec, first_open)
        if isinstance(self.spec, Landmark):
            self._fold_before(high - self.spec.slide)
            return len(self) < before
        return self.evict_before(low)

    def _fold_before(self, edge: int) -> None:
        """Move all panes before an edge onto the pane just before it."""
        base = edge - self.spec.slide
        self._journal = None
        self._fragments = [
            Fragment(np.where(f.starts < edge, base, f.starts), f.groups, f.partials)
            for f in self._fragments
        ]
        if any((f.starts[:2] == base).all() and len(f) > 1 for f in self._fragments):
            self._fragments = [merged(self._fragments, self.monoids)]


def by_group(
    groups: NDArray[np.signedinteger], order: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The index each row moves to, so that rows stand group by group; and where each group begins.

    Rows of a group stay in their order; rows of groups that are not in `order` go nowhere, which is
    -1. Rows are moved and not fetched (`panes.arrays.slots.moved`): then memory is read straight
    on, and written at one position per group.
    """
    size = max(int(order.max(initial=-1)), int(groups.max(initial=-1))) + 1
    rank = np.full(size, -1, dtype=np.int64)
    rank[order] = np.arange(len(order))
    offsets = np.zeros(len(order) + 1, dtype=np.int64)
    targets = np.empty(len(groups), dtype=np.int32)
    _counting_sort(groups, rank, offsets, targets)
    return targets, offsets


@compiled
def _counting_sort(groups, rank, offsets, targets):  # type: ignore[no-untyped-def]
    for i in range(groups.shape[0]):
        if rank[groups[i]] >= 0:
            offsets[rank[groups[i]] + 1] += 1
    for g in range(offsets.shape[0] - 1):
        offsets[g + 1] += offsets[g]
    next_free = offsets[:-1].copy()
    for i in range(groups.shape[0]):
        g = rank[groups[i]]
        targets[i] = -1
        if g >= 0:
            targets[i] = next_free[g]
            next_free[g] += 1


def _from(fragment: Fragment, lows: NDArray[np.int64]) -> Fragment:
    """The panes that begin at or after what their group's `low` says."""
    which = np.flatnonzero(fragment.starts >= lows[fragment.groups])
    if len(which) == len(fragment):
        return fragment
    partials = tuple(np.take(p, which, axis=1) for p in fragment.partials)
    return Fragment(fragment.starts[which], fragment.groups[which], partials)


def by_window(rolled: Rolled) -> NDArray[np.int64]:
    """Answers rearranged window by window, groups in order inside each."""
    wid = rolled.cover.wid
    oldest, newest = int(wid.min()), int(wid.max())
    if not is_dense(len(wid), newest - oldest + 1):
        return np.argsort(wid, kind="stable")
    order = np.empty(len(wid), dtype=np.int64)
    _sort_windows(wid, oldest, newest, order)
    return order


@compiled
def _sort_windows(wid, oldest, newest, order):  # type: ignore[no-untyped-def]
    begin = np.zeros(newest - oldest + 2, dtype=np.int64)
    for k in range(wid.shape[0]):
        begin[wid[k] - oldest + 1] += 1
    for w in range(1, begin.shape[0]):
        begin[w] += begin[w - 1]
    for k in range(wid.shape[0]):
        w = wid[k] - oldest
        order[begin[w]] = k
        begin[w] += 1
