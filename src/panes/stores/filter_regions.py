"""Filter regions: rows that no filter can tell apart, so that each filter is asked once of each.

What filters compare a column with cuts its values into intervals, as few as the filters can tell;
NULL is one of them. Rows in the same interval of every column are in one region. Filters that are
no comparisons are columns of two intervals. Numbers of regions are put together digit by digit;
where there could be too many of them for a table, those that occur are numbered anew. So time and
memory follow the rows and the regions that occur, never the combinations::

    price > 40, price < 90, quantity = 2       price    ≤40  <90  ≥90
                                               quantity <2   =2   >2             9 regions at most
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.arrays.slots import is_dense
from panes.arrays.spread import spread
from panes.stores.filter_classes import Words

Codes = NDArray[np.signedinteger]
_ROWS_AT_ONCE = 1 << 17
_FEW = 8
_WORD = 64
_NARROW = 1 << 31
_WIDE = 1 << 62


class Threshold(NamedTuple):
    """Where a filter parts the values of a column: those below `value`; itself too if `up_to`."""

    value: Any
    up_to: bool


@dataclass(frozen=True, slots=True)
class ClassedRows:
    """Rows by the filters that hold of them: for row i, the set ``sets[index[codes[i]]]``."""

    codes: Codes
    index: NDArray[np.int64]
    sets: Words


class Digit(Protocol):
    """A column that tells rows apart, by numbers below `radix`."""

    @property
    def radix(self) -> int: ...

    def append(self, codes: Codes, part: slice) -> None:
        """Write the number of some rows behind their codes."""
        ...


@dataclass(frozen=True, slots=True)
class TruthBits:
    """A condition, true or false."""

    bitmap: NDArray[np.uint8]
    offset: int
    radix: int = 2

    def append(self, codes: Codes, part: slice) -> None:
        _append_bit(codes, self.bitmap, self.offset + part.start)


@dataclass(frozen=True, slots=True)
class Regions:
    """Numbers, and what cuts them, ascending: just below some, just above others.

    The number of an interval is how many cuts lie below it; NULL is the last one.
    """

    values: NDArray[np.generic]
    below: NDArray[np.generic]
    above: NDArray[np.generic]
    is_null: NDArray[np.bool_] | None = None

    @property
    def radix(self) -> int:
        return len(self.below) + len(self.above) + 1 + (self.is_null is not None)

    def append(self, codes: Codes, part: slice) -> None:
        values, to = self.values[part], codes
        if self.is_null is not None:
            to = np.zeros(len(values), dtype=codes.dtype)
        else:
            codes *= self.radix
        find = _add_few_regions if len(self.below) + len(self.above) <= _FEW else _add_regions
        find(values, self.below, self.above, to)
        if self.is_null is not None:
            codes *= self.radix
            codes += np.where(self.is_null[part], to.dtype.type(self.radix - 1), to)


def bits(column: pa.Array) -> Digit:
    """A column of true and false, without NULL."""
    return TruthBits(np.frombuffer(column.buffers()[1], dtype=np.uint8), column.offset)


def regions(column: pa.Array, bounds: Collection[Threshold]) -> Digit:
    """A column by how it lies to bounds of its type; NaN is greater than all of them."""
    is_null = None
    if column.null_count:
        is_null = pc.is_null(column).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        if is_null is not None:
            column = pc.fill_null(column, pa.scalar(0, column.type))
        below, above = (
            pa.array(sorted(b.value for b in bounds if b.up_to is up_to), column.type).to_numpy()
            for up_to in (False, True)
        )
        return Regions(column.to_numpy(), below, above, is_null)
    if pa.types.is_boolean(column.type):
        indexes, end = pc.fill_null(column, False).cast(pa.int32()), 1
    else:
        texts = sorted({str(b.value) for b in bounds})
        indexes, end = pc.index_in(column, value_set=pa.array(texts, pa.string())), len(texts)
    cuts = np.arange(1, end + 1, dtype=np.int32)
    return Regions(pc.fill_null(indexes, end).to_numpy(), cuts, cuts[:0], is_null)


def number_regions(
    rows: int, digits: Sequence[Digit], executor: Executor
) -> tuple[Codes, NDArray[np.int64], NDArray[np.int64]]:
    """The code of each row, the index of each code among the regions, and a row of each region.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> numbers, conditions = pa.array([3, 1, 3]), pa.array([True, False, True])
    >>> digits = [regions(numbers, {Threshold(2, up_to=True)}), bits(conditions)]
    >>> codes, index, row = number_regions(3, digits, ThreadPoolExecutor(1))
    >>> index[codes], row
    (array([1, 0, 1]), array([1, 2]))
    """
    parts = [slice(i, min(i + _ROWS_AT_ONCE, rows)) for i in range(0, rows, _ROWS_AT_ONCE)]
    codes, domain = np.zeros(rows, dtype=_wide_enough(digits)), 1
    waiting = list(digits)
    while waiting:
        if domain * waiting[0].radix >= _WIDE:
            codes, row = _renumbered(codes)
            domain = max(1, len(row))
        some = [waiting.pop(0)]
        domain *= some[0].radix
        while waiting and domain * waiting[0].radix < _WIDE:
            domain *= waiting[0].radix
            some.append(waiting.pop(0))
        append = partial(_append, codes, some)
        spread(executor, append, parts, rows=min(rows, _ROWS_AT_ONCE))
    if not is_dense(rows, domain):
        codes, row = _renumbered(codes)
        return codes, np.arange(len(row)), row
    seen = np.full(domain, -1, dtype=np.int64)
    mark = partial(_mark_part, codes, seen)
    spread(executor, mark, parts, rows=min(rows, _ROWS_AT_ONCE))
    found = np.flatnonzero(seen >= 0)
    index = np.zeros(domain if len(found) else 0, dtype=np.int64)
    index[found] = np.arange(len(found))
    return codes, index, seen[found]


def _append(codes: Codes, digits: Sequence[Digit], part: slice) -> None:
    for digit in digits:
        digit.append(codes[part], part)


def _mark_part(codes: Codes, seen: NDArray[np.int64], part: slice) -> None:
    _mark(codes[part], part.start, seen)


def to_sets(holding: Iterable[tuple[int, pa.Array]], rows: int, filters: int) -> Words:
    """The filters that hold of each row, from columns by number; where one is NULL it does not."""
    sets = np.zeros((rows, filters // _WORD + 1), dtype=np.uint64)
    for number, column in holding:
        word, bit = divmod(number, _WORD)
        holds = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
        sets[:, word] |= holds.astype(np.uint64) << np.uint64(bit)
    return sets


def _wide_enough(digits: Sequence[Digit]) -> type[np.signedinteger]:
    """Codes in 32 bits are twice as fast, and mostly enough."""
    domain = 1
    for digit in digits:
        domain *= digit.radix
        if domain >= _NARROW:
            return np.int64
    return np.int32


def _renumbered(codes: Codes) -> tuple[Codes, NDArray[np.int64]]:
    """Numbers without gaps for the codes that occur, and a row of each."""
    numbers, rows = np.empty(len(codes), dtype=np.int64), np.empty(len(codes), dtype=np.int64)
    count = _number_codes(codes, numbers, rows)
    return numbers, rows[:count].copy()


@compiled
def _append_bit(codes, bitmap, offset):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        bit = i + offset
        codes[i] = codes[i] << 1 | (bitmap[bit >> 3] >> (bit & 7) & 1)


@compiled
def _add_few_regions(values, below, above, codes):  # type: ignore[no-untyped-def]
    for begin in range(0, values.shape[0], 2048):
        few, to = values[begin : begin + 2048], codes[begin : begin + 2048]
        for c in below:
            for i in range(few.shape[0]):
                to[i] += not few[i] < c
        for c in above:
            for i in range(few.shape[0]):
                to[i] += not few[i] <= c


@compiled
def _add_regions(values, below, above, codes):  # type: ignore[no-untyped-def]
    for i in range(values.shape[0]):
        cuts, length = 0, below.shape[0]
        while length > 0:
            half = length >> 1
            if not values[i] < below[cuts + half]:
                cuts += length - half
            length = half
        codes[i] += cuts
        cuts, length = 0, above.shape[0]
        while length > 0:
            half = length >> 1
            if not values[i] <= above[cuts + half]:
                cuts += length - half
            length = half
        codes[i] += cuts


@compiled
def _mark(codes, begin, seen):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        seen[codes[i]] = begin + i


@compiled
def _number_codes(codes, numbers, rows):  # type: ignore[no-untyped-def]
    count, size = 0, 1 << 12
    table = np.full(size, -1, dtype=np.int64)
    for i in range(codes.shape[0]):
        if 2 * count >= size:
            size *= 4
            table = np.full(size, -1, dtype=np.int64)
            for known in range(count):
                table[_find(codes, rows, codes[rows[known]], table)] = known
        index = _find(codes, rows, codes[i], table)
        if table[index] < 0:
            table[index] = count
            rows[count] = i
            count += 1
        numbers[i] = table[index]
    return count


@compiled
def _find(codes, rows, code, table):  # type: ignore[no-untyped-def]
    """Where in the table a code is, or would be."""
    mixed = np.uint64(code) * np.uint64(0x9E3779B97F4A7C15)
    index = np.int64((mixed >> np.uint64(20)) & np.uint64(table.shape[0] - 1))
    while table[index] >= 0 and codes[rows[table[index]]] != code:
        index = (index + 1) & (table.shape[0] - 1)
    return index
