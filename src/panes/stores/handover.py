"""Handing panes over: a store split into parcels, and a parcel opened by another store.

A store numbers its keys as it meets them, so a parcel brings key values and numbers of its own.
Whoever opens it says what number each of its keys has here, and which panes are still wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.slots import compact_slots
from panes.stores.fragment import Fragment
from panes.stores.parcel import Counted, Parcel

Integers: TypeAlias = NDArray[np.int64]
PartOf: TypeAlias = Callable[[Integers, Integers], Integers]
"""Tells the part that each pair of a pane's start and a group belongs to."""
IsWanted: TypeAlias = Callable[[Integers], NDArray[np.bool_]]
"""Tells which panes are wanted, by where they begin."""

_NOTHING = np.empty(0, dtype=np.int64)


def split(
    stored: Fragment,
    counted: Sequence[Counted],
    part_of: PartOf,
    keys_of: Callable[[Integers], list[pa.Array]],
    only: Container[int] | None = None,
) -> dict[int, Parcel]:
    """Partials and counted values of the same groups, part by part; with `only`, of some parts.

    `keys_of` gives the key values of groups.
    """
    panes = _by_part(part_of(stored.starts, stored.groups))
    values = [_by_part(part_of(c.starts, c.groups)) for c in counted]
    found = {}
    for part in sorted(set(panes).union(*values)):
        if only is None or part in only:
            own = [v.get(part, _NOTHING) for v in values]
            found[part] = _parcel(stored, panes.get(part, _NOTHING), counted, own, keys_of)
    return found


def _parcel(
    stored: Fragment,
    panes: Integers,
    counted: Sequence[Counted],
    values: Sequence[Integers],
    keys_of: Callable[[Integers], list[pa.Array]],
) -> Parcel:
    """Some panes and some values, with numbers of its own for their groups."""
    groups = [stored.groups[panes], *(c.groups[v] for c, v in zip(counted, values, strict=True))]
    every = np.concatenate(groups)
    local, present = compact_slots(every, int(every.max(initial=0)) + 1)
    own, *of_values = np.split(local, np.cumsum([len(g) for g in groups])[:-1])
    return Parcel(
        keys=keys_of(present),
        starts=stored.starts[panes],
        groups=own,
        partials=tuple(np.take(p, panes, axis=1) for p in stored.partials),
        values=tuple(
            Counted(c.starts[v], g, [x.take(pa.array(v)) for x in c.values], c.counts[v])
            for c, v, g in zip(counted, values, of_values, strict=True)
        ),
    )


def opened(
    parcel: Parcel, groups: Integers, value_groups: Integers, is_wanted: IsWanted
) -> tuple[Fragment, list[Counted]]:
    """The wanted panes and values of a parcel, by groups of the store that takes them in.

    `groups` and `value_groups` are the numbers here of the parcel's keys: for partials and for
    values. The fragment need not be sorted.
    """
    arrived = Fragment(parcel.starts, groups[parcel.groups], parcel.partials)
    wanted = is_wanted(arrived.starts)
    if not wanted.all():
        which = np.flatnonzero(wanted)
        partials = tuple(np.take(p, which, axis=1) for p in arrived.partials)
        arrived = Fragment(arrived.starts[which], arrived.groups[which], partials)
    return arrived, [_wanted(c, value_groups, is_wanted) for c in parcel.values]


def _wanted(counted: Counted, groups: Integers, is_wanted: IsWanted) -> Counted:
    which = np.flatnonzero(is_wanted(counted.starts))
    return Counted(
        counted.starts[which],
        groups[counted.groups[which]],
        [v.take(pa.array(which)) for v in counted.values],
        counted.counts[which],
    )


def _by_part(parts: Integers) -> dict[int, Integers]:
    """Where each part's rows stand, in their order."""
    if not len(parts):
        return {}
    order = np.argsort(parts, kind="stable")
    numbers, begins = np.unique(parts[order], return_index=True)
    return dict(zip(numbers.tolist(), np.split(order, begins[1:]), strict=True))
