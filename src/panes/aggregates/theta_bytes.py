"""The bytes of a theta sketch: those Spark writes, and the compact forms of DataSketches.

Spark writes a sketch of several hashes compressed: the distances between neighbours, each in as
many bits as the greatest one needs. Sketches with one hash or none are written plainly. What is no
sketch is refused with a `PanesError`; nothing is trusted, not even lengths.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from panes.aggregates.theta import ALL, EMPTY, Hashed, Theta, settled
from panes.errors import PanesError

Refused = Callable[[str], PanesError]
"""The error to raise, given why some bytes are no sketch."""

SEED_HASH = 0x93CC
_PLAIN, _COMPRESSED = 3, 4
_FAMILY = 3
_BIG_ENDIAN, _READ_ONLY, _EMPTY, _COMPACT, _ORDERED, _SINGLE = (1 << bit for bit in range(6))
_USUAL = _READ_ONLY | _COMPACT | _ORDERED


def written(sketch: Theta) -> bytes:
    """A sketch in Spark's form."""
    sketch = settled(sketch)
    if sketch.is_empty:
        return _head(1, _PLAIN, (0, 0), _USUAL | _EMPTY, seed_hash=0)
    count = len(sketch.hashes)
    if count == 0:
        return _head(3, _PLAIN, (0, 0), _USUAL) + struct.pack("<ifq", 0, 1.0, sketch.bound)
    if count == 1 and sketch.bound == ALL:
        return _head(1, _PLAIN, (0, 0), _USUAL | _SINGLE) + sketch.hashes.astype("<u8").tobytes()
    distances = np.diff(sketch.hashes, prepend=np.uint64(0))
    bits = int(np.bitwise_or.reduce(distances)).bit_length()
    length = (count.bit_length() + 7) // 8
    has_bound = sketch.bound < ALL
    head = _head(1 + has_bound, _COMPRESSED, (bits, length), _USUAL)
    bound = struct.pack("<q", sketch.bound) if has_bound else b""
    return head + bound + count.to_bytes(length, "little") + _packed(distances, bits)


def read(data: bytes) -> Theta:
    """The sketch in some bytes."""
    if len(data) < 8:
        raise _no_sketch(f"it has {len(data)} bytes")
    longs, version, family, third, fourth, flags = data[:6]
    longs &= 63
    if family != _FAMILY or version not in (_PLAIN, _COMPRESSED) or flags & _BIG_ENDIAN:
        raise _no_sketch("its first bytes are those of something else")
    if flags & _EMPTY:
        return EMPTY
    if struct.unpack_from("<H", data, 6) != (SEED_HASH,):
        raise _no_sketch("its hashes have a seed of their own")
    if not flags & _COMPACT or not 1 <= longs <= (3 if version == _PLAIN else 2):
        raise _no_sketch(f"its head says {longs} head words, flags {flags}")
    if version == _PLAIN:
        return _checked(*_read_plain(data, longs))
    return _checked(*_read_compressed(data, longs, third, fourth))


def _read_plain(data: bytes, longs: int) -> tuple[Hashed, int]:
    count, bound = 1, ALL
    if longs > 1:
        (count,) = struct.unpack("<i", _part(data, 8, 4))
    if longs > 2:
        (bound,) = struct.unpack("<q", _part(data, 16, 8))
    if count < 0:
        raise _no_sketch(f"its head says {count} hashes")
    return np.frombuffer(_part(data, 8 * longs, 8 * count), "<u8").astype(np.uint64), bound


def _read_compressed(data: bytes, longs: int, bits: int, length: int) -> tuple[Hashed, int]:
    if not 1 <= bits <= 63 or not 1 <= length <= 4:
        raise _no_sketch(f"its head says {bits} bits, and a count of {length} bytes")
    bound = ALL if longs == 1 else struct.unpack("<q", _part(data, 8, 8))[0]
    count = int.from_bytes(_part(data, 8 * longs, length), "little")
    packed = _part(data, 8 * longs + length, (count * bits + 7) // 8)
    return np.cumsum(_unpacked(packed, count, bits), dtype=np.uint64), bound


def _checked(hashes: Hashed, bound: int) -> Theta:
    ranked = np.sort(hashes)
    require_hashes(ranked, bound, _no_sketch)
    return settled(Theta(ranked, bound))


def require_hashes(ranked: Hashed, bound: int, refused: Refused) -> None:
    """Refuse hashes, that ascend, if one is there twice or is not below the bound."""
    if (ranked[1:] == ranked[:-1]).any() or not 0 < bound <= ALL:
        raise refused("it holds a hash twice, or has no bound")
    if len(ranked) and not (ranked[0] > 0 and ranked[-1] < np.uint64(bound)):
        raise refused("it holds a hash that is not below its bound")


def _head(
    longs: int, version: int, form: tuple[int, int], flags: int, seed_hash: int = SEED_HASH
) -> bytes:
    return struct.pack("<6BH", longs, version, _FAMILY, *form, flags, seed_hash)


def _packed(numbers: Hashed, bits: int) -> bytes:
    """So many low bits of each number, the highest one first, without a gap."""
    wide = np.unpackbits(numbers.astype(">u8").view(np.uint8)).reshape(-1, 64)
    return np.packbits(wide[:, 64 - bits :]).tobytes()


def _unpacked(packed: bytes, count: int, bits: int) -> NDArray[np.uint64]:
    flat = np.unpackbits(np.frombuffer(packed, np.uint8), count=count * bits)
    wide = np.zeros((count, 64), np.uint8)
    wide[:, 64 - bits :] = flat.reshape(count, bits)
    return np.packbits(wide).view(">u8").astype(np.uint64)


def _part(data: bytes, start: int, size: int) -> bytes:
    return part(data, start, size, _no_sketch)


def part(data: bytes, start: int, size: int, refused: Refused) -> bytes:
    """So many of the bytes, if they are there."""
    if start + size > len(data):
        raise refused(f"it has {len(data)} bytes, and its head says that there are more")
    return data[start : start + size]


def _no_sketch(why: str) -> PanesError:
    return PanesError(
        f"a value is no theta sketch: {why}",
        hint="theta_union_agg and theta_intersection_agg take what theta_sketch_agg gives, "
        "or compact theta sketches of DataSketches",
    )
