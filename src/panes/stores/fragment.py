"""A fragment: the partials of pairs (pane, group) that come out of a batch, as sorted columns.

Fragments never change, so they may be shared, sent and put back. Whoever fills them says what a
group is; nothing here knows of windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from panes.aggregates.monoid import Columns, Monoid, merge_slots
from panes.arrays.slots import compact_slots

_MOST_CODES = 1 << 62


@dataclass(frozen=True, slots=True)
class Fragment:
    """Partials of pairs (pane, group), sorted by pane and then group, no pair twice.

    Pieces that turned out to be the same may share one array.
    """

    starts: NDArray[np.int64]
    groups: NDArray[np.int64]
    partials: tuple[Columns, ...]

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def nbytes(self) -> int:
        return self.starts.nbytes + self.groups.nbytes + sum(p.nbytes for p in self.partials)

    def between(self, low: int, high: int) -> Fragment:
        """The part whose panes begin in ``[low, high)``; no copy."""
        a, b = np.searchsorted(self.starts, [low, high])
        partials = shared_columns(lambda _, own: own[0][:, a:b], self)
        return Fragment(self.starts[a:b], self.groups[a:b], partials)


def joined(*fragments: Fragment) -> Fragment:
    """Fragments, each of which begins after the one before it has ended."""
    return Fragment(
        np.concatenate([f.starts for f in fragments]),
        np.concatenate([f.groups for f in fragments]),
        shared_columns(lambda _, own: np.concatenate(own, axis=1), *fragments),
    )


def merged(fragments: Sequence[Fragment], monoids: Sequence[Monoid]) -> Fragment:
    """All fragments as one: sorted, pairs that occur several times combined.

    What goes in need not be sorted.
    """
    if not fragments:
        nothing = np.empty(0, dtype=np.int64)
        return Fragment(nothing, nothing, tuple(m.empty(0) for m in monoids))
    starts = np.concatenate([f.starts for f in fragments])
    groups = np.concatenate([f.groups for f in fragments])
    panes = np.unique(np.concatenate([np.unique(f.starts) for f in fragments]))
    names, width = None, int(groups.max(initial=0)) + 1
    if len(panes) * width >= _MOST_CODES:
        names, groups = np.unique(groups, return_inverse=True)
        width = len(names)
    codes = np.searchsorted(panes, starts) * width + groups
    slots, pairs = compact_slots(codes, len(panes) * width)

    def merge(index: int, own: tuple[Columns, ...]) -> Columns:
        return merge_slots(monoids[index], np.concatenate(own, axis=1), slots, len(pairs))

    named = pairs % width if names is None else names[pairs % width]
    return Fragment(panes[pairs // width], named, shared_columns(merge, *fragments))


def shared_columns(
    make: Callable[[int, tuple[Columns, ...]], Columns], *fragments: Fragment
) -> tuple[Columns, ...]:
    """What is made of the partials of each piece; pieces that share theirs everywhere still do."""
    made: dict[tuple[int, ...], Columns] = {}
    partials: list[Columns] = []
    for index, own in enumerate(zip(*(f.partials for f in fragments), strict=True)):
        which = tuple(map(id, own))
        if which not in made:
            made[which] = make(index, own)
        partials.append(made[which])
    return tuple(partials)
