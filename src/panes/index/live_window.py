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

from panes.arrays.slots import distinct
from panes.index.basic_windows import BasicWindow, BasicWindows
from panes.index.domain import Keys
from panes.index.index import Index, Nulls
from panes.index.keys import NumberedKeys, ValueKeys
from panes.index.kinds import Structure, make_index, make_rows
from panes.index.row_ring import RowRing, Rows

PURGES = 5
"""The number of times that values without rows are forgotten in one roll-over (paper, 6.1)."""
_FEW = 4_096


@dataclass(slots=True)
class RowPiece:
    """Rows of one basic window that came together.

    `at` is where the first and the last of them are on the axis, if they are in its order.
    """

    arrays: Sequence[pa.Array]
    keys: Keys
    is_null: Nulls
    at: tuple[int, int] | None = None


class LiveWindow:
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
        self.schema, self.keys, self.length = schema, keys, length
        self.open_from: int | None = None
        self.windows = BasicWindows()
        self._at, self._choose = at, choose
        self._waiting: dict[int, list[RowPiece]] = {}
        self._rows: RowRing | None = None
        self._index: Index | None = None
        self._unpurged = 0
        self._newest: int | None = None
        self._disorder_before = 0
        self._present: tuple[Keys, NDArray[np.int64]] | None = None

    # What comes and goes

    def add(self, number: int, piece: RowPiece) -> None:
        """Rows of an open basic window."""
        if self._index is not None and number == self.open_from:
            self._enter(piece)
        else:
            self._waiting.setdefault(number, []).append(piece)

    def seal_before(self, number: int) -> None:
        """Seal the basic windows before a number; the last ones of them are the window now."""
        if self.open_from is not None and number <= self.open_from:
            return
        before, self.open_from, self._present = self.open_from, number, None
        first = number - self.length
        self._evict_before(first)
        due = sorted(n for n in self._waiting if n < number)
        if self._index is not None and before is not None and self.rows.end > self.rows.sealed:
            self._seal(before)
            self._evict_before(first)
        for n in due:
            pieces = self._waiting.pop(n)
            if n >= first:
                self._make(pieces)
                for piece in pieces:
                    self._enter(piece)
                self._seal(n)
        if self._index is not None:
            for piece in self._waiting.pop(number, ()):
                self._enter(piece)

    def _make(self, pieces: Sequence[RowPiece]) -> None:
        """Make the index, now that there are rows to choose it by."""
        if self._index is not None:
            return
        valid = [p.keys if p.is_null is None else p.keys[~p.is_null] for p in pieces]
        first_keys = np.concatenate(valid)
        chosen = self._choose(first_keys)
        self._rows = make_rows(self.schema, chosen)
        self._index = make_index(chosen, self._rows, self.windows, first_keys)

    def _enter(self, piece: RowPiece) -> None:
        first = self.rows.append(piece.arrays, len(piece.keys))
        self.index.add(first, piece.keys, piece.is_null)
        if piece.at is None or (self._newest is not None and piece.at[0] < self._newest):
            self._disorder_before = self.rows.end
        else:
            self._newest = piece.at[1]

    def _seal(self, number: int) -> None:
        begin = self.rows.sealed
        summary = self.index.seal()
        self.rows.seal()
        self.windows.append(BasicWindow(number, begin, self.rows.end, summary))
        self._unpurged += 1
        if self._unpurged * PURGES >= self.length:
            self._purge()

    def _evict_before(self, number: int) -> None:
        for window in self.windows.pop_before(number):
            self.index.evict(window)
            self.rows.evict(window.end)

    def _purge(self) -> None:
        self._unpurged = 0
        self.index.purge()
        if isinstance(self.keys, NumberedKeys):
            self._forget_text(self.keys)

    def _forget_text(self, keys: NumberedKeys) -> None:
        """Forget text that no row has any more, if most of it is."""
        numbers = keys.numbers
        if len(numbers) <= _FEW:
            return
        waiting = [piece.keys for pieces in self._waiting.values() for piece in pieces]
        live = distinct(np.concatenate([self.index.live_keys(), *waiting]))
        if len(numbers) <= 2 * len(live):
            return
        renamed = numbers.keep(live)
        self.index.rekey(renamed)
        for pieces in self._waiting.values():
            for piece in pieces:
                piece.keys = renamed[piece.keys]

    # What is there

    @property
    def index(self) -> Index:
        assert self._index is not None
        return self._index

    @property
    def rows(self) -> RowRing:
        assert self._rows is not None
        return self._rows

    @property
    def next_to_seal(self) -> int | None:
        """The number of the basic window that is sealed next; None as long as no row has come."""
        if self.open_from is not None:
            return self.open_from
        return min(self._waiting, default=None)

    @property
    def is_empty(self) -> bool:
        """True if no basic window with rows was ever sealed."""
        return self._index is None

    def __len__(self) -> int:
        """The number of rows in the window."""
        return 0 if self._rows is None else self._rows.sealed - self._rows.begin

    @property
    def waiting(self) -> int:
        """The number of rows in basic windows that are not sealed."""
        waiting = sum(len(p.keys) for pieces in self._waiting.values() for p in pieces)
        return waiting + (0 if self._rows is None else self._rows.end - self._rows.sealed)

    @property
    def nbytes(self) -> int:
        """Bytes of rows, index and basic windows, those that wait aside."""
        if self._index is None:
            return 0
        return self.rows.nbytes + self.index.nbytes + self.windows.nbytes

    def count_one(self, key: int) -> int:
        """The number of rows that have a key."""
        return 0 if self._index is None else self._index.count_one(key)

    def counts(self, keys: Keys) -> NDArray[np.int64]:
        """The number of rows that have each key."""
        if self._index is None:
            return np.zeros(len(keys), dtype=np.int64)
        return self._index.counts(keys)

    def present(self) -> tuple[Keys, NDArray[np.int64]]:
        """The keys of all values, in the order of the values, and how many rows have each."""
        if self._index is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        if self._present is not None:
            return self._present
        keys, counts = self._index.present()
        if isinstance(self.keys, NumberedKeys):
            order = np.argsort(self.keys.rank(keys))
            keys, counts = keys[order], counts[order]
        self._present = keys, counts
        return keys, counts

    def rows_of(self, keys: Keys) -> Rows:
        """The rows that have one of some keys, in the order of the axis, then as they came."""
        if self._index is None or not len(keys):
            return np.zeros(0, dtype=np.int64)
        found = self._index.rows_by_key(keys)[0]
        return self._in_order(np.sort(found) if len(keys) > 1 else found)

    def rows_of_one(self, key: int) -> Rows:
        """The same for one key."""
        if self._index is None:
            return np.zeros(0, dtype=np.int64)
        return self._in_order(self._index.rows_of_one(key))

    def table_of_one(self, key: int) -> pa.Table:
        """The same as a table."""
        if self._index is None:
            return self.schema.empty_table()
        if self._is_in_order:
            return self._index.table_of_one(key)
        return self.take(self.rows_of_one(key))

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
        if self._index is None or not len(keys):
            return np.zeros(0, dtype=np.int64)
        found, begins = self._index.rows_by_key(keys)
        if not self._is_in_order and len(found) > 1:
            assert self._at is not None
            at = self.rows.raw(self._at, found).astype(np.int64)
            value = np.repeat(np.arange(len(keys)), np.diff(begins))
            found = found[np.lexsort((found, at, value))]
        return found if limit is None else found[:limit]

    def null_rows(self) -> Rows:
        """The rows without a value, in the order of the axis, then as they came."""
        if self._index is None:
            return np.zeros(0, dtype=np.int64)
        return self._in_order(self._index.null_rows())

    def take(self, rows: Rows) -> pa.Table:
        """Rows as a table."""
        return self.schema.empty_table() if self._rows is None else self._rows.take(rows)
