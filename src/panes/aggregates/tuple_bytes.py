"""The bytes of a tuple sketch: the compact form of DataSketches, with the numbers Spark writes.

Behind the head stand the hashes, each followed by its number (a double, or an int) and the mode in
which it was made. The caller says in which order (`panes.aggregates.tuple_tables`). What is no
sketch is refused with a `PanesError`; nothing is trusted, not even lengths. A sketch of ints has
another length than one of doubles, so neither is taken for the other.
"""

from __future__ import annotations

import struct

import numpy as np

from panes.aggregates.exact_sums import Index
from panes.aggregates.theta import ALL
from panes.aggregates.theta_bytes import SEED_HASH, Refused, part, require_hashes
from panes.aggregates.tuple_summaries import Folding, Kind, SummaryMode
from panes.aggregates.tuples import Tuples, empty
from panes.errors import PanesError

_VERSION, _FAMILY, _COMPACT_FORM = 3, 9, 1
_BIG_ENDIAN, _READ_ONLY, _EMPTY, _COMPACT = (1 << bit for bit in range(4))
_ENTRY: dict[Kind, np.dtype[np.void]] = {
    "double": np.dtype([("hash", "<u8"), ("number", "<f8"), ("mode", "u1")]),
    "integer": np.dtype([("hash", "<u8"), ("number", "<i4"), ("mode", "u1")]),
}


def written(sketch: Tuples, order: Index, bound: int) -> bytes:
    """These of the sketch's entries, in this order; all its keys have hashes below the bound."""
    if sketch.is_empty:
        return _head(1, _EMPTY)
    entries = np.empty(len(order), _ENTRY[sketch.summaries.folding.kind])
    entries["hash"] = sketch.hashes[order]
    entries["number"] = sketch.summaries.numbers.written()[order]
    entries["mode"] = sketch.summaries.modes[order]
    if len(order) == 1 and bound == ALL:
        return _head(1) + entries.tobytes()
    count = struct.pack("<ii", len(order), 0)
    if bound == ALL:
        return _head(2) + count + entries.tobytes()
    return _head(3) + count + struct.pack("<q", bound) + entries.tobytes()


def read(data: bytes, folding: Folding) -> Tuples:
    """The sketch in some bytes, whose numbers will be folded by a folding."""
    refused = _REFUSED[folding.kind]
    if len(data) < 8:
        raise refused(f"it has {len(data)} bytes")
    longs, version, family, form, _, flags, seed_hash = struct.unpack("<6BH", data[:8])
    if (version, family, form) != (_VERSION, _FAMILY, _COMPACT_FORM) or flags & _BIG_ENDIAN:
        raise refused("its first bytes are those of something else")
    if flags & _EMPTY:
        return empty(folding)
    if seed_hash != SEED_HASH:
        raise refused("its hashes have a seed of their own")
    if not 1 <= longs <= 3:
        raise refused(f"its head says {longs} head words")
    count, bound = 1, ALL
    if longs > 1:
        (count,) = struct.unpack("<i", part(data, 8, 4, refused))
    if longs > 2:
        (bound,) = struct.unpack("<q", part(data, 16, 8, refused))
    return _entries(data[8 * longs :], count, bound, folding)


def _entries(data: bytes, count: int, bound: int, folding: Folding) -> Tuples:
    refused, entry = _REFUSED[folding.kind], _ENTRY[folding.kind]
    if len(data) != count * entry.itemsize:
        raise refused(f"its head says {count} entries, and they take {len(data)} bytes")
    entries = np.frombuffer(data, entry)
    entries = entries[np.argsort(entries["hash"], kind="stable")]
    hashes = entries["hash"].astype(np.uint64)
    require_hashes(hashes, bound, refused)
    if len(entries) and entries["mode"].max() > max(SummaryMode):
        raise refused(f"a number was made in mode {entries['mode'].max()}")
    return Tuples(hashes, folding.of(entries["number"], entries["mode"].copy()), bound)


def _head(longs: int, flags: int = 0) -> bytes:
    flags |= _READ_ONLY | _COMPACT
    return struct.pack("<6BH", longs, _VERSION, _FAMILY, _COMPACT_FORM, 0, flags, SEED_HASH)


def _refused_of(kind: Kind) -> Refused:
    def refused(why: str) -> PanesError:
        return PanesError(
            f"a value is no tuple sketch of {kind}s: {why}",
            hint=f"tuple_union_agg_{kind} and tuple_intersection_agg_{kind} take what "
            f"tuple_sketch_agg_{kind} gives, or compact tuple sketches of DataSketches",
        )

    return refused


_REFUSED: dict[Kind, Refused] = {kind: _refused_of(kind) for kind in _ENTRY}
