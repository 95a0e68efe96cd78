"""The panes of a shared store on the way to another host, or at rest in its state.

A parcel's keys have one more column here: the class of filters, as the bytes of its number. Keys
that only have values stand there in the first class. Filters and pieces are named by columns,
whose numbers hosts agree on as long as a register lives.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Piece
from panes.sharing.shared_store import SharedStore
from panes.stores import handover
from panes.stores.contents import ValueSet
from panes.stores.filter_classes import to_words
from panes.stores.fragment import merged
from panes.stores.handover import PartOf, opened
from panes.stores.parcel import Parcel


def split(
    store: SharedStore, part_of: PartOf, only: Container[int] | None = None
) -> dict[int, Parcel]:
    """Everything stored, part by part: `part_of` tells the part of each pane and key.

    With `only`, other parts are left out.
    """
    panes, width = store.panes, store.panes.width
    counted = [values.everything() for values in panes.values.values()]

    def keys_of(pairs: NDArray[np.int64]) -> list[pa.Array]:
        key, number = np.divmod(pairs, width)
        names = pa.array([_to_bytes(c) for c in panes.classes] or [b""], pa.binary())
        return [*panes.groups.columns(key), names.take(pa.array(number))]

    return handover.split(
        panes.fragments.everything(),
        [replace(c, groups=c.groups * width) for c in counted],
        lambda starts, pairs: part_of(starts, pairs // width),
        keys_of,
        only,
    )


def take(
    store: SharedStore,
    parcel: Parcel,
    pieces: Sequence[Piece | None],
    values: Sequence[ValueSet | None],
) -> None:
    """Take in a parcel that was written with these pieces and multisets.

    Those that are None, which no query of the store needs, are left out; what the parcel does not
    have is neutral. Panes that no window needs any more are left out too.
    """
    *keys, names = parcel.keys
    panes, evicted_before = store.panes, store.completeness.evicted_before
    key = panes.groups.encode(keys, len(names)).astype(np.int64)
    known = names.dictionary_encode()
    bits = sum(1 << f for f in store.rows.filters)
    classes = panes.number(to_words([_from_bytes(c) & bits for c in known.dictionary.to_pylist()]))
    coded = key * panes.width + classes[known.indices.to_numpy()]
    arrived, counted = opened(parcel, coded, key, lambda starts: starts >= evicted_before)
    given = dict(zip([p for p in pieces if p is not None], arrived.partials, strict=True))
    partials = tuple(given[p] if p in given else p.monoid.empty(len(arrived)) for p in panes.pieces)
    panes.fragments.add(merged([replace(arrived, partials=partials)], panes.fragments.monoids))
    for which, found in zip(values, counted, strict=True):
        if which is not None:
            panes.values[which].add(found)


def _to_bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def _from_bytes(data: bytes) -> int:
    return int.from_bytes(data, "little")
