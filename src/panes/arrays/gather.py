"""Values of columns by way of two lists: the value at ``row[index[i]]`` for every ``i``.

Columns of numbers and times without NULLs are read in one loop for both lists, by all threads.
Of other columns Arrow takes the values; each of those is work for one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.compiled import compiled
from panes.arrays.spread import parts, spread
from panes.arrays.workers import workers

Numbers = NDArray[np.int64]
_BYTE = 8


def gather(columns: Sequence[pa.Array], row: Numbers, index: Numbers) -> list[pa.Array]:
    """Each column's values at ``row[index]``.

    >>> gather([pa.array(["a", "b", "c"])], np.array([2, 0, 1]), np.array([0, 0, 1]))[0].to_pylist()
    ['c', 'c', 'a']
    """
    simple = [is_plain(column) for column in columns]
    found: list[pa.Array] = [None] * len(columns)
    work: list[Callable[[], None]] = []
    if not all(simple):
        rows = pa.array(row[index])

    def take(number: int) -> None:
        found[number] = columns[number].take(rows)

    for number, column in enumerate(columns):
        if simple[number]:
            values = np.empty(len(index), dtype=f"i{column.type.bit_width // _BYTE}")
            found[number] = _column(column.type, values)
            work += [
                partial(_gather, _values(column), row, index, *part, values)
                for part in parts(len(index))
            ]
        else:
            work.append(partial(take, number))
    spread(workers(), lambda task: task(), work, rows=len(index) // 2)
    return found


def is_plain(column: pa.Array) -> bool:
    """True if a column is nothing but values of one, two, four or eight bytes."""
    kind = column.type
    return (
        pa.types.is_primitive(kind)
        and not pa.types.is_boolean(kind)
        and kind.bit_width <= 64
        and not column.null_count
    )


def _values(column: pa.Array) -> NDArray[np.signedinteger]:
    """The values as integers of their width, where they are."""
    width = column.type.bit_width // _BYTE
    whole = np.frombuffer(column.buffers()[1], dtype=f"i{width}")
    return whole[column.offset : column.offset + len(column)]


def _column(kind: pa.DataType, values: NDArray[np.signedinteger]) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


@compiled
def _gather(values, row, index, begin, end, found):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        found[i] = values[row[index[i]]]
