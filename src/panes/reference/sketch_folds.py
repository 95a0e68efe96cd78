"""Spark's sketches the obvious way: sets of hashes in plain Python, and their bytes.

As in `panes.reference.folds`, nothing is shared with `panes.aggregates`. A sketch that a stream
holds is read in the forms that Spark itself writes, and in no others.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from panes.errors import PanesError
from panes.reference.folds import Fold, Row, without_nulls

_LOW = (1 << 64) - 1


def murmur(data: bytes, seed: int = 9001) -> tuple[int, int]:
    """Murmur3 of 128 bits."""

    def turned(word: int, by: int) -> int:
        return (word << by | word >> 64 - by) & _LOW

    def final(word: int) -> int:
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53, 1):
            word = (word ^ word >> 33) * factor & _LOW
        return word

    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
    h1 = h2 = seed
    for at in range(0, len(data), 16):
        block = data[at : at + 16]
        k1, k2 = (int.from_bytes(half, "little") for half in (block[:8], block[8:]))
        h1 ^= turned(k1 * c1 & _LOW, 31) * c2 & _LOW
        if len(block) == 16:
            h1 = ((turned(h1, 27) + h2) * 5 + 0x52DCE729) & _LOW
        h2 ^= turned(k2 * c2 & _LOW, 33) * c1 & _LOW
        if len(block) == 16:
            h2 = ((turned(h2, 31) + h1) * 5 + 0x38495AB5) & _LOW
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = (h1 + h2) & _LOW
    h2 = (h2 + h1) & _LOW
    h1, h2 = final(h1), final(h2)
    h1 = (h1 + h2) & _LOW
    return h1, (h2 + h1) & _LOW


def bytes_of(value: Any) -> bytes:
    """What is hashed of a value."""
    if isinstance(value, int):
        return struct.pack("<q", value)
    if isinstance(value, float):
        return struct.pack("<d", math.nan if math.isnan(value) else value + 0.0)
    return value.encode() if isinstance(value, str) else bytes(value)


def with_bytes(rows: Sequence[Row], kind: pa.DataType) -> Sequence[Row]:
    """The rows with lists of whole numbers as their bytes, NULL as 0; small ints as doubles."""
    if pa.types.is_int8(kind) or pa.types.is_int16(kind):
        return [(at, (None if v is None else float(v), *rest)) for at, (v, *rest) in rows]
    if not pa.types.is_list(kind):
        return rows
    letter = "i" if pa.types.is_int32(kind.value_type) else "q"
    return [
        (
            at,
            (None if v is None else struct.pack(f"<{len(v)}{letter}", *(n or 0 for n in v)), *rest),
        )
        for at, (v, *rest) in rows
    ]


def hashed(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """The hashes of the values that have a byte."""
    data = [bytes_of(v[0]) for v in without_nulls(rows)]
    return [murmur(d) for d in data if d]


def hll_sketch(rows: Sequence[Row], lg: float = 12) -> bytes:
    coupons = {
        (min(64 - second.bit_length(), 62) + 1) << 26 | first & ((1 << 26) - 1)
        for first, second in hashed(rows)
    }
    return hll_written(int(lg), coupons, are_registers=False)


def hll_union(rows: Sequence[Row], any_size: bool = False) -> bytes:
    """The coupons of all sketches; a register is a coupon whose address is short."""
    found = [hll_read(v[0]) for v in without_nulls(rows)]
    sizes = sorted({lg for lg, _, _ in found})
    if len(sizes) > 1 and not any_size:
        raise PanesError(f"sketches of different sizes: {sizes}")
    coupons = {c for _, some, _ in found for c in some}
    return hll_written(sizes[0] if sizes else 12, coupons, are_registers=any(r for *_, r in found))


def hll_read(data: bytes) -> tuple[int, set[int], bool]:
    """The size of a sketch, its coupons, and whether these are registers."""
    lg, kind = data[3], data[7] & 3
    if kind == 2:
        if data[7] >> 2 != 2:
            raise PanesError("the oracle reads HLL sketches with registers of eight bits alone")
        return lg, {v << 26 | at for at, v in enumerate(data[40:]) if v}, True
    words = struct.iter_unpack("<I", data[12 if kind else 8 :])
    return lg, {word for (word,) in words if word}, False


def hll_written(lg: int, coupons: Iterable[int], *, are_registers: bool) -> bytes:
    ranked = sorted(coupons)
    most = 7 if lg < 8 else 3 * 2 ** (lg - 3) // 4
    if are_registers or len(ranked) > most:
        return _registers_written(lg, ranked)
    if len(ranked) < 8:
        head = bytes([2, 1, 7, lg, 3, 0 if ranked else 4, len(ranked), 8])
        return head + struct.pack("<8I", *ranked, *[0] * (8 - len(ranked)))
    table = [0] * 32
    for number, coupon in enumerate(ranked, 1):
        _put(table, coupon)
        if 4 * number > 3 * len(table):
            before, table = table, [0] * (2 * len(table))
            for one in before:
                if one:
                    _put(table, one)
    head = bytes([3, 1, 7, lg, len(table).bit_length() - 1, 0, 0, 9])
    return head + struct.pack(f"<i{len(table)}I", len(ranked), *table)


def _put(table: list[int], coupon: int) -> None:
    at = coupon % len(table)
    while table[at]:
        at = (at + (coupon % 2**26 // len(table) | 1)) % len(table)
    table[at] = coupon


def _registers_written(lg: int, coupons: Sequence[int]) -> bytes:
    registers = [0] * 2**lg
    for coupon in coupons:
        at = coupon % 2**lg
        registers[at] = max(registers[at], coupon >> 26)
    least = min(registers)
    low = 2.0**lg + sum(0.5**v - 1 for v in registers if v < 32)
    high = math.fsum(0.5**v - 1 for v in registers if v >= 32)
    head = bytes([10, 1, 7, lg, 0, 16, least, 10])
    body = struct.pack("<dddii", 0.0, low, high, registers.count(least), 0)
    return head + body + bytes(registers)


_ALL = (1 << 63) - 1
Theta = tuple[list[int], int, bool]
"""The hashes of a theta sketch, the bound below which they all are, and whether it is empty."""


def theta_sketch(rows: Sequence[Row], lg: float = 12) -> bytes:
    found = {first >> 1 for first, _ in hashed(rows)}
    return theta_written((sorted(found), _ALL, not found), 2 ** int(lg))


def theta_union(rows: Sequence[Row], lg: float = 12) -> bytes:
    found = [theta_read(v[0]) for v in without_nulls(rows)]
    bound = min((b for _, b, _ in found), default=_ALL)
    ranked = sorted({h for hashes, *_ in found for h in hashes if h < bound})
    return theta_written((ranked, bound, all(e for *_, e in found)), 2 ** int(lg))


def theta_intersection(rows: Sequence[Row]) -> bytes:
    found = [theta_read(v[0]) for v in without_nulls(rows)]
    if not found or any(is_empty for *_, is_empty in found):
        return theta_written(([], _ALL, True))
    bound = min(b for _, b, _ in found)
    common = set.intersection(*(set(hashes) for hashes, *_ in found))
    return theta_written((sorted(common), bound, bound == _ALL and not common))


def theta_read(data: bytes) -> Theta:
    longs, version = data[0] & 63, data[1]
    if data[5] & 4:
        return [], _ALL, True
    if version == 4:
        bound = int.from_bytes(data[8:16], "little") if longs > 1 else _ALL
        bits, start = data[3], 8 * longs + data[4]
        count = int.from_bytes(data[8 * longs : start], "little")
        stream = "".join(f"{byte:08b}" for byte in data[start:])
        hashes, last = [], 0
        for at in range(0, count * bits, bits):
            last += int(stream[at : at + bits], 2)
            hashes.append(last)
        return hashes, bound, False
    bound = int.from_bytes(data[16:24], "little") if longs > 2 else _ALL
    return [h for (h,) in struct.iter_unpack("<Q", data[8 * longs :])], bound, False


def theta_written(sketch: Theta, size: int = 1 << 26) -> bytes:
    hashes, bound, is_empty = sketch
    if len(hashes) > size:
        hashes, bound = hashes[:size], hashes[size]
    if is_empty:
        return bytes([1, 3, 3, 0, 0, 0x1E, 0, 0])
    tail, seed = bound.to_bytes(8, "little") if bound < _ALL else b"", b"\xcc\x93"
    if not hashes:
        return bytes([3, 3, 3, 0, 0, 0x1A]) + seed + struct.pack("<if", 0, 1.0) + tail
    if len(hashes) == 1 and not tail:
        return bytes([1, 3, 3, 0, 0, 0x3A]) + seed + hashes[0].to_bytes(8, "little")
    steps = [b - a for a, b in pairwise([0, *hashes])]
    bits, length = max(steps).bit_length(), (len(hashes).bit_length() + 7) // 8
    stream = "".join(f"{step:0{bits}b}" for step in steps)
    stream += "0" * (-len(stream) % 8)
    packed = int(stream, 2).to_bytes(len(stream) // 8, "big")
    head = bytes([2 if tail else 1, 4, 3, bits, length, 0x1A]) + seed + tail
    return head + len(hashes).to_bytes(length, "little") + packed


SKETCH_FOLDS: dict[str, Fold] = {
    "hll_sketch_agg": hll_sketch,
    "hll_union_agg": hll_union,
    "theta_sketch_agg": theta_sketch,
    "theta_union_agg": theta_union,
    "theta_intersection_agg": theta_intersection,
}
