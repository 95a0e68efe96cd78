"""The bytes of a HyperLogLog sketch: those Spark writes, and all that DataSketches can give.

`written` gives Spark's updatable form with registers of eight bits. Coupons are in it as if their
values had come in ascending order of coupons: in a list, then in a hash table that grows. Registers
are in it as after a merge of two sketches that had registers. `read` takes every form: compact or
updatable, registers of four, six or eight bits. What is no sketch is refused with a `PanesError`;
nothing is trusted, not even lengths.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panes.aggregates.hll import (
    ADDRESS_BITS,
    GREATEST_LG,
    LEAST_LG,
    MOST_ZEROS,
    NO_COUPONS,
    Coupons,
    Hll,
    Registers,
    most_coupons,
    sketch_of,
)
from panes.arrays.compiled import compiled
from panes.errors import PanesError

_LIST, _SET, _REGISTERS = range(3)
_HEAD_INTS = (2, 3, 10)
_VERSION, _FAMILY = 1, 7
_EMPTY, _COMPACT, _MERGED = 4, 8, 16
_LG_LIST, _LG_SET = 3, 5
_EIGHT_BITS = 2


def written(sketch: Hll) -> bytes:
    """A sketch in Spark's form."""
    if sketch.registers is not None:
        return _written_registers(sketch.lg, sketch.registers)
    count = len(sketch.coupons)
    if count < 1 << _LG_LIST:
        flags = 0 if count else _EMPTY
        cells = np.zeros(1 << _LG_LIST, "<u4")
        cells[:count] = sketch.coupons
        return _head(_LIST, sketch.lg, _LG_LIST, flags, count) + cells.tobytes()
    table = _table(sketch.coupons)
    head = _head(_SET, sketch.lg, len(table).bit_length() - 1, 0, 0)
    return head + struct.pack("<i", count) + table.astype("<u4").tobytes()


def read(data: bytes) -> Hll:
    """The sketch in some bytes."""
    if len(data) < 8:
        raise _no_sketch(f"it has {len(data)} bytes")
    ints, version, family, lg, lg_table, flags, small, mode = data[:8]
    kind, width = mode & 3, mode >> 2 & 3
    if (version, family) != (_VERSION, _FAMILY):
        raise _no_sketch("its first bytes are those of something else")
    if not LEAST_LG <= lg <= GREATEST_LG or kind > 2 or width > 2 or ints & 63 != _HEAD_INTS[kind]:
        raise _no_sketch(f"its head says 2^{lg} registers, form {kind}, {ints & 63} head words")
    if flags & _EMPTY:
        return Hll(lg, lg, NO_COUPONS)
    if kind == _REGISTERS:
        return Hll(lg, lg, NO_COUPONS, _read_registers(data, lg, width, small))
    is_compact = bool(flags & _COMPACT)
    if kind == _LIST:
        count, start, cells = small, 8, small
    else:
        (count,) = _part(data, 8, 1, "<i4").tolist()
        start, cells = 12, count if is_compact else 1 << min(lg_table, 31)
    if not 0 <= count <= min(cells, most_coupons(lg)):
        raise _no_sketch(f"its head says {count} values in {cells} places")
    found = _part(data, start, cells, "<u4").astype(np.uint32)
    found = np.unique(found[found != 0])
    if len(found) != count or (count and int(found[0]) >> ADDRESS_BITS == 0):
        raise _no_sketch(f"its head says {count} values, it has {len(found)}")
    return sketch_of(lg, found)


def _head(kind: int, lg: int, lg_table: int, flags: int, small: int) -> bytes:
    mode = _EIGHT_BITS << 2 | kind
    return bytes((_HEAD_INTS[kind], _VERSION, _FAMILY, lg, lg_table, flags, small, mode))


def _written_registers(lg: int, registers: Registers) -> bytes:
    least = int(registers.min())
    counts = np.bincount(registers, minlength=MOST_ZEROS + 1).astype(np.float64)
    shares = counts * (0.5 ** np.arange(len(counts)) - 1.0)
    sums = (1 << lg) + shares[:32].sum(), shares[32:].sum()
    body = struct.pack("<dddii", 0.0, *sums, int(counts[least]), 0)
    return _head(_REGISTERS, lg, 0, _MERGED, least) + body + registers.tobytes()


def _read_registers(data: bytes, lg: int, width: int, least: int) -> Registers:
    size = 1 << lg
    if width == 0:
        registers = _of_four_bits(data, lg, least)
    elif width == 1:
        packed = _part(data, 40, (size * 3 >> 2) + 1, "u1")
        bits = np.unpackbits(packed, bitorder="little")[: size * 6].reshape(size, 6)
        registers = np.packbits(bits, axis=1, bitorder="little")[:, 0]
    else:
        registers = _part(data, 40, size, "u1").copy()
    if registers.max() > MOST_ZEROS:
        raise _no_sketch(f"a register holds {registers.max()}")
    return registers


def _of_four_bits(data: bytes, lg: int, least: int) -> Registers:
    """Registers of four bits above the least one; those that do not fit stand behind them."""
    size = 1 << lg
    packed = _part(data, 40, size >> 1, "u1")
    nibbles = np.stack([packed & 15, packed >> 4], axis=1).ravel().astype(np.int64)
    (count,) = _part(data, 36, 1, "<i4").tolist()
    is_compact, lg_table = bool(data[5] & _COMPACT), data[4]
    cells = count if is_compact or not count else 1 << min(lg_table, 31)
    if not 0 <= count <= min(cells, size):
        raise _no_sketch(f"its head says {count} great registers in {cells} places")
    pairs = _part(data, 40 + (size >> 1), cells, "<u4")
    pairs = pairs[pairs != 0]
    address = pairs & np.uint32(size - 1)
    if len(pairs) != count or sorted(address.tolist()) != np.flatnonzero(nibbles == 15).tolist():
        raise _no_sketch(f"its head says {count} great registers, it has {len(pairs)}")
    values = np.where(nibbles == 15, 0, nibbles + least)
    values[address] = pairs >> np.uint32(ADDRESS_BITS)
    return np.minimum(values, 255).astype(np.uint8)


def _table(coupons: Coupons) -> Coupons:
    """The hash table of coupons that came in this order: it grows, and is then filled anew."""
    lg = _LG_SET
    table = np.zeros(1 << lg, np.uint32)
    begin = 0
    while True:
        end = min(len(coupons), (3 << lg >> 2) + 1)
        _place(table, lg, coupons[begin:end])
        if end <= 3 << lg >> 2:
            return table
        begin, lg, smaller = end, lg + 1, table
        table = np.zeros(1 << lg, np.uint32)
        _place(table, lg, smaller[smaller != 0])


@compiled
def _place(table, lg, coupons):  # type: ignore[no-untyped-def]
    mask = table.shape[0] - 1
    for coupon in coupons:
        at = np.int64(coupon) & mask
        step = ((np.int64(coupon) & ((1 << 26) - 1)) >> lg) | 1
        while table[at] != 0:
            at = (at + step) & mask
        table[at] = coupon


def _part(data: bytes, start: int, count: int, dtype: str) -> NDArray[Any]:
    """So many numbers of the bytes, if they are there."""
    if start + count * np.dtype(dtype).itemsize > len(data):
        raise _no_sketch(f"it has {len(data)} bytes, and its head says that there are more")
    return np.frombuffer(data, dtype, count, start)


def _no_sketch(why: str) -> PanesError:
    return PanesError(
        f"a value is no HLL sketch: {why}",
        hint="hll_union_agg unites what hll_sketch_agg gives, or HLL sketches of DataSketches",
    )
