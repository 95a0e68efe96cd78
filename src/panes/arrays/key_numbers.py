"""Numbers for keys: every combination of key values gets one when it is first seen.

A key has its number until keys are forgotten: then those that stay are numbered anew. Values are
compared as GROUP BY compares them: NULL is a value, all NaN are one, -0.0 is 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.arrays import order_keys
from panes.arrays.compiled import compiled
from panes.arrays.slots import is_dense
from panes.errors import LimitError

_FEW = 4_096
_LOW = (1 << 32) - 1
_NARROW = (pa.string(), pa.binary())
_MOST_BYTES = (1 << 31) - 1


class Dictionary:
    """Values of one type, numbered in the order they were first seen."""

    RECOMPUTED = frozenset({"values"})  # they are written as they come

    def __init__(self, data_type: pa.DataType) -> None:
        self.values = pa.array([], data_type)

    def encode(self, array: pa.Array) -> NDArray[np.int32]:
        """The number of each value; new values get the next ones."""
        indexes, distinct = _dictionary_encode(_normal(array))
        self._require_room(distinct)
        if not len(self.values):
            self.values = distinct
            return indexes
        known = pc.index_in(distinct, value_set=self.values)
        number = known.fill_null(-1).to_numpy().astype(np.int32)
        unseen = np.flatnonzero(number < 0)
        if len(unseen):
            number[unseen] = len(self.values) + np.arange(len(unseen))
            self.values = pa.concat_arrays([self.values, distinct.take(pa.array(unseen))])
        return number[indexes]

    def _require_room(self, more: pa.Array) -> None:
        """Refuse more text than a column with offsets of 32 bits can hold, before it is copied."""
        if self.values.type not in _NARROW:
            return
        size = self.values.nbytes + more.nbytes
        if size > _MOST_BYTES:
            raise LimitError(
                f"the distinct values of a key take {size:,} bytes, and {self.values.type} holds "
                f"{_MOST_BYTES:,}",
                hint="group by a shorter column or by md5(column), or cast it to large_string",
            )


class KeyNumbers:
    """Numbers for rows of key values; without key columns, all rows are of one group."""

    RECOMPUTED = frozenset({"_in_order"})

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = tuple(types)
        self._clear()

    def _clear(self) -> None:
        self._columns = [Dictionary(t) for t in self._types]
        self._pairs = [Dictionary(pa.int64()) for _ in self._types[1:]]
        self._in_order: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        if not self._types:
            return 1
        return len(self._pairs[-1].values if self._pairs else self._columns[0].values)

    @property
    def nbytes(self) -> int:
        """Bytes of the key values, and of what finds their numbers."""
        stored = sum(d.values.nbytes for d in (*self._columns, *self._pairs))
        return stored + (0 if self._in_order is None else self._in_order.nbytes)

    def encode(self, columns: Sequence[pa.Array], rows: int) -> NDArray[np.int32]:
        """The group of each row."""
        if not self._types:
            return np.zeros(rows, dtype=np.int32)
        groups = self._columns[0].encode(columns[0])
        for column, values, pairs in zip(columns[1:], self._columns[1:], self._pairs, strict=True):
            groups = pairs.encode(pa.array((groups.astype(np.int64) << 32) | values.encode(column)))
        return groups

    def columns(self, groups: NDArray[np.int64]) -> list[pa.Array]:
        """The key values of groups, column by column."""
        if not self._types:
            return []
        result: list[pa.Array] = []
        for values, pairs in zip(self._columns[:0:-1], self._pairs[::-1], strict=True):
            packed = pairs.values.to_numpy()[groups]
            result.append(values.values.take(pa.array(packed & _LOW)))
            groups = packed >> 32
        result.append(self._columns[0].values.take(pa.array(groups)))
        return result[::-1]

    def order(self, groups: NDArray[np.int64]) -> NDArray[np.int64]:
        """Groups in the order of their keys, NULL first, NaN last."""
        if not self._types:
            return groups
        if 2 * len(groups) < len(self):
            return groups[self._ranked(groups)]
        # Most of the groups: all are ranked, once for as long as no other key comes.
        if self._in_order is None or len(self._in_order) < len(self):
            self._in_order = self._ranked(np.arange(len(self)))
        if len(groups) == len(self):
            return self._in_order
        is_wanted = np.zeros(len(self), dtype=np.bool_)
        is_wanted[groups] = True
        return self._in_order[is_wanted[self._in_order]]

    def _ranked(self, groups: NDArray[np.int64]) -> NDArray[np.int64]:
        """The indexes of groups, in the order of their keys."""
        table = pa.table({str(i): _sortable(c) for i, c in enumerate(self.columns(groups))})
        by = [(name, "ascending", "at_start") for name in table.column_names]
        ranked: NDArray[np.int64] = pc.sort_indices(table, sort_keys=by).to_numpy()
        return ranked.astype(np.int64, copy=False)

    def mostly_dead(self, live: int) -> bool:
        """True if forgetting the keys that are gone is worth the trouble."""
        return len(self) > _FEW and len(self) > 2 * live

    def keep(
        self, live: NDArray[np.int64], columns: Sequence[pa.Array] | None = None
    ) -> NDArray[np.int64]:
        """Forget all keys but those of some groups; gives the new number of each, -1 if forgotten.

        The groups ascend, and so do their new numbers. With `columns`, the groups that stay have
        these key values from now on.

        >>> numbers = KeyNumbers([pa.string()])
        >>> numbers.encode([pa.array(["a", "b", "c"])], 3)
        array([0, 1, 2], dtype=int32)
        >>> numbers.keep(np.array([0, 2])), len(numbers)
        (array([ 0, -1,  1]), 2)
        """
        columns = self.columns(live) if columns is None else columns
        self._clear()
        numbers = self.encode(columns, len(live))
        if self._types:  # integers may have been numbered by their size
            last = self._pairs[-1] if self._pairs else self._columns[0]
            last.values = last.values.take(pa.array(np.argsort(numbers)))
        renamed = np.full(int(live.max(initial=-1)) + 1, -1, dtype=np.int64)
        renamed[live] = np.arange(len(live))
        return renamed


def _dictionary_encode(array: pa.Array) -> tuple[NDArray[np.int32], pa.Array]:
    """Each value's index among the distinct ones, and those.

    Integers that lie close together are numbered through a table, which is several times
    faster than hashing them.
    """
    if array.type == pa.int64() and array.null_count == 0 and len(array) > _FEW:
        values = array.to_numpy()
        low, high = int(values.min()), int(values.max())
        if is_dense(len(values), high - low + 1):
            present = np.zeros(high - low + 1, dtype=np.int32)
            indexes = np.empty(len(values), dtype=np.int32)
            _number(values, low, present, indexes)
            return indexes, pa.array(np.flatnonzero(present) + low)
    encoded = array.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(), encoded.dictionary


@compiled
def _number(values, low, present, indexes):  # type: ignore[no-untyped-def]
    for i in range(values.shape[0]):
        present[values[i] - low] = 1
    seen = 0
    for v in range(present.shape[0]):
        if present[v]:
            seen += 1
            present[v] = seen
    for i in range(values.shape[0]):
        indexes[i] = present[values[i] - low] - 1


def _sortable(array: pa.Array) -> pa.Array:
    """A column that Arrow sorts as SQL does: floats by their order keys, NaN last."""
    if not pa.types.is_floating(array.type):
        return array
    missing = pc.is_null(array).to_numpy(zero_copy_only=False)
    return pa.array(order_keys.encode(array), mask=missing)


def _normal(array: pa.Array) -> pa.Array:
    """-0.0 becomes 0.0 and every NaN the same one; other types are as they are."""
    if not pa.types.is_floating(array.type):
        return array
    positive = pc.add(array, pa.scalar(0.0, array.type))
    return pc.if_else(pc.is_nan(positive), pa.scalar(float("nan"), array.type), positive)
