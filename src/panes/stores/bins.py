"""Start and end bins: a running answer at every edge of a per-row window (thesis 6.1.4.1).

A row at s enters the windows of positions ``[s, s + size)``. It starts a bin at s and one at
s + size; a bin's partial is that of the window which ends with its position, over the rows that
have come. So the window of any position between two bins has the partial of the older one::

    rows          s1      s2                   bins   S1  S2      E1  E2
    windows       [--------)                   count   1   2       1   0
                          [--------)

A batch adds its bins, each beginning with the partial of the bin before it, and is then combined
into every bin that its rows reach. When progress passes a position its bin is the answer; no row
is buffered, and none is read twice. Of the bins before progress the newest stays, for rows that
come between it and the next (as in the example of Fig. 6-5; Fig. 6-7 forgets it).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Rows
from panes.aggregates.monoid import Columns, Monoid
from panes.arrays.ordering import number_pairs
from panes.arrays.slots import distinct, moved
from panes.arrays.workers import workers
from panes.kernels.choose import roll
from panes.stores.contents import Contents
from panes.stores.fill import fill
from panes.stores.fragment import Fragment
from panes.stores.panes import by_group
from panes.stores.rolled import AnswerPartials
from panes.stores.store import Store
from panes.windows.cover import Cover, Wids, runs_under
from panes.windows.cut import cut
from panes.windows.spec import PanedSpec, Sliding

_NOTHING = np.empty(0, dtype=np.int64)


class Bins(Store):
    """The bins of one query, by group and then position."""

    def __init__(self, contents: Contents, spec: PanedSpec) -> None:
        assert isinstance(spec, Sliding)
        super().__init__(contents)
        self.spec = spec
        self._cut = cut(spec)
        self._monoids = tuple(p.monoid for p in contents.pieces)
        self._at, self._group = _NOTHING, _NOTHING
        self._partials = tuple(m.empty(0) for m in self._monoids)

    def __len__(self) -> int:
        return len(self._at)

    @property
    def nbytes(self) -> int:
        """Bytes of the bins."""
        return self._at.nbytes + self._group.nbytes + sum(p.nbytes for p in self._partials)

    def add(
        self,
        at: NDArray[np.int64],
        columns: Sequence[pa.Array],
        groups: NDArray[np.int32] | None = None,
    ) -> None:
        """Take in rows: bins for their edges, and their part in all bins that they reach."""
        new = fill(
            Rows(at, tuple(columns)),
            self.groups_of(columns, len(at), groups),
            self.keys,
            cut=self._cut,
            pieces=self.contents.pieces,
            executor=workers(),
        )
        before = self._initialise(new)
        touched, contributions = self._contributions(new)
        for i, (monoid, contribution) in enumerate(zip(self._monoids, contributions, strict=True)):
            before[i][:, touched] = monoid.combine(before[i][:, touched], contribution)
        self._partials = tuple(before)

    def _initialise(self, new: Fragment) -> list[Columns]:
        """Bins at all edges of new rows; the partials that all bins begin with."""
        size = self.spec.size
        at = np.concatenate([self._at, new.starts, new.starts + size])
        group = np.concatenate([self._group, new.groups, new.groups])
        numbers, merged_group, merged_at = number_pairs(group, at)
        older = np.full(len(merged_at), -1, dtype=np.int64)
        older[numbers[: len(self)]] = np.arange(len(self))
        older = np.maximum.accumulate(older)
        is_own = older >= 0
        is_own[is_own] = self._group[older[is_own]] == merged_group[is_own]
        older[~is_own] = len(self)
        self._at, self._group = merged_at, merged_group
        return [
            np.take(np.concatenate([stored, monoid.empty(1)], axis=1), older, axis=1)
            for stored, monoid in zip(self._partials, self._monoids, strict=True)
        ]

    def _contributions(self, new: Fragment) -> tuple[NDArray[np.int64], list[Columns]]:
        """The bins that new rows reach, and what the rows bring to them."""
        groups = distinct(self._group)
        bins = np.searchsorted(self._group, np.append(groups, self.keys))
        targets, offsets = by_group(new.groups, groups)
        starts = moved(new.starts, targets, len(new))
        first, last = runs_under(self.spec, self._at, bins, starts=starts, groups=offsets)
        touched = np.flatnonzero(last > first)
        reached = Cover(
            np.asarray(np.searchsorted(touched, bins)),
            self._at[touched],
            first[touched],
            last[touched],
        )

        def contribution(monoid: Monoid, partial: Columns) -> Columns:
            panes = moved(partial, targets, len(new))
            return roll(monoid, self.spec, panes, reached, starts=starts, groups=offsets)

        return touched, list(map(contribution, self._monoids, new.partials))

    def roll_named(
        self, groups: NDArray[np.int64], offsets: NDArray[np.int64], wid: NDArray[np.int64]
    ) -> AnswerPartials:
        """The partials of the windows that end with positions which have a bin."""
        asked = np.repeat(groups, np.diff(offsets))
        numbers, _, _ = number_pairs(np.r_[self._group, asked], np.r_[self._at, wid])
        found = numbers[len(self) :]
        return AnswerPartials(tuple(np.take(p, found, axis=1) for p in self._partials))

    def evict(self, first_open: Wids) -> bool:
        """Drop bins before `first_open`, but for each group's newest if more come after it."""
        before = len(self)
        is_open = self._at >= first_open
        follows = np.r_[is_open[1:], False] & np.r_[self._group[1:] == self._group[:-1], False]
        self._keep(np.flatnonzero(is_open | follows[: len(is_open)]))
        return len(self) < before

    def forget_keys(self) -> NDArray[np.int64] | None:
        """Drop keys that have no bin, if they are many; gives the new number of each group."""
        live = distinct(self._group)
        if not self.numbers.mostly_dead(len(live)):
            return None
        renamed = self.numbers.keep(live)
        self._group = renamed[self._group]
        return renamed

    def _keep(self, which: NDArray[np.int64]) -> None:
        self._at, self._group = self._at[which], self._group[which]
        self._partials = tuple(np.take(p, which, axis=1) for p in self._partials)
