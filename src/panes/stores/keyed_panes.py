"""The pane store of one query: numbers for its keys, panes of partials, a store per multiset.

Rows become partials here, and partials of panes become partials of windows. Which windows are due
is not known here: whoever drives the store says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Rows
from panes.aggregates.monoid import Columns
from panes.arrays.slots import distinct
from panes.arrays.workers import workers
from panes.stores.contents import Contents
from panes.stores.fill import fill
from panes.stores.fragment import Fragment, merged
from panes.stores.handover import IsWanted, PartOf, opened, split
from panes.stores.multisets import ValueStore
from panes.stores.panes import PaneStore, Rolled, by_window
from panes.stores.parcel import Parcel
from panes.stores.rolled import WindowPartials
from panes.stores.store import WindowStore
from panes.windows.cover import Wids
from panes.windows.cut import cut, in_some_window
from panes.windows.spec import PanedSpec


class KeyedPanes(WindowStore):
    """The partials of one query, for the windows of one spec."""

    def __init__(self, contents: Contents, spec: PanedSpec) -> None:
        super().__init__(contents)
        self.spec = spec
        self._cut = cut(spec)
        self._executor = workers()
        self._store = PaneStore(spec, [p.monoid for p in contents.pieces], self._executor)
        self._values = [
            ValueStore(v, [contents.row_types[c] for c in v.columns], spec, self._executor)
            for v in contents.value_sets
        ]

    def __len__(self) -> int:
        return len(self._store) + sum(len(v.store) for v in self._values)

    @property
    def nbytes(self) -> int:
        """Bytes the partials take."""
        return self._store.nbytes + sum(v.store.nbytes for v in self._values)

    @property
    def key_bytes(self) -> int:
        """Bytes that the key values take."""
        return super().key_bytes + sum(v.key_bytes for v in self._values)

    def add(
        self,
        at: NDArray[np.int64],
        columns: Sequence[pa.Array],
        groups: NDArray[np.int32] | None = None,
        cut_at: NDArray[np.int64] | None = None,
    ) -> None:
        """Take in rows: positions, the plan's projected columns, and groups if they are known.

        Rows go into the panes at `cut_at`, if these are not their positions.
        """
        cut_at = at if cut_at is None else cut_at
        rows = Rows(at, tuple(columns))
        groups = self.groups_of(columns, len(at), groups)
        filled = fill(
            rows,
            groups,
            self.keys,
            cut=self._cut,
            pieces=self.contents.pieces,
            executor=self._executor,
            cut_at=cut_at,
        )
        counted = [v.fill(rows, groups, cut_at, self._cut, self._executor) for v in self._values]
        self._store.add(filled)
        for values, fragment in zip(self._values, counted, strict=True):
            values.store.add(fragment)

    def add_partials(
        self, starts: NDArray[np.int64], keys: Sequence[pa.Array], partials: Sequence[Columns]
    ) -> None:
        """Take in partials that another host filled, one per pane and key or several."""
        groups = self.numbers.encode(keys, len(starts)).astype(np.int64)
        self._store.add(merged([Fragment(starts, groups, tuple(partials))], self._store.monoids))

    def add_values(
        self,
        index: int,
        starts: NDArray[np.int64],
        keys: Sequence[pa.Array],
        values: Sequence[pa.Array],
        counts: NDArray[np.int64],
    ) -> None:
        """Take in counted values of multiset `index` that another host filled."""
        groups = self.numbers.encode(keys, len(starts))
        self._values[index].add_counts(starts, groups, values, counts)

    def take(self, parcels: Sequence[Parcel], is_wanted: IsWanted) -> NDArray[np.int64]:
        """Take in what other hosts handed over, as far as it is wanted; gives its pane starts."""
        fragments = []
        for parcel in parcels:
            size = len(parcel.keys[0]) if parcel.keys else 1
            number = self.numbers.encode(parcel.keys, size).astype(np.int64)
            arrived, counted = opened(parcel, number, number, is_wanted)
            fragments.append(arrived)
            for store, found in zip(self._values, counted, strict=True):
                store.add(found)
        self._store.add(merged(fragments, self._store.monoids))
        return np.concatenate([f.starts for f in fragments]) if fragments else _NOTHING

    def partial_starts(self) -> NDArray[np.int64]:
        """Where the pane of every partial begins, ascending."""
        return self._store.everything().starts

    def pane_starts(self) -> NDArray[np.int64]:
        """Where the panes that hold anything begin."""
        stored = [self._store.everything().starts]
        stored += [v.store.everything().starts for v in self._values]
        return np.unique(np.concatenate(stored))

    def split(self, part_of: PartOf) -> dict[int, Parcel]:
        """Everything stored, part by part: `part_of` tells the part of each pane and group."""
        counted = [v.everything() for v in self._values]
        return split(self._store.everything(), counted, part_of, self.numbers.columns)

    def roll(
        self, first_due: Wids, end_due: Wids, *, in_order: bool = True
    ) -> WindowPartials | None:
        """Roll the windows ``[first_due, end_due)``, of all groups alike or of each its own.

        None if none of them holds a pane.
        """
        if not len(self._store):
            return None
        order_of = self.numbers.order if in_order else _as_they_are
        rolled = self._store.answer(first_due, end_due, order_of)
        if not len(rolled.cover):
            return None
        return self._with_keys(rolled, by_window(rolled) if in_order else None)

    def roll_named(
        self, groups: NDArray[np.int64], offsets: NDArray[np.int64], wid: NDArray[np.int64]
    ) -> WindowPartials:
        """The same for windows named one by one, ascending within each of the groups."""
        return self._with_keys(self._store.answer_at(groups, offsets, wid), None)

    def _with_keys(self, rolled: Rolled, order: NDArray[np.int64] | None) -> WindowPartials:
        return WindowPartials(
            partials=rolled.partials,
            multisets=tuple(v.under(rolled) for v in self._values),
            keys=self.numbers.columns(rolled.groups),
            cover=rolled.cover,
            order=order,
        )

    def evict(self, first_open: Wids) -> bool:
        """Drop panes that no open window holds; says whether there were any."""
        dropped = self._store.evict(first_open)
        for values in self._values:
            values.evict(first_open)
        return dropped

    @property
    def fragments(self) -> list[tuple[Fragment, ...]]:
        """All that is stored, to be put back later: fragments never change."""
        return [store.fragments for store in (self._store, *(v.store for v in self._values))]

    @fragments.setter
    def fragments(self, fragments: Sequence[tuple[Fragment, ...]]) -> None:
        stores = (self._store, *(v.store for v in self._values))
        for store, stored in zip(stores, fragments, strict=True):
            store.fragments = stored

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Forget afterwards what is added in here."""
        before = self.fragments
        try:
            yield
        finally:
            self.fragments = before

    def holds(self, starts: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The pairs of a pane and a group that there are."""
        return self._store.holds(starts, groups)

    def live_groups(self) -> NDArray[np.int64]:
        """The groups that hold anything, ascending."""
        return self._store.live_groups()

    def forget_keys(self, needed: NDArray[np.int64] | None = None) -> NDArray[np.int64] | None:
        """Drop keys that no pane holds, if they are many; gives the new number of each group.

        The keys of the groups in `needed` stay.
        """
        for values in self._values:
            values.forget_keys()
        live = self._store.live_groups()
        if needed is not None:
            live = distinct(np.concatenate([live, needed]))
        if not self.numbers.mostly_dead(len(live)):
            return None
        renamed = self.numbers.keep(live)
        self._store.rename_groups(renamed)
        for values in self._values:
            values.rename_groups(renamed)
        return renamed


def inside(
    spec: PanedSpec, at: NDArray[np.int64], columns: Sequence[pa.Array]
) -> tuple[NDArray[np.int64], Sequence[pa.Array]]:
    """Without rows that no window holds, as between sampling windows."""
    is_inside = in_some_window(spec, at)
    if is_inside is None or is_inside.all():
        return at, columns
    which = pa.array(np.flatnonzero(is_inside))
    return at[is_inside], [c.take(which) for c in columns]


_NOTHING = np.empty(0, dtype=np.int64)


def _as_they_are(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    return groups
