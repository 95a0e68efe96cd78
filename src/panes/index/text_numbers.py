"""Numbers for values of any width: text, binary, long decimals, by their bytes.

A value gets a number when it is first seen and has it until values are forgotten; then those that
stay are numbered anew, in the order they had. Bytes stand one after the other in one array.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numba.extending import register_jitable
from numpy.typing import NDArray

from panes.arrays.compiled import compiled

_FIRST_SIZE = 64
_PRIME = np.uint64(1099511628211)
_SEED = np.uint64(14695981039346656037)

Offsets = NDArray[np.int64]
Bytes = NDArray[np.uint8]


class TextNumbers:
    """Values of one type, numbered in the order in which they were first seen."""

    def __init__(self, data_type: pa.DataType) -> None:
        self.type = data_type
        self.version = 0
        self._count = 0
        self._clear(_FIRST_SIZE)

    def _clear(self, size: int) -> None:
        """Forget everything; there is room for `size` values, a power of two."""
        self._offsets: Offsets = np.zeros(size + 1, dtype=np.int64)
        self._bytes: Bytes = np.zeros(16 * size, dtype=np.uint8)
        self._hashes: NDArray[np.uint64] = np.zeros(size, dtype=np.uint64)
        self._slots: NDArray[np.int64] = np.full(2 * size, -1, dtype=np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self._offsets.nbytes + self._bytes.nbytes + self._hashes.nbytes + self._slots.nbytes

    def encode(self, array: pa.Array) -> NDArray[np.int64]:
        """The number of each value; new ones get the next. NULLs get that of no bytes, or 0."""
        offsets, data = _laid_out(array)
        numbers = np.empty(len(array), dtype=np.int64)
        valid = _is_valid(array)
        done, before = 0, self._count
        while True:
            done, self._count = _number(
                offsets, data, valid, numbers, done, self._count,
                self._offsets, self._bytes, self._hashes, self._slots,
            )  # fmt: skip
            if done == len(array):
                break
            self._grow(int(offsets[done + 1] - offsets[done]))
        self.version += self._count != before
        return numbers

    def find(self, array: pa.Array) -> NDArray[np.int64]:
        """The number of each value, -1 if it has none."""
        offsets, data = _laid_out(array)
        numbers = np.empty(len(array), dtype=np.int64)
        known = (self._offsets, self._bytes, self._hashes, self._slots)
        _find(offsets, data, _is_valid(array), numbers, *known)
        return numbers

    def values(self) -> pa.Array:
        """All values, by number."""
        return self._read(self._offsets[: self._count + 1], self._bytes)

    def take(self, numbers: NDArray[np.int64]) -> pa.Array:
        """The values of some numbers."""
        return self.values().take(pa.array(numbers))

    def keep(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Forget all values but some, whose numbers ascend; gives the new number of each."""
        renamed = np.full(self._count, -1, dtype=np.int64)
        renamed[numbers] = np.arange(len(numbers))
        kept = self.take(numbers)
        self._clear(max(_FIRST_SIZE, 1 << (2 * len(numbers)).bit_length()))
        self.encode(kept)
        self.version += 1
        return renamed

    def _grow(self, length: int) -> None:
        """Make room for twice the values, and for one of so many bytes."""
        size = len(self._hashes)
        if self._count == size:
            self._hashes = np.concatenate([self._hashes, np.zeros(size, dtype=np.uint64)])
            self._offsets = np.concatenate([self._offsets, np.zeros(size, dtype=np.int64)])
            self._slots = np.full(4 * size, -1, dtype=np.int64)
            _rebuild(self._hashes, self._count, self._slots)
        used = int(self._offsets[self._count])
        if used + length > len(self._bytes):
            longer = np.zeros(2 * len(self._bytes) + length, dtype=np.uint8)
            longer[:used] = self._bytes[:used]
            self._bytes = longer

    def _read(self, offsets: Offsets, data: Bytes) -> pa.Array:
        buffers = [None, pa.py_buffer(offsets.copy()), pa.py_buffer(data)]
        count = len(offsets) - 1
        if _is_fixed(self.type):
            return pa.Array.from_buffers(self.type, count, [None, buffers[2]])
        if _is_text(self.type):
            return pa.Array.from_buffers(pa.large_string(), count, buffers).cast(self.type)
        return pa.Array.from_buffers(pa.large_binary(), count, buffers).cast(self.type)


