"""The hash of DataSketches: Murmur3 of 128 bits over a value's bytes (Appleby 2011), seed 9001.

Whole numbers are hashed as eight bytes, the lowest first; doubles by their bits, with one zero and
one NaN; text as UTF-8; lists of whole numbers as the bytes of their elements, NULL as zero. Values
without a byte have no hash: sketches pass them over, in Spark too.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.arrays.compiled import compiled

SEED = 9001
Hashes = tuple[NDArray[np.uint64], NDArray[np.uint64]]
"""The first and the second half of each hash."""


def has_bytes(values: pa.Array) -> NDArray[np.bool_]:
    """The values that have at least one byte; there are no NULLs among them."""
    if is_text_or_binary(values.type):
        return np.asarray(pc.binary_length(values).to_numpy(zero_copy_only=False) > 0)
    if pa.types.is_list(values.type):
        return np.asarray(pc.list_value_length(values).to_numpy(zero_copy_only=False) > 0)
    return np.ones(len(values), dtype=np.bool_)


def hashes(values: pa.Array) -> Hashes:
    """The hashes of values, none of which is NULL or without a byte."""
    first, second = np.empty(len(values), np.uint64), np.empty(len(values), np.uint64)
    if not len(values):
        return first, second
    data, ends = _bytes_of(values)
    _murmur(data, ends, np.uint64(SEED), first, second)
    return first, second


def is_text_or_binary(kind: pa.DataType) -> bool:
    """True if values are themselves sequences of bytes."""
    kinds = pa.types
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or is_binary(kind))


def is_binary(kind: pa.DataType) -> bool:
    """True if values are bytes, as sketches are."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _bytes_of(values: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """All bytes in one array, and where those of each value end, behind a first 0."""
    kind = values.type
    if is_text_or_binary(kind):
        flat = values.cast(pa.large_binary())
        _, offsets, data = flat.buffers()
        ends = np.frombuffer(offsets, np.int64)[flat.offset : flat.offset + len(flat) + 1]
        whole = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
        return whole[ends[0] : ends[-1]], ends - ends[0]
    if pa.types.is_list(kind):
        elements = pc.fill_null(pc.list_flatten(values), 0).to_numpy(zero_copy_only=False)
        lengths = pc.list_value_length(values).to_numpy(zero_copy_only=False)
        ends = np.append(0, np.cumsum(lengths)) * elements.dtype.itemsize
        return np.ascontiguousarray(elements).view(np.uint8), ends.astype(np.int64)
    if pa.types.is_floating(kind):
        numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0
        words = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
    else:
        words = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
    ends = np.arange(len(words) + 1, dtype=np.int64) * 8
    return np.ascontiguousarray(words).view(np.uint8), ends


@compiled
def _murmur(data, ends, seed, first, second):  # type: ignore[no-untyped-def]
    c1, c2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
    five, a, b = np.uint64(5), np.uint64(0x52DCE729), np.uint64(0x38495AB5)
    for i in range(first.shape[0]):
        begin, end = ends[i], ends[i + 1]
        h1, h2 = seed, seed
        at = begin
        while at < end:
            k1, k2 = np.uint64(0), np.uint64(0)
            for j in range(min(8, end - at)):
                k1 |= np.uint64(data[at + j]) << np.uint64(8 * j)
            for j in range(8, min(16, end - at)):
                k2 |= np.uint64(data[at + j]) << np.uint64(8 * (j - 8))
            is_whole = end - at >= 16
            h1 ^= _turned(k1 * c1, 31) * c2
            if is_whole:
                h1 = (_turned(h1, 27) + h2) * five + a
            h2 ^= _turned(k2 * c2, 33) * c1
            if is_whole:
                h2 = (_turned(h2, 31) + h1) * five + b
            at += 16
        h1 ^= np.uint64(end - begin)
        h2 ^= np.uint64(end - begin)
        h1 += h2
        h2 += h1
        h1, h2 = _spread(h1), _spread(h2)
        h1 += h2
        first[i], second[i] = h1, h2 + h1


@compiled
def _turned(word, by):  # type: ignore[no-untyped-def]
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


@compiled
def _spread(word):  # type: ignore[no-untyped-def]
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xFF51AFD7ED558CCD)
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))
