"""Arguments stored as multisets: which values a group has in each pane, and how often.

Holistic aggregates read them. A value is one more grouping column, so a value that comes often in a
pane is stored once, with its count.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.aggregates.aggregate import Rows
from panes.aggregates.arithmetic import COUNT
from panes.arrays.key_numbers import KeyNumbers
from panes.arrays.nested_keys import stored, stored_type
from panes.arrays.slots import distinct, moved
from panes.kernels.sliding_multiset import SlidingMultiset
from panes.stores.contents import ValueSet
from panes.stores.fill import ALL_ROWS, fill
from panes.stores.fragment import Fragment, merged
from panes.stores.panes import PaneStore, Rolled, by_group
from panes.stores.parcel import Counted
from panes.windows.cover import Wids, runs_under
from panes.windows.cut import Cut
from panes.windows.spec import PanedSpec


class ValueStore:
    """One argument stored as a multiset: pairs of (group, value), counted per pane."""

    def __init__(
        self,
        values: ValueSet,
        types: Sequence[pa.DataType],
        spec: PanedSpec,
        executor: Executor,
    ) -> None:
        """`types` are those of the value's columns; `spec` the windows it is read under."""
        self._set = values
        self._types = [stored_type(t) for t in types]
        self._pairs = KeyNumbers([pa.int64(), *self._types])
        self._spec, self._executor = spec, executor
        self.store = PaneStore(spec, [COUNT], executor)

    @property
    def key_bytes(self) -> int:
        """Bytes that the different values take."""
        return self._pairs.nbytes

    def over(self, spec: PanedSpec) -> ValueStore:
        """The same values, read under other windows; nothing is to be added to it."""
        other = ValueStore(self._set, self._types, spec, self._executor)
        other._pairs = self._pairs
        other.store.fragments = (self.store.everything(),)
        return other

    def fill(
        self,
        rows: Rows,
        groups: NDArray[np.int32],
        cut_at: NDArray[np.int64],
        cut: Cut,
        executor: Executor,
    ) -> Fragment:
        """The values of a batch, counted per pane of `cut_at`; nothing is stored yet."""
        selected = np.flatnonzero(self._set.selection.slots(rows, groups) >= 0)
        indexes = pa.array(selected)
        columns = [stored(rows.columns[c].take(indexes)) for c in self._set.columns]
        owners = pa.array(groups[selected], pa.int64())
        pairs = self._pairs.encode([owners, *columns], len(selected))
        counted = Rows(cut_at[selected], ())
        return fill(counted, pairs, len(self._pairs), cut=cut, pieces=[ALL_ROWS], executor=executor)

    def add_counts(
        self,
        starts: NDArray[np.int64],
        groups: NDArray[np.integer],
        values: Sequence[pa.Array],
        counts: NDArray[np.int64],
    ) -> None:
        """Take in values that are counted already."""
        owners = pa.array(groups, pa.int64())
        pairs = self._pairs.encode([owners, *map(stored, values)], len(starts))
        fragment = Fragment(starts, pairs.astype(np.int64), (counts[None, :],))
        self.store.add(merged([fragment], self.store.monoids))

    def add(self, counted: Counted) -> None:
        """Take in values that another host counted, by groups of this one."""
        self.add_counts(counted.starts, counted.groups, counted.values, counted.counts)

    def everything(self) -> Counted:
        """All counted values."""
        kept = self.store.everything()
        owners, *values = self._pairs.columns(kept.groups)
        return Counted(kept.starts, owners.to_numpy(), values, kept.partials[0][0])

    def under(self, rolled: Rolled) -> SlidingMultiset:
        """The multisets of the answers, at least one, that the pane store gave."""
        wids = rolled.cover.wid
        kept = self.store.under(int(wids.min()), int(wids.max()) + 1)
        pairs = distinct(kept.groups)
        group_of, *values = self._pairs.columns(pairs)
        rank, ranked = _ranked(values, in_order=self._set.ordered)
        of_pair = np.searchsorted(pairs, kept.groups)
        groups = group_of.to_numpy()[of_pair]
        targets, offsets = by_group(groups, rolled.groups)
        size = int(offsets[-1])
        starts = moved(kept.starts, targets, size)
        first, last = runs_under(
            self._spec, wids, rolled.cover.offsets, starts=starts, groups=offsets
        )
        return SlidingMultiset(
            values=ranked,
            groups=offsets,
            rank=moved(rank[of_pair], targets, size),
            count=moved(kept.partials[0][0], targets, size),
            offsets=rolled.cover.offsets,
            first=first,
            last=last,
        )

    def evict(self, first_open: Wids) -> None:
        """Drop values that no open window holds; bounds for each group are by its number."""
        if not isinstance(first_open, int):
            owner = self._pairs.columns(np.arange(len(self._pairs)))[0].to_numpy()
            first_open = first_open[owner]
        self.store.evict(first_open)

    def forget_keys(self) -> None:
        """Drop pairs that no pane holds."""
        live = self.store.live_groups()
        if self._pairs.mostly_dead(len(live)):
            self.store.rename_groups(self._pairs.keep(live))

    def rename_groups(self, renamed: NDArray[np.int64]) -> None:
        """The groups have new numbers."""
        live = self.store.live_groups()
        group, *values = self._pairs.columns(live)
        columns = [pa.array(renamed[group.to_numpy()]), *values]
        self.store.rename_groups(self._pairs.keep(live, columns))


def _ranked(
    columns: Sequence[pa.Array], *, in_order: bool
) -> tuple[NDArray[np.signedinteger], pa.Array]:
    """The rank of each value among the distinct ones, and those, ascending, NaN last.

    Several columns are tuples. `in_order` they are structs, ranked by their first column, then
    the next, NULL first. Otherwise each gets the next number.
    """
    if len(columns) > 1:
        tuples = KeyNumbers([c.type for c in columns])
        number = tuples.encode(columns, len(columns[0]))
        if not in_order:
            return number, pa.array(np.arange(len(tuples)))
        order = tuples.order(np.arange(len(tuples)))
        rank_of = np.empty(len(order), dtype=np.int64)
        rank_of[order] = np.arange(len(order))
        names = [str(i) for i in range(len(columns))]
        return rank_of[number], pa.StructArray.from_arrays(tuples.columns(order), names)
    encoded = columns[0].dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank_of = np.empty(len(order), dtype=np.int64)
    rank_of[order] = np.arange(len(order))
    return rank_of[encoded.indices.to_numpy()], encoded.dictionary.take(pa.array(order))
