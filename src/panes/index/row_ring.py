"""The rows of a window, in circular buffers: one per column, as long as the window needs.

A row has a number, which counts from 0 on; its place in every buffer is its number's last bits. So
a row stays where it is from its arrival to its eviction, and evicting rows is moving `begin`. In
32-bit arrays a row is named by the last 31 bits of its number (`short`), which no two rows share.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.columns import without_nulls
from panes.errors import LimitError
from panes.index.domain import Number
from panes.index.short_answers import FEW, ShortAnswers, Words, gather, table_of_words

SHORT = (1 << 31) - 1
MOST_ROWS = 1 << 30
"""The most rows of a window: twice as many must have different short numbers."""
_FIRST_SIZE = 1 << 10

Rows = NDArray[np.int64]
_from_buffers = pa.Array.from_buffers


class FixedColumn:
    """A column whose values have one width, as raw bytes; validity only if a NULL has come."""

    def __init__(self, data_type: pa.DataType, size: int) -> None:
        self.type = data_type
        self._is_bool = pa.types.is_boolean(data_type)
        width = 1 if self._is_bool else data_type.bit_width // 8
        self._dtype = np.dtype(f"u{width}" if width in (1, 2, 4, 8) else f"V{width}")
        self.values: NDArray[np.generic] = np.zeros(size, dtype=self._dtype)
        self._valid: NDArray[np.bool_] | None = None

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + (0 if self._valid is None else self._valid.nbytes)

    @property
    def is_words(self) -> bool:
        """True if it is just 64 bits for every row."""
        return self._dtype == np.uint64 and self._valid is None

    def write(self, place: int, array: pa.Array) -> None:
        end = place + len(array)
        self.values[place:end] = self._raw(array)
        if array.null_count and self._valid is None:
            self._valid = np.ones(len(self.values), dtype=np.bool_)
        if self._valid is not None:
            is_valid = array.is_valid().to_numpy(zero_copy_only=False)
            self._valid[place:end] = is_valid if array.null_count else True

    def _raw(self, array: pa.Array) -> NDArray[np.generic]:
        if self._is_bool:
            return without_nulls(array, False).view(np.uint8)
        raw = np.frombuffer(array.buffers()[1], dtype=self._dtype)
        return raw[array.offset : array.offset + len(array)]

    def take(self, places: Rows) -> pa.Array:
        values = self.values.take(places)
        valid = None if self._valid is None else self._valid.take(places)
        if valid is not None and valid.all():
            valid = None
        if self._is_bool:
            return pa.array(values.view(np.bool_), mask=None if valid is None else ~valid)
        bits = None
        if valid is not None:
            bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
        return _from_buffers(self.type, len(places), [bits, pa.py_buffer(values)])

    def grow(self, size: int, begin: int, end: int) -> None:
        self.values = moved(self.values, size, begin, end)
        if self._valid is not None:
            self._valid = moved(self._valid, size, begin, end)


class PiecesColumn:
    """A column of any other type: the arrays that came, joined for each basic window."""

    def __init__(self, data_type: pa.DataType) -> None:
        self.type = data_type
        self._pieces: deque[tuple[int, pa.Array]] = deque()

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for _, array in self._pieces)

    def append(self, row: int, array: pa.Array) -> None:
        self._pieces.append((row, array))

    def join(self, begin: int) -> None:
        """Rows from `begin` on become one piece."""
        joined: list[pa.Array] = []
        while self._pieces and self._pieces[-1][0] >= begin:
            joined.append(self._pieces.pop()[1])
        if joined:
            self._pieces.append((begin, pa.concat_arrays(joined[::-1])))

    def evict(self, begin: int) -> None:
        while self._pieces and self._pieces[0][0] + len(self._pieces[0][1]) <= begin:
            self._pieces.popleft()

    def take(self, rows: Rows) -> pa.Array:
        """The values of rows, in any order."""
        if not len(rows):
            return pa.array([], self.type)
        begins = np.array([begin for begin, _ in self._pieces])
        piece = np.searchsorted(begins, rows, side="right") - 1
        order = np.argsort(piece, kind="stable")
        found, first = np.unique(piece[order], return_index=True)
        parts = []
        for p, within in zip(found, np.split(order, first[1:]), strict=True):
            parts.append(self._pieces[p][1].take(pa.array(rows[within] - begins[p])))
        back = np.empty(len(order), dtype=np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_arrays(parts).take(pa.array(back))


class RowRing:
    """Rows ``[begin, end)``, of which those from `sealed` on are not yet part of the window.

    `pointers` holds an integer for every row, for the index: an entry, a key or another row.
    `is_null` says which keys stand for NULL; it is None until there is one.
    """

    def __init__(self, schema: pa.Schema, pointer: type[np.int32] | type[np.int64]) -> None:
        self.schema = schema
        self.begin = self.sealed = self.end = 0
        self.size = _FIRST_SIZE
        self.columns: list[FixedColumn | PiecesColumn] = [
            FixedColumn(f.type, self.size) if _is_fixed(f.type) else PiecesColumn(f.type)
            for f in schema
        ]
        self.pointers: NDArray[Any] = np.zeros(self.size, dtype=pointer)
        self.is_null: NDArray[np.bool_] | None = None
        self._words: Words | None = None
        self.short_answers = ShortAnswers(schema)

    @property
    def mask(self) -> int:
        """The mask that turns a number into a place."""
        return self.size - 1

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return int(self.pointers.nbytes) + sum(column.nbytes for column in self.columns)

    def append(self, arrays: Sequence[pa.Array], rows: int) -> int:
        """Take in rows that are not yet part of the window; gives the number of the first."""
        first, self._words = self.end, None
        self._make_room(rows)
        place, mask = first & self.mask, self.mask
        before_wrap = min(rows, self.size - place)
        for column, array in zip(self.columns, arrays, strict=True):
            if isinstance(column, PiecesColumn):
                column.append(first, array)
                continue
            column.write(place, array.slice(0, before_wrap) if before_wrap < rows else array)
            if before_wrap < rows:
                column.write((place + before_wrap) & mask, array.slice(before_wrap))
        self.end += rows
        return first

    def set_pointers(self, first: int, values: NDArray[np.int32] | NDArray[np.int64]) -> None:
        """Write the pointers of rows from one on."""
        self._write(self.pointers, first, values)

    def set_keys(
        self, first: int, keys: NDArray[np.int64], is_null: NDArray[np.bool_] | None
    ) -> None:
        """Write keys as the pointers of rows from one on, some of which stand for NULL."""
        self._write(self.pointers, first, keys)
        if is_null is not None and self.is_null is None:
            self.is_null = np.zeros(self.size, dtype=np.bool_)
        if self.is_null is not None:
            none = np.zeros(len(keys), dtype=np.bool_)
            self._write(self.is_null, first, none if is_null is None else is_null)

    def _write(self, buffer: NDArray[np.generic], first: int, values: NDArray[np.generic]) -> None:
        place = first & self.mask
        before_wrap = min(len(values), self.size - place)
        buffer[place : place + before_wrap] = values[:before_wrap]
        buffer[: len(values) - before_wrap] = values[before_wrap:]

    def read(self, buffer: NDArray[Number], begin: int, end: int) -> NDArray[Number]:
        """The values in a buffer for rows ``[begin, end)``; no copy unless they stand apart."""
        parts = [buffer[place : place + rows] for _, place, rows in self.runs(begin, end)]
        if not parts:
            return buffer[:0]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def runs(self, begin: int, end: int) -> list[tuple[int, int, int]]:
        """Where rows ``[begin, end)`` stand: first number, first place, how many; at most two."""
        place = begin & self.mask
        before_wrap = min(end - begin, self.size - place)
        found = [(begin, place, before_wrap), (begin + before_wrap, 0, end - begin - before_wrap)]
        return [run for run in found if run[2]]

    def seal(self) -> None:
        """All rows are part of the window."""
        for column in self.columns:
            if isinstance(column, PiecesColumn):
                column.join(self.sealed)
        self.sealed = self.end

    def evict(self, begin: int) -> None:
        """Drop the rows before one."""
        self.begin = begin
        for column in self.columns:
            if isinstance(column, PiecesColumn):
                column.evict(begin)

    def take(self, rows: Rows) -> pa.Table:
        """Rows as a table."""
        words = self.words()
        if not words:
            return pa.Table.from_arrays(
                [self._taken(c, rows) for c in self.columns], schema=self.schema
            )
        if len(rows) <= FEW:
            return self.short_answers.take(words, rows, self.size - 1)
        found = np.empty((len(words), len(rows)), dtype=np.uint64)
        gather(words, rows, self.size - 1, found, 0)
        return table_of_words(self.schema, found)

    def words(self) -> Words:
        """The buffers of all columns, if each is just 64 bits for every row; otherwise none."""
        if self._words is None:
            fixed = [c for c in self.columns if isinstance(c, FixedColumn) and c.is_words]
            self._words = tuple(c.values for c in fixed) if len(fixed) == len(self.columns) else ()
        return self._words

    def _taken(self, column: FixedColumn | PiecesColumn, rows: Rows) -> pa.Array:
        return column.take(rows if isinstance(column, PiecesColumn) else rows & self.mask)

    def raw(self, column: int, rows: Rows) -> NDArray[np.generic]:
        """The values of rows in a column of one width, as integers."""
        found = self.columns[column]
        assert isinstance(found, FixedColumn)
        values = found.values.take(rows & self.mask)
        signed = not pa.types.is_unsigned_integer(found.type)
        return values.view(f"i{values.itemsize}") if signed else values

    def _make_room(self, rows: int) -> None:
        needed = self.end - self.begin + rows
        if needed > MOST_ROWS:
            raise LimitError(f"a window index holds at most {MOST_ROWS:,} rows, got {needed:,}")
        if needed <= self.size:
            return
        size = 1 << (needed - 1).bit_length()
        for column in self.columns:
            if isinstance(column, FixedColumn):
                column.grow(size, self.begin, self.end)
        self.pointers = moved(self.pointers, size, self.begin, self.end)
        if self.is_null is not None:
            self.is_null = moved(self.is_null, size, self.begin, self.end)
        self.size = size


def moved(array: NDArray[Number], size: int, begin: int, end: int) -> NDArray[Number]:
    """A longer circular buffer with the same rows."""
    longer = np.zeros(size, dtype=array.dtype)
    rows = np.arange(begin, end)
    longer[rows & (size - 1)] = array[rows & (len(array) - 1)]
    return longer


def _is_fixed(data_type: pa.DataType) -> bool:
    if pa.types.is_nested(data_type) or pa.types.is_null(data_type):
        return False
    try:
        return data_type.bit_width == 1 or data_type.bit_width % 8 == 0
    except ValueError:
        return False
