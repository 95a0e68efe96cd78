"""Tables of a few rows that share memory: a slice of a table costs a tenth of a table of its own.

A sheet is a table with room for many answers. Each answer is written behind the last one and given
as a slice, so what was given never changes. A full sheet is followed by a new one; the old one is
small, and lives as long as one of its answers does.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.compiled import compiled

_ROOM = 1 << 12
FEW = 1 << 8
"""So many rows are a short answer; a longer one is better off with memory of its own."""

Words = tuple[NDArray[np.generic], ...]


class ShortAnswers:
    """Answers whose columns are 64 bits for every row, without NULLs."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._used = _ROOM
        self._sheet: pa.Table = schema.empty_table()
        self._words: NDArray[np.uint64] = np.empty((len(schema), 0), dtype=np.uint64)

    def take(self, columns: Words, rows: NDArray[np.int64], mask: int) -> pa.Table:
        """The rows at some places of all columns, at most `FEW`."""
        words, begin = self.room(len(rows))
        gather(columns, rows, mask, words, begin)
        return self.last(len(rows))

    def room(self, count: int) -> tuple[NDArray[np.uint64], int]:
        """Where to write the next answer, at most `FEW` rows: words of columns, and from where."""
        if self._used + count > _ROOM:
            self._words = np.empty((len(self._schema), _ROOM), dtype=np.uint64)
            self._sheet = table_of_words(self._schema, self._words)
            self._used = 0
        self._used += count
        return self._words, self._used - count

    def last(self, count: int) -> pa.Table:
        """The answer of so many rows that was written last."""
        return self._sheet.slice(self._used - count, count)


def table_of_words(schema: pa.Schema, words: NDArray[np.uint64]) -> pa.Table:
    """A table of columns of 64 bits, one row of `words` for each, without copying them."""
    buffer, count = pa.py_buffer(words), words.shape[1]
    return pa.Table.from_arrays(
        [
            pa.Array.from_buffers(field.type, count, [None, buffer], 0, place * count)
            for place, field in enumerate(schema)
        ],
        schema=schema,
    )


@compiled
def gather(columns, rows, mask, found, begin):  # type: ignore[no-untyped-def]
    """Write what stands in the columns at some rows into `found`, from a place on."""
    for c in range(len(columns)):
        values = columns[c]
        for i in range(rows.shape[0]):
            found[c, begin + i] = values[rows[i] & mask]
