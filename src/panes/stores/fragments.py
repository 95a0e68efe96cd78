"""Fragments: partials of pairs (pane, group), stored as they came and merged when they are needed.

Each fragment is sorted by pane and group with no pair twice, and never changes. Whoever stores them
says what a group is; nothing here knows of windows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from panes.aggregates.monoid import Monoid
from panes.arrays.slots import distinct
from panes.axis import BEGINNING, FOREVER
from panes.stores.fragment import Fragment, joined, merged, shared_columns

_MOST_FRAGMENTS = 16


class Fragments:
    """Partials of one stream, one column of them for each monoid."""

    RECOMPUTED = frozenset({"_fragments", "_unread", "_journal", "_repeated"})  # of `fragments`

    def __init__(self, monoids: Sequence[Monoid]) -> None:
        self.monoids = tuple(monoids)
        self.fragments = ()

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """The fragments of now, to be put back later: fragments never change."""
        return tuple(self._fragments)

    @fragments.setter
    def fragments(self, fragments: Sequence[Fragment]) -> None:
        self._fragments = list(fragments)
        self._unread: list[Fragment] | None = None
        self._journal: list[Fragment] | None = None
        self._repeated = 0  # partials, at most, of pairs that another fragment has too

    def __len__(self) -> int:
        return sum(len(f) for f in self._fragments)

    @property
    def nbytes(self) -> int:
        """Bytes stored in partials."""
        return sum(f.nbytes for f in self._fragments)

    def add(self, fragment: Fragment) -> None:
        """Take in partials; pairs already known are combined when they are next needed."""
        span = self.span()
        if len(fragment):
            self._fragments.append(fragment)
            self._note(fragment)
        if span is not None:
            self._repeated += int(np.searchsorted(fragment.starts, span[1], side="right"))
        if len(self._fragments) > _MOST_FRAGMENTS or 0 < len(self) <= 3 * self._repeated:
            self._merge()

    def _note(self, fragment: Fragment) -> None:
        if self._journal is not None:
            self._journal.append(fragment)
        if self._unread is not None:
            self._unread.append(fragment)
            if len(self._unread) > _MOST_FRAGMENTS:
                self._unread = [merged(self._unread, self.monoids)]

    def news(self) -> list[Fragment] | None:
        """The fragments added since the last call; None if more than that has changed.

        Eviction is no change: a reader may go on using panes that are gone.
        """
        unread, self._unread = self._unread, []
        return unread

    def journal(self) -> list[Fragment] | None:
        """The fragments added since the last call, as they came; None if more has changed.

        Eviction of all that begins before some position is no change.
        """
        written, self._journal = self._journal, []
        return written

    def span(self) -> tuple[int, int] | None:
        """Where the first and the last pane begin; None if there is none."""
        stored = [f.starts for f in self._fragments if len(f)]
        if not stored:
            return None
        return min(int(s[0]) for s in stored), max(int(s[-1]) for s in stored)

    def live_groups(self) -> NDArray[np.int64]:
        """The groups that hold anything, ascending."""
        stored = [distinct(f.groups) for f in self._fragments]
        if len(stored) == 1:
            return stored[0]
        return distinct(np.concatenate(stored)) if stored else np.empty(0, dtype=np.int64)

    def rename_groups(self, new_name: NDArray[np.int64]) -> None:
        """Give groups new numbers; the order of numbers must stay the same."""
        self._fragments = [
            Fragment(f.starts, new_name[f.groups], f.partials) for f in self._fragments
        ]
        self._unread = self._journal = None

    def everything(self) -> Fragment:
        """All partials, as one fragment."""
        return self._merge()

    def evict_before(self, low: int) -> bool:
        """Forget panes that begin before `low`; says whether there were any."""
        before = len(self)
        rest = [f.between(low, FOREVER) for f in self._fragments]
        pairs = zip(rest, self._fragments, strict=True)
        self._fragments = [_shrunk(part, len(f)) for part, f in pairs if len(part)]
        return len(self) < before

    def _merge(self) -> Fragment:
        """All fragments as one."""
        stored = [f for f in self._fragments if len(f)] or [merged([], self.monoids)]
        self._fragments = stored if len(stored) == 1 else [_swept(stored, self.monoids)]
        self._repeated = 0
        return self._fragments[0]


def _swept(fragments: Sequence[Fragment], monoids: Sequence[Monoid]) -> Fragment:
    """Fragments that hold something, as one; panes that one of them alone has are not touched.

    Rows come nearly in order, so a fragment mostly overlaps the end of those before it::

        ├──── done ────┤├ both ┤├─ rest ─┤
        ├────── older ─────────┤
                        ├───── newer ────┤
    """
    done: list[Fragment] = []  # one behind the other
    rest, *newer = fragments
    for fragment in newer:
        low = int(fragment.starts[0])
        while done and done[-1].starts[-1] >= low:
            rest = joined(done.pop(), rest)
        over = rest.between(low, FOREVER)
        done.append(rest.between(BEGINNING, low))
        rest = fragment
        if len(over):
            high = int(over.starts[-1]) + 1
            done.append(merged([over, fragment.between(BEGINNING, high)], monoids))
            rest = fragment.between(high, FOREVER)
        done = [f for f in done if len(f)]
    return joined(*done, rest)


def _shrunk(view: Fragment, before: int) -> Fragment:
    """A copy, if the view would hold on to much more memory than it shows."""
    if 2 * len(view) > before:
        return view
    partials = shared_columns(lambda _, own: own[0].copy(), view)
    return Fragment(view.starts.copy(), view.groups.copy(), partials)
