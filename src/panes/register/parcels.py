"""The panes of a shared store on the way to another host, or at rest in its state.

A parcel's keys have one more column here: the class of filters, as the bytes of its number. Filters
and pieces are named by columns, whose numbers hosts agree on as long as a register lives.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Piece
from panes.fill.filter_classes import to_words
from panes.fill.fragment import Fragment, merged
from panes.register.shared_store import SharedStore
from panes.stores.contents import ValueSet
from panes.stores.keyed_panes import PartOf, by_part
from panes.stores.parcel import Counted, Parcel

_NOTHING = np.empty(0, dtype=np.int64)


def split(
    store: SharedStore, part_of: PartOf, only: Container[int] | None = None
) -> dict[int, Parcel]:
    """Everything stored, part by part: `part_of` tells the part of each pane and key.

    With `only`, other parts are left out.
    """
    stored = store.fragments.everything()
    parts = by_part(part_of(stored.starts, stored.groups // store.width))
    counted = [values.everything() for values in store.values.values()]
    valued = [by_part(part_of(c.starts, c.groups)) for c in counted]
    found = {}
    for part in sorted(parts.keys() | {p for v in valued for p in v}):
        if only is not None and part not in only:
            continue
        some = [v.get(part, _NOTHING) for v in valued]
        which = list(zip(counted, some, strict=True))
        found[part] = _parcel(store, stored, parts.get(part, _NOTHING), which)
    return found


def _parcel(
    store: SharedStore,
    stored: Fragment,
    which: NDArray[np.int64],
    counted: Sequence[tuple[Counted, NDArray[np.int64]]],
) -> Parcel:
    """Some panes, and some values. Keys that only have values stand there in the first class."""
    groups = [stored.groups[which], *(c.groups[kept] * store.width for c, kept in counted)]
    pairs = np.unique(np.concatenate(groups))
    local = [np.searchsorted(pairs, g) for g in groups]
    key, number = np.divmod(pairs, store.width)
    names = pa.array([_to_bytes(c) for c in store.classes] or [b""], pa.binary())
    values = [
        Counted(c.starts[k], owners, [v.take(pa.array(k)) for v in c.values], c.counts[k])
        for (c, k), owners in zip(counted, local[1:], strict=True)
    ]
    return Parcel(
        keys=[*store.groups.columns(key), names.take(pa.array(number))],
        starts=stored.starts[which],
        groups=local[0],
        partials=tuple(np.take(p, which, axis=1) for p in stored.partials),
        values=tuple(values),
    )


def take(
    store: SharedStore,
    parcel: Parcel,
    pieces: Sequence[Piece | None],
    values: Sequence[ValueSet | None],
) -> None:
    """Take in a parcel that was written with these pieces and multisets.

    What the store does not keep is left out, and what the parcel does not have is neutral. Panes
    that no window needs any more are left out too.
    """
    *keys, names = parcel.keys
    key = store.groups.encode(keys, len(names)).astype(np.int64)
    known = names.dictionary_encode()
    bits = sum(1 << f for f in store.rows.filters)
    classes = store.number(to_words([_from_bytes(c) & bits for c in known.dictionary.to_pylist()]))
    coded = key * store.width + classes[known.indices.to_numpy()]
    kept = np.flatnonzero(parcel.starts >= store.evicted_before)
    given = dict(zip([p for p in pieces if p is not None], parcel.partials, strict=True))
    partials = [
        np.take(given[p], kept, axis=1) if p in given else p.monoid.empty(len(kept))
        for p in store.pieces
    ]
    arrived = Fragment(parcel.starts[kept], coded[parcel.groups[kept]], tuple(partials))
    store.fragments.add(merged([arrived], store.fragments.monoids))
    for which, counted in zip(values, parcel.values, strict=True):
        if which is not None and which in store.values:
            some = np.flatnonzero(counted.starts >= store.evicted_before)
            store.values[which].add_counts(
                counted.starts[some],
                key[counted.groups[some]],
                [v.take(pa.array(some)) for v in counted.values],
                counted.counts[some],
            )


def _to_bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def _from_bytes(data: bytes) -> int:
    return int.from_bytes(data, "little")
