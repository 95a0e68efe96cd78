"""A HyperLogLog sketch as Spark has it (Flajolet 2007; Apache DataSketches): values, not bytes.

A value is a *coupon*: 26 bits of its hash and, above them, how many zeros another part of the hash
begins with. A sketch holds its different coupons while they are few, and beyond that one register
for each address, the greatest number of zeros. Which of the two it is, follows from the coupons
alone. So a union is the same in any order and any grouping, and so are its bytes.

What depends on the order of rows is left out: DataSketches' sum of inverse probabilities (HIP),
which a sketch has as long as it was never merged with another one. Ours are sketches that were.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAST_LG, GREATEST_LG, DEFAULT_LG = 4, 21, 12
ADDRESS_BITS = 26
MOST_ZEROS = 63
Coupons = NDArray[np.uint32]
Registers = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Hll:
    """A sketch of ``2 ** lg`` registers; `widest` is the greatest `lg` among those united in it.

    `registers` is None as long as the sketch holds its `coupons`: different ones, ascending.
    """

    lg: int
    widest: int
    coupons: Coupons
    registers: Registers | None = None

    @property
    def is_empty(self) -> bool:
        """True if it has seen no value."""
        return self.registers is None and not len(self.coupons)


NO_COUPONS: Coupons = np.empty(0, np.uint32)


def most_coupons(lg: int) -> int:
    """The number of coupons that a sketch holds before it has registers instead."""
    return 7 if lg < 8 else 3 << (lg - 5)


def coupons_of(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> Coupons:
    """The coupons of values whose hashes these are."""
    zeros = 64 - _bit_lengths(second)
    value = np.minimum(zeros, MOST_ZEROS - 1) + 1
    address = (first & np.uint64((1 << ADDRESS_BITS) - 1)).astype(np.uint32)
    return (value.astype(np.uint32) << np.uint32(ADDRESS_BITS)) | address


def sketch_of(lg: int, coupons: Coupons, widest: int | None = None) -> Hll:
    """The sketch of different coupons, which ascend."""
    widest = lg if widest is None else widest
    if len(coupons) <= most_coupons(lg):
        return Hll(lg, widest, coupons.copy())  # they may be a few of very many
    registers = np.zeros(1 << lg, np.uint8)
    _raise(registers, coupons)
    return Hll(lg, widest, NO_COUPONS, registers)


def united(one: Hll, other: Hll) -> Hll:
    """The sketch of all values of both, as narrow as the narrower one."""
    lg, widest = min(one.lg, other.lg), max(one.widest, other.widest)
    if one.registers is None and other.registers is None:
        return sketch_of(lg, np.union1d(one.coupons, other.coupons), widest)
    registers = np.zeros(1 << lg, np.uint8)
    for sketch in (one, other):
        if sketch.registers is None:
            _raise(registers, sketch.coupons)
        else:
            folded = sketch.registers.reshape(-1, 1 << lg).max(axis=0)
            np.maximum(registers, folded, out=registers)
    return Hll(lg, widest, NO_COUPONS, registers)


def _raise(registers: Registers, coupons: Coupons) -> None:
    """Give each register the greatest value of the coupons with its address."""
    address = coupons & np.uint32(len(registers) - 1)
    np.maximum.at(registers, address, (coupons >> np.uint32(ADDRESS_BITS)).astype(np.uint8))


def _bit_lengths(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    high, low = words >> np.uint64(32), words & np.uint64(0xFFFFFFFF)
    of_high = np.frexp(high.astype(np.float64))[1]
    of_low = np.frexp(low.astype(np.float64))[1]
    return np.where(high > 0, of_high + 32, of_low).astype(np.int64)
