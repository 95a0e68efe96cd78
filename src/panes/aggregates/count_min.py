"""The hashes and the bytes of a count-min sketch, as Spark defines them (Cormode 2005).

A sketch has `depth` rows of `width` counters. Every value adds one to a counter of each row, the
one that the row's hash names. Java's generator of random numbers makes the hashes from the seed.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.errors import QueryError

_PRIME = (1 << 31) - 1
_VERSION = 1
_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class SketchShape:
    """The size of a sketch, and its hashes."""

    depth: int
    width: int
    seed: int

    @classmethod
    def of(cls, eps: float, confidence: float, seed: int) -> SketchShape:
        """The shape that keeps the error below `eps` of all rows, with this confidence."""
        if not eps > 0:
            raise QueryError(f"count_min_sketch needs a relative error above 0, got {eps}")
        if not 0 < confidence < 1:
            raise QueryError(
                f"count_min_sketch needs a confidence between 0 and 1, got {confidence}"
            )
        width = math.ceil(2 / eps)
        depth = math.ceil(-math.log1p(-confidence) / math.log(2))
        if depth * width > 1 << 24:
            raise QueryError(
                f"a sketch of {depth} x {width:,} counters is asked for",
                hint="count_min_sketch(x, 0.001, 0.99, 42) has 7 x 2,000",
            )
        return cls(depth, width, seed)

    @property
    def identity(self) -> str:
        """Its part of a piece's identity."""
        return f"{self.depth} x {self.width} seed {self.seed}"

    def written(self, counts: NDArray[np.int64], total: int) -> bytes:
        """The sketch in Spark's own form."""
        head = struct.pack(">iqii", _VERSION, total, self.depth, self.width)
        factors = np.array(multipliers(self.seed, self.depth), dtype=">i8")
        return head + factors.tobytes() + counts.astype(">i8").tobytes()


def buckets(shape: SketchShape, values: pa.Array) -> Iterator[NDArray[np.int64]]:
    """For each row of a sketch, the counters of some values."""
    if pa.types.is_integer(values.type):
        numbers = values.cast(pa.int64()).to_numpy()
        for factor in multipliers(shape.seed, shape.depth):
            with np.errstate(over="ignore"):
                product = numbers * np.int64(factor)
                mixed = product + (product >> 32)
            yield (mixed & _PRIME) % shape.width
        return
    encoded = values.dictionary_encode()
    known = encoded.dictionary.cast(pa.binary()).to_pylist()
    first = np.array([murmur3(v, 0) for v in known], dtype=np.int32)
    pairs = zip(known, first.tolist(), strict=True)
    second = np.array([murmur3(v, h) for v, h in pairs], dtype=np.int32)
    indices = encoded.indices.to_numpy()
    for row in range(shape.depth):
        with np.errstate(over="ignore"):
            mixed = first + np.int32(row) * second
        yield np.abs(np.fmod(mixed.astype(np.int64), shape.width))[indices]


@cache
def multipliers(seed: int, count: int) -> tuple[int, ...]:
    """The factors of the rows' hashes: ``new java.util.Random(seed).nextInt(2^31 - 1)`` each."""
    state = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)
    found: list[int] = []
    while len(found) < count:
        state = (state * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        drawn = state >> 17
        if drawn < _PRIME:
            found.append(drawn)
    return tuple(found)


def murmur3(data: bytes, seed: int) -> int:
    """Spark's 32-bit Murmur3 of bytes; those behind the last whole word count one by one."""
    h = seed & _MASK
    aligned = len(data) & ~3
    for (word,) in struct.iter_unpack("<I", data[:aligned]):
        h = _mixed(h, word)
    for byte in struct.unpack(f"{len(data) - aligned}b", data[aligned:]):
        h = _mixed(h, byte & _MASK)
    h ^= len(data)
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & _MASK
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _mixed(h: int, word: int) -> int:
    k = (word * 0xCC9E2D51) & _MASK
    k = ((k << 15) | (k >> 17)) & _MASK
    h ^= (k * 0x1B873593) & _MASK
    h = ((h << 13) | (h >> 19)) & _MASK
    return (h * 5 + 0xE6546B64) & _MASK
