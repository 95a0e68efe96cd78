"""A live window: the rows of the last sealed basic windows, and an index of one of their columns.

Rows come in any order. Those of the lowest open basic window are written behind the window and
indexed as they come, hidden; those of later ones wait in the batches they came in. So the rows of
each basic window stand together, row numbers ascend from one to the next, and sealing one costs by
its different values, not by its rows.

The index is made when the first basic window with rows is sealed, by a function that is shown what
came until then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.index.domain import Keys
from panes.index.index import Nulls
from panes.index.indexed_rows import IndexedRows
from panes.index.keys import NumberedKeys, ValueKeys
from panes.index.kinds import Structure
from panes.index.row_ring import Rows

PURGES = 5
"""The number of times that values without rows are forgotten in one roll-over (paper, 6.1)."""


@dataclass(slots=True)
class RowPiece:
    """Rows of one basic window that came together.

    `at` is where the first and the last of them are on the axis, if they are in its order.
    """

    arrays: Sequence[pa.Array]
    keys: Keys
    is_null: Nulls
    at: tuple[int, int] | None = None


class LiveWindow(IndexedRows):
    """A window over `length` basic windows. `open_from` is the number of the first open one.

    `at` is the number of the column that orders the rows of an answer; None: their own numbers.
    """

    def __init__(
        self,
        schema: pa.Schema,
        keys: ValueKeys,
        *,
        length: int,
        at: int | None,
        choose: Callable[[Keys], Structure],
    ) -> None:
        super().__init__(schema, keys)
        self.length = length
        self.open_from: int | None = None
        self._at, self._choose = at, choose
        self._waiting: dict[int, list[RowPiece]] = {}
        self._unpurged = 0
        self._newest: int | None = None
        self._disorder_before = 0
        self._present: tuple[Keys, NDArray[np.int64]] | None = None

    # What comes and goes

    def add(self, number: int, piece: RowPiece) -> None:
        """Rows of an open basic window."""
        if self.is_made and number == self.open_from:
            self._enter(piece)
        else:
            self._waiting.setdefault(number, []).append(piece)

    def seal_before(self, number: int) -> None:
        """Seal the basic windows before a number; the last ones of them are the window now."""
        if self.open_from is not None and number <= self.open_from:
            return
        before, self.open_from, self._present = self.open_from, number, None
        first = number - self.length
        self.evict_before(first)
        due = sorted(n for n in self._waiting if n < number)
        if before is not None and self.rows.end > self.rows.sealed:
            self._seal(before)
            self.evict_before(first)
        for n in due:
            pieces = self._waiting.pop(n)
            if n >= first:
                if not self.is_made:
                    self._choose_by(pieces)
                for piece in pieces:
                    self._enter(piece)
                self._seal(n)
        if self.is_made:
            for piece in self._waiting.pop(number, ()):
                self._enter(piece)

    def _choose_by(self, pieces: Sequence[RowPiece]) -> None:
        """Make the index that suits the first rows."""
        valid = [p.keys if p.is_null is None else p.keys[~p.is_null] for p in pieces]
        first_keys = np.concatenate(valid)
        self.make(self._choose(first_keys), first_keys)

    def _enter(self, piece: RowPiece) -> None:
        self.enter(piece.arrays, piece.keys, piece.is_null)
        if piece.at is None or (self._newest is not None and piece.at[0] < self._newest):
            self._disorder_before = self.rows.end
        else:
            self._newest = piece.at[1]

    def _seal(self, number: int) -> None:
        self.seal(number)
        self._unpurged += 1
        if self._unpurged * PURGES >= self.length:
            self._unpurged = 0
            self.purge(piece.keys for pieces in self._waiting.values() for piece in pieces)

    # What is there

    @property
    def next_to_seal(self) -> int | None:
        """The number of the basic window that is sealed next; None as long as no row has come."""
        if self.open_from is not None:
            return self.open_from
        return min(self._waiting, default=None)

    @property
    def waiting(self) -> int:
        """The number of rows in basic windows that are not sealed."""
        waiting = sum(len(p.keys) for pieces in self._waiting.values() for p in pieces)
        return waiting + self.rows.end - self.rows.sealed

    def present(self) -> tuple[Keys, NDArray[np.int64]]:
        """The keys of all values, in the order of the values, and how many rows have each."""
        if self._present is None:
            keys, counts = self.index.present()
            if isinstance(self.keys, NumberedKeys):
                order = np.argsort(self.keys.rank(keys))
                keys, counts = keys[order], counts[order]
            self._present = keys, counts
        return self._present

    def rows_of(self, keys: Keys) -> Rows:
        """The rows that have one of some keys, in the order of the axis, then as they came."""
        found = self.index.rows_by_key(keys)[0]
        return self._in_order(np.sort(found) if len(keys) > 1 else found)

    def table_of_one(self, key: int) -> pa.Table:
        """The rows that have a key, in the same order, as a table."""
        if self._is_in_order:
            return self.index.table_of_one(key)
        return self.rows.take(self._in_order(self.index.rows_of_one(key)))

    def _in_order(self, found: Rows) -> Rows:
        """Ascending rows in the order of the axis, which is theirs if they came in order."""
        if self._is_in_order or len(found) < 2:
            return found
        assert self._at is not None
        return found[np.argsort(self.rows.raw(self._at, found), kind="stable")]

    @property
    def _is_in_order(self) -> bool:
        """True if rows are in the order that answers have."""
        return self._at is None or self._disorder_before <= self.rows.begin

    def sorted_rows(self, keys: Keys, limit: int | None = None) -> Rows:
        """The rows of keys, key after key, and for each key as `rows_of`; so many at the most."""
        found, begins = self.index.rows_by_key(keys)
        if not self._is_in_order and len(found) > 1:
            assert self._at is not None
            at = self.rows.raw(self._at, found).astype(np.int64)
            value = np.repeat(np.arange(len(keys)), np.diff(begins))
            found = found[np.lexsort((found, at, value))]
        return found if limit is None else found[:limit]

    def null_rows(self) -> Rows:
        """The rows without a value, in the order of the axis, then as they came."""
        return self._in_order(self.index.null_rows())
