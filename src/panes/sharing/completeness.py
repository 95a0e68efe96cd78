"""From where on windows can be answered in full: how panes were cut over time, what was evicted.

Whatever a query needs (a piece, a filter, the edges of its windows) is complete from some position
on, and what it needs is only read from there on: nothing before is invented.
"""

from __future__ import annotations

from collections.abc import Iterable

from panes.axis import BEGINNING
from panes.planning.shared_cut import SharedCut
from panes.windows.cut import Cut
from panes.windows.spec import Sliding


class Completeness:
    """The cuts of a store's panes, each up to some position, and what is evicted.

    `shared_cut` is the one that was chosen last; `is_current`: for the queries that are there now.
    """

    def __init__(self) -> None:
        self.shared_cut: SharedCut | None = None
        self.is_current = False
        self.cuts_before: dict[Cut, int] = {}
        self.evicted_before = BEGINNING

    def complete_from(self, since: Iterable[int], spec: Sliding, newest: int) -> int:
        """From where on windows of a spec are complete, if what they need is there `since` then.

        `BEGINNING` if everything was there from the beginning of the stream.
        """
        known = [*since, *(at for cut, at in self.cuts_before.items() if not cut.serves(spec))]
        if self.shared_cut is not None and not self.shared_cut.cut.serves(spec):
            known.append(after(newest))
        return max(self.evicted_before, *known)

    def settle(self, shared_cut: SharedCut) -> None:
        """Cut panes this way from now on."""
        self.shared_cut, self.is_current = shared_cut, True

    def change_cut(self, newest: int) -> None:
        """Queries have come or gone: before the next row, panes are cut anew."""
        self.is_current = False
        if self.shared_cut is not None and newest != BEGINNING:
            self.note_cut(self.shared_cut.cut, after(newest))

    def note_cut(self, cut: Cut, before: int) -> None:
        """Panes that begin before a position may be those of a cut."""
        self.cuts_before[cut] = max(self.cuts_before.get(cut, BEGINNING), before)

    def cuts_at(self, position: int) -> list[Cut]:
        """Earlier cuts that a pane at or after a position may come from."""
        return [cut for cut, at in self.cuts_before.items() if at > position]

    def evict_before(self, low: int, newest: int) -> bool:
        """Panes before a position go; says if there may be any.

        Progress may be ahead of the newest row; after that row nothing is missing.
        """
        if low <= self.evicted_before:
            return False
        self.evicted_before = min(low, after(newest))
        self.cuts_before = {cut: at for cut, at in self.cuts_before.items() if at > low}
        return True


def after(newest: int) -> int:
    """The first position that no row has had; `BEGINNING` if there was no row."""
    return BEGINNING if newest == BEGINNING else newest + 1