def _is_fixed(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(data_type) or pa.types.is_fixed_size_binary(data_type))


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _laid_out(array: pa.Array) -> tuple[Offsets, Bytes]:
    """Where the bytes of each value begin and end, and the bytes."""
    if _is_fixed(array.type):
        width = array.type.bit_width // 8
        begins = (np.arange(len(array) + 1, dtype=np.int64) + array.offset) * width
        return begins, _bytes(array.buffers()[1])
    wide = array.cast(pa.large_string() if _is_text(array.type) else pa.large_binary())
    if not len(wide):
        return np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint8)
    buffers = wide.buffers()
    offsets = np.frombuffer(buffers[1], dtype=np.int64)[wide.offset : wide.offset + len(wide) + 1]
    return offsets, _bytes(buffers[2])


def _bytes(buffer: pa.Buffer | None) -> Bytes:
    return np.zeros(0, dtype=np.uint8) if buffer is None else np.frombuffer(buffer, dtype=np.uint8)


def _is_valid(array: pa.Array) -> NDArray[np.bool_]:
    if array.null_count == 0:
        return np.ones(len(array), dtype=np.bool_)
    valid: NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


@register_jitable
def _hash(data, begin, end):  # type: ignore[no-untyped-def]
    mixed = _SEED
    for i in range(begin, end):
        mixed = (mixed ^ np.uint64(data[i])) * _PRIME
    return mixed ^ (mixed >> np.uint64(32))


@register_jitable
def _same(data, begin, end, known, known_begin, known_end):  # type: ignore[no-untyped-def]
    if end - begin != known_end - known_begin:
        return False
    for i in range(end - begin):  # noqa: SIM110 - a compiled loop
        if data[begin + i] != known[known_begin + i]:
            return False
    return True


@register_jitable
def _slot_of(data, begin, end, mixed, ends, known, hashes, slots):  # type: ignore[no-untyped-def]
    """The slot that a value has, or would get."""
    last = slots.shape[0] - 1
    slot = np.int64(mixed & np.uint64(last))
    while slots[slot] >= 0:
        n = slots[slot]
        if hashes[n] == mixed and _same(data, begin, end, known, ends[n], ends[n + 1]):
            break
        slot = (slot + 1) & last
    return slot


@compiled
def _number(offsets, data, valid, numbers, done, count, ends, known, hashes, slots):  # type: ignore[no-untyped-def]
    for i in range(done, numbers.shape[0]):
        if not valid[i]:
            numbers[i] = 0
            continue
        begin, end = offsets[i], offsets[i + 1]
        mixed = _hash(data, begin, end)
        slot = _slot_of(data, begin, end, mixed, ends, known, hashes, slots)
        if slots[slot] < 0:
            if count == hashes.shape[0] or ends[count] + end - begin > known.shape[0]:
                return i, count
            for j in range(end - begin):
                known[ends[count] + j] = data[begin + j]
            ends[count + 1] = ends[count] + end - begin
            hashes[count] = mixed
            slots[slot] = count
            count += 1
        numbers[i] = slots[slot]
    return numbers.shape[0], count


@compiled
def _find(offsets, data, valid, numbers, ends, known, hashes, slots):  # type: ignore[no-untyped-def]
    for i in range(numbers.shape[0]):
        numbers[i] = -1
        if valid[i]:
            begin, end = offsets[i], offsets[i + 1]
            mixed = _hash(data, begin, end)
            slot = _slot_of(data, begin, end, mixed, ends, known, hashes, slots)
            numbers[i] = slots[slot]


@compiled
def _rebuild(hashes, count, slots):  # type: ignore[no-untyped-def]
    last = slots.shape[0] - 1
    for n in range(count):
        slot = np.int64(hashes[n] & np.uint64(last))
        while slots[slot] >= 0:
            slot = (slot + 1) & last
        slots[slot] = n
